//! Retained events of a realm on several nodes: each node keeps all of them.
//!
//! An event gets a number when it is published: from its node's clock, and above every number that the node has seen.
//! So all nodes agree which of two events is newer, in whatever order they arrive. The event reaches nodes with
//! subscribers as an event, and then all nodes as a retained event; an event that finds a newer one is dropped. Two
//! nodes that meet exchange a digest of their retained events, and all events if the digests differ.

use std::ops::Bound;
use std::sync::Arc;

use crosstie_collections::mix;
use crosstie_wamp::{
    Disclosed, Message, PublicationId, PublishOptions, Serializer, SessionId, Value,
};

use super::{Event, Publication, Retained, effective, end};
use crate::across::{self, Crossing, RetainedAs};
use crate::authz::Action;
use crate::context::{Context, is_reserved};
use crate::handover::{self, Handed, RETAINED};
use crate::identity::Identity;
use crate::recorded::weight;
use crate::{Note, Time};

/// Bits of a number that identify its node.
const NODE_BITS: u32 = 10;

/// Maximum number of topics whose expired last event is remembered.
const ENDED_MAX: usize = 4_096;

/// How far another node's clock may be ahead, in microseconds.
const AHEAD_US_MAX: u64 = 3_600_000_000;

impl Retained {
    pub(in super::super) fn join_fabric(&mut self, own: u64) {
        self.node_bits = Some(own & ((1 << NODE_BITS) - 1));
    }

    /// Chooses how a publication will be retained on all nodes.
    pub(in super::super) fn begin<H>(
        &mut self,
        context: &Context<'_, H>,
        publication: &Publication<'_>,
    ) -> RetainedAs {
        let ends = end(context.config, context.now, publication);
        let begun = RetainedAs {
            number: self.next_number(context),
            ends_us: ends.map(|Time(end)| context.events.epoch_us().saturating_add(end)),
        };
        self.begun = Some((publication.id, begun));
        begun
    }

    /// The number of an event that is published now.
    pub(super) fn next_number<H>(&self, context: &Context<'_, H>) -> u64 {
        let Some(node) = self.node_bits else {
            return self.number_last + 1;
        };
        let behind = (self.number_last >> NODE_BITS) + 1;
        behind.max(context.unix_us()) << NODE_BITS | node
    }

    /// Retains an event of another node.
    pub(in super::super) fn take_in<H>(
        &mut self,
        context: &mut Context<'_, H>,
        publisher: Option<(SessionId, Identity)>,
        publication: &across::Publication<'_>,
        retained: RetainedAs,
    ) {
        let across::Publication {
            id,
            options,
            topic,
            payload,
            ..
        } = *publication;
        let limits = &context.config.limits;
        let lists = options.receivers.as_deref();
        let receivers = lists.and_then(|lists| effective(lists, context.config.empty_eligible));
        let passthru = options.passthru.as_deref();
        let bytes = weight(passthru, topic, payload.len(), receivers.as_deref());
        let is_ahead = retained.number >> NODE_BITS > context.unix_us() + AHEAD_US_MAX;
        if is_ahead
            || bytes > limits.retained_event_bytes_max
            || is_reserved(topic)
            || context.check_uri(Action::Publish, topic).is_err()
        {
            return context.out.note(Note::RetainedRefused, 1);
        }
        self.number_last = self.number_last.max(retained.number);
        // An expired event still replaces those before it.
        if self.has(topic, id) {
            return;
        }
        let mut number = retained.number;
        while self.by_age.contains_key(&number) {
            number += 1;
        }
        let epoch_us = context.events.epoch_us();
        let event = Event {
            number,
            publication: id,
            publisher,
            end: retained
                .ends_us
                .map(|end| Time(end.saturating_sub(epoch_us))),
            receivers,
            passthru: options.passthru.clone(),
            serializer: payload.serializer,
            payload: [payload.args, payload.kwargs].concat().into(),
            args_bytes: payload.args.len(),
            bytes,
            is_shared: true,
            is_from_elsewhere: false,
        };
        self.put(context, topic, event);
    }

    /// An event in the form that other nodes read, if it is shared.
    pub(super) fn written(topic: &str, event: &Event, epoch_us: u64) -> Option<Value> {
        if !event.is_shared {
            return None;
        }
        let options = PublishOptions {
            receivers: event.receivers.clone(),
            passthru: event.passthru.clone(),
            retain: true,
            ..PublishOptions::default()
        };
        let (args, kwargs) = event.payload.split_at(event.args_bytes);
        let publisher = event.publisher.as_ref();
        let publication = across::Publication {
            id: event.publication,
            publisher: publisher.map(|(session, who)| Disclosed {
                session: *session,
                authid: (&*who.authid).into(),
                authrole: (&*who.authrole).into(),
            }),
            options: &options,
            topic,
            payload: crosstie_wamp::Payload::new(event.serializer, args, kwargs),
            retained: None,
        };
        let mut said = handover::write(&publication);
        said.push(("number".to_owned(), Value::from(event.number)));
        if let Some(Time(end)) = event.end {
            let ends_us = epoch_us.saturating_add(end);
            said.push(("ends".to_owned(), Value::from(ends_us)));
        }
        Some(Value::Dict(said))
    }

