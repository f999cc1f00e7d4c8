//! The state of a client beside its queues: packets that wait for their acknowledgements, and its will.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crosstie_mqtt::{PacketId, QoS};

/// The part of a session that lives with its connection.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) client_id: String,
    /// Seconds for which the session is kept after the connection; 0 if it ends with it.
    pub(crate) expiry_s: u32,
    /// Maximum size of a packet to the client.
    pub(crate) packet_bytes_max: u32,
    /// Maximum number of flights at which a retained message is sent with QoS 1.
    pub(crate) retained_flights_max: usize,
    /// The queues that exist and have a consumer here.
    pub(crate) queues: BTreeSet<QoS>,
    /// Filters of this connection.
    pub(crate) filters: BTreeSet<String>,
    flights: VecDeque<Flight>,
    id_last: Option<PacketId>,
    /// Publications since the first; their confirms have these numbers.
    published: u64,
    owed: VecDeque<(u64, Owed)>,
    /// Bytes of it that are on the account of memory.
    owed_bytes: usize,
    /// Publications of QoS 2 before their PUBREL, and whether the broker has confirmed them.
    received: BTreeMap<u16, bool>,
    aliases: Vec<Option<Arc<str>>>,
    pub(crate) will: Option<Will>,
}

/// A PUBLISH to the client that waits for its PUBACK.
struct Flight {
    id: PacketId,
    /// That of its delivery. Retained messages have none.
    tag: Option<u64>,
}

/// The acknowledgement of a publication that waits for its confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    pub(crate) id: PacketId,
    pub(crate) qos: QoS,
}

/// A will, in the forms of AMQP.
pub(crate) struct Will {
    pub(crate) key: String,
    pub(crate) retain: bool,
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// Will delay interval in seconds.
    pub(crate) delay_s: u32,
}

/// How a publication of QoS 2 has fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    New,
    Unconfirmed,
    Confirmed,
}

/// Maximum number of topic aliases of a client.
pub(crate) const ALIASES_MAX: u16 = 16;

/// Maximum number of publications of QoS 2 that wait for their PUBREL, and of publications that wait for their confirm.
pub(crate) const RECEIVE_MAX: u16 = 16_384;

/// The memory for fewer confirms is kept.
const OWED_KEPT: usize = 64;

impl Session {
    /// The next packet identifier that is free, for a PUBLISH to the client. There are fewer flights than identifiers.
    pub(crate) fn take_off(&mut self, tag: Option<u64>) -> Option<PacketId> {
        let mut id = self.id_last.map_or(PacketId::new(1)?, PacketId::next);
        while self.flights.iter().any(|flight| flight.id == id) {
            id = id.next();
        }
        self.id_last = Some(id);
        self.flights.push_back(Flight { id, tag });
        Some(id)
    }

    /// Notes a PUBACK. Returns the tag of the delivery.
    pub(crate) fn land(&mut self, id: PacketId) -> Option<u64> {
        let place = self.flights.iter().position(|flight| flight.id == id)?;
        self.flights.remove(place)?.tag
    }

    pub(crate) fn flights(&self) -> usize {
        self.flights.len()
    }

    /// Notes a publication that the vhost has taken.
    pub(crate) fn note_published(&mut self, owed: Option<Owed>) {
        self.published += 1;
        if let Some(owed) = owed {
            if owed.qos == QoS::ExactlyOnce {
                self.received.insert(owed.id.get(), false);
            }
            self.owed.push_back((self.published, owed));
        }
    }

    /// Takes what is owed for a confirm, or for all up to that one.
    pub(crate) fn confirmed(&mut self, number: u64, multiple: bool) -> Vec<Owed> {
        if multiple {
            let count = self.owed.partition_point(|(at, _)| *at <= number);
            return self.owed.drain(..count).map(|(_, owed)| owed).collect();
        }
        let found = self.owed.binary_search_by_key(&number, |(at, _)| *at);
        let found = found.ok().and_then(|place| self.owed.remove(place));
        found.map(|(_, owed)| owed).into_iter().collect()
    }

    /// Number of publications that wait for their confirm.
    pub(crate) fn owed(&self) -> usize {
        self.owed.len()
    }

