//! Subscriptions: queues, bindings and consumers of a client.

use crosstie_amqp::method::{BasicConsume, QueueBind, QueueDeclare, QueueUnbind};
use crosstie_amqp::{BasicProperties, Table, TableBuf, Value};
use crosstie_broker::guest::{Answered, Guest};
use crosstie_mqtt::{
    Codes, Options, Packet, QoS, ReasonCode, RetainHandling, SubAck, Subscribe, UnsubAck,
    Unsubscribe, topic,
};
use crosstie_spaces::{End, filters_at_once};

use crate::deliveries::{Outgoing, now_s};
use crate::ground::Ground;
use crate::inbound::reason;
use crate::member::Inner;
use crate::methods::delete_queue;
use crate::names;
use crate::open::{Open, Progress};
use crate::properties;
use crate::session::Session;

/// A client has a queue for each.
const QUALITIES: [QoS; 2] = [QoS::AtMostOnce, QoS::AtLeastOnce];

/// Maximum number of filters of a client.
const FILTERS_MAX: usize = 10_000;

/// Approximate memory of a filter beside its text.
const FILTER_BYTES: usize = 64;

/// The outcome of a filter.
enum Outcome {
    Is(ReasonCode),
    Waits,
    Over,
}

impl Open {
    /// Handles SUBSCRIBE, a few filters at a time.
    pub(crate) fn subscribe(
        &mut self,
        subscribe: &Subscribe<'_>,
        ground: &Ground,
    ) -> Result<Progress, End> {
        if subscribe.properties.subscription_ids().next().is_some() {
            return Err(End::Reason(ReasonCode::SubscriptionIdentifiersNotSupported));
        }
        let mut inner = self.member.lock();
        let inner = &mut *inner;
        let at_once = filters_at_once(subscribe.subscriptions.iter().count());
        let left = subscribe.subscriptions.iter().skip(self.codes.len());
        for (number, subscription) in left.enumerate() {
            if number == at_once {
                return Ok(Progress::Part(number));
            }
            let (filter, options) = (subscription.filter, subscription.options);
            let is_v5 = self.member.version.is_v5();
            match add(inner, ground, (filter, options), (is_v5, self.codes.len())) {
                Outcome::Is(code) => self.codes.push(code),
                Outcome::Waits => return Ok(Progress::Waits),
                Outcome::Over => return Err(End::Begun),
            }
        }
        let codes = std::mem::take(&mut self.codes);
        let octets: Vec<_> = codes.iter().map(|code| code.octet()).collect();
        self.member.send(&Packet::SubAck(SubAck {
            packet_id: subscribe.packet_id,
            properties: crosstie_mqtt::Properties::EMPTY,
            codes: Codes::from_octets(&octets),
        }));
        for (subscription, code) in subscribe.subscriptions.iter().zip(codes) {
            if !code.is_error() {
                let options = subscription.options;
                self.send_retained(subscription.filter, options, inner);
            }
        }
        Ok(Progress::Done)
    }

    /// Sends the retained message of a filter's topic, as RabbitMQ does: none for a filter with wildcards.
    fn send_retained(&self, filter: &str, options: Options, inner: &mut Inner) {
        let session = &mut inner.session;
        let is_new = session.filters.insert(filter.to_owned());
        if is_new {
            self.member.mailbox.hold(filter_bytes(filter));
        }
        let is_wanted = match options.retain_handling {
            RetainHandling::Always => true,
            RetainHandling::New => is_new,
            RetainHandling::Never => false,
        };
        let Some(key) = names::key(filter).filter(|_| is_wanted) else {
            return;
        };
        let Some(message) = inner.guest.as_ref().and_then(|guest| guest.retained(&key)) else {
            return;
        };
        let found: BasicProperties<'_> = message.properties().parse();
        let received = properties::from_amqp(&found, self.member.version.is_v5(), now_s());
        if received.expiry_s == Some(0) {
            return;
        }
        // Those in flight must leave room for the queue's.
        let qos = match session.flights() < session.retained_flights_max {
            true => received.qos.min(options.qos),
            false => QoS::AtMostOnce,
        };
        let outgoing = Outgoing {
            key: &key,
            qos,
            is_repeated: false,
            is_retained: true,
            tag: None,
            received,
            body: message.body(),
        };
        self.member.publish(&outgoing, session);
    }

    /// Handles UNSUBSCRIBE, a few filters at a time.
    pub(crate) fn unsubscribe(
        &mut self,
        unsubscribe: &Unsubscribe<'_>,
        ground: &Ground,
    ) -> Result<Progress, End> {
        let mut inner = self.member.lock();
        let inner = &mut *inner;
        let at_once = filters_at_once(unsubscribe.filters.iter().count());
        let left = unsubscribe.filters.iter().skip(self.codes.len());
        for (number, filter) in left.enumerate() {
            if number == at_once {
                return Ok(Progress::Part(number));
            }
            let Some(guest) = &mut inner.guest else {
                return Err(End::Begun);
            };
            let mut code = ReasonCode::NoSubscriptionExisted;
            let exchange = &ground.options().exchange;
            for qos in QUALITIES {
                let Some(key) = names::key(filter) else {
                    continue;
                };
                let queue = names::queue(&inner.session.client_id, qos);
                if !guest.has_binding(exchange, &queue, &key) {
                    continue;
                }
                match unbind(guest, &queue, exchange, &key) {
                    Answered::Done => code = ReasonCode::Success,
                    Answered::Waits => return Ok(Progress::Waits),
                    Answered::Over => return Err(End::Begun),
                    Answered::Refused(fault) => code = reason(&fault),
                }
            }
            if inner.session.filters.remove(filter) {
                self.member.mailbox.hold(-filter_bytes(filter));
            }
            self.codes.push(code);
        }
        let codes = std::mem::take(&mut self.codes);
        let octets: Vec<_> = codes.iter().map(|code| code.octet()).collect();
        self.member.send(&Packet::UnsubAck(UnsubAck {
            packet_id: unsubscribe.packet_id,
            properties: crosstie_mqtt::Properties::EMPTY,
            codes: Codes::from_octets(&octets),
        }));
        Ok(Progress::Done)
    }
}

