//! Lists for operators, in parts.

use super::Space;
use crate::session::{Session, SubscribedKey};
use crate::{Page, RetainedStatus, SessionStatus, SubscriptionStatus};

impl<H> Space<H> {
    /// Sessions from a place on, up to so many. A part may be shorter than the next ones.
    pub fn sessions(&self, from: usize, count_max: usize) -> Page<SessionStatus, usize> {
        let to = from.saturating_add(count_max).min(self.clients.places());
        let found = (from..to).filter_map(|place| self.clients.at(place as u32));
        let found = found.filter(|session| !session.has_ended);
        Page {
            items: found.map(status).collect(),
            next: (to < self.clients.places()).then_some(to),
        }
    }

    /// The session with that client identifier.
    pub fn session(&self, client_id: &str) -> Option<SessionStatus> {
        let key = self.clients.find_by_id(client_id)?;
        self.clients.find(key).map(status)
    }

    /// The subscriptions of a session from a place on, up to so many.
    pub fn subscriptions(
        &self,
        client_id: &str,
        from: usize,
        count_max: usize,
    ) -> Page<SubscriptionStatus, usize> {
        let key = self.clients.find_by_id(client_id);
        let Some(session) = key.and_then(|key| self.clients.find(key)) else {
            return Page::default();
        };
        let all = session.subscriptions.as_slice();
        let to = from.saturating_add(count_max).min(all.len());
        let found = all.get(from..to).unwrap_or_default().iter();
        let items = found.filter_map(|one| {
            let place = one.place as usize;
            let subscriber = match one.key.group {
                SubscribedKey::ALONE => {
                    let node = self.trie.at(one.key.node)?;
                    node.subscribers.as_slice().get(place)?
                }
                group => self.shares.at(group)?.members().get(place)?,
            };
            Some(SubscriptionStatus {
                filter: self.filter_of(one.key),
                options: subscriber.options.unpack(),
                identifier: subscriber.identifier,
            })
        });
        Page {
            items: items.collect(),
            next: (to < all.len()).then_some(to),
        }
    }

    /// Retained messages behind a topic, in the order of topics level by level, up to so many.
    pub fn retained(
        &self,
        after: Option<&str>,
        count_max: usize,
    ) -> Page<RetainedStatus, Box<str>> {
        let mut behind = self.retained.behind(after);
        let found = behind.by_ref().take(count_max);
        let items: Vec<_> = found
            .map(|message| RetainedStatus {
                topic: message.topic().into(),
                qos: message.qos,
                payload_bytes: message.payload().len(),
                expires_at: message.expires_at,
            })
            .collect();
        let last = items.last().map(|last| last.topic.clone());
        Page {
            next: last.filter(|_| behind.next().is_some()),
            items,
        }
    }
}

fn status<H>(session: &Session<H>) -> SessionStatus {
    let outgoing = session.outgoing.as_deref();
    let sent = outgoing.map_or(0, |outgoing| outgoing.sent());
    let incoming = session.incoming.as_deref();
    SessionStatus {
        client_id: session.client_id.clone(),
        version: session.version,
        is_connected: session.link.is_some(),
        expiry_s: session.expiry_s,
        ends_at: session.ends_at(),
        subscriptions: session.subscriptions.len(),
        in_flight: sent,
        queued: outgoing.map_or(0, |outgoing| outgoing.len() - sent),
        queued_bytes: outgoing.map_or(0, |outgoing| outgoing.bytes()),
        unreleased: incoming.map_or(0, |incoming| incoming.ids()),
        has_will: session.will().is_some(),
    }
}
