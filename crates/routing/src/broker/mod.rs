//! The broker: subscriptions, and events to whom they reach (WAMP basic profile, "Publish and
//! Subscribe", with the advanced profile's patterns, black- and whitelists, and identification).

mod entries;
mod history;
mod own;
mod receivers;
mod recording;
mod retained;

pub(crate) use self::history::{History, LogIndex, Recorded};

use std::cell::RefCell;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use crosstie_collections::GrowingMap;
use crosstie_wamp::{
    EventDetails, MatchPolicy, Message, MessageType, Payload, PublishOptions, Receivers, RequestId,
    SubscribeOptions, SubscriptionId,
};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHasher};
use slab::Slab;

use self::receivers::Filter;
use self::retained::{Publication, Retained};
use crate::authz::Action;
use crate::context::{Context, is_reserved, none_left, reserved_uri};
use crate::events::{MetaEvents, SUBSCRIPTION};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::pattern::PatternMap;
use crate::random::Random;
use crate::session::Sessions;
use crate::{RoleLimit, Time};

/// A subscription's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SubscriptionKey(u32);

/// One (topic, matching policy), and the sessions that subscribed to it.
#[derive(Debug)]
struct Subscription {
    id: SubscriptionId,
    topic: Arc<str>,
    match_policy: MatchPolicy,
    reach: Reach,
    /// Never empty, but where publications are recorded.
    subscribers: Subscribers,
    /// Who first asked for it, and has the topic on its account for as long as it stays.
    payer: Option<SessionIndex>,
    created: Time,
}

/// What is done about a publication under a subscription, beside sending it. One look decides about all, so that
/// others pay nothing for those that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Its subscribers know the topic.
    Exact,
    Pattern,
    Recorded(LogIndex),
}

impl Subscription {
    /// What it takes in memory beside its subscribers, roughly: places in tables, and its topic.
    fn bytes(&self) -> isize {
        SUBSCRIPTION_BYTES + self.topic.len() as isize
    }
}

const SUBSCRIPTION_BYTES: isize = 512;

/// What a session's part in a subscription takes in memory, roughly.
const SUBSCRIBER_BYTES: isize = 96;

/// To take a subscription away: 2 µs where a realm has a million of them, out of the cache.
const STEPS_PER_SUBSCRIPTION: u32 = 20;

type Subscribers = IndexSet<SessionIndex, BuildHasherDefault<FxHasher>>;

#[derive(Debug)]
pub(crate) struct Broker {
    subscriptions: Slab<Subscription>,
    by_topic: PatternMap<SubscriptionKey>,
    by_id: GrowingMap<SubscriptionId, SubscriptionKey, FxBuildHasher>,
    /// Ids are not used twice, so that a late EVENT cannot be taken for one of another topic.
    id_last: u64,
    /// Sessions' parts in them, all together.
    held: usize,
    /// The patterns that the present publication matches. Kept for its room.
    matched: Vec<SubscriptionKey>,
    retained: Retained,
    /// Borrowed for a moment where publications are recorded, and by nobody else meanwhile.
    history: RefCell<History>,
}

