//! The queue of framed messages to send.

use crosstie_wamp::codec::{self, TranscodeError};
use crosstie_wamp::framing::{FrameError, Framing, rawsocket};
use crosstie_wamp::{Message, Serializer};

use crate::error::Unsendable;

/// The result of the handshake for this direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) serializer: Serializer,
    pub(crate) wire: WireFormat,
    /// Maximum message size in bytes that the router accepts, as far as it has announced one.
    pub(crate) length_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireFormat {
    RawSocket,
    WebSocket { batched: bool },
}

/// Bytes in the order of sending.
#[derive(Debug)]
pub(crate) struct Outgoing {
    format: Format,
    bytes: Vec<u8>,
    /// The length when a sender that had waited for room last appended.
    waited: usize,
    masks: Masks,
}

/// Room for a head and small arguments; a longer message is moved once.
const LENGTH_HINT: usize = 120;

impl Outgoing {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            bytes: Vec::new(),
            waited: 0,
            masks: Masks::new(),
        }
    }

    pub(crate) fn serializer(&self) -> Serializer {
        self.format.serializer
    }

    /// Appends a message, or leaves everything as it was.
    pub(crate) fn push(&mut self, message: &Message<'_>) -> Result<(), Unsendable> {
        let start = self.bytes.len();
        let framing = self.framing();
        let Format {
            serializer,
            length_max,
            ..
        } = self.format;
        let mut length = 0;
        let hint = LENGTH_HINT + message.payload().map_or(0, |payload| payload.len());
        let framed = framing.frame(serializer, hint, &mut self.bytes, |out| {
            let before = out.len();
            codec::encode(message, serializer, out)?;
            length = out.len() - before;
            Ok::<(), TranscodeError>(())
        });
        match framed {
            Ok(()) if length <= length_max => Ok(()),
            Ok(()) => {
                self.bytes.truncate(start);
                Err(Unsendable::TooLong { length, length_max })
            }
            Err(FrameError::Write(error)) => Err(Unsendable::Arguments(error)),
            Err(FrameError::TooLong { length, length_max }) => {
                Err(Unsendable::TooLong { length, length_max })
            }
        }
    }

    pub(crate) fn ping(&mut self) {
        self.framing().ping(&[], &mut self.bytes);
    }

    pub(crate) fn pong(&mut self, payload: &[u8]) {
        self.framing().pong(payload, &mut self.bytes);
    }

    pub(crate) fn close(&mut self, code: u16, reason: &str) {
        self.framing().close(code, reason, &mut self.bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Records that the bytes so far had waited for their room.
    pub(crate) fn mark_waited(&mut self) {
        self.waited = self.bytes.len();
    }

    /// Bytes appended since by messages that cannot wait.
    pub(crate) fn unwaited(&self) -> usize {
        self.bytes.len() - self.waited
    }

    /// Swaps the queued bytes for an empty buffer.
    pub(crate) fn take(&mut self, empty: &mut Vec<u8>) {
        debug_assert!(empty.is_empty(), "the previous bytes have been sent");
        std::mem::swap(&mut self.bytes, empty);
        self.waited = 0;
    }

    fn framing(&mut self) -> Framing {
        match self.format.wire {
            WireFormat::RawSocket => Framing::RawSocket,
            WireFormat::WebSocket { batched } => Framing::WebSocketClient {
                batched,
                mask: self.masks.next(),
            },
        }
    }
}

impl Format {
    /// A RawSocket's, by its handshake.
    pub(crate) fn rawsocket(accepted: &rawsocket::Accepted) -> Self {
        Self {
            serializer: accepted.serializer,
            wire: WireFormat::RawSocket,
            length_max: accepted.peer_length_max,
        }
    }
}

/// A fresh masking key for each frame, as RFC 6455 section 5.3 demands. They are drawn from the system in lots: one
/// system call per frame would cost more than the frame.
#[derive(Debug)]
struct Masks {
    lot: [[u8; 4]; 64],
    left: usize,
}

impl Masks {
    fn new() -> Self {
        Self {
            lot: [[0; 4]; 64],
            left: 0,
        }
    }

    fn next(&mut self) -> [u8; 4] {
        if self.left == 0 {
            // Without fresh keys the old ones have to do: the connection began with a random nonce.
            let _ = getrandom::fill(self.lot.as_flattened_mut());
            self.left = self.lot.len();
        }
        self.left -= 1;
        self.lot[self.left]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstie_wamp::{Payload, RequestId, YieldOptions};

    #[test]
    fn a_message_that_does_not_fit_leaves_nothing() {
        for wire in [
            WireFormat::RawSocket,
            WireFormat::WebSocket { batched: false },
        ] {
            let mut outgoing = Outgoing::new(Format {
                serializer: Serializer::Json,
                wire,
                length_max: 512,
            });
            let text = format!("[{:?}]", "x".repeat(600));
            let message = |args| Message::Yield {
                request: RequestId(1),
                options: YieldOptions::default(),
                payload: Payload::new(Serializer::Json, args, &[]),
            };
            outgoing.push(&message(b"[1]")).unwrap();
            let length = outgoing.len();
            let error = outgoing.push(&message(text.as_bytes())).unwrap_err();
            assert!(matches!(
                error,
                Unsendable::TooLong {
                    length_max: 512,
                    ..
                }
            ));
            assert_eq!(outgoing.len(), length);
        }
    }
}
