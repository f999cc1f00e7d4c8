//! A client with a session of its own, which it continues on each connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crosstie_mqtt::{PacketId, QoS, ReasonCode};
use crosstie_topics::Answer;

use super::network::Down;

/// A packet to the node.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    Publish(Message, PacketId),
    PubAck(PacketId),
    PubRec(PacketId),
    PubRel(PacketId),
    PubComp(PacketId),
}

/// A message of a publisher. Its payload names all of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Message {
    pub(crate) publisher: usize,
    pub(crate) topic: String,
    pub(crate) qos: QoS,
    pub(crate) number: u32,
}

impl Message {
    pub(crate) fn payload(&self) -> String {
        let Self {
            publisher, number, ..
        } = self;
        format!("{publisher} {} {} {number}", self.topic, self.qos.octet())
    }
}

#[derive(Default)]
pub(crate) struct Client {
    pub(crate) connection: Option<u32>,
    /// Packets on their way to the node.
    pub(crate) up: VecDeque<Up>,
    /// Messages that are not acknowledged, in their order; true when PUBREC has come.
    in_flight: Vec<(PacketId, Message, bool)>,
    next_id: u16,
    pub(crate) published: u32,
    /// Messages whose acknowledgement has come.
    pub(crate) acknowledged: Vec<Message>,
    /// Identifiers of QoS 2 that are not released.
    unreleased: BTreeSet<PacketId>,
    /// Payloads in the order of arrival.
    pub(crate) arrived: Vec<String>,
    /// Repeated messages of QoS 2 that it has recognized.
    pub(crate) repeated: usize,
}

/// Messages in flight of one client.
const WINDOW: usize = 6;

impl Client {
    /// Continues the session: sends again what is not acknowledged.
    pub(crate) fn connect(&mut self, connection: u32) {
        self.connection = Some(connection);
        self.up.clear();
        for (id, message, is_received) in &self.in_flight {
            self.up.push_back(match is_received {
                true => Up::PubRel(*id),
                false => Up::Publish(message.clone(), *id),
            });
        }
    }

    pub(crate) fn cut(&mut self) {
        self.connection = None;
        self.up.clear();
    }

    pub(crate) fn publish(&mut self, publisher: usize, topic: &str, qos: QoS) {
        if self.in_flight.len() >= WINDOW {
            return;
        }
        self.published += 1;
        let message = Message {
            publisher,
            topic: topic.to_owned(),
            qos,
            number: self.published,
        };
        let id = loop {
            self.next_id = self.next_id % 9 + 1;
            let id = PacketId::new(self.next_id).expect("is not 0");
            if self.in_flight.iter().all(|(other, _, _)| *other != id) {
                break id;
            }
        };
        self.in_flight.push((id, message.clone(), false));
        self.up.push_back(Up::Publish(message, id));
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.in_flight.is_empty() && self.up.is_empty()
    }

    /// Takes a packet from the node.
    pub(crate) fn handle(&mut self, packet: Down) {
        match packet {
            Down::Publish {
                topic,
                payload,
                qos,
                id,
            } => {
                assert_eq!(payload.split(' ').nth(1), Some(topic.as_str()));
                match (qos, id) {
                    (QoS::AtLeastOnce, Some(id)) => {
                        self.arrived.push(payload);
                        self.up.push_back(Up::PubAck(id));
                    }
                    (QoS::ExactlyOnce, Some(id)) => {
                        match self.unreleased.insert(id) {
                            true => self.arrived.push(payload),
                            false => self.repeated += 1,
                        }
                        self.up.push_back(Up::PubRec(id));
                    }
                    _ => self.arrived.push(payload),
                }
            }
            Down::Answer(Answer::PubAck(id, _)) => {
                self.settle(id, QoS::AtLeastOnce);
            }
            Down::Answer(Answer::PubRec(id, reason)) => {
                assert!(!reason.is_error());
                let mut found = self.in_flight.iter_mut();
                let found =
                    found.find(|(own, message, _)| *own == id && message.qos == QoS::ExactlyOnce);
                if let Some((_, _, is_received)) = found {
                    *is_received = true;
                    self.up.push_back(Up::PubRel(id));
                }
            }
            Down::Answer(Answer::PubComp(id, _)) => self.settle(id, QoS::ExactlyOnce),
            Down::Answer(Answer::PubRel(id, reason)) => {
                assert_eq!(reason, ReasonCode::Success, "of a message that is known");
                self.unreleased.remove(&id);
                self.up.push_back(Up::PubComp(id));
            }
        }
    }

    fn settle(&mut self, id: PacketId, qos: QoS) {
        let is_own = |(own, message, is_received): &(PacketId, Message, bool)| {
            *own == id && message.qos == qos && (qos == QoS::AtLeastOnce || *is_received)
        };
        if let Some(at) = self.in_flight.iter().position(is_own) {
            let (_, message, _) = self.in_flight.remove(at);
            self.acknowledged.push(message);
        }
    }

    /// How often each payload has arrived.
    pub(crate) fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for payload in &self.arrived {
            *counts.entry(payload.as_str()).or_default() += 1;
        }
        counts
    }
}
