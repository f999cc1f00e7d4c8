//! permessage-deflate at work: messages compressed (RFC 7692 section 7.2.1).
//!
//! A compressor holds some 300 KiB and is worth sharing: the messages of one connection may follow those of another, if
//! each begins with its own receiver's history. A history may be forgotten at any message, since a compressed message
//! need not refer to earlier ones. The receiving direction has no such choice.

use std::fmt;

use zlib_rs::{DeflateConfig, DeflateFlush};

use super::encoder;
use super::extension::Deflate;
use super::header::Opcode;
use super::inflate::TAIL;

/// One compressor, for any number of connections in turn.
///
/// Drive it per message: [`Compressor::begin`] unless the message continues the stream of the one before, then
/// [`Compressor::compress`]. Its memory is allocated by the first message, and stays.
pub struct Compressor {
    parameters: Parameters,
    stream: Option<Box<zlib_rs::Deflate>>,
}

/// The parameters that decide a message's compressed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    window_bits: u8,
    level: u8,
    memory_level: u8,
}

/// There is no memory for a compressed form: the message is to be sent uncompressed, and the next one to begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCompressed;

impl Compressor {
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            stream: None,
        }
    }

    /// Forgets all earlier messages. The next one may refer to `history`, the end of what its receiver has inflated.
    pub fn begin(&mut self, history: &[u8]) {
        let Parameters {
            window_bits,
            level,
            memory_level,
        } = self.parameters;
        match &mut self.stream {
            Some(stream) => stream.reset(),
            None => {
                let config = DeflateConfig {
                    level: i32::from(level),
                    window_bits: -i32::from(window_bits),
                    mem_level: i32::from(memory_level),
                    ..DeflateConfig::default()
                };
                self.stream = Some(Box::new(zlib_rs::Deflate::new_with_config(config)));
            }
        }
        if let Some(stream) = &mut self.stream
            && !history.is_empty()
            && stream.set_dictionary(history).is_err()
        {
            // Without a history any message is valid.
            stream.reset();
        }
    }

    /// Appends the compressed form of `message`: the payload of a frame with RSV1, or of several that share it. It may
    /// refer to the messages since [`Compressor::begin`].
    pub fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), NotCompressed> {
        if message.is_empty() {
            // An empty stored block without its tail. Asked to flush twice without input between,
            // the compressor would say nothing at all.
            out.push(0);
            return Ok(());
        }
        if self.stream.is_none() {
            self.begin(&[]);
        }
        let Some(stream) = &mut self.stream else {
            return Err(NotCompressed);
        };
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
                return Err(NotCompressed);
            }
            if made < room {
                break;
            }
        }
        debug_assert!(input.is_empty() && out.ends_with(&TAIL));
        out.truncate(out.len() - TAIL.len());
        Ok(())
    }

    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Bytes held, by the library's own reckoning: its state, the head of the hash chains, the chains and a double
    /// window, and the buffers that depend on the memory level.
    pub fn held_bytes(&self) -> usize {
        let Parameters {
            window_bits,
            memory_level,
            ..
        } = self.parameters;
        match self.stream {
            Some(_) => (136 << 10) + (4 << window_bits) + (7 << (memory_level + 6)),
            None => 0,
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor")
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

impl Deflate {
    /// The parameters of this side's compressor.
    pub fn parameters(&self) -> Parameters {
        Parameters {
            window_bits: self.own.window_bits,
            level: self.level,
            memory_level: self.memory_level,
        }
    }

    /// Whether this side's messages may refer to earlier ones.
    pub fn has_takeover(&self) -> bool {
        self.own.takeover
    }

    /// The most bytes of earlier messages that a message may refer to.
    pub fn window_bytes(&self) -> usize {
        1 << self.own.window_bits
    }
}

/// The sending direction of one connection, with a compressor of its own.
#[derive(Debug)]
pub struct Deflater {
    compressor: Compressor,
    takeover: bool,
}

impl Deflater {
    pub fn new(deflate: Deflate) -> Self {
        Self {
            compressor: Compressor::new(deflate.parameters()),
            takeover: deflate.has_takeover(),
        }
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
            Ok(()) => encoder::raw_frame(opcode, true, true, mask, &payload, out),
            Err(NotCompressed) => encoder::raw_frame(opcode, true, false, mask, message, out),
        }
    }

    /// Appends the compressed form of `message`.
    pub fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), NotCompressed> {
        let compressed = self.compressor.compress(message, out);
        if !self.takeover {
            // Nothing is held between messages.
            self.compressor = Compressor::new(self.compressor.parameters());
        }
        compressed
    }
}
