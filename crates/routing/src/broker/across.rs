//! Events to and from other nodes, and subscriptions that wait until other nodes know of them.

use std::collections::BTreeSet;
use std::mem;

use crosstie_wamp::{
    Disclosed, EventDetails, MatchPolicy, Message, MessageType, RequestId, SubscriptionId,
};

use super::pending::{REQUEST_BYTES, Request, Waiting};
use super::receivers::Filter;
use super::retained::{self, Retained};
use super::{Across, Broker, Subscription, SubscriptionKey};
use crate::Outbox;
use crate::across::{Pattern, Position, Publication, Uncrossed};
use crate::context::{Context, is_reserved};
use crate::events::{SUBSCRIPTION, is_meta_topic};
use crate::fault::{Fault, error};
use crate::identity::{Identity, SessionIndex};
use crate::rendezvous::shared_id;

/// Cost of completing one waiting request.
const STEPS_PER_REQUEST: u32 = 10;

impl Broker {
    pub(crate) fn join_fabric<H>(&mut self, own: u64, scope: u64, out: &mut dyn Outbox<H>) {
        self.retained.join_fabric(own);
        self.across = Some(Box::new(Across {
            scope,
            ..Across::default()
        }));
        // Subscriptions for histories exist already.
        for place in 0..self.subscriptions.capacity() {
            let Some(subscription) = self.subscriptions.get(place) else {
                continue;
            };
            let (policy, topic) = (subscription.match_policy, subscription.topic.clone());
            let id = self.new_id(policy, &topic);
            let subscription = &mut self.subscriptions[place];
            let before = mem::replace(&mut subscription.id, id);
            self.index.rename(before, id, SubscriptionKey(place as u32));
        }
        for (_, subscription) in &self.subscriptions {
            if let Some(pattern) = subscription.crossing() {
                // An existing subscription is answered at once; no session waits for this announcement.
                out.interest(pattern, true);
            }
        }
    }

    /// Returns the id of a new subscription: the same on all nodes of a cluster, else the next number.
    pub(super) fn new_id(&mut self, policy: MatchPolicy, topic: &str) -> SubscriptionId {
        if let Some(across) = self.across.as_deref() {
            let is_free = |id| self.key_of(SubscriptionId(id)).is_none();
            if let Some(id) = shared_id(across.scope, policy, topic, is_free) {
                return SubscriptionId(id);
            }
        }
        loop {
            self.id_last += 1;
            let id = SubscriptionId(self.id_last);
            if self.across.is_none() || self.key_of(id).is_none() {
                return id;
            }
        }
    }

    /// Announces a new subscription to other nodes; returns whether it has to wait until they know.
    #[cold]
    pub(super) fn begin_interest<H>(
        &mut self,
        context: &mut Context<'_, H>,
        subscription: SubscriptionId,
    ) {
        let key = self.key_of(subscription);
        let (Some(across), Some(key)) = (&mut self.across, key) else {
            return;
        };
        let kept = &mut self.subscriptions[key.0 as usize];
        let Some(pattern) = kept.crossing() else {
            return;
        };
        let position = context.out.interest(pattern, true);
        if position > across.in_force {
            across.line.push_back((position, subscription));
            let waiting = Waiting {
                position,
                ..Waiting::default()
            };
            kept.change_parts(|parts| parts.waiting = Some(waiting));
        }
    }

    /// Withdraws the interest of a subscription that has ended.
    #[cold]
    pub(super) fn end_interest<H>(context: &mut Context<'_, H>, subscription: &Subscription) {
        if let Some(pattern) = subscription.crossing() {
            context.out.interest(pattern, false);
        }
    }

    /// Adds a request to those that wait for the same subscription, if it waits.
    pub(super) fn wait<H>(
        subscription: &mut Subscription,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        (request, wants_retained): (RequestId, bool),
    ) -> bool {
        let Some(waiting) = subscription.waiting_mut() else {
            return false;
        };
        waiting.requests.push_back(Request {
            from,
            request,
            wants_retained,
        });
        context.hold(from, REQUEST_BYTES);
        true
    }

    pub(crate) fn note_in_force(&mut self, reached: Position) {
        if let Some(across) = &mut self.across {
            across.in_force = across.in_force.max(reached);
        }
    }

