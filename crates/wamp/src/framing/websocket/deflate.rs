//! permessage-deflate at work: messages compressed and inflated (RFC 7692 section 7.2).
//!
//! Both directions take their memory when the first compressed message passes, and a direction
//! without context takeover gives it back after each message: a connection that is idle, or
//! never compresses, holds none. Keeping a compressor and resetting it would save a tenth of a
//! message's time at most, for some 260 KiB held.

use std::fmt;

use zlib_rs::{DeflateConfig, DeflateFlush, Inflate, InflateFlush, Status};

use super::encoder;
use super::extension::Deflate;
use super::header::Opcode;
use crate::framing::FramingError;

/// The end of every compressed message, which no sender sends (RFC 7692, section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xFF, 0xFF];
/// How much room an inflating message gets at a time, at least.
const ROOM_MIN: usize = 512;
/// And at most: memory grows with bytes that were inflated, and not with those that a peer announces.
const ROOM_MAX: usize = 64 << 10;

/// Memory of an inflater, whatever the window.
const INFLATER_BYTES: usize = 46 << 10;

/// The receiving direction of one connection.
pub(super) struct Inflater {
    inflate: Inflate,
    /// Bytes were taken that a tail has to follow.
    open: bool,
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self {
            // The widest window also inflates the output of a narrower one, and takes no more memory in this library.
            inflate: Inflate::new(false, 15),
            open: false,
        }
    }

    /// Appends the inflated payload of one frame. `length_max` is for all of `out`.
    pub(super) fn frame(
        &mut self,
        payload: &[u8],
        last: bool,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FramingError> {
        self.feed(payload, length_max, out)?;
        if last && self.open {
            self.feed(&TAIL, length_max, out)?;
            self.open = false;
        }
        Ok(())
    }

    fn feed(
        &mut self,
        mut input: &[u8],
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FramingError> {
        if input.is_empty() {
            return Ok(());
        }
        self.open = true;
        loop {
            let start = out.len();
            // One byte above the limit shows that the result is too long.
            let room = (4 * input.len()).clamp(ROOM_MIN, ROOM_MAX);
            let room = room.min(length_max.saturating_sub(start) + 1);
            out.resize(start + room, 0);
            let (total_in, total_out) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(input, &mut out[start..], InflateFlush::SyncFlush);
            let taken = (self.inflate.total_in() - total_in) as usize;
            let made = (self.inflate.total_out() - total_out) as usize;
            out.truncate(start + made);
            if out.len() > length_max {
                return Err(FramingError::InflatedTooLong { length_max });
            }
            input = &input[taken..];
            match status {
                // A sender may end its stream. Later bytes begin a new one, and the old one needs no tail (section
                // 7.2.3.4).
                Ok(Status::StreamEnd) => {
                    self.inflate.reset(false);
                    self.open = !input.is_empty();
                    if !self.open {
                        return Ok(());
                    }
                }
                // Without room to spare there may be more to come.
                Ok(_) if input.is_empty() && made < room => return Ok(()),
                Ok(_) if taken + made > 0 => {}
                Ok(_) | Err(_) => return Err(FramingError::Deflate),
            }
        }
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// The sending direction of one connection.
pub struct Deflater {
    deflate: Deflate,
    stream: Option<Box<zlib_rs::Deflate>>,
}

impl Deflater {
    pub fn new(deflate: Deflate) -> Self {
        Self {
            deflate,
            stream: None,
        }
    }

    /// Bytes held between two messages, as they were measured. They consist of the compressor's fixed part, its window
    /// and chains, and the part that depends on `memory_level`. Beside them is the inflater of the other direction,
    /// which exists once the peer has sent a compressed message, as its first one mostly is.
    pub fn held_bytes(&self) -> usize {
        let Deflate {
            own,
            peer,
            memory_level,
            ..
        } = self.deflate;
        let own = match self.stream {
            Some(_) => (136 << 10) + (4 << own.window_bits) + (4 << (memory_level + 6)),
            None => 0,
        };
        own + if peer.takeover { INFLATER_BYTES } else { 0 }
    }

    /// Appends one data message as one compressed frame.
    pub fn message(
        &mut self,
        text: bool,
        mask: Option<[u8; 4]>,
        message: &[u8],
        out: &mut Vec<u8>,
    ) {
        let mut payload = Vec::new();
        let opcode = Opcode::data(text);
        match self.compress(message, &mut payload) {
            Some(()) => encoder::raw_frame(opcode, true, true, mask, &payload, out),
            None => encoder::raw_frame(opcode, true, false, mask, message, out),
        }
    }

    /// Appends the compressed form of `message`: the payload of a frame with RSV1, or of several that share it. `None`:
    /// there is no memory for it, and the message is to be sent uncompressed.
    pub fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if message.is_empty() {
            // An empty stored block without its tail. Asked to flush twice without input between,
            // the compressor would say nothing at all.
            out.push(0);
            return Some(());
        }
        let Deflate {
            own,
            level,
            memory_level,
            ..
        } = self.deflate;
        let stream = self.stream.get_or_insert_with(|| {
            let config = DeflateConfig {
                level: i32::from(level),
                window_bits: -i32::from(own.window_bits),
                mem_level: i32::from(memory_level),
                ..DeflateConfig::default()
            };
            Box::new(zlib_rs::Deflate::new_with_config(config))
        });
        let begun = out.len();
        let mut input = message;
        loop {
            let start = out.len();
            let room = zlib_rs::compress_bound(input.len()) + TAIL.len() + 2;
            out.resize(start + room, 0);
            let (total_in, total_out) = (stream.total_in(), stream.total_out());
            let status = stream.compress(input, &mut out[start..], DeflateFlush::SyncFlush);
            let made = (stream.total_out() - total_out) as usize;
            input = &input[(stream.total_in() - total_in) as usize..];
            out.truncate(start + made);
            if status.is_err() {
                out.truncate(begun);
                self.stream = None;
                return None;
            }
            if made < room {
                break;
            }
        }
        if !own.takeover {
            self.stream = None;
        }
        debug_assert!(input.is_empty() && out.ends_with(&TAIL));
        out.truncate(out.len() - TAIL.len());
        Some(())
    }
}

impl fmt::Debug for Deflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deflater")
            .field("deflate", &self.deflate)
            .finish_non_exhaustive()
    }
}
