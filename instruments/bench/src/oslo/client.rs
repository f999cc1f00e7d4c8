//! The native client: a call or a cast like oslo.messaging's client.
//!
//! ```text
//! sender    ── basic.publish ──▶ broker        written once, the confirm read once
//!           ◀──── basic.ack ────
//! listener  ◀── basic.deliver ── broker        of a call: the reply read once, its ack written
//!           ──── basic.ack ────▶
//! ```

use std::time::Instant;

use crosstie_amqp::BasicProperties;
use crosstie_amqp::method::{BasicAck, BasicPublish, QueueDelete};
use serde::{Deserialize, Serialize};

use super::case::Operation;
use super::envelope::{Body, LAST};
use super::names::Names;
use crate::broker::wire::{Event, Wire, properties};
use crate::broker::{Broker, Queue};
use crate::load::{Answer, Exchange, Faults, Traffic};
use crate::process::WorkerError;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientOrder {
    pub(super) broker: Broker,
    pub(super) names: Names,
    pub(super) operation: Operation,
    /// Part of each message's id, which distinguishes it from the rest of an earlier round.
    pub(super) round: u64,
}

pub(super) struct Client {
    sender: Wire,
    /// The connection for a caller's replies.
    listener: Option<Wire>,
    names: Names,
    properties: Vec<u8>,
    request: Body,
    expected: Body,
    round: u64,
    pushed: u64,
    faults: Faults,
}

/// As oslo.messaging declares a queue of replies.
pub(super) const EXPIRES_MS: i32 = 1_800_000;

/// The time limit of a call, which its message carries.
const EXPIRATION: &str = "60000";

impl Client {
    /// Connects and declares a client's objects: first those for replies, then the sender's.
    pub(super) fn open(order: &ClientOrder) -> Result<Self, WorkerError> {
        let names = order.names.clone();
        let is_call = order.operation == Operation::Call;
        let listener = match is_call {
            true => {
                let mut wire = Wire::open(&order.broker, "crosstie bench: client, replies")?;
                wire.declare_queue(Queue {
                    name: &names.reply_queue,
                    expires_ms: Some(EXPIRES_MS),
                    ..Queue::default()
                })?;
                wire.consume(&names.reply_queue, "1", false)?;
                Some(wire)
            }
            false => None,
        };
        let mut sender = Wire::open(&order.broker, "crosstie bench: client")?;
        sender.declare_exchange(&names.exchange, "topic")?;
        sender.select_confirms()?;
        let reply_to = is_call.then_some(names.reply_queue.as_str());
        Ok(Self {
            sender,
            listener,
            properties: message_properties(is_call.then_some(EXPIRATION)),
            request: Body::request(reply_to),
            expected: Body::reply(),
            names,
            round: order.round,
            pushed: 0,
            faults: Faults::default(),
        })
    }

    pub(super) fn finish(mut self) -> Result<(), WorkerError> {
        let mut last = Body::request(None);
        let body = last.numbered(LAST, self.pushed);
        let publish = publish(&self.names);
        self.sender.push_message(&publish, &self.properties, body);
        self.sender.flush()?;
        self.sender.receive(|_| Ok(()))?;
        self.sender.close()?;
        if let Some(mut listener) = self.listener {
            let delete = QueueDelete {
                queue: &self.names.reply_queue,
                ..QueueDelete::default()
            };
            listener.ask(&delete, "queue.delete-ok")?;
            listener.close()?;
        }
        Ok(())
    }

    fn confirmed(&mut self) -> Result<Answer, WorkerError> {
        let mut answer = None;
        while answer.is_none() {
            self.sender.receive(|event| {
                match event {
                    Event::Ack { .. } => answer = Some(Answer::Right),
                    Event::Nack { .. } => answer = Some(Answer::Failed),
                    Event::Return => self.faults.failed += 1,
                    Event::Delivery { .. } => self.faults.doubled += 1,
                }
                Ok(())
            })?;
        }
        Ok(answer.unwrap_or(Answer::Failed))
    }
}

fn publish(names: &Names) -> BasicPublish<'_> {
    BasicPublish::to(&names.exchange, &names.topic)
}

/// As in every message of oslo.messaging.
pub(super) fn message_properties(expiration: Option<&str>) -> Vec<u8> {
    properties(&BasicProperties {
        content_type: Some("application/json"),
        content_encoding: Some("utf-8"),
        headers: Some(crosstie_amqp::Table::default()),
        delivery_mode: Some(2),
        priority: Some(0),
        expiration,
        ..BasicProperties::default()
    })
}

impl Exchange for Client {
    fn push(&mut self) -> Result<(), WorkerError> {
        let body = self.request.numbered(self.round, self.pushed);
        self.pushed += 1;
        self.sender
            .push_message(&publish(&self.names), &self.properties, body);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.sender.flush()
    }

    /// Waits for the confirm and then the reply, like the original.
    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let mut answer = self.confirmed()?;
        let mut now = Instant::now();
        if let Some(listener) = &mut self.listener {
            let expected = self.expected.numbered(self.round, self.pushed - 1);
            let mut delivered = None;
            while delivered.is_none() {
                listener.receive(|event| {
                    if delivered.is_none() {
                        now = Instant::now();
                    }
                    if let Event::Delivery { tag, body } = event {
                        if delivered.replace(tag).is_some() {
                            self.faults.doubled += 1;
                        }
                        if body != expected {
                            answer = Answer::Wrong;
                        }
                    }
                    Ok(())
                })?;
            }
            listener.push(&BasicAck::one(delivered.unwrap_or_default()));
            listener.flush()?;
        }
        answers.push(answer);
        Ok(Some(now))
    }

    fn faults(&self) -> Faults {
        self.faults
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = self.sender.traffic();
        if let Some(listener) = &self.listener {
            traffic.add(listener.traffic());
        }
        traffic
    }
}
