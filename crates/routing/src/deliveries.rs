//! Events that a session has to acknowledge (not in the specification; Autobahn's messages, and wamp-proto's proposal
//! of EVENT_RECEIVED).
//!
//! They form a line, in the order of their publication. The first ones have been sent. Once an event found the
//! session's queue full, it and later ones wait until an event is acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_wamp::{
    Dict, Disclosed, EventDetails, Message, Payload, PublicationId, Serializer, SessionId,
    SubscriptionId,
};

use crate::Identity;

/// Approximate memory of an event in a line beside its bytes.
const DELIVERY_BYTES: usize = 192;

/// Maximum number of latest acknowledgements that are remembered per session. They may be repeated: clients acknowledge
/// an event once per handler of the subscription.
const ACKNOWLEDGED_MAX: usize = 64;

/// Maximum number of unacknowledged events in flight; others wait until one is acknowledged. So events are resent to a
/// session in parts.
const SENT_MAX: usize = 1_024;

/// An event as all acknowledging sessions of a subscription receive it.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) subscription: SubscriptionId,
    pub(crate) publication: PublicationId,
    /// Set if the subscription is to a pattern.
    pub(crate) topic: Option<Box<str>>,
    pub(crate) publisher: Option<(SessionId, Identity)>,
    pub(crate) passthru: Option<Box<Dict>>,
    pub(crate) serializer: Serializer,
    /// Arguments, then keyword arguments.
    pub(crate) payload: Box<[u8]>,
    pub(crate) args_bytes: usize,
}

/// A session's line of events.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    line: VecDeque<Arc<Delivered>>,
    /// Number of events at the front that have been sent.
    sent: usize,
    /// Memory of the events.
    bytes: usize,
    acknowledged: VecDeque<PublicationId>,
}

/// The outcome of an acknowledgement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// The event at that place left the line and freed that many bytes.
    Taken {
        bytes: usize,
        place: usize,
    },
    Again,
    /// No event of that publication was sent, or too long ago.
    Unknown,
}

impl Delivered {
    pub(crate) fn bytes(&self) -> usize {
        let topic = self.topic.as_ref().map_or(0, |topic| topic.len());
        DELIVERY_BYTES + self.payload.len() + topic
    }

    pub(crate) fn message(&self) -> Message<'_> {
        let (args, kwargs) = self.payload.split_at(self.args_bytes);
        let publisher = self.publisher.as_ref();
        Message::Event {
            subscription: self.subscription,
            publication: self.publication,
            details: EventDetails {
                topic: self.topic.as_deref().map(Into::into),
                publisher: publisher.map(|(session, who)| Disclosed {
                    session: *session,
                    authid: (&*who.authid).into(),
                    authrole: (&*who.authrole).into(),
                }),
                retained: false,
                acknowledged_delivery: true,
                passthru: self.passthru.clone(),
            },
            payload: Payload::new(self.serializer, args, kwargs),
        }
    }
}

impl Deliveries {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether no sent event waits for its acknowledgement.
    pub(crate) fn none_sent(&self) -> bool {
        self.sent == 0
    }

    pub(crate) fn push(&mut self, event: Arc<Delivered>) {
        self.bytes += event.bytes();
        self.line.push_back(event);
    }

    /// The first unsent event, unless more than that many are in flight.
    pub(crate) fn next_unsent(&self) -> Option<Arc<Delivered>> {
        if self.sent >= SENT_MAX {
            return None;
        }
        self.line.get(self.sent).map(Arc::clone)
    }

    /// Marks the whole line as unsent: the session moved to another connection.
    pub(crate) fn send_again(&mut self) {
        self.sent = 0;
    }

    /// Removes unsent events of subscriptions that have ended; returns their bytes.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(SubscriptionId) -> bool) -> usize {
        let before = self.bytes;
        let unsent = self.line.split_off(self.sent);
        for event in unsent {
            match is_gone(event.subscription) {
                true => self.bytes -= event.bytes(),
                false => self.line.push_back(event),
            }
        }
        before - self.bytes
    }

    /// Marks the next event as sent.
    pub(crate) fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// Removes the next event, which cannot be sent; returns its bytes.
    pub(crate) fn drop_unsent(&mut self) -> usize {
        let dropped = self.line.remove(self.sent);
        let bytes = dropped.map_or(0, |event| event.bytes());
        self.bytes -= bytes;
        bytes
    }

    /// Removes the first sent event of a publication, which may have been sent under several subscriptions.
    pub(crate) fn acknowledge(&mut self, publication: PublicationId) -> Acknowledged {
        let mut sent = self.line.iter().take(self.sent);
        let Some(place) = sent.position(|event| event.publication == publication) else {
            return match self.acknowledged.contains(&publication) {
                true => Acknowledged::Again,
                false => Acknowledged::Unknown,
            };
        };
        let taken = self.line.remove(place);
        let bytes = taken.map_or(0, |event| event.bytes());
        self.bytes -= bytes;
        self.sent -= 1;
        if self.acknowledged.len() == ACKNOWLEDGED_MAX {
            self.acknowledged.pop_front();
        }
        self.acknowledged.push_back(publication);
        Acknowledged::Taken { bytes, place }
    }

    /// Asserts the invariants of the fields.
    pub(crate) fn check_invariants(&self) {
        let bytes = self.line.iter().map(|event| event.bytes());
        assert_eq!(self.bytes, bytes.sum::<usize>());
        assert!(self.sent <= self.line.len());
    }
}
