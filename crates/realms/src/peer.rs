//! The peer of a session, as a realm's handle: where and in which form to send.

use std::sync::Arc;

use bytes::Bytes;
use crosstie_front::counters::{Counter, counters};
use crosstie_routing::Refused;
use crosstie_transport::{Connection, Queued, Refused as Unqueued};
use crosstie_wamp::codec::{self, Detail};
use crosstie_wamp::framing::{FrameError, Framing, rawsocket};
use crosstie_wamp::{Message, Payload, Serializer, SessionId, Value};

use crate::message_counts::{Direction, Messages};
use crate::payload_encodings::{self, PayloadEncodings, Shared};

/// A connection with its message format. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Peer {
    pub connection: Arc<Connection>,
    pub wire: Wire,
}

/// The format of a session's messages.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    pub serializer: Serializer,
    pub framing: Framing,
    /// Maximum message size that the peer accepts.
    pub message_bytes_max: u32,
}

/// Approximate size of a message's head; a good guess avoids moving the body behind its prefix.
const HEAD_BYTES: usize = 40;
/// Approximate size of WELCOME.
const WELCOME_BYTES: usize = 1_000;

impl Peer {
    /// Queues one message, with its payload from `encodings` if present there.
    pub(crate) fn send(
        &self,
        message: &Message<'_>,
        encodings: &mut PayloadEncodings<'_>,
    ) -> Result<(), Refused> {
        if let Some(payload) = encodings.shared(message, self.wire.serializer) {
            return self
                .wire
                .write_around(message, payload)?
                .append_to(&self.connection)
                .map(drop);
        }
        self.append(|out| self.wire.write(message, encodings, out))
    }

    /// Queues WELCOME with those details.
    pub(crate) fn send_welcome(
        &self,
        session: SessionId,
        details: &[(&str, Detail<'_>)],
    ) -> Result<(), Refused> {
        let Wire { serializer, .. } = self.wire;
        self.append(|out| {
            self.wire.frame(WELCOME_BYTES, out, |out| {
                codec::encode_welcome(session, details, serializer, out)
                    .map_err(payload_encodings::unwritable)
            })
        })
    }

    fn append(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let appended = self.connection.append(write);
        appended.map_err(|refused| match refused {
            Unqueued::Full => Refused::Full,
            Unqueued::Gone => Refused::Gone,
            Unqueued::Writer(refused) => refused,
        })
    }
}

impl Peer {
    /// Queues a message from outside a realm, and counts it.
    pub(crate) fn send_counted(
        &self,
        messages: &Messages,
        message: &Message<'_>,
    ) -> Result<(), Refused> {
        let sent = self.send(message, &mut PayloadEncodings::new(Payload::EMPTY));
        match sent {
            Ok(()) => messages.count(Direction::Sent, message.kind()),
            Err(_) => counters().count(Counter::MessagesRefused),
        }
        sent
    }

    /// Queues ABORT behind the peer's output; room for a last message is always left. Nothing can be queued afterwards.
    pub(crate) fn say_last(&self, reason: &str, text: &str) {
        let details = vec![("message".to_owned(), Value::from(text))];
        let abort = Message::Abort {
            details,
            reason: reason.into(),
        };
        self.connection.append_last(|out| {
            // A peer whose maximum is shorter gets only the close frame.
            let _ = self
                .wire
                .write(&abort, &mut PayloadEncodings::new(Payload::EMPTY), out);
            self.wire.framing.close(POLICY_VIOLATION, text, out);
        });
    }
}

/// An encoded message.
pub enum Frame {
    /// An event, for all its receivers.
    Whole(Bytes),
    /// The head around a large payload, and the positions of its parts.
    Around {
        head: Vec<u8>,
        places: [usize; 2],
        payload: Shared,
        is_event: bool,
    },
}

impl Frame {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Around { head, payload, .. } => head.len() + payload.as_payload().len(),
        }
    }

