//! Retained events: the last event of a topic, for later subscribers (Crossbar.io's "Event Retention"; WAMP advanced
//! profile, "Event Retention").
//!
//! A topic keeps its last event without lists of receivers, and a few later events with lists. A new subscriber
//! receives the newest event that it may receive. Retained events outlive their publishers. They end with the realm, or
//! at the time set by the publisher or the configuration. All of them together are bounded, and the oldest are evicted
//! first.

mod pages;
mod shared;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::Bound;
use std::sync::Arc;

use crosstie_wamp::{
    Dict, Disclosed, EventDetails, MatchPolicy, Message, Payload, PublicationId, PublishOptions,
    Receivers, Serializer, SessionId, SubscriptionId,
};

use self::shared::mixed;
use super::receivers::whitelist;
use crate::across::RetainedAs;
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::overlap::{common_beginning, fits, matches};
use crate::recorded::weight;
use crate::session::Session;
use crate::{EmptyEligible, Identity, Note, RealmConfig, Time};

/// Expired events that are removed with each new one.
const ENDED_WITH_EACH_MAX: usize = 2;
/// Maximum number of events with lists that one topic keeps beside its last one without.
const LISTED_MAX: usize = 8;

/// A publication to be retained.
pub(super) struct Publication<'m> {
    pub(super) id: PublicationId,
    /// The publisher, if it is disclosed.
    pub(super) publisher: Option<SessionIndex>,
    pub(super) options: &'m PublishOptions,
    pub(super) topic: &'m str,
    pub(super) payload: Payload<'m>,
}

#[derive(Debug, Default)]
pub(crate) struct Retained {
    /// In the order of their names, by which patterns are looked up. Each list begins with the oldest event; only the
    /// first can be one without lists. No list is empty.
    topics: BTreeMap<Arc<str>, Vec<Event>>,
    /// By number: the topics of all events, the oldest first.
    by_age: BTreeMap<u64, Arc<str>>,
    /// Expiry times of the events that have one.
    by_end: BTreeSet<(Time, u64)>,
    number_last: u64,
    bytes: usize,
    /// Numbers of removed events, which a store has to forget.
    forgotten: Vec<u64>,
    /// In a cluster: the bits of a number that belong to this node.
    node_bits: Option<u64>,
    /// How the event being published is retained.
    begun: Option<(PublicationId, RetainedAs)>,
    /// In a cluster: expired last events by topic, and these topics by number.
    ended: BTreeMap<Arc<str>, (u64, PublicationId)>,
    ended_by_age: BTreeMap<u64, Arc<str>>,
    /// Digest of all events that are shared with other nodes.
    digest: u64,
}

/// A retained event.
#[derive(Debug)]
struct Event {
    number: u64,
    publication: PublicationId,
    publisher: Option<(SessionId, Identity)>,
    /// When it expires; it is not sent from then on.
    end: Option<Time>,
    /// Its lists of receivers; `None` means every subscriber.
    receivers: Option<Box<Receivers>>,
    passthru: Option<Box<Dict>>,
    serializer: Serializer,
    /// Arguments, then keyword arguments.
    payload: Box<[u8]>,
    args_bytes: usize,
    /// Its weight against the bounds.
    bytes: usize,
    /// Other nodes retain it, too.
    is_shared: bool,
    /// Its publisher is a client of another protocol, whose part of the router retains it, too.
    is_from_elsewhere: bool,
}

