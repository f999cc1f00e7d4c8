//! Publications of clients.

use crosstie_amqp::ReplyCode;
use crosstie_broker::Fault;
use crosstie_broker::guest::Answered;
use crosstie_front::report;
use crosstie_mqtt::{Ack, Packet, Publish, QoS, ReasonCode};
use crosstie_spaces::{Dropped, End, Figures};

use crate::deliveries::now_s;
use crate::ground::Ground;
use crate::methods::send;
use crate::names;
use crate::open::{Open, Progress};
use crate::properties;
use crate::session::{Known, Owed, RECEIVE_MAX};

const LONG: &str = "too long a topic for AMQP";

impl Open {
    /// Handles PUBLISH.
    pub(crate) fn publish(&self, publish: &Publish<'_>, ground: &Ground) -> Result<Progress, End> {
        let mut inner = self.member.lock();
        let inner = &mut *inner;
        let (qos, id) = (publish.delivery.qos(), publish.delivery.packet_id());
        if let (QoS::ExactlyOnce, Some(id)) = (qos, id) {
            match inner.session.known(id) {
                Known::New if inner.session.received() >= RECEIVE_MAX.into() => {
                    return Err(End::Reason(ReasonCode::ReceiveMaximumExceeded));
                }
                Known::New => {}
                Known::Unconfirmed => return Ok(Progress::Done),
                Known::Confirmed => {
                    self.member.send(&Packet::PubRec(Ack::success(id)));
                    return Ok(Progress::Done);
                }
            }
        }
        if names::key(publish.topic).is_none() {
            // It would be kept for its alias.
            return self.refuse(publish, ReasonCode::TopicNameInvalid, LONG);
        }
        let alias = publish.properties.topic_alias();
        let topic = inner.session.topic(publish.topic, alias);
        let topic = topic.ok_or(End::Reason(ReasonCode::TopicAliasInvalid))?;
        let Some(key) = names::key(&topic) else {
            return self.refuse(publish, ReasonCode::TopicNameInvalid, LONG);
        };
        let properties = properties::to_amqp(qos, publish.dup, publish.properties, now_s());
        let Some(guest) = &mut inner.guest else {
            return Err(End::Begun);
        };
        let exchange = &ground.options().exchange;
        let retained = publish.retain.then_some(self.fleet.retained_max);
        match send(
            guest,
            (exchange, &key),
            &properties,
            publish.payload,
            retained,
        ) {
            Answered::Done => {
                inner.session.note_published(id.map(|id| Owed { id, qos }));
                self.member.note_owed(&mut inner.session);
            }
            Answered::Waits => return Ok(Progress::Waits),
            Answered::Over => return Err(End::Begun),
            Answered::Refused(fault) => {
                return self.refuse(publish, reason(&fault), &fault.text);
            }
        }
        Ok(Progress::Done)
    }

    /// Refuses a publication. MQTT 3 has no word for that: its client's connection ends, as in RabbitMQ.
    fn refuse(
        &self,
        publish: &Publish<'_>,
        reason: ReasonCode,
        text: &str,
    ) -> Result<Progress, End> {
        Figures::get().count_dropped(Dropped::Denied);
        if !self.member.version.is_v5() {
            report::peer_fault(&self.member.connection, reason.name(), text);
            return Err(End::Reason(reason));
        }
        if let Some(id) = publish.delivery.packet_id() {
            let ack = Ack::with_reason(id, reason);
            self.member.send(&match publish.delivery.qos() {
                QoS::ExactlyOnce => Packet::PubRec(ack),
                _ => Packet::PubAck(ack),
            });
        }
        Ok(Progress::Done)
    }
}

/// The reason for a method that the vhost has refused.
pub(crate) fn reason(fault: &Fault) -> ReasonCode {
    match fault.code {
        ReplyCode::AccessRefused => ReasonCode::NotAuthorized,
        // A limit: of queues, or of a message's size.
        ReplyCode::PreconditionFailed => ReasonCode::QuotaExceeded,
        _ => ReasonCode::ImplementationSpecificError,
    }
}
