//! Messages that are retained elsewhere: the owner looks for them, and sends them to a new subscription.

use std::sync::Arc;

use super::Space;
use super::deliver::Form;
use crate::course::Recording;
use crate::fan::Fan;
use crate::outgoing::{DealtBy, identifiers};
use crate::{ConnectionKey, Content, Outbox, Time};

impl<H> Space<H> {
    /// The retained payload of a topic.
    pub fn retained_payload(&self, topic: &str) -> Option<&[u8]> {
        Some(self.retained.get(topic)?.payload())
    }

    /// Whether a client has room for retained messages, or is gone.
    pub fn may_scan(&self, key: ConnectionKey) -> bool {
        let Some(session) = self.connected(key) else {
            return true;
        };
        let outgoing = session.outgoing.as_ref();
        let queued = outgoing.map_or(0, |outgoing| outgoing.len());
        // Retained messages leave half of the queue to others.
        session.is_open && !session.is_full && queued <= self.config.limits.queued_max / 2
    }

    /// Whether a session has a subscription that is not shared.
    pub fn is_subscribed(&self, key: ConnectionKey, filter: &str) -> bool {
        let found = self.find_filter(filter, None);
        let session = self.connected(key);
        found.is_some_and(|key| session.is_some_and(|s| s.find_subscribed(key).is_ok()))
    }

    /// Forgets the retained message of a topic, for which a later one is retained elsewhere.
    pub fn forget_retained(&mut self, topic: &str) {
        if let Some(removed) = self.retained.remove(topic) {
            self.ledger.release_retained(&removed);
            self.record_retained_gone(topic);
        }
    }

    /// Sends a subscription a message that is retained elsewhere. False if the client has no room for it now: it has after
    /// an acknowledgement, or [`Self::resume`]. Without the subscription there is nothing to send.
    pub fn send_retained_from_outside<O: Outbox<H>>(
        &mut self,
        now: Time,
        key: ConnectionKey,
        filter: &str,
        content: &Content<'_>,
        outbox: &mut O,
    ) -> bool {
        let Some(session) = self.connected(key) else {
            return true;
        };
        let subscribed = self.find_filter(filter, None);
        let subscribed = subscribed.and_then(|key| {
            let at = session.find_subscribed(key).ok()?;
            let place = session.subscriptions.as_slice()[at].place as usize;
            let subscribers = &self.trie.at(key.node)?.subscribers;
            subscribers.as_slice().get(place).copied()
        });
        let Some(subscriber) = subscribed else {
            return true;
        };
        if !self.may_scan(key) {
            return false;
        }
        let one = [subscriber.identifier];
        let form = Form {
            qos: content.qos.min(subscriber.options.qos()),
            retain: true,
            group: DealtBy::NONE,
            identifiers: identifiers(&one),
        };
        let mut fan = Fan::<O::Shared>::new(*content, self.buffers.take());
        fan.message = Some(Arc::clone(&self.ledger.message(content, now)));
        let before = self.ledger.counts.dropped_full;
        let mut recording = Recording::default();
        self.deliver(now, key.session, &form, &mut fan, &mut recording, outbox);
        self.buffers = Some(fan.buffers);
        let is_sent = self.ledger.counts.dropped_full == before;
        if !is_sent {
            self.ledger.counts.dropped_full = before;
            if let Some(session) = self.connected_mut(key) {
                session.is_full = true;
            }
        }
        is_sent
    }
}