impl Retained {
    /// Retains a publication, and removes the events that it makes obsolete.
    pub(super) fn keep<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        publication: &Publication<'_>,
    ) -> Result<(), Fault> {
        let features = context.sessions[from].features;
        let is_from_elsewhere = features.subscribes_elsewhere() || features.subscribes_for_others();
        let publisher = publication.publisher.map(|index| {
            let session = &context.sessions[index];
            (session.id, session.identity.clone())
        });
        self.keep_from(context, publisher, publication, is_from_elsewhere)
    }

    /// The same, with a publisher on any node, if disclosed.
    pub(super) fn keep_of<H>(
        &mut self,
        context: &mut Context<'_, H>,
        publisher: Option<(SessionId, Identity)>,
        publication: &Publication<'_>,
    ) -> Result<(), Fault> {
        self.keep_from(context, publisher, publication, false)
    }

    fn keep_from<H>(
        &mut self,
        context: &mut Context<'_, H>,
        publisher: Option<(SessionId, Identity)>,
        publication: &Publication<'_>,
        is_from_elsewhere: bool,
    ) -> Result<(), Fault> {
        let config = context.config;
        let (receivers, bytes) = weigh(
            context,
            publication.options,
            publication.topic,
            publication.payload,
        )?;
        let begun = self.begun.take().filter(|(id, _)| *id == publication.id);
        let number = begun.map_or_else(|| self.next_number(context), |(_, begun)| begun.number);
        self.number_last = self.number_last.max(number);
        let is_shared = self.node_bits.is_some() && !context.out.is_local(publication.topic);
        let payload = publication.payload;
        let event = Event {
            number,
            publication: publication.id,
            publisher,
            end: end(config, context.now, publication),
            receivers,
            passthru: publication.options.passthru.clone(),
            serializer: payload.serializer,
            payload: [payload.args, payload.kwargs].concat().into(),
            args_bytes: payload.args.len(),
            bytes,
            is_shared,
            is_from_elsewhere,
        };
        let epoch_us = context.events.epoch_us();
        let is_told = is_shared && context.sessions.neighbours.is_any_there();
        let said = is_told.then(|| Self::written(publication.topic, &event, epoch_us));
        self.put(context, publication.topic, event);
        if let Some(Some(said)) = said {
            Self::share(context, said);
        }
        Ok(())
    }

    /// Inserts an event and has a store keep it, unless there is a newer one.
    fn put<H>(&mut self, context: &mut Context<'_, H>, topic: &str, event: Event) {
        if self.is_obsolete(topic, &event) {
            return;
        }
        let limits = &context.config.limits;
        self.store(context, topic, &event);
        self.insert(topic, event);
        // Each new event may remove two expired ones; the rest waits for turns of its own.
        self.end_some(context.now, ENDED_WITH_EACH_MAX);
        let evicted = self.make_room(limits.retained_events_max, limits.retained_bytes_max);
        self.forget_stored(context);
        if evicted > 0 {
            context.out.note(Note::RetainedEvicted, evicted);
        }
    }

    /// Whether such a publication would be retained.
    pub(super) fn check<H>(
        context: &Context<'_, H>,
        options: &PublishOptions,
        topic: &str,
        payload: Payload<'_>,
    ) -> Result<(), Fault> {
        weigh(context, options, topic, payload).map(|_| ())
    }

    /// Sends a new subscriber the retained events: for each topic the newest one that it may receive, in the order of
    /// the topics' names.
    pub(super) fn send<H>(
        &self,
        context: &mut Context<'_, H>,
        to: SessionIndex,
        subscription: SubscriptionId,
        policy: MatchPolicy,
        pattern: &str,
    ) {
        let (limits, now) = (&context.config.limits, context.now);
        let session = &context.sessions[to];
        let mut events_left = limits.retained_sent_max;
        let mut bytes_left = limits.retained_event_bytes_max;
        let mut not_sent = 0;
        for (topic, events) in self.matching(policy, pattern) {
            if events_left == 0 || bytes_left == 0 {
                not_sent += 1;
                continue;
            }
            let newest = events.iter().rev().find(|event| {
                // A refused event's lists were searched, and may be as long as an event.
                bytes_left = bytes_left.saturating_sub(event.bytes);
                event.is_there(now) && event.admits(session)
            });
            let Some(event) = newest else { continue };
            events_left -= 1;
            let topic = (policy != MatchPolicy::Exact).then_some(&**topic);
            let message = event.message(subscription, topic);
            let mut receiver = iter::once(&session.handle);
            context.out.publish(&message, &mut receiver);
        }
        if not_sent > 0 {
            context.out.note(Note::RetainedNotSent, not_sent);
        }
    }

    /// When the next event expires.
    pub(crate) fn next_end(&self) -> Option<Time> {
        self.by_end.first().map(|(end, _)| *end)
    }

    /// Removes events that have expired by now, at most that many; returns how many.
    pub(crate) fn end_some(&mut self, now: Time, events_max: usize) -> usize {
        let mut ended = 0;
        while ended < events_max
            && let Some((end, number)) = self.by_end.first().copied()
            && end <= now
        {
            let Some(topic) = self.by_age.get(&number).map(Arc::clone) else {
                self.by_end.pop_first();
                continue;
            };
            self.note_ended(number, &topic);
            self.take_out(number, &topic);
            ended += 1;
        }
        ended
    }

    /// Number of events.
    pub(crate) fn events(&self) -> usize {
        self.by_age.len()
    }

    /// Their weight against the bound.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The topics that match, with their events.
    fn matching<'a>(
        &'a self,
        policy: MatchPolicy,
        pattern: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Vec<Event>)> {
        let beginning = common_beginning(policy, pattern);
        let from = (Bound::Included(beginning), Bound::Unbounded);
        let range = self.topics.range::<str, _>(from);
        let is_near = move |topic: &str| match policy {
            MatchPolicy::Exact => topic == pattern,
            MatchPolicy::Prefix | MatchPolicy::Wildcard => topic.starts_with(beginning),
        };
        range
            .take_while(move |(topic, _)| is_near(topic))
            .filter(move |(topic, _)| policy != MatchPolicy::Wildcard || fits(pattern, topic))
    }

    /// Whether a newer event makes this one obsolete.
    fn is_obsolete(&self, topic: &str, event: &Event) -> bool {
        let ended = self.ended.get(topic);
        if ended.is_some_and(|(number, _)| *number > event.number) {
            return true;
        }
        let newer = self.topics.get(topic).into_iter().flatten();
        let mut newer = newer.filter(|known| known.number > event.number);
        newer.any(|known| known.receivers.is_none() || known.receivers == event.receivers)
    }

    /// Inserts an event in place of those that it makes obsolete.
    fn insert(&mut self, topic: &str, event: Event) {
        let mut obsolete = Vec::new();
        if !self.ended.is_empty() && event.receivers.is_none() {
            self.forget_ended(topic);
        }
        let topic = match self.topics.get_key_value(topic) {
            Some((topic, _)) => Arc::clone(topic),
            None => topic.into(),
        };
        self.bytes += event.bytes;
        self.digest ^= mixed(&event);
        self.by_age.insert(event.number, Arc::clone(&topic));
        self.by_end.extend(event.end.map(|end| (end, event.number)));
        let events = self.topics.entry(topic).or_default();
        let place = events.partition_point(|known| known.number < event.number);
        if event.receivers.is_none() {
            // This event has no lists and is newer than those before it.
            obsolete.extend(events.drain(..place));
            events.insert(0, event);
        } else {
            events.insert(place, event);
            let same = |e: &Event| e.receivers == events[place].receivers;
            let same = events[..place].iter().position(same);
            obsolete.extend(same.map(|place| events.remove(place)));
            let is_listed = |e: &Event| e.receivers.is_some();
            if events.iter().filter(|e| is_listed(e)).count() > LISTED_MAX {
                let oldest = events.iter().position(is_listed);
                obsolete.extend(oldest.map(|place| events.remove(place)));
            }
        }
        for event in obsolete {
            self.forget(&event);
        }
    }

    /// Evicts the oldest events until the bounds are kept; returns how many.
    fn make_room(&mut self, events_max: usize, bytes_max: usize) -> usize {
        let mut evicted = 0;
        while self.events() > events_max || self.bytes > bytes_max {
            let Some((number, topic)) = self.by_age.first_key_value() else {
                break;
            };
            let (number, topic) = (*number, Arc::clone(topic));
            self.take_out(number, &topic);
            evicted += 1;
        }
        evicted
    }

    fn take_out(&mut self, number: u64, topic: &Arc<str>) {
        self.by_age.remove(&number);
        let Some(events) = self.topics.get_mut(topic) else {
            return;
        };
        let place = events.iter().position(|event| event.number == number);
        let event = place.map(|place| events.remove(place));
        if events.is_empty() {
            self.topics.remove(topic);
        }
        if let Some(event) = event {
            self.forget(&event);
        }
    }

    /// Takes note that an event was removed from its topic.
    fn forget(&mut self, event: &Event) {
        self.by_age.remove(&event.number);
        self.forgotten.push(event.number);
        self.bytes -= event.bytes;
        self.digest ^= mixed(event);
        if let Some(end) = event.end {
            self.by_end.remove(&(end, event.number));
        }
    }

    /// Asserts that the tables agree. Walks everything.
    pub(super) fn check_invariants(&self) {
        let all = || {
            self.topics
                .iter()
                .flat_map(|(topic, events)| events.iter().map(move |event| (topic, event)))
        };
        assert_eq!(all().count(), self.by_age.len());
        assert_eq!(
            all().map(|(_, event)| event.bytes).sum::<usize>(),
            self.bytes
        );
        for (topic, event) in all() {
            assert_eq!(self.by_age.get(&event.number), Some(topic));
        }
        let ending = all().filter_map(|(_, event)| Some((event.end?, event.number)));
        assert_eq!(ending.collect::<BTreeSet<_>>(), self.by_end);
        for events in self.topics.values() {
            assert!(!events.is_empty() && events.len() <= 1 + LISTED_MAX);
            assert!(events[1..].iter().all(|event| event.receivers.is_some()));
            assert!(events.is_sorted_by_key(|event| event.number));
        }
    }
}

