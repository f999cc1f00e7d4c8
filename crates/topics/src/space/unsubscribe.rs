//! UNSUBSCRIBE, and subscriptions of sessions that end.

use crosstie_mqtt::{ReasonCode, topic};

use super::Space;
use super::entries::{charge, subscription_bytes};
use crate::keys::SessionKey;
use crate::session::SubscribedKey;
use crate::{ConnectionKey, Outbox, Record};

impl<H> Space<H> {
    /// Appends a code for each filter.
    pub fn unsubscribe<'a>(
        &mut self,
        key: ConnectionKey,
        filters: impl IntoIterator<Item = &'a str>,
        codes: &mut Vec<ReasonCode>,
        outbox: &mut impl Outbox<H>,
    ) {
        for filter in filters {
            let is_found =
                self.connected(key).is_some() && self.unsubscribe_one(key.session, filter, outbox);
            codes.push(match is_found {
                true => ReasonCode::Success,
                false => ReasonCode::NoSubscriptionExisted,
            });
        }
    }

    fn unsubscribe_one(
        &mut self,
        key: SessionKey,
        filter: &str,
        outbox: &mut impl Outbox<H>,
    ) -> bool {
        let Ok(share) = topic::split_share(filter) else {
            return false;
        };
        let path = share.as_ref().map_or(filter, |share| share.filter);
        let name = share.map(|share| share.name);
        let Some(found) = self.find_filter(path, name) else {
            return false;
        };
        let Some(session) = self.clients.find(key) else {
            return false;
        };
        let Ok(at) = session.find_subscribed(found) else {
            return false;
        };
        if session.is_recorded() {
            self.ledger.record(Record::Unsubscribed {
                session: session.number,
                filter: filter.into(),
            });
        }
        self.remove_subscribed(key, at, outbox);
        true
    }

    /// Removes a subscription of a session. Returns the length of its filter.
    pub(super) fn remove_subscribed(
        &mut self,
        session_key: SessionKey,
        at: usize,
        outbox: &mut impl Outbox<H>,
    ) -> usize {
        let Some(session) = self.clients.find(session_key) else {
            return 0;
        };
        let Some(one) = session.subscriptions.as_slice().get(at).copied() else {
            return 0;
        };
        let is_connected = session.link.is_some();
        let mut scan_bytes = 0;
        let filter = self.filter_of(one.key);
        if one.key.group == SubscribedKey::ALONE {
            self.remove_alone(one.key, one.place);
        } else {
            if is_connected {
                // Members leave from among those that are away.
                let moves = self.shares.set_connected(one.key.group, one.place, false);
                self.note_moves(one.key, moves);
            }
            self.remove_member(session_key, one.key);
        }
        if let Some(session) = self.clients.find_mut(session_key) {
            session.subscriptions.remove(at);
            // A shared subscription with the same filter has no scan.
            if let Some(rare) = &mut session.rare
                && one.key.group == SubscribedKey::ALONE
            {
                let scan = rare.scans.remove(&one.key.node);
                scan_bytes = scan.map_or(0, |scan| scan.bytes() as isize);
            }
            session.tidy();
            let bytes = subscription_bytes(&filter) + scan_bytes;
            charge(session, -bytes, &mut self.ledger, outbox);
        }
        self.ledger.counts.subscriptions -= 1;
        let node = self.trie.at(one.key.node);
        if node.is_some_and(|node| !node.has_subscriptions()) {
            outbox.interest(&self.trie.filter(one.key.node), false);
            self.trie.prune(one.key.node);
        }
        filter.len()
    }

    fn remove_alone(&mut self, key: SubscribedKey, place: u32) {
        let node = self.trie.at_mut(key.node);
        if let Some(moved) = node.and_then(|node| {
            node.subscribers.swap_remove(place as usize);
            let moved = node.subscribers.as_slice().get(place as usize);
            moved.map(|moved| moved.session)
        }) {
            self.note_moves(key, [Some((moved, place)), None]);
        }
    }

    fn remove_member(&mut self, session_key: SessionKey, key: SubscribedKey) {
        let session = self.clients.find(session_key);
        let place = session.and_then(|session| {
            let at = session.find_subscribed(key).ok()?;
            Some(session.subscriptions.as_slice().get(at)?.place)
        });
        let Some(place) = place else {
            return;
        };
        let moved = self.shares.remove(key.group, place);
        self.note_moves(key, [moved, None]);
        let group = self.shares.at(key.group);
        if group.is_some_and(|group| group.members().is_empty()) {
            self.shares.close(key.group);
            if let Some(node) = self.trie.at_mut(key.node) {
                node.groups -= 1;
            }
        }
    }

    pub(super) fn note_moves(&mut self, key: SubscribedKey, moves: crate::shares::Moves) {
        for (session, place) in moves.into_iter().flatten() {
            if let Some(session) = self.clients.at_mut(session) {
                session.move_subscribed(key, place);
            }
        }
    }
}
