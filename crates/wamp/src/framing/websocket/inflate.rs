//! permessage-deflate at work: messages inflated (RFC 7692 section 7.2.2).
//!
//! A peer with context takeover may refer to the end of what it sent, as far back as its window reaches, at any later
//! time. So that end is kept for the connection's life: as plain bytes, and no more than were received. The inflater
//! itself exists only while a message is incomplete.

use std::collections::VecDeque;
use std::fmt;

use zlib_rs::{Inflate, InflateFlush, Status};

/// The end of every compressed message, which no sender sends (RFC 7692, section 7.2.1).
pub(super) const TAIL: [u8; 4] = [0, 0, 0xFF, 0xFF];

/// How much room an inflating message gets at a time, at least.
const ROOM_MIN: usize = 512;
/// And at most: memory grows with bytes that were inflated, and not with those that a peer announces.
const ROOM_MAX: usize = 64 << 10;

/// Memory of an inflater, whatever the window.
const INFLATER_BYTES: usize = 46 << 10;

/// The least window that is kept for a peer: common compressors cannot keep to 256 bytes, and use 512.
const WINDOW_BITS_MIN: u8 = 9;

/// The receiving direction of one connection.
pub(super) struct Inflater {
    /// Maximum length of `window`. 0 without context takeover.
    window_bytes_max: usize,
    /// The end of all messages that the peer has compressed.
    window: VecDeque<u8>,
    /// The message that is being inflated.
    message: Option<Box<Inflating>>,
}

/// The fault of a compressed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotInflated {
    /// It is not compressed data, or refers to bytes beyond the window.
    Invalid,
    TooLong,
}

struct Inflating {
    inflate: Inflate,
    /// Bytes were taken that a tail has to follow.
    open: bool,
}

impl Inflater {
    /// For a peer whose messages may refer to earlier ones as far as that window reaches; `None`: to none.
    pub(super) fn new(window_bits: Option<u8>) -> Self {
        let window_bytes_max = match window_bits {
            Some(window_bits) => 1 << window_bits.max(WINDOW_BITS_MIN),
            None => 0,
        };
        Self {
            window_bytes_max,
            window: VecDeque::new(),
            message: None,
        }
    }

    /// Appends the inflated payload of one frame. `out` is the message so far, and at most `length_max` long.
    pub(super) fn frame(
        &mut self,
        payload: &[u8],
        last: bool,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), NotInflated> {
        let message = match &mut self.message {
            Some(message) => message,
            none => none.insert(Inflating::begin(&self.window)?),
        };
        message.feed(payload, length_max, out)?;
        if last {
            if message.open {
                message.feed(&TAIL, length_max, out)?;
            }
            self.message = None;
            self.keep(out);
        }
        Ok(())
    }

    /// Bytes held until the message is complete.
    pub(super) fn message_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |_| INFLATER_BYTES)
    }

    /// Bytes held between messages.
    pub(super) fn window_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// Adds the end of a message to the window.
    fn keep(&mut self, message: &[u8]) {
        let added = &message[message.len().saturating_sub(self.window_bytes_max)..];
        let length = self.window.len() + added.len();
        let dropped = length.saturating_sub(self.window_bytes_max);
        self.window.drain(..dropped);
        let wanted = (length - dropped)
            .next_power_of_two()
            .min(self.window_bytes_max);
        if self.window.capacity() < wanted {
            self.window.reserve_exact(wanted - self.window.len());
        }
        self.window.extend(added);
    }
}

impl Inflating {
    fn begin(window: &VecDeque<u8>) -> Result<Box<Self>, NotInflated> {
        // The widest window also inflates the output of a narrower one, and takes no more memory in this library.
        let mut inflate = Inflate::new(false, 15);
        let (front, back) = window.as_slices();
        for part in [front, back] {
            if !part.is_empty() && inflate.set_dictionary(part).is_err() {
                return Err(NotInflated::Invalid);
            }
        }
        Ok(Box::new(Self {
            inflate,
            open: false,
        }))
    }

    fn feed(
        &mut self,
        mut input: &[u8],
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), NotInflated> {
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
                return Err(NotInflated::TooLong);
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
                Ok(_) | Err(_) => return Err(NotInflated::Invalid),
            }
        }
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater")
            .field("window_bytes", &self.window.len())
            .field("is_inflating", &self.message.is_some())
            .finish_non_exhaustive()
    }
}
