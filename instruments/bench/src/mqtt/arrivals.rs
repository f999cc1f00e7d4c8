//! A subscriber's check: every message once, in its publisher's order, with its content, topic and QoS.

use crosstie_mqtt::{Ack, Packet, Publish, QoS};

use super::order::LoadOrder;
use crate::load::{Body, Faults, Sequence};
use crate::process::WorkerError;

pub(super) struct Arrivals {
    topics: Vec<String>,
    model: Body,
    qos: QoS,
    /// By publisher.
    sequences: Vec<Sequence>,
}

impl Arrivals {
    pub(super) fn new(order: &LoadOrder) -> Result<Self, WorkerError> {
        Ok(Self {
            topics: (0..order.publishers).map(|at| order.topic_of(at)).collect(),
            model: Body::new(0, order.payload_bytes),
            qos: order.qos()?,
            sequences: (0..order.publishers).map(|_| Sequence::new(0)).collect(),
        })
    }

    /// The number of a message that is right and new.
    pub(super) fn take(&mut self, message: &Publish<'_>, faults: &mut Faults) -> Option<u64> {
        let known = self.model.read(message.payload).filter(|(publisher, _)| {
            let topic = self.topics.get(*publisher);
            let is_its_topic = topic.is_some_and(|topic| topic == message.topic);
            is_its_topic && message.delivery.qos() == self.qos && !message.retain
        });
        let Some((publisher, number)) = known else {
            faults.wrong += 1;
            return None;
        };
        let is_first = self.sequences[publisher].arrived(number, faults);
        is_first.then_some(number)
    }

    /// The number of missing messages, if each publisher has sent so many.
    pub(super) fn lost(&self, published: &[u64]) -> u64 {
        let all = self.sequences.iter().zip(published);
        all.map(|(sequence, end)| sequence.lost(*end)).sum()
    }
}

/// The answer to a message, and to PUBREL.
pub(super) fn answer<'a>(packet: &Packet<'a>) -> Option<Packet<'a>> {
    match packet {
        Packet::Publish(message) => match (message.delivery.qos(), message.delivery.packet_id()) {
            (QoS::AtLeastOnce, Some(id)) => Some(Packet::PubAck(Ack::success(id))),
            (QoS::ExactlyOnce, Some(id)) => Some(Packet::PubRec(Ack::success(id))),
            _ => None,
        },
        Packet::PubRel(release) => Some(Packet::PubComp(Ack::success(release.packet_id))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crosstie_mqtt::{Delivery, PacketId, Properties};

    use super::*;
    use crate::mqtt::url::Broker;

    fn order() -> LoadOrder {
        LoadOrder {
            broker: Broker::own(([127, 0, 0, 1], 1883).into()),
            is_v5: false,
            topic: "t".to_owned(),
            qos: 1,
            publishers: 2,
            subscribers: 1,
            is_kept: false,
            is_away: false,
            payload_bytes: 20,
            outstanding: 1,
            rate: None,
        }
    }

    #[test]
    fn messages_are_checked() {
        /// `topic.publisher.number`, each; then the faults after 2 messages of each publisher.
        #[track_caller]
        fn check(script: &str, expected: Option<&str>) {
            let mut arrivals = Arrivals::new(&order()).unwrap();
            let mut faults = Faults::default();
            for word in script.split_whitespace() {
                let parts: Vec<&str> = word.split('.').collect();
                let mut body = Body::new(parts[1].parse().unwrap(), 20);
                let message = Publish {
                    delivery: Delivery::AtLeastOnce(PacketId::FIRST),
                    dup: false,
                    retain: false,
                    topic: parts[0],
                    properties: Properties::EMPTY,
                    payload: body.numbered(parts[2].parse().unwrap()),
                };
                arrivals.take(&message, &mut faults);
            }
            faults.lost += arrivals.lost(&[2, 2]);
            assert_eq!(faults.describe().as_deref(), expected, "{script}");
        }
        check("t/0.0.0 t/1.1.0 t/0.0.1 t/1.1.1", None);
        check("t/0.0.0 t/1.1.0 t/0.0.1", Some("1 lost"));
        check("t/0.0.1 t/0.0.0 t/1.1.0 t/1.1.1", Some("1 out of order"));
        check("t/0.0.0 t/0.0.0 t/0.0.1 t/1.1.0 t/1.1.1", Some("1 doubled"));
        check("t/1.0.0 t/1.1.0 t/0.0.1 t/1.1.1", Some("1 wrong, 1 lost"));
    }

    #[test]
    fn each_qos_has_its_answer() {
        let id = PacketId::FIRST;
        let message = |delivery| {
            Packet::Publish(Publish {
                delivery,
                dup: false,
                retain: false,
                topic: "t",
                properties: Properties::EMPTY,
                payload: b"",
            })
        };
        let ack = Ack::success(id);
        let check = |packet, expected| assert_eq!(answer(&packet), expected);
        check(message(Delivery::AtMostOnce), None);
        check(
            message(Delivery::AtLeastOnce(id)),
            Some(Packet::PubAck(ack)),
        );
        check(
            message(Delivery::ExactlyOnce(id)),
            Some(Packet::PubRec(ack)),
        );
        check(Packet::PubRel(ack), Some(Packet::PubComp(ack)));
        check(Packet::PubAck(ack), None);
    }
}
