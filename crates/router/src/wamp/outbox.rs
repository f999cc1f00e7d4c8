//! What a realm sends, turned into bytes in the receivers' queues.

use bytes::Bytes;
use crosstie_routing::{Action, CloseReason, Identity, Note, Outbox, Refused};
use crosstie_wamp::codec::{self, TranscodeError};
use crosstie_wamp::{Message, Payload, Serializer, SessionId};

use crate::counters::{Counter, Counters};
use crate::wamp::message_counts::{Direction, Messages};
use crate::wamp::peer::{Peer, Wire};

/// The outbox of one call into a realm. It is used under the realm's lock, so it only encodes
/// heads and copies bytes; the sockets are written when the input has been handled.
pub(crate) struct RealmOutbox<'a, 'p> {
    forms: &'a mut Forms<'p>,
    counters: &'a Counters,
    pub(crate) messages: &'a Messages,
    /// Peers that were closed because they could not be told the truth any more.
    pub(crate) closed: Vec<Peer>,
    /// Sessions that are out of the realm, and who they were.
    pub(crate) left: Vec<(Peer, SessionId, Identity)>,
    /// What the sender of the present message may not do.
    pub(crate) denied: Option<Box<Denied>>,
}

/// A request that a role does not allow.
pub(crate) struct Denied {
    pub(crate) peer: Peer,
    pub(crate) identity: Identity,
    pub(crate) action: Action,
    pub(crate) uri: String,
}

impl<'a, 'p> RealmOutbox<'a, 'p> {
    pub(crate) fn new(
        forms: &'a mut Forms<'p>,
        counters: &'a Counters,
        messages: &'a Messages,
    ) -> Self {
        Self {
            forms,
            counters,
            messages,
            closed: Vec::new(),
            left: Vec::new(),
            denied: None,
        }
    }
}

impl Outbox<Peer> for RealmOutbox<'_, '_> {
    fn send(&mut self, to: &Peer, message: &Message<'_>) -> Result<(), Refused> {
        let sent = to.send(message, self.forms);
        match sent {
            Ok(()) => self.messages.count_alone(Direction::Sent, message.kind()),
            Err(_) => self.counters.count(Counter::MessagesRefused),
        }
        sent
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &Peer>) {
        let mut encoded: [Option<Result<Bytes, Refused>>; Wire::COUNT] =
            [const { None }; Wire::COUNT];
        for peer in receivers {
            let bytes = encoded[peer.wire.index()].get_or_insert_with(|| {
                let mut out = Vec::new();
                // The length is judged per receiver below: their maxima differ.
                let wire = Wire {
                    message_bytes_max: u32::MAX,
                    ..peer.wire
                };
                let written = wire.write(event, self.forms, &mut out);
                written.map(|()| peer.connection.share(out))
            });
            let sent = match bytes {
                Err(refused) => Err(*refused),
                Ok(bytes) if bytes.len() > peer.wire.message_bytes_max as usize + 4 => {
                    Err(Refused::TooLong)
                }
                Ok(bytes) => {
                    peer.connection
                        .append_shared(bytes)
                        .map_err(|refused| match refused {
                            crosstie_transport::Refused::Gone => Refused::Gone,
                            _ => Refused::Full,
                        })
                }
            };
            match sent {
                Ok(()) => self.messages.count_alone(Direction::Sent, event.kind()),
                Err(refused) => self.counters.count(dropped(refused)),
            }
        }
    }

    fn note(&mut self, what: Note, count: usize) {
        let counter = match what {
            Note::RetainedEvicted => Counter::RetainedEventsEvicted,
            Note::RetainedNotSent => Counter::RetainedEventsNotSent,
            _ => return,
        };
        self.counters.add(counter, count as u64);
    }

    fn close(&mut self, session: &Peer, _: CloseReason) {
        self.counters.count(Counter::SessionsClosedForRefusal);
        session.say_last(QUEUE_FULL, "an answer found your queue full");
        self.closed.push(session.clone());
    }

    fn hold(&mut self, session: &Peer, delta: isize) {
        session.connection.hold(delta);
    }

    fn left(&mut self, session: &Peer, id: SessionId, identity: &Identity) {
        self.left.push((session.clone(), id, identity.clone()));
    }

