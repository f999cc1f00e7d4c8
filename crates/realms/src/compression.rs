//! permessage-deflate for output (RFC 7692).
//!
//! ```text
//! queue ─frames─▶ CompressFilter ─(history, message)─▶ Workshop of this thread ─▶ one frame for all receivers
//!                     │ history: the end of what this peer has inflated
//! ```
//!
//! A session holds no compressor, only its history: at most [`HISTORY_BYTES_MAX`], less if the agreed window is
//! narrower, and nothing without context takeover. A history may be dropped at any message, because no compressed
//! message has to refer to earlier ones. It is dropped after [`UNUSED_S_MAX`] without a compressed message, and when
//! memory is short.

mod workshop;

use std::sync::Arc;

use bytes::Bytes;
use crosstie_transport::{Account, Filter, Filtered, StageError, now_s};
use crosstie_wamp::framing::websocket::{Deflate, Parameters, sent_frame};

use self::workshop::{Message, Receiver, Workshop};

/// The filter of one connection.
pub(crate) struct CompressFilter {
    history: History,
    account: Arc<Account>,
    /// The history's bytes as reported to the connection.
    told_bytes: usize,
    /// When a message was compressed last.
    used_at_s: u32,
}

/// The end of what a peer has inflated, which its next message may refer to.
struct History {
    parameters: Parameters,
    /// 0 without context takeover.
    bytes_max: usize,
    bytes: Vec<u8>,
    mark: Mark,
}

/// Identifies a history's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    /// Equal numbers mean equal histories. 0: an empty one.
    number: u64,
    /// Another receiver had the same history.
    is_common: bool,
}

/// Compressing a shorter message costs more than it saves; the RFC allows to send it uncompressed.
const COMPRESS_BYTES_MIN: usize = 64;

/// Of WAMP messages of 1 KB, 4 KiB of history save what 32 KiB save, but for a few percent, and cost 8 µs a message to
/// refer to, not 60.
const HISTORY_BYTES_MAX: usize = 4096;

/// Seconds after which an unused history is dropped.
const UNUSED_S_MAX: u32 = 60;

impl CompressFilter {
    pub(crate) fn new(deflate: Deflate, account: &Arc<Account>) -> Self {
        workshop::note_opened();
        Self {
            history: History::new(&deflate),
            account: Arc::clone(account),
            told_bytes: 0,
            used_at_s: 0,
        }
    }
}

impl Filter for CompressFilter {
    fn send(&mut self, queued: &[u8], out: &mut Filtered<'_>) -> Result<(), StageError> {
        self.used_at_s = now_s();
        workshop::with(|workshop| {
            let mut rest = queued;
            while !rest.is_empty() {
                let Some((opcode, payload, length)) = sent_frame(rest) else {
                    let why = "invalid frame in the output queue".to_owned();
                    return Err(StageError(why));
                };
                let frame;
                (frame, rest) = rest.split_at(length);
                if opcode.is_control() || payload.len() < COMPRESS_BYTES_MIN {
                    out.append(frame);
                    continue;
                }
                let message = Message { opcode, payload };
                match self.history.compress(message, workshop, &self.account) {
                    Some(compressed) => out.append_shared(&compressed),
                    None => out.append(frame),
                }
            }
            Ok(())
        })
    }

    fn take_growth(&mut self) -> isize {
        let before = std::mem::replace(&mut self.told_bytes, self.history.bytes.capacity());
        self.told_bytes as isize - before as isize
    }

    fn give_up(&mut self) {
        self.history.forget();
    }

    fn give_up_unused(&mut self, now_s: u32) {
        if now_s.saturating_sub(self.used_at_s) >= UNUSED_S_MAX {
            self.history.forget();
        }
        workshop::sweep(now_s);
    }
}

impl Drop for CompressFilter {
    fn drop(&mut self) {
        workshop::note_closed();
    }
}

impl History {
    fn new(deflate: &Deflate) -> Self {
        let bytes_max = match deflate.has_takeover() {
            true => deflate.window_bytes().min(HISTORY_BYTES_MAX),
            false => 0,
        };
        Self {
            parameters: deflate.parameters(),
            bytes_max,
            bytes: Vec::new(),
            mark: Mark::default(),
        }
    }

    /// The compressed frame of `message`, which the peer will inflate next. `None`: there is no memory for it.
    fn compress(
        &mut self,
        message: Message<'_>,
        workshop: &mut Workshop,
        account: &Arc<Account>,
    ) -> Option<Bytes> {
        let receiver = Receiver {
            mark: self.mark,
            history: &self.bytes,
        };
        let made = workshop.compress(message, self.parameters, receiver, account);
        if made.as_ref().is_none_or(|made| made.is_fresh) || account.is_tight() {
            self.forget();
        }
        let made = made?;
        if !account.is_tight() {
            self.push(message.payload, made.mark);
        }
        Some(made.frame)
    }

    fn forget(&mut self) {
        self.bytes = Vec::new();
        self.mark = Mark::default();
    }

    /// Adds a message that the peer will inflate.
    fn push(&mut self, message: &[u8], mark: Mark) {
        if self.bytes_max == 0 {
            return;
        }
        self.mark = mark;
        let added = &message[message.len().saturating_sub(self.bytes_max)..];
        let length = self.bytes.len() + added.len();
        let dropped = length.saturating_sub(self.bytes_max);
        self.bytes.drain(..dropped);
        let wanted = (length - dropped).next_power_of_two().min(self.bytes_max);
        if self.bytes.capacity() < wanted {
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(added);
    }
}

#[cfg(test)]
mod tests;
