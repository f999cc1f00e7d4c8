//! Events that a session is to acknowledge, and has not (no part of the specification; Autobahn's messages, and
//! wamp-proto's proposal of EVENT_RECEIVED).
//!
//! They are in a line, in the order of their publication. Those in front have been sent; behind one that found the
//! session's queue full they wait, and go on when something is acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_wamp::{
    Dict, Disclosed, EventDetails, Message, Payload, PublicationId, Serializer, SessionId,
    SubscriptionId,
};

use crate::Identity;

/// What an event in a line takes in memory beside its bytes, roughly.
const DELIVERY_BYTES: usize = 192;

/// Publications that a session has acknowledged lately, and may acknowledge again: clients do so for each of the handlers
/// that they have for one subscription.
const ACKNOWLEDGED_MAX: usize = 64;

/// Events that are on their way at a time; others wait until one of them is acknowledged. So what a session is sent again is
/// sent in parts.
const SENT_MAX: usize = 1_024;

/// A publication as a subscription's sessions are sent it, for all of them.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) subscription: SubscriptionId,
    pub(crate) publication: PublicationId,
    /// Where the subscription is to a pattern.
    pub(crate) topic: Option<Box<str>>,
    pub(crate) publisher: Option<(SessionId, Identity)>,
    pub(crate) passthru: Option<Box<Dict>>,
    pub(crate) serializer: Serializer,
    /// Arguments, then keyword arguments.
    pub(crate) payload: Box<[u8]>,
    pub(crate) args_bytes: usize,
}

/// A session's line of them.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    line: VecDeque<Arc<Delivered>>,
    /// So many of the line have been sent, those in front.
    sent: usize,
    /// What they take in memory.
    bytes: usize,
    acknowledged: VecDeque<PublicationId>,
}

/// What became of an acknowledgement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// An event has left the line, and so many bytes; it stood at that place.
    Taken {
        bytes: usize,
        place: usize,
    },
    Again,
    /// Nothing of that publication was sent, or too long ago.
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
            payload: Payload {
                serializer: self.serializer,
                args,
                kwargs,
            },
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

    /// Whether nothing of the line waits for its acknowledgement.
    pub(crate) fn none_sent(&self) -> bool {
        self.sent == 0
    }

    pub(crate) fn push(&mut self, event: Arc<Delivered>) {
        self.bytes += event.bytes();
        self.line.push_back(event);
    }

    /// The first one that was not sent, if no more than so many wait for their acknowledgements.
    pub(crate) fn next_unsent(&self) -> Option<Arc<Delivered>> {
        if self.sent >= SENT_MAX {
            return None;
        }
        self.line.get(self.sent).map(Arc::clone)
    }

    /// Nothing of the line counts as sent: its session is another connection's.
    pub(crate) fn send_again(&mut self) {
        self.sent = 0;
    }

    /// Takes out what has not been sent of subscriptions that are gone; its bytes.
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

    /// That has been sent now.
    pub(crate) fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// Takes out the one that was to be sent next, and cannot be; its bytes.
    pub(crate) fn drop_unsent(&mut self) -> usize {
        let dropped = self.line.remove(self.sent);
        let bytes = dropped.map_or(0, |event| event.bytes());
        self.bytes -= bytes;
        bytes
    }

    /// Takes out what was sent first of a publication, which may have come under several subscriptions.
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

    /// Asserts what the fields promise each other.
    pub(crate) fn check_invariants(&self) {
        let bytes = self.line.iter().map(|event| event.bytes());
        assert_eq!(self.bytes, bytes.sum::<usize>());
        assert!(self.sent <= self.line.len());
    }
}