    /// The same for an expired event, of which only the number is left.
    fn written_ended((topic, (number, id)): (&Arc<str>, &(u64, PublicationId))) -> Option<Value> {
        let event = Event {
            number: *number,
            publication: *id,
            publisher: None,
            end: Some(Time(0)),
            receivers: None,
            passthru: None,
            serializer: Serializer::Json,
            payload: Box::default(),
            args_bytes: 0,
            bytes: 0,
            is_shared: true,
            is_from_elsewhere: false,
        };
        Self::written(topic, &event, 0)
    }

    /// Remembers the number of an event without lists that has expired. Otherwise an older event could come back from a
    /// node that missed its expiry.
    pub(super) fn note_ended(&mut self, number: u64, topic: &Arc<str>) {
        let events = self.topics.get(topic);
        let Some(ended) = events.and_then(|events| events.first()) else {
            return;
        };
        if ended.number != number || ended.receivers.is_some() || !ended.is_shared {
            return;
        }
        let known = (number, ended.publication);
        if let Some((before, _)) = self.ended.insert(Arc::clone(topic), known) {
            self.ended_by_age.remove(&before);
        }
        self.ended_by_age.insert(number, Arc::clone(topic));
        if self.ended_by_age.len() > ENDED_MAX
            && let Some((_, topic)) = self.ended_by_age.pop_first()
        {
            self.ended.remove(&topic);
        }
    }

    /// Forgets it: there is a newer event.
    pub(super) fn forget_ended(&mut self, topic: &str) {
        if let Some((number, _)) = self.ended.remove(topic) {
            self.ended_by_age.remove(&number);
        }
    }

    /// Sends an event to all other nodes.
    pub(super) fn share<H>(context: &mut Context<'_, H>, said: Value) {
        let said = handover::said(vec![("event".to_owned(), said)]);
        let question = handover::unanswered(RETAINED, &said);
        let there: Vec<_> = context.sessions.neighbours.there().collect();
        for node in there {
            // A loss ends the connection between both, and all events are exchanged again.
            let _ = context.cross(node.into(), &Crossing::Question(&question));
        }
    }

    /// The events of the next topics after the given one, at most that many, and the last of these topics if there may
    /// be more.
    pub(crate) fn some_behind(
        &self,
        topic: Option<&str>,
        count_max: usize,
        epoch_us: u64,
    ) -> (Vec<Value>, Option<String>) {
        let from = topic.map_or(Bound::Unbounded, Bound::Excluded);
        let mut said = Vec::new();
        if topic.is_none() {
            said.extend(self.ended.iter().filter_map(Self::written_ended));
        }
        let behind = self.topics.range::<str, _>((from, Bound::Unbounded));
        for (topic, events) in behind {
            let events = events.iter();
            said.extend(events.filter_map(|event| Self::written(topic, event, epoch_us)));
            if said.len() >= count_max {
                return (said, Some(topic.to_string()));
            }
        }
        (said, None)
    }

    /// Parses another node's event, if it is well-formed.
    fn read(said: &Value) -> Option<(Handed, RetainedAs)> {
        let number = said.get("number")?.as_u64()?;
        let ends_us = said.get("ends").and_then(Value::as_u64);
        Some((handover::read(said)?, RetainedAs { number, ends_us }))
    }

    /// A number that is equal on two nodes with the same events.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    fn has(&self, topic: &str, id: PublicationId) -> bool {
        let events = self.topics.get(topic);
        events.is_some_and(|events| events.iter().any(|event| event.publication == id))
    }
}

impl super::super::Broker {
    /// Retains an event that another node sends as a retained event.
    pub(crate) fn take_retained<H>(&mut self, context: &mut Context<'_, H>, said: &Value) {
        let Some((handed, retained)) = Retained::read(said) else {
            return context.out.note(Note::RetainedRefused, 1);
        };
        let Some(Message::Publish {
            request,
            options,
            topic,
            payload,
        }) = handed.message()
        else {
            return;
        };
        let publication = across::Publication {
            id: PublicationId(request.0),
            publisher: None,
            options: &options,
            topic: &topic,
            payload,
            retained: None,
        };
        let publisher = handed.publisher.clone();
        self.retained
            .take_in(context, publisher, &publication, retained);
    }
}

/// An event's share in the digest.
pub(super) fn mixed(event: &Event) -> u64 {
    if !event.is_shared {
        return 0;
    }
    mix(event.publication.0 ^ event.number.rotate_left(32))
}