impl Broker {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            subscriptions: Slab::new(),
            by_topic: PatternMap::new(random.hash_keys()),
            by_id: GrowingMap::new(),
            id_last: 0,
            held: 0,
            matched: Vec::new(),
            retained: Retained::default(),
            history: RefCell::default(),
        }
    }

    // Out of line: compiled among them, it costs calls 9 instructions and an event to fifty 19 for each.
    #[inline(never)]
    pub(crate) fn subscribe<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &SubscribeOptions,
        topic: &str,
    ) {
        let subscription = match self.enter(context, from, options, topic) {
            Ok(subscription) => subscription,
            Err(fault) => return context.refuse(from, MessageType::Subscribe, request, &fault),
        };
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

    /// Answers a PUBLISH and sends its EVENTs. Without `acknowledge` there is no answer, not even
    /// when the publication is refused.
    pub(crate) fn publish<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &PublishOptions,
        topic: &str,
        payload: Payload<'_>,
    ) {
        let exact = self.by_topic.exact(topic);
        // A topic that is subscribed to exactly has been checked then.
        let checked = exact.is_some();
        let disclosed = match permit_publish(context, from, options, topic, checked) {
            Ok(disclosed) => disclosed,
            Err(fault) if options.acknowledge => {
                return context.refuse(from, MessageType::Publish, request, &fault);
            }
            Err(_) => return,
        };
        self.matched.clear();
        self.by_topic
            .for_each_pattern(topic, context.steps, |key| self.matched.push(key));

        let publication = Publication {
            id: context.random.publication_id(),
            publisher: disclosed.then_some(from),
            options,
            topic,
            payload,
        };
        if options.retain
            && let Err(fault) = self.retained.keep(context, &publication)
        {
            if options.acknowledge {
                context.refuse(from, MessageType::Publish, request, &fault);
            }
            return;
        }
        if options.acknowledge {
            let published = Message::Published {
                request,
                publication: publication.id,
            };
            let _ = context.reply(from, &published);
        }
        let Some(lists) = options.receivers.as_deref() else {
            for key in exact.iter().chain(&self.matched) {
                self.send_event(context, from, *key, &publication, None);
            }
            return;
        };
        self.send_filtered(context, from, exact, &publication, lists);
    }

    /// Sends the EVENTs of a publication with lists of receivers. Out of line, because few have some.
    #[inline(never)]
    fn send_filtered<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        exact: Option<SubscriptionKey>,
        publication: &Publication<'_>,
        lists: &Receivers,
    ) {
        let filter = Filter::new(lists, context.sessions, context.config.empty_eligible);
        for key in exact.iter().chain(&self.matched) {
            self.send_event(context, from, *key, publication, Some(&filter));
        }
    }

    /// Sends the EVENT of a publication under one of the subscriptions that match.
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
        };
        let sessions = &*context.sessions;
        let event = Message::Event {
            subscription: subscription.id,
            publication: publication.id,
            details: EventDetails {
                topic: is_pattern.then(|| publication.topic.into()),
                publisher: publication
                    .publisher
                    .map(|index| sessions[index].disclosed()),
                retained: false,
                passthru: options.passthru.clone(),
            },
            payload: publication.payload,
        };
        let subscribers = &subscription.subscribers;
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
                let reached = filter.candidates(subscribers).filter_map(reached);
                let mut handles = reached
                    .filter(|(index, session)| filter.admits(*index, session))
                    .map(|(_, session)| &session.handle);
                context.out.publish(&event, &mut handles);
            }
        }
    }

    /// Takes away subscriptions of a session that has left, so many steps' worth; whether there were
    /// any.
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

    pub(crate) fn retained(&self) -> &Retained {
        &self.retained
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.subscriptions.len() - self.unattended()
    }

    /// Adds a subscriber; to be subscribed already is no fault, and changes nothing.
    fn enter<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        options: &SubscribeOptions,
        topic: &str,
    ) -> Result<SubscriptionId, Fault> {
        let policy = options.match_policy;
        let known = self.by_topic.value(policy, topic);
        if known.is_none() {
            context.check_pattern(Action::Subscribe, topic, policy)?;
        }
        context.authorize(from, Action::Subscribe, topic, policy)?;
        context.check_options(options.unsupported)?;
        let session = &mut context.sessions[from];
        if let Some(key) = known.filter(|key| session.subscriptions.contains(key)) {
            return Ok(self.subscriptions[key.0 as usize].id);
        }
        let has = session.subscriptions.len();
        let subscriptions_max = context.config.limits.subscriptions_max;
        let subscriptions_max =
            context.role_bound(from, RoleLimit::Subscriptions, subscriptions_max);
        if has >= subscriptions_max.value {
            let fault =
                subscriptions_max.reached(context, error::SUBSCRIPTIONS_MAX, "subscriptions");
            return Err(fault);
        }
        let realm_max = context.config.limits.realm_subscriptions_max;
        if !context.may_have_more(has, self.held, realm_max) {
            return Err(none_left(
                error::REALM_SUBSCRIPTIONS_MAX,
                "subscriptions",
                realm_max,
            ));
        }
        if known.is_none() {
            let shapes_max = context.config.limits.wildcard_shapes_max;
            self.by_topic.check_room(policy, topic, shapes_max)?;
        }
        let key = known.unwrap_or_else(|| {
            let watching = context.config.meta_api.then_some(&mut *context.events);
            self.create(watching, context.now, policy, topic)
        });
        context.sessions[from].subscriptions.insert(key);
        self.held += 1;
        let subscription = &mut self.subscriptions[key.0 as usize];
        subscription.subscribers.insert(from);
        let mut bytes = SUBSCRIBER_BYTES;
        if known.is_none() {
            subscription.payer = Some(from);
            bytes += subscription.bytes();
        }
        context.hold(from, bytes);
        let session = context.sessions[from].id;
        let is_new = known.is_none();
        context
            .events
            .entered(&SUBSCRIPTION, session, &subscription.entry(), is_new);
        Ok(subscription.id)
    }

    /// Removes a subscriber; whether it was one.
    fn remove<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        subscription: SubscriptionId,
    ) -> bool {
        let key = self.by_id.get(&subscription).copied();
        let key = key.filter(|key| context.sessions[from].subscriptions.remove(key));
        key.is_some_and(|key| {
            self.remove_subscriber(context, key, from);
            true
        })
    }

    fn create(
        &mut self,
        watching: Option<&mut MetaEvents>,
        created: Time,
        match_policy: MatchPolicy,
        topic: &str,
    ) -> SubscriptionKey {
        if let Some(events) = watching {
            events.watch(match_policy, topic, true);
        }
        self.id_last += 1;
        let id = SubscriptionId(self.id_last);
        let topic: Arc<str> = topic.into();
        let key = SubscriptionKey(self.subscriptions.insert(Subscription {
            id,
            topic: Arc::clone(&topic),
            match_policy,
            reach: match match_policy {
                MatchPolicy::Exact => Reach::Exact,
                _ => Reach::Pattern,
            },
            subscribers: IndexSet::default(),
            payer: None,
            created,
        }) as u32);
        self.by_topic.insert(match_policy, topic, key);
        self.by_id.insert(id, key);
        key
    }

    fn remove_subscriber<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: SubscriptionKey,
        from: SessionIndex,
    ) {
        self.held -= 1;
        let subscription = &mut self.subscriptions[key.0 as usize];
        subscription.subscribers.swap_remove(&from);
        let mut bytes = SUBSCRIBER_BYTES;
        if subscription.payer == Some(from) {
            subscription.payer = None;
            bytes += subscription.bytes();
        }
        context.hold(from, -bytes);
        let is_kept = matches!(subscription.reach, Reach::Recorded(_));
        let is_gone = subscription.subscribers.is_empty() && !is_kept;
        let what = (subscription.id.0, &*subscription.topic);
        let session = context.sessions[from].id;
        context.events.exited(&SUBSCRIPTION, session, what, is_gone);
        if is_gone {
            let subscription = self.subscriptions.remove(key.0 as usize);
            self.by_topic
                .remove(subscription.match_policy, &subscription.topic);
            self.by_id.remove(&subscription.id);
            if context.config.meta_api {
                context
                    .events
                    .watch(subscription.match_policy, &subscription.topic, false);
            }
        }
    }

    /// Asserts that tables and sessions say the same. Walks everything.
    pub(crate) fn check_invariants<H>(&self, sessions: &Sessions<H>) {
        assert_eq!(self.by_topic.len(), self.subscriptions.len());
        assert_eq!(self.by_id.len(), self.subscriptions.len());
        let mut memberships = 0;
        for (index, subscription) in &self.subscriptions {
            let key = SubscriptionKey(index as u32);
            let (policy, topic) = (subscription.match_policy, &subscription.topic);
            assert_eq!(self.by_topic.value(policy, topic), Some(key));
            assert_eq!(self.by_id.get(&subscription.id), Some(&key));
            let is_kept = matches!(subscription.reach, Reach::Recorded(_));
            assert!(
                is_kept || !subscription.subscribers.is_empty(),
                "subscription without subscribers"
            );
            for subscriber in &subscription.subscribers {
                assert!(sessions[*subscriber].subscriptions.contains(&key));
            }
            memberships += subscription.subscribers.len();
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

/// Whether the publisher is disclosed, or why there is no publication.
// Inlined into both of its callers: with two it is not otherwise, which costs each publication 38 instructions.
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
    context.check_options(options.unsupported)?;
    context.disclose(disclose.publisher, options.disclose_me)
}
