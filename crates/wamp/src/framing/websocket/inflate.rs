//! permessage-deflate at work: messages inflated (RFC 7692 section 7.2.2).

use std::fmt;

use zlib_rs::{Inflate, InflateFlush, Status};

use super::deflate::TAIL;
use crate::framing::FramingError;

/// How much room an inflating message gets at a time, at least.
const ROOM_MIN: usize = 512;
/// And at most: memory grows with bytes that were inflated, and not with those that a peer announces.
const ROOM_MAX: usize = 64 << 10;

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