    fn denied(&mut self, session: &Peer, identity: &Identity, action: Action, uri: &str) {
        self.counters.count(Counter::RequestsDenied);
        self.denied = Some(Box::new(Denied {
            peer: session.clone(),
            identity: identity.clone(),
            action,
            uri: uri.to_owned(),
        }));
    }
}

/// Why a session is aborted that an answer could not be queued for.
const QUEUE_FULL: &str = "crosstie.error.queue_bytes_max";

fn dropped(refused: Refused) -> Counter {
    match refused {
        Refused::Full => Counter::EventsDroppedFull,
        Refused::Unrepresentable(_) => Counter::EventsDroppedUnrepresentable,
        Refused::Gone | Refused::TooLong => Counter::EventsDroppedOther,
    }
}

/// The payload of the message being handled, in each serializer that it was needed in so far.
///
/// A realm passes an input's payload on as it came; where a receiver's serializer differs it is
/// transcoded once, however many receivers there are.
pub(crate) struct Forms<'p> {
    original: Payload<'p>,
    transcoded: [Option<Result<Transcoded, Refused>>; Serializer::ALL.len()],
}

/// A payload may be as long as this in another serializer than its sender's, or twice as long as it
/// came if that is more: control characters are six times as long in JSON, and 16 MiB of them
/// would be 96 for each serializer. A longer one is refused as a message that is too long for
/// its receiver is.
const TRANSCODED_BYTES_MAX: usize = 16 << 20;

struct Transcoded {
    bytes: Vec<u8>,
    args_len: usize,
}

impl<'p> Forms<'p> {
    /// For a message with this payload.
    pub(crate) fn new(original: Payload<'p>) -> Self {
        Self {
            original,
            transcoded: [const { None }; Serializer::ALL.len()],
        }
    }

    /// The payload of `message` in `serializer`, when it is the one held here and needs another
    /// form; `None` when the message can be encoded as it is.
    pub(crate) fn of(
        &mut self,
        message: &Message<'_>,
        serializer: Serializer,
    ) -> Result<Option<Payload<'_>>, Refused> {
        let is_original = message.payload().is_some_and(|payload| {
            std::ptr::eq(payload.args, self.original.args)
                && std::ptr::eq(payload.kwargs, self.original.kwargs)
        });
        if !is_original || serializer == self.original.serializer || self.original.is_empty() {
            return Ok(None);
        }
        self.transcode(serializer);
        match &self.transcoded[serializer.index()] {
            Some(Ok(Transcoded { bytes, args_len })) => {
                let (args, kwargs) = bytes.split_at(*args_len);
                Ok(Some(Payload {
                    serializer,
                    args,
                    kwargs,
                }))
            }
            Some(Err(refused)) => Err(*refused),
            None => Ok(None),
        }
    }

    /// Makes the form for `serializer` now, so that it is there when the realm is locked.
    pub(crate) fn transcode(&mut self, serializer: Serializer) {
        if serializer == self.original.serializer {
            return;
        }
        let original = self.original;
        self.transcoded[serializer.index()]
            .get_or_insert_with(|| transcoded(original, serializer).map_err(unwritable));
    }
}

fn transcoded(payload: Payload<'_>, into: Serializer) -> Result<Transcoded, TranscodeError> {
    let bytes_max = TRANSCODED_BYTES_MAX.max(2 * payload.len());
    let mut bytes = Vec::with_capacity(payload.len() * 2);
    let append = |bytes: &mut Vec<u8>, part: &[u8]| match part.is_empty() {
        true => Ok(()),
        false => codec::transcode_within(payload.serializer, part, into, bytes_max, bytes),
    };
    append(&mut bytes, payload.args)?;
    let args_len = bytes.len();
    append(&mut bytes, payload.kwargs)?;
    Ok(Transcoded { bytes, args_len })
}

/// What a payload is refused for that has no such form.
pub(crate) fn unwritable(e: TranscodeError) -> Refused {
    match e == TranscodeError::TOO_LONG {
        true => Refused::TooLong,
        false => Refused::Unrepresentable(e.reason),
    }
}
