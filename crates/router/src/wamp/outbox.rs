//! A realm's outbox, which encodes messages into the receivers' queues.

use crosstie_routing::{Action, CloseReason, Identity, Note, Outbox, Refused};
use crosstie_wamp::{Message, SessionId};

use crate::counters::{Counter, Counters};
use crate::wamp::message_counts::{Direction, Messages};
use crate::wamp::payload_encodings::PayloadEncodings;
use crate::wamp::peer::{Frame, Peer, Wire};

/// The outbox of one call into a realm. It is used under the realm's lock, so it only encodes
/// heads and copies bytes; the sockets are written when the input has been handled.
pub(crate) struct RealmOutbox<'a, 'p> {
    encodings: &'a mut PayloadEncodings<'p>,
    counters: &'a Counters,
    pub(crate) messages: &'a Messages,
    /// Peers that were closed because they could not be told the truth any more.
    pub(crate) closed: Vec<Peer>,
    /// Sessions that are out of the realm, and who they were.
    pub(crate) left: Vec<(Peer, SessionId, Identity)>,
    /// The action that the sender of the present message may not do.
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
        encodings: &'a mut PayloadEncodings<'p>,
        counters: &'a Counters,
        messages: &'a Messages,
    ) -> Self {
        Self {
            encodings,
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
        let sent = to.send(message, self.encodings);
        match sent {
            Ok(()) => self.messages.count_alone(Direction::Sent, message.kind()),
            Err(_) => self.counters.count(Counter::MessagesRefused),
        }
        sent
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &Peer>) {
        let mut encoded: [Option<Result<Frame, Refused>>; Wire::COUNT] =
            [const { None }; Wire::COUNT];
        for peer in receivers {
            let frame = encoded[peer.wire.index()].get_or_insert_with(|| {
                // The length is judged per receiver below: their maxima differ.
                let wire = Wire {
                    message_bytes_max: u32::MAX,
                    ..peer.wire
                };
                wire.event(event, self.encodings, &peer.connection)
            });
            let sent = match frame {
                Err(refused) => Err(*refused),
                Ok(frame) if frame.len() > peer.wire.message_bytes_max as usize + 4 => {
                    Err(Refused::TooLong)
                }
                Ok(frame) => frame.append_to(&peer.connection),
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