    /// Whether a request waits whose subscription is in force.
    pub(crate) fn may_enter(&self) -> bool {
        let across = self.across.as_deref();
        across.is_some_and(|across| {
            let first = across.line.front();
            first.is_some_and(|(position, _)| *position <= across.in_force)
        })
    }

    /// Completes requests whose subscriptions are in force, for that many steps; returns whether there were any.
    pub(crate) fn enter_waiting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        steps_max: u32,
    ) -> bool {
        let end = context.steps.saturating_add(steps_max);
        let mut was_any = false;
        while self.may_enter() && (*context.steps < end || !was_any) {
            was_any = true;
            context.spend(STEPS_PER_REQUEST);
            self.enter_next(context);
        }
        was_any
    }

    fn enter_next<H>(&mut self, context: &mut Context<'_, H>) {
        let front = self
            .across
            .as_deref()
            .and_then(|across| across.line.front());
        let Some((position, id)) = front.copied() else {
            return;
        };
        let key = self.key_of(id);
        let Some(across) = &mut self.across else {
            return;
        };
        let found = key.and_then(|key| self.subscriptions.get_mut(key.0 as usize));
        let is_its = |found: &&mut Subscription| {
            let waiting = found.waiting();
            waiting.is_some_and(|waiting| waiting.position == position)
        };
        let Some(subscription) = found.filter(is_its) else {
            across.line.pop_front();
            return;
        };
        let waiting = subscription.waiting_mut();
        let Some(next) = waiting.and_then(|waiting| waiting.requests.pop_front()) else {
            subscription.change_parts(|parts| parts.waiting = None);
            across.line.pop_front();
            return;
        };
        let Request {
            from,
            request,
            wants_retained,
        } = next;
        context.hold(from, -REQUEST_BYTES);
        let is_new = subscription.subscribers.is_empty();
        if subscription.subscribers.insert(from) {
            let session = context.sessions[from].id;
            context
                .events
                .entered(&SUBSCRIPTION, session, &subscription.entry(), is_new);
        }
        let subscribed = Message::Subscribed {
            request,
            subscription: id,
        };
        if context.reply(from, &subscribed).is_ok() && wants_retained {
            let (policy, topic) = (subscription.match_policy, &*subscription.topic);
            self.retained.send(context, from, id, policy, topic);
        }
    }

    /// Refuses requests for a pattern that other nodes may not publish to this one.
    pub(crate) fn refuse_waiting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        is_denied: &mut dyn FnMut(Pattern<'_>) -> bool,
    ) {
        let Some(across) = &self.across else {
            return;
        };
        let waiting = across.line.iter().filter_map(|(_, id)| self.key_of(*id));
        // A subscription that ended and began again is in the line twice.
        let denied: BTreeSet<_> = waiting
            .filter(|key| {
                let subscription = &self.subscriptions[key.0 as usize];
                let pattern = subscription.waiting().and_then(|_| subscription.crossing());
                pattern.is_some_and(&mut *is_denied)
            })
            .collect();
        for key in denied {
            let waiting = self.subscriptions[key.0 as usize].waiting();
            let requests = waiting.map(|waiting| {
                let requests = waiting.requests.iter();
                requests.map(|r| (r.from, r.request)).collect::<Vec<_>>()
            });
            for (from, request) in requests.unwrap_or_default() {
                context.spend(STEPS_PER_REQUEST);
                let text = "this node may not be sent what others publish there";
                let fault = Fault::new(error::NETWORK_FAILURE, text);
                context.refuse(from, MessageType::Subscribe, request, &fault);
                // If a session has several requests for the same subscription, the first removes all of them.
                if context.sessions[from].subscriptions.remove(&key) {
                    self.remove_subscriber(context, key, from);
                }
            }
        }
    }

    /// Publishes to other nodes before any local subscriber: a publication that cannot reach all nodes is refused.
    #[cold]
    #[inline(never)]
    pub(super) fn publish_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        publication: &retained::Publication<'_>,
    ) -> Result<(), Fault> {
        let retained::Publication {
            options,
            topic,
            payload,
            ..
        } = *publication;
        if options.retain {
            Retained::check(context, options, topic, payload)?;
        }
        let retained = options
            .retain
            .then(|| self.retained.begin(context, publication));
        let sessions = &*context.sessions;
        let crossing = Publication {
            id: publication.id,
            publisher: publication.publisher.map(|who| sessions[who].disclosed()),
            options,
            topic,
            payload,
            retained,
        };
        context.out.publish_across(&crossing).map_err(uncrossed)
    }

    /// Sends the EVENTs of another node's publication; returns whether a subscription matched.
    pub(crate) fn publish_from_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        publication: &Publication<'_>,
    ) -> bool {
        let Publication { topic, options, .. } = publication;
        if let Some(retained) = publication.retained {
            let publisher = publication.publisher.as_ref();
            let publisher = publisher.map(|who| (who.session, told(who)));
            self.retained
                .take_in(context, publisher, publication, retained);
        }
        let exact = self.exact(topic);
        self.matched.clear();
        self.index
            .for_each_pattern(topic, context.steps, |key| self.matched.push(key));
        let lists = options.receivers.as_deref();
        let filter = lists.map(|lists| Filter::new(lists, None, context));
        for key in exact.iter().chain(&self.matched) {
            let subscription = &self.subscriptions[key.0 as usize];
            self.send_from_across(context, subscription, publication, filter.as_ref());
        }
        exact.is_some() || !self.matched.is_empty()
    }

    fn send_from_across<H>(
        &self,
        context: &mut Context<'_, H>,
        subscription: &Subscription,
        publication: &Publication<'_>,
        filter: Option<&Filter<'_>>,
    ) {
        if let Some(log) = subscription.log() {
            let kept = retained::Publication {
                id: publication.id,
                publisher: None,
                options: publication.options,
                topic: publication.topic,
                payload: publication.payload,
            };
            let publisher = publication
                .publisher
                .as_ref()
                .map(|who| (who.session, told(who)));
            self.keep_of(context, publisher, log, &kept);
        }
        let is_exact = subscription.match_policy == MatchPolicy::Exact;
        let event = Message::Event {
            subscription: subscription.id,
            publication: publication.id,
            details: EventDetails {
                topic: (!is_exact).then(|| publication.topic.into()),
                publisher: publication.publisher.clone(),
                retained: false,
                acknowledged_delivery: false,
                passthru: publication.options.passthru.clone(),
            },
            payload: publication.payload,
        };
        let (sessions, subscribers) = (&*context.sessions, &subscription.subscribers);
        *context.steps = context.steps.saturating_add(1 + subscribers.len() as u32);
        let reached = |index: SessionIndex| {
            let session = &sessions[index];
            let is_reached = filter.is_none_or(|filter| filter.admits(index, session));
            (is_reached && !session.closing).then_some(&session.handle)
        };
        match filter {
            None => {
                let mut handles = subscribers.iter().copied().filter_map(reached);
                context.out.publish(&event, &mut handles);
            }
            Some(filter) => {
                let mut handles = filter.candidates(subscribers).filter_map(reached);
                context.out.publish(&event, &mut handles);
            }
        }
    }
}

impl Subscription {
    /// The interest to announce to other nodes. Of the router's own topics only meta events cross nodes.
    fn crossing(&self) -> Option<Pattern<'_>> {
        let is_exact = self.match_policy == MatchPolicy::Exact;
        let is_own = is_exact && is_reserved(&self.topic) && !is_meta_topic(&self.topic);
        (!is_own).then_some(Pattern {
            match_policy: self.match_policy,
            topic: &self.topic,
        })
    }
}

/// The identity of another node's session, as subscribers see it.
fn told(who: &Disclosed<'_>) -> Identity {
    Identity::new(&*who.authid, &*who.authrole, "", "")
}

#[cold]
fn uncrossed(why: Uncrossed) -> Fault {
    match why {
        Uncrossed::Detached => Fault::new(
            error::NETWORK_FAILURE,
            "the realm's other nodes cannot be reached",
        ),
        Uncrossed::TooLong => Fault::new(
            error::PAYLOAD_SIZE_EXCEEDED,
            "the event or its topic is longer than what the realm's nodes can send each other",
        ),
    }
}