impl Event {
    fn message<'a>(&'a self, subscription: SubscriptionId, topic: Option<&'a str>) -> Message<'a> {
        let publisher = self.publisher.as_ref();
        let (args, kwargs) = self.payload.split_at(self.args_bytes);
        Message::Event {
            subscription,
            publication: self.publication,
            details: EventDetails {
                topic: topic.map(Into::into),
                publisher: publisher.map(|(session, identity)| Disclosed {
                    session: *session,
                    authid: (&*identity.authid).into(),
                    authrole: (&*identity.authrole).into(),
                }),
                retained: true,
                acknowledged_delivery: false,
                passthru: self.passthru.clone(),
            },
            payload: Payload::new(self.serializer, args, kwargs),
        }
    }

    fn is_there(&self, now: Time) -> bool {
        self.end.is_none_or(|end| now < end)
    }

    /// Whether the lists admit a session. Each list is searched once: sorting would not pay for one session.
    fn admits<H>(&self, session: &Session<H>) -> bool {
        let Some(lists) = self.receivers.as_deref() else {
            return true;
        };
        if session.features.subscribes_for_others() {
            // No list can say which of these others may have it.
            return false;
        }
        let named = |list: &Option<Vec<String>>, name: &str, absent: bool| {
            list.as_ref()
                .map_or(absent, |list| list.iter().any(|listed| listed == name))
        };
        let known = |list: &Option<Vec<SessionId>>, absent: bool| {
            list.as_ref()
                .map_or(absent, |list| list.contains(&session.id))
        };
        let (authid, authrole) = (&session.identity.authid, &session.identity.authrole);
        known(&lists.eligible, true)
            && named(&lists.eligible_authid, authid, true)
            && named(&lists.eligible_authrole, authrole, true)
            && !known(&lists.exclude, false)
            && !named(&lists.exclude_authid, authid, false)
            && !named(&lists.exclude_authrole, authrole, false)
    }
}