/// Approximate memory of a filter.
fn filter_bytes(filter: &str) -> isize {
    (filter.len() + FILTER_BYTES).cast_signed()
}

/// Adds a subscription. There are some before it in its packet.
fn add(
    inner: &mut Inner,
    ground: &Ground,
    (filter, options): (&str, Options),
    (is_v5, before): (bool, usize),
) -> Outcome {
    let refused = |code: ReasonCode| match is_v5 {
        true => Outcome::Is(code),
        false => Outcome::Is(ReasonCode::UnspecifiedError),
    };
    if is_v5 && matches!(topic::split_share(filter), Ok(Some(_))) {
        return refused(ReasonCode::SharedSubscriptionsNotSupported);
    }
    if options.no_local || options.retain_as_published {
        // Neither is in the message.
        return refused(ReasonCode::ImplementationSpecificError);
    }
    let Some(key) = names::key(filter) else {
        return refused(ReasonCode::TopicFilterInvalid);
    };
    let filters = &inner.session.filters;
    if filters.len() + before >= FILTERS_MAX && !filters.contains(filter) {
        return refused(ReasonCode::QuotaExceeded);
    }
    let Some(guest) = &mut inner.guest else {
        return Outcome::Over;
    };
    let qos = options.qos.min(QoS::AtLeastOnce);
    let exchange = &ground.options().exchange;
    let client_id = &inner.session.client_id;
    let queue = names::queue(client_id, qos);
    let other = match qos {
        QoS::AtMostOnce => QoS::AtLeastOnce,
        _ => QoS::AtMostOnce,
    };
    let other = names::queue(client_id, other);
    let bind = QueueBind {
        queue: &queue,
        exchange,
        routing_key: &key,
        no_wait: true,
        arguments: Table::default(),
    };
    let mut answered = open_queue(guest, &mut inner.session, qos);
    if matches!(answered, Answered::Done) {
        answered = guest.handle(&bind.into());
    }
    if matches!(answered, Answered::Done) {
        // A filter has one quality.
        answered = unbind(guest, &other, exchange, &key);
    }
    match answered {
        Answered::Done => Outcome::Is(ReasonCode::granted(qos)),
        Answered::Waits => Outcome::Waits,
        Answered::Over => Outcome::Over,
        Answered::Refused(fault) => refused(reason(&fault)),
    }
}

/// Declares and consumes a client's queue, unless that is done.
pub(crate) fn open_queue(guest: &mut Guest, session: &mut Session, qos: QoS) -> Answered {
    if session.queues.contains(&qos) {
        return Answered::Done;
    }
    let queue = names::queue(&session.client_id, qos);
    let is_acknowledged = qos != QoS::AtMostOnce;
    let is_kept = is_acknowledged && session.expiry_s > 0;
    // A kept one has the arguments with which it was declared.
    let is_new = !guest.has_queue(&queue);
    if is_new {
        let mut arguments = TableBuf::new();
        if is_kept {
            let expires_ms = i64::from(session.expiry_s) * 1_000;
            arguments = arguments.with("x-expires", Value::I64(expires_ms));
        }
        let declare = QueueDeclare {
            queue: &queue,
            passive: false,
            // Nobody would delete it after a crash, which ends the session.
            durable: is_kept,
            exclusive: false,
            auto_delete: !is_kept,
            no_wait: true,
            arguments: arguments.as_table(),
        };
        match guest.handle(&declare.into()) {
            Answered::Done => {}
            other => return other,
        }
    }
    let consume = BasicConsume {
        queue: &queue,
        consumer_tag: names::consumer_tag(qos),
        no_local: false,
        no_ack: !is_acknowledged,
        exclusive: false,
        no_wait: true,
        arguments: Table::default(),
    };
    let answered = guest.handle(&consume.into());
    match answered {
        Answered::Done => drop(session.queues.insert(qos)),
        // Without a consumer it would stay.
        Answered::Refused(_) if is_new => drop(delete_queue(guest, &queue)),
        _ => {}
    }
    answered
}

/// Deletes a client's queues, if they exist.
pub(crate) fn delete_queues(guest: &mut Guest, client_id: &str) -> Answered {
    for qos in QUALITIES {
        match delete_queue(guest, &names::queue(client_id, qos)) {
            Answered::Done => {}
            other => return other,
        }
    }
    Answered::Done
}

fn unbind(guest: &mut Guest, queue: &str, exchange: &str, routing_key: &str) -> Answered {
    if !guest.has_queue(queue) {
        return Answered::Done;
    }
    let unbind = QueueUnbind {
        queue,
        exchange,
        routing_key,
        arguments: Table::default(),
    };
    guest.handle(&unbind.into())
}
