//! Receivers that check what they are sent.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_mqtt::{Decoded, Delivery, PacketId, QoS, ReasonCode, Version, decode};
use crosstie_topics::{Answer, Connect, Outbox, Packet, Refused, Reply};

#[derive(Default)]
pub(crate) struct Receivers {
    pub(crate) open: BTreeMap<u32, Receiver>,
    pub(crate) closed: Vec<u32>,
    pub(crate) held: BTreeMap<u32, isize>,
    pub(crate) interests: BTreeSet<String>,
}

/// A connection, with the messages that it has not acknowledged.
pub(crate) struct Receiver {
    pub(crate) version: Version,
    window: u16,
    packet_bytes_max: u32,
    topic_alias_max: u16,
    /// Topics by alias.
    aliases: BTreeMap<u16, String>,
    pub(crate) is_full: bool,
    /// CONNACK has come.
    pub(crate) is_open: bool,
    in_flight: BTreeMap<PacketId, Stage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    AtLeastOnce,
    ExactlyOnce,
    Received,
    Released,
    /// Released, and sent on an earlier connection.
    Earlier,
}

impl Receiver {
    pub(crate) fn new(connect: &Connect<'_>, window: u16) -> Self {
        Self {
            version: connect.version,
            window,
            packet_bytes_max: connect.packet_bytes_max,
            topic_alias_max: match connect.version.is_v5() {
                true => connect.topic_alias_max,
                false => 0,
            },
            aliases: BTreeMap::new(),
            is_full: false,
            is_open: false,
            in_flight: BTreeMap::new(),
        }
    }

    /// A message that it may acknowledge next, and with what: 1 is PUBACK, 2 PUBREC, 3 PUBCOMP.
    pub(crate) fn oldest(&self) -> Option<(PacketId, u64)> {
        let (id, stage) = self.in_flight.iter().next()?;
        let next = match stage {
            Stage::AtLeastOnce => 1,
            Stage::ExactlyOnce | Stage::Received => 2,
            Stage::Released | Stage::Earlier => 3,
        };
        Some((*id, next))
    }
}

impl Receivers {
    pub(crate) fn forget(&mut self, number: u32, id: PacketId, qos: QoS) {
        if let Some(receiver) = self.open.get_mut(&number)
            && receiver.in_flight.get(&id) == Some(&Stage::AtLeastOnce)
            && qos == QoS::AtLeastOnce
        {
            receiver.in_flight.remove(&id);
        }
    }

    pub(crate) fn note_pubrec(&mut self, number: u32, id: PacketId, refuses: bool) {
        let Some(receiver) = self.open.get_mut(&number) else {
            return;
        };
        let Some(stage) = receiver.in_flight.get_mut(&id) else {
            return;
        };
        match stage {
            // A message that was received before is not refused any more.
            Stage::ExactlyOnce if refuses => drop(receiver.in_flight.remove(&id)),
            Stage::ExactlyOnce => *stage = Stage::Received,
            _ => {}
        }
    }

    pub(crate) fn note_pubcomp(&mut self, number: u32, id: PacketId) {
        if let Some(receiver) = self.open.get_mut(&number)
            && let Some(Stage::Received | Stage::Released | Stage::Earlier) =
                receiver.in_flight.get(&id)
        {
            receiver.in_flight.remove(&id);
        }
    }
}

impl Outbox<u32> for Receivers {
    type Shared = Vec<u8>;

    fn publish(
        &mut self,
        to: &u32,
        packet: Packet<'_>,
        shared: &mut Option<Vec<u8>>,
    ) -> Result<(), Refused> {
        let receiver = self.open.get_mut(to).expect("an open connection");
        assert!(receiver.is_open, "nothing before CONNACK");
        if receiver.is_full {
            return Err(Refused::Full);
        }
        assert_eq!(shared.get_or_insert(packet.rest.to_vec()), packet.rest);
        let octets = [packet.head, packet.rest].concat();
        let decoded = decode(&octets, receiver.version, receiver.packet_bytes_max);
        let decoded = decoded.expect("a valid packet that is not too large");
        let Decoded::Packet { packet, consumed } = decoded else {
            panic!("a whole packet");
        };
        assert_eq!(consumed, octets.len());
        let crosstie_mqtt::Packet::Publish(publish) = packet else {
            panic!("a PUBLISH");
        };
        if let Some(alias) = publish.properties.topic_alias() {
            assert!((1..=receiver.topic_alias_max).contains(&alias));
            if !publish.topic.is_empty() {
                receiver.aliases.insert(alias, publish.topic.to_owned());
            }
            assert!(receiver.aliases.contains_key(&alias));
        } else {
            assert!(!publish.topic.is_empty());
        }
        let stage = match publish.delivery {
            Delivery::AtMostOnce => return Ok(()),
            Delivery::AtLeastOnce(_) => Stage::AtLeastOnce,
            Delivery::ExactlyOnce(_) => Stage::ExactlyOnce,
        };
        let id = publish.delivery.packet_id().expect("of QoS 1 and 2");
        let before = receiver.in_flight.insert(id, stage);
        assert_eq!(before, None, "an identifier is used once at a time");
        let counting = receiver.in_flight.values();
        let counting = counting.filter(|stage| **stage != Stage::Earlier);
        assert!(counting.count() <= usize::from(receiver.window));
        Ok(())
    }

    fn acknowledge(&mut self, to: &u32, answer: Answer) {
        let receiver = self.open.get_mut(to).expect("an open connection");
        assert!(receiver.is_open, "nothing before CONNACK");
        if let Answer::PubRel(id, ReasonCode::Success) = answer {
            // Only a PUBLISH of this connection counts.
            let stage = receiver.in_flight.entry(id).or_insert(Stage::Earlier);
            if *stage != Stage::Earlier {
                *stage = Stage::Released;
            }
        }
    }

    fn reply(&mut self, to: &u32, reply: &Reply) {
        let receiver = self.open.get_mut(to).expect("an open connection");
        assert_ne!(receiver.is_open, *reply == Reply::ConnAck);
        receiver.is_open = true;
    }

    fn close(&mut self, connection: &u32, _reason: ReasonCode) {
        self.open.remove(connection).expect("an open connection");
        self.closed.push(*connection);
    }

    fn hold(&mut self, to: &u32, delta: isize) {
        *self.held.entry(*to).or_default() += delta;
    }

    fn pause(&mut self, connection: &u32, _is_paused: bool) {
        assert!(self.open.contains_key(connection));
    }

    fn interest(&mut self, filter: &str, begins: bool) {
        let is_changed = match begins {
            true => self.interests.insert(filter.to_owned()),
            false => self.interests.remove(filter),
        };
        assert!(is_changed, "{filter} {begins}");
    }
}
