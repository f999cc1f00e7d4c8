//! The broker: subscriptions, and the delivery of events (WAMP basic profile, "Publish and Subscribe", with the
//! advanced profile's patterns, black- and whitelists, and identification).

mod acknowledged;
mod across;
mod entries;
mod forwarded;
mod history;
mod index;
mod judging;
mod lookup;
mod own;
mod pending;
mod plain;
mod receivers;
mod recorder;
mod retained;
mod shards;
mod subscribers;

pub(crate) use self::history::{History, LogIndex};
pub(crate) use crate::keys::SubscriptionKey;

use crosstie_wamp::{
    EventDetails, MatchPolicy, Message, MessageType, Payload, PublishOptions, Receivers, RequestId,
    SubscribeOptions, SubscriptionId,
};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

use self::acknowledged::Acknowledging;
use self::index::Index;
pub use self::judging::asking;
use self::pending::{Across, Waiting};
use self::receivers::Filter;
use self::retained::{Publication, Retained};
use self::shards::Shards;
use crate::Time;
use crate::authz::Action;
use crate::context::{Context, is_reserved, reserved_uri};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::lent;
use crate::random::Random;
use crate::room::Room;
use crate::session::Sessions;
use crate::session_set::SessionSet;

/// One (topic, matching policy), and the sessions that subscribed to it.
#[derive(Debug)]
struct Subscription {
    id: SubscriptionId,
    topic: Box<str>,
    match_policy: MatchPolicy,
    reach: Reach,
    /// Empty only if publications are recorded or all requests wait for other nodes.
    subscribers: SessionSet,
    parts: Option<Box<Parts>>,
    /// The session that subscribed first. The topic stays on its account while it is a subscriber; afterwards it is
    /// [`SessionIndex::NONE`].
    payer: SessionIndex,
    created: Time,
}

/// The parts that few subscriptions have; one word for the others.
#[derive(Debug, Default)]
struct Parts {
    /// The subscribers that are shards; `None` counts as empty.
    shards: Option<Shards>,
    /// Requests that wait until other nodes know of the subscription.
    waiting: Option<Waiting>,
    /// The subscribers that acknowledge events.
    acknowledging: Option<Acknowledging>,
}

/// How publications reach a subscription's subscribers. One match on it decides everything, so that plain subscriptions
/// pay nothing for recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The EVENT omits the topic: its subscribers know it.
    Exact,
    Pattern,
    Recorded(LogIndex),
    /// Some of its subscribers acknowledge.
    Acknowledging,
}

/// Cost to remove a subscription: 2 µs if a realm has a million of them, out of the cache.
const STEPS_PER_SUBSCRIPTION: u32 = 20;

#[derive(Debug)]
pub(crate) struct Broker {
    subscriptions: Slab<Subscription>,
    room: Room,
    index: Index,
    /// Ids are not reused, so that a late EVENT cannot be taken for one of another topic.
    id_last: u64,
    /// Number of (subscription, session) pairs.
    held: usize,
    /// The patterns that the present publication matches. Kept to reuse its memory.
    matched: Vec<SubscriptionKey>,
    retained: Retained,
    /// Borrowed only while a publication is recorded.
    history: RefCell<History>,
    /// Whether a recording of the present publication failed.
    is_unrecorded: Cell<bool>,
    /// Set if the realm has other nodes.
    across: Option<Box<Across>>,
    forwarded: Option<Box<forwarded::Forwarded>>,
}