    /// The change of the bytes held for them since the last call.
    pub(crate) fn take_owed_bytes(&mut self) -> isize {
        if self.owed.is_empty() && self.owed.capacity() > OWED_KEPT {
            self.owed = VecDeque::new();
        }
        let bytes = self.owed.capacity() * size_of::<(u64, Owed)>();
        let before = std::mem::replace(&mut self.owed_bytes, bytes);
        bytes.cast_signed() - before.cast_signed()
    }

    /// Notes the confirm of a publication of QoS 2; one that was refused may come anew.
    pub(crate) fn note_received(&mut self, id: PacketId, is_taken: bool) {
        match is_taken {
            true => self.received.insert(id.get(), true),
            false => self.received.remove(&id.get()),
        };
    }

    pub(crate) fn known(&self, id: PacketId) -> Known {
        match self.received.get(&id.get()) {
            None => Known::New,
            Some(false) => Known::Unconfirmed,
            Some(true) => Known::Confirmed,
        }
    }

    pub(crate) fn received(&self) -> usize {
        self.received.len()
    }

    /// Handles PUBREL. Returns whether there was such a publication.
    pub(crate) fn release(&mut self, id: PacketId) -> bool {
        self.received.remove(&id.get()).is_some()
    }

    /// The topic of a publication with an alias, or `None` if there is none.
    pub(crate) fn topic(&mut self, topic: &str, alias: Option<u16>) -> Option<Arc<str>> {
        let Some(alias) = alias else {
            return Some(topic.into());
        };
        if alias == 0 || alias > ALIASES_MAX {
            return None;
        }
        let place = usize::from(alias) - 1;
        if topic.is_empty() {
            return self.aliases.get(place)?.clone();
        }
        if self.aliases.len() <= place {
            self.aliases.resize(place + 1, None);
        }
        let topic: Arc<str> = topic.into();
        self.aliases[place] = Some(Arc::clone(&topic));
        Some(topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u16) -> PacketId {
        PacketId::new(number).expect("is not 0")
    }

    #[test]
    fn confirms_find_their_publications() {
        let mut session = Session::default();
        let owed = |number| Owed {
            id: id(number),
            qos: QoS::AtLeastOnce,
        };
        session.note_published(None);
        for number in [7, 8, 9] {
            session.note_published(Some(owed(number)));
        }
        assert_eq!(session.confirmed(1, false), []);
        assert_eq!(session.confirmed(3, false), [owed(8)]);
        assert_eq!(session.confirmed(4, true), [owed(7), owed(9)]);
    }

    #[test]
    fn a_packet_identifier_in_flight_is_not_used_again() {
        let mut session = Session::default();
        assert_eq!(session.take_off(Some(1)), Some(id(1)));
        session.id_last = Some(id(u16::MAX));
        assert_eq!(session.take_off(None), Some(id(2)));
        assert_eq!(session.land(id(1)), Some(1));
        assert_eq!(session.land(id(1)), None);
        assert_eq!((session.land(id(2)), session.flights()), (None, 0));
    }

    #[test]
    fn a_publication_of_qos_2_is_new_once() {
        let mut session = Session::default();
        assert_eq!(session.known(id(5)), Known::New);
        session.note_published(Some(Owed {
            id: id(5),
            qos: QoS::ExactlyOnce,
        }));
        assert_eq!(session.known(id(5)), Known::Unconfirmed);
        session.note_received(id(5), true);
        assert_eq!(session.known(id(5)), Known::Confirmed);
        assert!(session.release(id(5)));
        assert!(!session.release(id(5)));
        session.note_published(Some(Owed {
            id: id(5),
            qos: QoS::ExactlyOnce,
        }));
        session.note_received(id(5), false);
        assert_eq!(session.known(id(5)), Known::New);
    }

    #[test]
    fn aliases_stand_for_topics() {
        let mut session = Session::default();
        assert_eq!(session.topic("", Some(2)), None);
        assert_eq!(session.topic("a", Some(2)).as_deref(), Some("a"));
        assert_eq!(session.topic("", Some(2)).as_deref(), Some("a"));
        assert_eq!(session.topic("b", None).as_deref(), Some("b"));
        assert_eq!(session.topic("a", Some(ALIASES_MAX + 1)), None);
        assert_eq!(session.topic("a", Some(0)), None);
    }
}
