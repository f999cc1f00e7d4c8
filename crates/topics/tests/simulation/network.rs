//! The connections of the simulation, as the space's outbox.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crosstie_mqtt::{Decoded, PacketId, QoS, ReasonCode, Version, decode};
use crosstie_topics::{Answer, Outbox, Packet, Refused, Reply};

/// A packet to a client.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    Publish {
        topic: String,
        payload: String,
        qos: QoS,
        id: Option<PacketId>,
    },
    Answer(Answer),
}

#[derive(Default)]
pub(crate) struct Network {
    pub(crate) down: BTreeMap<u32, VecDeque<Down>>,
    /// Connections with a CONNACK.
    pub(crate) opened: BTreeSet<u32>,
    /// Connections that the space has ended.
    pub(crate) closed: Vec<u32>,
    pub(crate) held: BTreeMap<u32, isize>,
    pub(crate) refused: usize,
}

/// Packets on the way to a client.
const DOWN_MAX: usize = 5;

impl Outbox<u32> for Network {
    type Shared = ();

    fn publish(
        &mut self,
        to: &u32,
        packet: Packet<'_>,
        _shared: &mut Option<()>,
    ) -> Result<(), Refused> {
        let line = self.down.get_mut(to).ok_or(Refused::Gone)?;
        if line.len() >= DOWN_MAX {
            self.refused += 1;
            return Err(Refused::Full);
        }
        let octets = [packet.head, packet.rest].concat();
        let decoded = decode(&octets, Version::V5, u32::MAX).expect("a valid packet");
        let Decoded::Packet { packet, .. } = decoded else {
            panic!("a whole packet");
        };
        let crosstie_mqtt::Packet::Publish(publish) = packet else {
            panic!("a PUBLISH");
        };
        line.push_back(Down::Publish {
            topic: publish.topic.to_owned(),
            payload: String::from_utf8_lossy(publish.payload).into_owned(),
            qos: publish.delivery.qos(),
            id: publish.delivery.packet_id(),
        });
        Ok(())
    }

    fn acknowledge(&mut self, to: &u32, answer: Answer) {
        if let Some(line) = self.down.get_mut(to) {
            line.push_back(Down::Answer(answer));
        }
    }

    fn reply(&mut self, to: &u32, reply: &Reply) {
        if *reply == Reply::ConnAck {
            self.opened.insert(*to);
        }
    }

    fn close(&mut self, connection: &u32, _reason: ReasonCode) {
        self.down.remove(connection);
        self.closed.push(*connection);
    }

    fn hold(&mut self, to: &u32, delta: isize) {
        *self.held.entry(*to).or_default() += delta;
    }
}
