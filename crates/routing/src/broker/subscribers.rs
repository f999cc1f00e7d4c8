//! Adds and removes subscribers: a subscription begins with its first subscriber and ends with its last.

use crosstie_wamp::{MatchPolicy, RequestId, SubscribeOptions, SubscriptionId};

use super::acknowledged::forget;
use super::pending::Waiting;
use super::{Broker, Reach, Subscription, SubscriptionKey};
use crate::authz::Action;
use crate::context::{Context, none_left};
use crate::events::{MetaEvents, SUBSCRIPTION};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::session_set::SessionSet;
use crate::{RoleLimit, Time};

impl Subscription {
    /// Approximate memory beside its subscribers: places in tables, and its topic.
    pub(super) fn bytes(&self) -> isize {
        SUBSCRIPTION_BYTES + self.topic.len() as isize
    }
}

const SUBSCRIPTION_BYTES: isize = 512;

/// Approximate memory of a session's part in a subscription.
pub(super) const SUBSCRIBER_BYTES: isize = 96;

impl Broker {
    /// Adds a subscriber; adding it again changes nothing. `None`: the request waits for other nodes.
    pub(super) fn enter<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &SubscribeOptions,
        topic: &str,
    ) -> Result<Option<SubscriptionId>, Fault> {
        let policy = options.match_policy;
        let known = self.key_of_pattern(policy, topic);
        if known.is_none() {
            context.check_pattern(Action::Subscribe, topic, policy)?;
        }
        context.authorize(from, Action::Subscribe, topic, policy)?;
        context.check_asked(from, options.is_forwarded, options.unsupported)?;
        let asked = (request, options.get_retained);
        let session = &mut context.sessions[from];
        if session.features.subscribes_elsewhere() {
            return Ok(Some(SubscriptionId(1)));
        }
        if let Some(key) = known.filter(|key| session.subscriptions.contains(key)) {
            let subscription = &mut self.subscriptions[key.0 as usize];
            let waits = Self::wait(subscription, context, from, asked);
            return Ok((!waits).then_some(subscription.id));
        }
        self.check_bounds(context, from)?;
        if known.is_none() {
            let shapes_max = context.config.limits.wildcard_shapes_max;
            self.index.check_room(policy, topic, shapes_max)?;
        }
        let key = known.unwrap_or_else(|| {
            let watching = context.config.meta_api.then_some(&mut *context.events);
            self.create(watching, context.now, policy, topic)
        });
        context.sessions[from].subscriptions.insert(key);
        self.held += 1;
        if known.is_none() && self.across.is_some() {
            self.begin_interest(context, self.subscriptions[key.0 as usize].id);
        }
        let subscription = &mut self.subscriptions[key.0 as usize];
        let mut bytes = SUBSCRIBER_BYTES;
        if known.is_none() {
            subscription.payer = from;
            bytes += subscription.bytes();
        }
        context.hold(from, bytes);
        if Self::wait(subscription, context, from, asked) {
            return Ok(None);
        }
        subscription.subscribers.insert(from);
        let session = context.sessions[from].id;
        let is_new = known.is_none();
        context
            .events
            .entered(&SUBSCRIPTION, session, &subscription.entry(), is_new);
        Ok(Some(subscription.id))
    }

    /// Whether a session may have one more subscription.
    fn check_bounds<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
    ) -> Result<(), Fault> {
        let session = &context.sessions[from];
        let has = session.subscriptions.len();
        let is_for_others = session.features.subscribes_for_others();
        let subscriptions_max = context.config.limits.subscriptions_max;
        let subscriptions_max =
            context.role_bound(from, RoleLimit::Subscriptions, subscriptions_max);
        if has >= subscriptions_max.value && !is_for_others {
            return Err(subscriptions_max.reached(
                context,
                error::SUBSCRIPTIONS_MAX,
                "subscriptions",
            ));
        }
        let realm_max = context.config.limits.realm_subscriptions_max;
        match context.may_have_more(has, self.held, realm_max) {
            true => Ok(()),
            false => Err(none_left(
                error::REALM_SUBSCRIPTIONS_MAX,
                "subscriptions",
                realm_max,
            )),
        }
    }

    /// Removes a subscriber; returns whether it was one.
    pub(super) fn remove<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        subscription: SubscriptionId,
    ) -> bool {
        let key = self.key_of(subscription);
        let key = key.filter(|key| {
            // A waiting request was not announced by a meta event.
            let is_in = |key: &SubscriptionKey| {
                let subscription = &self.subscriptions[key.0 as usize];
                subscription.waiting().is_none() || subscription.subscribers.contains(&from)
            };
            is_in(key) && context.sessions[from].subscriptions.remove(key)
        });
        key.is_some_and(|key| {
            self.remove_subscriber(context, key, from);
            true
        })
    }

    pub(super) fn create(
        &mut self,
        watching: Option<&mut MetaEvents>,
        created: Time,
        match_policy: MatchPolicy,
        topic: &str,
    ) -> SubscriptionKey {
        if let Some(events) = watching {
            events.watch(match_policy, topic, true);
        }
        let id = self.new_id(match_policy, topic);
        let key = SubscriptionKey(self.subscriptions.insert(Subscription {
            id,
            topic: topic.into(),
            match_policy,
            reach: match match_policy {
                MatchPolicy::Exact => Reach::Exact,
                _ => Reach::Pattern,
            },
            subscribers: SessionSet::default(),
            parts: None,
            payer: SessionIndex::NONE,
            created,
        }) as u32);
        self.index.insert((match_policy, topic), id, key);
        key
    }

    pub(super) fn remove_subscriber<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: SubscriptionKey,
        from: SessionIndex,
    ) {
        self.held -= 1;
        let subscription = &mut self.subscriptions[key.0 as usize];
        let was_in = subscription.subscribers.swap_remove(&from);
        if subscription.leave_acknowledging(from) {
            forget(context, from, subscription.id);
        }
        let mut bytes = SUBSCRIBER_BYTES - subscription.set_shard(from, None);
        let mut waits = false;
        if let Some(waiting) = subscription.waiting_mut() {
            bytes += Waiting::bytes(waiting.leave(from));
            waits = !waiting.is_empty();
        }
        if subscription.payer == from {
            subscription.payer = SessionIndex::NONE;
            bytes += subscription.bytes();
        }
        context.hold(from, -bytes);
        let is_kept = subscription.log().is_some();
        let is_gone = subscription.subscribers.is_empty() && !is_kept && !waits;
        if was_in {
            let what = (subscription.id.0, &*subscription.topic);
            let session = context.sessions[from].id;
            context.events.exited(&SUBSCRIPTION, session, what, is_gone);
        }
        if is_gone {
            if self.across.is_some() {
                Self::end_interest(context, subscription);
            }
            let subscription = self.subscriptions.remove(key.0 as usize);
            self.room.shrink(&mut self.subscriptions);
            let pattern = (subscription.match_policy, &*subscription.topic);
            self.index.remove(pattern, subscription.id, key);
            if context.config.meta_api {
                context
                    .events
                    .watch(subscription.match_policy, &subscription.topic, false);
            }
        }
    }
}