impl Broker {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            subscriptions: Slab::new(),
            room: Room::default(),
            index: Index::new(random),
            id_last: 0,
            held: 0,
            matched: Vec::new(),
            retained: Retained::default(),
            history: RefCell::default(),
            is_unrecorded: Cell::new(false),
            across: None,
            forwarded: None,
        }
    }

    // Out of line: inlined, it costs calls 9 instructions, and an event to fifty subscribers 19 for each.
    #[inline(never)]
    pub(crate) fn subscribe<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &SubscribeOptions,
        topic: &str,
    ) {
        let entered = self
            .check_acknowledging(options)
            .and_then(|()| self.check_nkey(options))
            .and_then(|()| self.enter(context, from, request, options, topic));
        let subscription = match entered {
            Ok(Some(subscription)) => subscription,
            Ok(None) => return,
            Err(fault) => return context.refuse(from, MessageType::Subscribe, request, &fault),
        };
        if options.acknowledged_delivery || context.sessions[from].acknowledges_all() {
            self.acknowledge(from, subscription);
        }
        self.note_shard(context, from, subscription, options);
        let subscribed = Message::Subscribed {
            request,
            subscription,
        };
        if context.reply(from, &subscribed).is_ok() && options.get_retained {
            let policy = options.match_policy;
            self.retained
                .send(context, from, subscription, policy, topic);
        }
    }

    pub(crate) fn unsubscribe<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        subscription: SubscriptionId,
    ) {
        if !self.remove(context, from, subscription) {
            let fault = Fault::new(
                error::NO_SUCH_SUBSCRIPTION,
                format!("this session has no subscription {subscription}"),
            );
            return context.refuse(from, MessageType::Unsubscribe, request, &fault);
        }
        let unsubscribed = Message::Unsubscribed {
            request,
            revoked: None,
        };
        let _ = context.reply(from, &unsubscribed);
    }

    /// Answers a PUBLISH and sends its EVENTs. Without `acknowledge` PUBLISH has no answer, not even if the publication
    /// is refused.
    // Inlined into its only caller.
    #[inline(always)]
    pub(crate) fn publish<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &PublishOptions,
        topic: &str,
        payload: Payload<'_>,
    ) {
        let exact = self.exact(topic);
        if options.is_plain() & self.across.is_none() & !self.index.has_patterns() {
            return self.publish_plain(context, from, options, (topic, exact), payload);
        }
        let disclosed = match self.permit(context, from, options, topic, exact.is_some()) {
            Ok(disclosed) => disclosed,
            Err(fault) if options.acknowledge => {
                return context.refuse(from, MessageType::Publish, request, &fault);
            }
            Err(_) => return,
        };
        let is_rare = options.passthru.is_some() | options.receivers.is_some();
        if is_rare && self.is_done(context, from, request, options) {
            return;
        }
        self.matched.clear();
        self.index
            .for_each_pattern(topic, context.steps, |key| self.matched.push(key));

        let publication = Publication {
            id: context.random.publication_id(),
            publisher: disclosed.then_some(from),
            options,
            topic,
            payload,
        };
        if self.across.is_some()
            && let Err(fault) = self.publish_across(context, &publication)
        {
            if options.acknowledge {
                context.refuse(from, MessageType::Publish, request, &fault);
            }
            return;
        }
        let mut is_stored = false;
        if options.acknowledge | options.retain {
            match self.keep_and_answer(context, from, request, &publication, exact) {
                Some(will_store) => is_stored = will_store,
                None => return,
            }
        }
        let is_elsewhere = context.sessions[from].features.subscribes_elsewhere();
        if options.receivers.is_none() & options.sharding.is_none() & !is_elsewhere {
            for key in exact.iter().chain(&self.matched) {
                self.send_event(context, from, *key, &publication, None);
            }
        } else {
            self.send_filtered(context, from, exact, &publication);
        }
        if is_stored {
            self.end_record(context, from, request, publication.id);
        }
    }

    /// Retains a publication and answers PUBLISHED, as its publisher requests; `None` if it is refused. Returns whether
    /// PUBLISHED is deferred until the event is stored.
    #[inline(never)]
    fn keep_and_answer<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        publication: &Publication<'_>,
        exact: Option<SubscriptionKey>,
    ) -> Option<bool> {
        let options = publication.options;
        if options.retain
            && let Err(fault) = self.retained.keep(context, from, publication)
        {
            if options.acknowledge {
                context.refuse(from, MessageType::Publish, request, &fault);
            }
            return None;
        }
        let is_stored = options.acknowledge && self.will_store(context, from, options, exact);
        if options.acknowledge && !is_stored {
            let published = Message::Published {
                request,
                publication: publication.id,
            };
            let _ = context.reply(from, &published);
        }
        Some(is_stored)
    }

    /// Returns whether the publisher is disclosed, or why the publication is refused.
    #[inline(always)]
    fn permit<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        options: &PublishOptions,
        topic: &str,
        checked: bool,
    ) -> Result<bool, Fault> {
        let disclosed = permit_publish(context, from, options, topic, checked)?;
        match options.sharding.is_none() {
            true => Ok(disclosed),
            false => self.check_rkey(context, options, disclosed),
        }
    }

    /// Sends the EVENTs of a publication with lists of receivers, or for one shard. Out of line, because few
    /// publications have them.
    #[inline(never)]
    fn send_filtered<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        exact: Option<SubscriptionKey>,
        publication: &Publication<'_>,
    ) {
        let none = Receivers::default();
        let lists = publication.options.receivers.as_deref();
        let lists = lists.unwrap_or(&none);
        let mut filter = Filter::new(lists, Some(from), context);
        filter.resource = shards::resource(publication.options);
        for key in exact.iter().chain(&self.matched) {
            self.send_event(context, from, *key, publication, Some(&filter));
        }
    }

    /// Sends the EVENT of a publication under one of the matching subscriptions.
    #[inline(always)]
    fn send_event<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        key: SubscriptionKey,
        publication: &Publication<'_>,
        filter: Option<&Filter<'_>>,
    ) {
        let options = publication.options;
        let subscription = &self.subscriptions[key.0 as usize];
        let is_pattern = match subscription.reach {
            Reach::Exact => false,
            Reach::Pattern => true,
            Reach::Recorded(log) => self.keep(context, from, (log, subscription), publication),
            Reach::Acknowledging => {
                return self.send_acknowledged(context, from, key, publication, filter);
            }
        };
        let sessions = &*context.sessions;
        let event = ManuallyDrop::new(Message::Event {
            subscription: subscription.id,
            publication: publication.id,
            details: EventDetails {
                topic: is_pattern.then(|| publication.topic.into()),
                publisher: publication
                    .publisher
                    .map(|index| sessions[index].disclosed()),
                retained: false,
                acknowledged_delivery: false,
                passthru: options.passthru.clone(),
            },
            payload: publication.payload,
        });
        let subscribers = subscription.subscribers.as_slice();
        *context.steps = context.steps.saturating_add(1 + subscribers.len() as u32);
        let reached = |index: SessionIndex| {
            let session = &sessions[index];
            let left_out = session.closing || (options.exclude_me && index == from);
            (!left_out).then_some((index, session))
        };
        match filter {
            None => {
                let reached = subscribers.iter().copied().filter_map(reached);
                let mut handles = reached.map(|(_, session)| &session.handle);
                context.out.publish(&event, &mut handles);
            }
            Some(filter) => {
                let shard = subscription.shard_for(filter.resource, sessions);
                let reached = filter
                    .candidates(&subscription.subscribers)
                    .filter_map(reached);
                let reached = reached.filter(|(index, _)| subscription.is_in(shard, *index));
                let mut handles = reached
                    .filter(|(index, session)| filter.admits(*index, session))
                    .map(|(_, session)| &session.handle);
                context.out.publish(&event, &mut handles);
            }
        }
        if options.passthru.is_some() {
            lent::drop_owned(event);
        }
    }

    /// Removes subscriptions of a session that has left, for that many steps; returns whether there were any.
    pub(crate) fn leave<H>(
        &mut self,
        context: &mut Context<'_, H>,
        index: SessionIndex,
        steps_max: u32,
    ) -> bool {
        let count_max = steps_max.div_ceil(STEPS_PER_SUBSCRIPTION) as usize;
        let part = context.sessions[index].subscriptions.some(count_max);
        for key in &part {
            context.sessions[index].subscriptions.remove(key);
            self.remove_subscriber(context, *key, index);
        }
        context.spend(part.len() as u32 * STEPS_PER_SUBSCRIPTION);
        !part.is_empty()
    }

    /// Removes expired retained events, a turn's worth; returns whether there may be more.
    pub(crate) fn end_retained<H>(&mut self, context: &mut Context<'_, H>, steps_max: u32) -> bool {
        let ended = self.retained.end_some(context.now, steps_max as usize);
        self.retained.forget_stored(context);
        *context.steps = context.steps.saturating_add(ended as u32);
        ended > 0
    }

    pub(crate) fn retained(&self) -> &Retained {
        &self.retained
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.subscriptions.len() - self.unattended()
    }

    /// Asserts that tables and sessions agree. Walks everything.
    pub(crate) fn check_invariants<H>(&self, sessions: &Sessions<H>) {
        assert_eq!(self.index.lens(), [self.subscriptions.len(); 2]);
        let mut memberships = 0;
        for (index, subscription) in &self.subscriptions {
            let key = SubscriptionKey(index as u32);
            let (policy, topic) = (subscription.match_policy, &subscription.topic);
            assert_eq!(self.key_of_pattern(policy, topic), Some(key));
            assert_eq!(self.key_of(subscription.id), Some(key));
            subscription.check_acknowledging();
            let is_kept = subscription.log().is_some();
            assert!(
                is_kept || !subscription.subscribers.is_empty() || subscription.waiting().is_some(),
                "subscription without subscribers"
            );
            let waiting = subscription.waiting().into_iter();
            let waiting = waiting.flat_map(|waiting| waiting.sessions());
            let mut waiting: Vec<_> = waiting
                .filter(|session| !subscription.subscribers.contains(session))
                .collect();
            waiting.sort_unstable();
            waiting.dedup();
            for session in &waiting {
                assert!(sessions[*session].subscriptions.contains(&key));
            }
            memberships += waiting.len();
            for subscriber in &subscription.subscribers {
                assert!(sessions[*subscriber].subscriptions.contains(&key));
            }
            memberships += subscription.subscribers.len();
            subscription.check_shards();
        }
        let held: usize = sessions
            .iter()
            .map(|(_, session)| session.subscriptions.len())
            .sum();
        assert_eq!((held, self.held), (memberships, memberships));
        self.retained.check_invariants();
        self.history.borrow().check_invariants();
    }
}

/// Returns whether the publisher is disclosed, or why the publication is refused.
// Inlined into both of its callers. With two callers the compiler would not inline it by itself, which costs each
// publication 38 instructions.
#[inline(always)]
fn permit_publish<H>(
    context: &mut Context<'_, H>,
    from: SessionIndex,
    options: &PublishOptions,
    topic: &str,
    checked: bool,
) -> Result<bool, Fault> {
    if !checked {
        context.check_uri(Action::Publish, topic)?;
    }
    if is_reserved(topic) {
        return Err(reserved_uri(Action::Publish, topic));
    }
    let disclose = context.authorize(from, Action::Publish, topic, MatchPolicy::Exact)?;
    context.disclose(disclose.publisher, options.disclose_me)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most idle sessions have one of their own.
    #[test]
    fn a_subscription_costs_little() {
        assert!(size_of::<Subscription>() <= 72);
    }
}