/// The lists that exclude some session; `None` if there are none.
pub(super) fn effective(lists: &Receivers, empty: EmptyEligible) -> Option<Box<Receivers>> {
    fn blacklist<T: Clone>(list: &Option<Vec<T>>) -> Option<Vec<T>> {
        list.clone().filter(|list| !list.is_empty())
    }
    let lists = Receivers {
        exclude: blacklist(&lists.exclude),
        exclude_authid: blacklist(&lists.exclude_authid),
        exclude_authrole: blacklist(&lists.exclude_authrole),
        eligible: whitelist(&lists.eligible, empty).cloned(),
        eligible_authid: whitelist(&lists.eligible_authid, empty).cloned(),
        eligible_authrole: whitelist(&lists.eligible_authrole, empty).cloned(),
    };
    (lists != Receivers::default()).then(|| Box::new(lists))
}

/// The effective lists of a publication, and its weight against the bounds, which may exceed them.
fn weigh<H>(
    context: &Context<'_, H>,
    options: &PublishOptions,
    topic: &str,
    payload: Payload<'_>,
) -> Result<(Option<Box<Receivers>>, usize), Fault> {
    let bytes_max = context.config.limits.retained_event_bytes_max;
    let lists = options.receivers.as_deref();
    let receivers = lists.and_then(|lists| effective(lists, context.config.empty_eligible));
    let passthru = options.passthru.as_deref();
    let bytes = weight(passthru, topic, payload.len(), receivers.as_deref());
    if bytes > bytes_max {
        let text = format!(
            "an event that is retained may have {bytes_max} bytes with its topic and lists; this one \
             has {bytes}"
        );
        return Err(Fault::new(error::RETAINED_EVENT_BYTES_MAX, text));
    }
    Ok((receivers, bytes))
}

/// When a retained publication expires: at the time of its publisher or of the realm, whichever is earlier.
fn end(config: &RealmConfig, now: Time, publication: &Publication<'_>) -> Option<Time> {
    let topic = publication.topic;
    let matching = config
        .retention
        .iter()
        .filter(|retention| matches(retention.match_policy, &retention.uri, topic));
    let configured = matching.map(|retention| retention.age_ms_max);
    let milliseconds = configured.chain(publication.options.retain_ms).min()?;
    Some(now.after_ms(milliseconds))
}
