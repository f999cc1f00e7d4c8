//! A session: what the space keeps for a client identifier.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_mqtt::Version;

use crate::aliases::{Alias, Aliases};
use crate::few::Few;
use crate::incoming::Incoming;
use crate::outgoing::Outgoing;
use crate::retained::Scan;
use crate::{Message, Record, SessionNumber, Time};

#[derive(Debug)]
pub(crate) struct Session<H> {
    pub(crate) client_id: Arc<str>,
    /// Its user, in words of the space's owner.
    pub(crate) user: Option<Arc<str>>,
    /// The owner's handle of its connection, if there is one.
    pub(crate) link: Option<H>,
    /// The number of its present or last connection.
    pub(crate) connection: u32,
    /// The client's maximum packet size.
    pub(crate) packet_bytes_max: u32,
    pub(crate) expiry_s: u32,
    /// The number of unacknowledged messages that it may be sent.
    pub(crate) window: u16,
    pub(crate) version: Version,
    /// CONNACK has been sent.
    pub(crate) is_open: bool,
    /// The connection has refused a message, and not been resumed.
    pub(crate) is_full: bool,
    /// It waits for a commit to be sent more.
    pub(crate) awaits_commit: bool,
    /// It is in the line of sessions with scans.
    pub(crate) is_scanning: bool,
    /// It is in the line of sessions whose parts are removed.
    pub(crate) has_ended: bool,
    /// 0 if it is not recorded.
    pub(crate) number: SessionNumber,
    /// Bytes on the account of the connection, or of the space.
    pub(crate) held: usize,
    /// Publications of its client that wait for later turns.
    pub(crate) postponed: u32,
    /// In the order of their keys.
    pub(crate) subscriptions: Few<Subscribed>,
    pub(crate) outgoing: Option<Box<Outgoing>>,
    pub(crate) incoming: Option<Box<Incoming>>,
    pub(crate) rare: Option<Box<Rare>>,
}

/// Parts that few sessions have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    pub(crate) will: Option<KeptWill>,
    /// Retained messages that are still to be sent, by the node of the filter.
    pub(crate) scans: BTreeMap<u32, Scan>,
    /// When a session without a connection ends.
    pub(crate) ends_at: Option<Time>,
    /// Maximum number of its subscriptions, if less than that of the space.
    pub(crate) subscriptions_max: Option<usize>,
    /// Of a connection whose client takes them.
    pub(crate) aliases: Option<Box<Aliases>>,
}

/// A will, as it is kept.
#[derive(Debug)]
pub(crate) struct KeptWill {
    /// Without its expiry, which begins with the publication.
    pub(crate) message: Arc<Message>,
    pub(crate) expiry_s: Option<u32>,
    pub(crate) delay_s: u32,
    /// The connection has ended, and the delay has begun.
    pub(crate) due_at: Option<Time>,
}

/// The place of a subscription of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subscribed {
    pub(crate) key: SubscribedKey,
    /// Its place among the subscribers of the node, or the members of the group.
    pub(crate) place: u32,
}

/// A node of the trie, and a group of it if the subscription is a shared one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubscribedKey {
    pub(crate) node: u32,
    /// The index of the group; [`Self::ALONE`] for none.
    pub(crate) group: u32,
}

impl SubscribedKey {
    pub(crate) const ALONE: u32 = u32::MAX;
}

/// Bytes of a PUBLISH beside its topic, its payload and the properties that are passed on.
const HEAD_BYTES_MAX: usize = 32;

impl<H> Session<H> {
    /// A session without a connection.
    pub(crate) fn new(client_id: Arc<str>) -> Self {
        Self {
            client_id,
            user: None,
            link: None,
            connection: 0,
            packet_bytes_max: 0,
            expiry_s: 0,
            window: 0,
            version: Version::V5,
            is_open: false,
            is_full: false,
            awaits_commit: false,
            is_scanning: false,
            has_ended: false,
            number: SessionNumber(0),
            held: 0,
            postponed: 0,
            subscriptions: Few::None,
            outgoing: None,
            incoming: None,
            rare: None,
        }
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.number.0 != 0
    }

