//! Subscriptions as the meta API sees them.

use crosstie_wamp::{MatchPolicy, Message, RequestId, Revoked, SubscriptionId, Value};

use super::{Broker, Subscription, SubscriptionKey};
use crate::ClientFeature;
use crate::context::Context;
use crate::entry_view::EntryView;
use crate::events::{Entry, is_protected};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::meta::Entries;
use crate::session::Session;

impl Subscription {
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            id: self.id.0,
            uri: &self.topic,
            match_policy: self.match_policy,
            invoke: None,
            created: self.created,
        }
    }
}

impl Broker {
    /// The subscription at a place of the table.
    pub(crate) fn at(&self, place: usize) -> Option<EntryView<'_>> {
        let subscription = self.subscriptions.get(place)?;
        let subscribers = subscription.subscribers.len();
        Some(EntryView::new(subscription.entry(), subscribers))
    }

    /// Size of the table: every subscription's place is below it.
    pub(crate) fn places(&self) -> usize {
        self.subscriptions.capacity()
    }

    /// The id of a subscription that the session knows of, if the meta API shows that subscription.
    pub(crate) fn told_id(&self, key: SubscriptionKey, session: SessionIndex) -> Option<u64> {
        let subscription = &self.subscriptions[key.0 as usize];
        let is_told = subscription.subscribers.contains(&session);
        (is_told && !is_protected(&subscription.topic)).then_some(subscription.id.0)
    }

    /// Shows `visit` the subscribers of `topic` until it returns `false`.
    pub(crate) fn receivers(&self, topic: &str, visit: &mut dyn FnMut(SessionIndex) -> bool) {
        let mut matched = Vec::from_iter(self.exact(topic));
        self.index
            .for_each_pattern(topic, &mut 0, |key| matched.push(key));
        let subscriptions = matched.into_iter().map(|SubscriptionKey(key)| key as usize);
        let mut subscribers = subscriptions.flat_map(|key| &self.subscriptions[key].subscribers);
        subscribers.all(|index| visit(*index));
    }

    /// The topic or pattern of a subscription.
    pub(crate) fn pattern(&self, id: SubscriptionId) -> Option<(MatchPolicy, &str)> {
        let subscription = self.by_id(id.0)?;
        Some((subscription.match_policy, &subscription.topic))
    }

    fn by_id(&self, id: u64) -> Option<&Subscription> {
        let SubscriptionKey(key) = self.key_of(SubscriptionId(id))?;
        self.subscriptions.get(key as usize)
    }
}

impl Entries for Broker {
    const NAME: &'static str = "subscription";
    const ID: &'static str = "subscription_id";
    const URI: &'static str = "topic";
    const MEMBER: &'static str = "subscriber_id";

    fn all(&self) -> impl Iterator<Item = Entry<'_>> {
        self.subscriptions.iter().map(|(_, s)| s.entry())
    }

    fn of_session<H>(&self, session: &Session<H>) -> Vec<Entry<'_>> {
        let keys = session.subscriptions.some(usize::MAX).into_iter();
        keys.map(|SubscriptionKey(key)| self.subscriptions[key as usize].entry())
            .collect()
    }

    fn find(&self, id: u64) -> Option<Entry<'_>> {
        self.by_id(id).map(Subscription::entry)
    }

    fn lookup(&self, policy: MatchPolicy, uri: &str) -> Option<u64> {
        let SubscriptionKey(key) = self.key_of_pattern(policy, uri)?;
        Some(self.subscriptions[key as usize].id.0)
    }

    /// All subscriptions that an event would reach; null if there are none.
    fn matching(&self, uri: &str, steps: &mut u32) -> Value {
        let mut found = Vec::from_iter(self.exact(uri));
        self.index
            .for_each_pattern(uri, steps, |key| found.push(key));
        let id = |SubscriptionKey(key)| Value::from(self.subscriptions[key as usize].id.0);
        match found.is_empty() {
            true => Value::Null,
            false => Value::List(found.into_iter().map(id).collect()),
        }
    }

    fn members(&self, id: u64) -> impl Iterator<Item = SessionIndex> {
        let subscribers = self.by_id(id).into_iter().flat_map(|s| &s.subscribers);
        subscribers.copied()
    }

    fn revoke<H>(
        &mut self,
        context: &mut Context<'_, H>,
        id: u64,
        subscriber: SessionIndex,
        reason: Option<&str>,
    ) -> bool {
        let id = SubscriptionId(id);
        let was_there = self.remove(context, subscriber, id);
        let features = context.sessions[subscriber].features;
        // Clients without this feature would take the message for a protocol violation.
        if was_there && features.has(ClientFeature::SubscriberSubscriptionRevocation) {
            let unsubscribed = Message::Unsubscribed {
                request: RequestId(0),
                revoked: Some(Revoked {
                    id,
                    reason: reason.map(Into::into),
                }),
            };
            let _ = context.reply(subscriber, &unsubscribed);
        }
        was_there
    }

    fn no_such(id: u64) -> Fault {
        let text = format!("no subscription with ID {id} exists on this broker");
        Fault::new(error::NO_SUCH_SUBSCRIPTION, text)
    }

    fn no_member(id: u64, session: u64) -> Fault {
        let text =
            format!("session {session} is not subscribed on subscription {id} on this broker");
        Fault::new(error::NO_SUCH_SUBSCRIPTION, text)
    }
}