    /// Queues the message.
    pub(crate) fn append_to(&self, connection: &Arc<Connection>) -> Result<Queued, Refused> {
        let appended = match self {
            Self::Whole(bytes) => connection.append_shared(bytes),
            Self::Around {
                head,
                places,
                payload,
                is_event,
            } => connection.append_parts(head, &payload.parts(*places), *is_event),
        };
        appended.map_err(|refused| match refused {
            Unqueued::Gone => Refused::Gone,
            Unqueued::Full | Unqueued::Writer(()) => Refused::Full,
        })
    }
}

/// RFC 6455, section 7.4.1: no other code describes the cause.
const POLICY_VIOLATION: u16 = 1008;

impl Wire {
    /// Appends `message`, framed, to `out`; nothing if it is refused.
    pub(crate) fn write(
        &self,
        message: &Message<'_>,
        encodings: &mut PayloadEncodings<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let hint = HEAD_BYTES + message.payload().map_or(0, |payload| payload.len());
        self.frame(hint, out, |out| {
            match encodings.of(message, self.serializer) {
                Ok(Some(payload)) => {
                    codec::encode_with(message, &payload, out);
                    Ok(())
                }
                Ok(None) => codec::encode(message, self.serializer, out)
                    .map_err(payload_encodings::unwritable),
                Err(refused) => Err(refused),
            }
        })
    }

    /// Appends the output of `write`, framed.
    #[inline]
    fn frame(
        &self,
        hint: usize,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let before = out.len();
        self.framing
            .frame(self.serializer, hint, out, write)
            .map_err(refused)?;
        if !rawsocket::fits(out.len() - before, self.message_bytes_max as usize) {
            out.truncate(before);
            return Err(Refused::TooLong);
        }
        Ok(())
    }

    /// An event for several receivers; `connection` is one of them.
    pub(crate) fn event(
        &self,
        event: &Message<'_>,
        encodings: &mut PayloadEncodings<'_>,
        connection: &Arc<Connection>,
    ) -> Result<Frame, Refused> {
        if let Some(payload) = encodings.shared(event, self.serializer) {
            return self.write_around(event, payload);
        }
        let mut out = Vec::new();
        self.write(event, encodings, &mut out)?;
        Ok(Frame::Whole(connection.share(out)))
    }

    /// Writes `message` without its payload, which is shared.
    fn write_around(&self, message: &Message<'_>, payload: &Shared) -> Result<Frame, Refused> {
        let mut head = Vec::with_capacity(2 * HEAD_BYTES);
        let mut places = [0; 2];
        let apart = payload.as_payload();
        self.framing
            .frame_around(self.serializer, 0, apart.len(), &mut head, |head| {
                places = codec::encode_around(message, &apart, head);
                Ok::<(), Refused>(())
            })
            .map_err(refused)?;
        let length = head.len() + apart.len();
        if !rawsocket::fits(length, self.message_bytes_max as usize) {
            return Err(Refused::TooLong);
        }
        Ok(Frame::Around {
            head,
            places,
            payload: payload.clone(),
            is_event: matches!(message, Message::Event { .. }),
        })
    }

    /// A dense index of the format: peers with the same index get the same bytes.
    pub fn index(&self) -> usize {
        let framing = match self.framing {
            Framing::RawSocket | Framing::LongPoll | Framing::Mqtt => 0,
            Framing::WebSocketServer { batched: false } => 1,
            Framing::WebSocketServer { batched: true } | Framing::WebSocketClient { .. } => 2,
            Framing::WebSocketServerAutobahn => 3,
        };
        framing * Serializer::ALL.len() + self.serializer.index()
    }

    /// Number of values of [`Wire::index`].
    pub const COUNT: usize = 4 * Serializer::ALL.len();
}

fn refused(e: FrameError<Refused>) -> Refused {
    match e {
        FrameError::Write(refused) => refused,
        FrameError::TooLong { .. } => Refused::TooLong,
    }
}