    /// With a connection, the client may come to know as many messages as it may be sent at once.
    pub(crate) fn record(&self, ends_at: Option<Time>) -> Record {
        let outgoing = self.outgoing.as_deref();
        let known_max = match ends_at {
            Some(_) => 0,
            None => u32::from(self.window),
        };
        Record::Session {
            session: self.number,
            client_id: Arc::clone(&self.client_id),
            expiry_s: self.expiry_s,
            ends_at,
            known_before: outgoing.map_or(0, Outgoing::known_before),
            known_max,
        }
    }

    pub(crate) fn find_subscribed(&self, key: SubscribedKey) -> Result<usize, usize> {
        let all = self.subscriptions.as_slice();
        all.binary_search_by_key(&key, |one| one.key)
    }

    /// A subscriber has moved among those of a node or group.
    pub(crate) fn move_subscribed(&mut self, key: SubscribedKey, place: u32) {
        if let Ok(at) = self.find_subscribed(key) {
            self.subscriptions.as_mut_slice()[at].place = place;
        }
    }

    /// Whether it may be sent another message of QoS 1 or 2 at once.
    pub(crate) fn has_space(&self) -> bool {
        let outgoing = self.outgoing.as_deref();
        let is_free = |out: &Outgoing| out.len() < usize::from(self.window);
        self.link.is_some() && self.is_open && !self.is_full && outgoing.is_none_or(is_free)
    }

    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(crate) fn ends_at(&self) -> Option<Time> {
        self.rare.as_ref()?.ends_at
    }

    /// The bound of its subscriptions, in a space with this one.
    pub(crate) fn subscriptions_max(&self, of_space: usize) -> usize {
        let rare = self.rare.as_ref();
        let own = rare.and_then(|rare| rare.subscriptions_max);
        own.map_or(of_space, |own| own.min(of_space))
    }

    /// When it ends, if it has nothing that its client would miss but its place.
    pub(crate) fn idle_until(&self) -> Option<Time> {
        let ends_at = self.ends_at()?;
        let outgoing = self.outgoing.as_ref();
        let is_sent = outgoing.is_none_or(|outgoing| outgoing.len() == 0);
        let incoming = self.incoming.as_ref();
        let is_released = incoming.is_none_or(|incoming| incoming.ids() == 0);
        let is_idle = is_sent && is_released && self.subscriptions.is_empty();
        is_idle.then_some(ends_at)
    }

    pub(crate) fn will(&self) -> Option<&KeptWill> {
        self.rare.as_ref()?.will.as_ref()
    }

    pub(crate) fn take_will(&mut self) -> Option<KeptWill> {
        let will = self.rare.as_mut()?.will.take();
        self.tidy();
        will
    }

    /// Frees parts that are empty.
    pub(crate) fn tidy(&mut self) {
        self.rare.take_if(|rare| {
            let is_bare = rare.will.is_none() && rare.scans.is_empty();
            let is_unbound = rare.subscriptions_max.is_none() && rare.aliases.is_none();
            is_bare && rare.ends_at.is_none() && is_unbound
        });
    }

    /// The alias of a topic on its connection, for a PUBLISH whose other parts have so many bytes.
    pub(crate) fn alias(&self, topic: &str, other_bytes: usize) -> Option<Alias> {
        let alias = self.rare.as_ref()?.aliases.as_ref()?.find(topic)?;
        // With a new one the packet is longer.
        let bytes_max = topic.len() + other_bytes + HEAD_BYTES_MAX;
        let fits = alias.is_known || bytes_max <= self.packet_bytes_max as usize;
        fits.then_some(alias)
    }

    pub(crate) fn tidy_incoming(&mut self) {
        self.incoming.take_if(|incoming| incoming.is_idle());
    }

    /// Whether its connection has that number.
    pub(crate) fn is_connected_as(&self, connection: u32) -> bool {
        self.link.is_some() && self.connection == connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_session_costs_little() {
        assert!(size_of::<Session<u64>>() <= 136);
        assert!(size_of::<Subscribed>() <= 12);
    }
}
