//! The native server: it takes requests and answers calls like oslo.messaging's server, which acknowledges before it
//! dispatches, replies with `mandatory` set, and waits for the confirm.

use std::time::Duration;

use crosstie_amqp::method::QueueDelete;
use crosstie_amqp::method::{BasicAck, BasicPublish, ExchangeDeclare, ExchangeDelete, QueueBind};
use serde::{Deserialize, Serialize};

use super::client::{EXPIRES_MS, message_properties};
use super::envelope::{Body, ID_DIGITS, LAST, Places};
use super::names::Names;
use crate::broker::wire::{Event, Wire};
use crate::broker::{Broker, Queue};
use crate::load::{Faults, Sequence, Traffic};
use crate::process::WorkerError;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerOrder {
    pub(super) broker: Broker,
    pub(super) names: Names,
    pub(super) round: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    pub(super) faults: Faults,
    pub(super) traffic: Traffic,
}

pub(super) struct Server {
    listener: Wire,
    sender: Wire,
    names: Names,
    properties: Vec<u8>,
    reply: Body,
    reply_queue: String,
    round: u64,
    places: Places,
    sequence: Sequence,
    faults: Faults,
}

/// Time for its client's process to start.
const PATIENCE: Duration = Duration::from_secs(60);

impl Server {
    /// Connects and declares a server's objects: its topic's queue, its own, and one of the topic's fanout.
    pub(super) fn open(order: &ServerOrder) -> Result<Self, WorkerError> {
        let names = order.names.clone();
        let mut listener = Wire::open(&order.broker, "crosstie bench: server")?;
        for queue in [names.topic.clone(), names.server_queue()] {
            listener.declare_exchange(&names.exchange, "topic")?;
            let name = queue.as_str();
            listener.declare_queue(Queue {
                name,
                ..Queue::default()
            })?;
            listener.bind_queue(name, &names.exchange)?;
        }
        let fanout = names.fanout();
        let own = format!("{fanout}_{}", names.server);
        let declare = ExchangeDeclare {
            exchange: &fanout,
            kind: "fanout",
            auto_delete: true,
            ..ExchangeDeclare::default()
        };
        listener.ask(&declare, "exchange.declare-ok")?;
        listener.declare_queue(Queue {
            name: &own,
            expires_ms: Some(EXPIRES_MS),
            ..Queue::default()
        })?;
        let bind = QueueBind::of(&own).to(&fanout, &names.topic);
        listener.ask(&bind, "queue.bind-ok")?;
        for (queue, tag) in [
            (&names.topic, "1"),
            (&names.server_queue(), "2"),
            (&own, "3"),
        ] {
            listener.consume(queue, tag, false)?;
        }
        listener.limit_waiting(PATIENCE)?;
        let mut sender = Wire::open(&order.broker, "crosstie bench: server, replies")?;
        sender.select_confirms()?;
        Ok(Self {
            listener,
            sender,
            names,
            properties: message_properties(None),
            reply: Body::reply(),
            reply_queue: String::new(),
            round: order.round,
            places: Places::default(),
            sequence: Sequence::new(0),
            faults: Faults::default(),
        })
    }

    /// Serves until the client announces the end.
    pub(super) fn serve(mut self) -> Result<Served, WorkerError> {
        let mut asked: Vec<(u64, Option<[u8; ID_DIGITS]>)> = Vec::new();
        let mut total = None;
        while total.is_none() {
            self.listener.receive(|event| {
                let Event::Delivery { tag, body } = event else {
                    return Ok(());
                };
                match self.places.number(body) {
                    Some((LAST, number)) => total = Some(number),
                    Some((round, number)) if round == self.round => {
                        self.sequence.arrived(number, &mut self.faults);
                    }
                    _ => self.faults.wrong += 1,
                }
                let message_id = self.places.message_id(body);
                if message_id.is_some()
                    && let Some(queue) = self.places.reply_queue(body)
                    && queue != self.reply_queue
                {
                    self.reply_queue = queue.to_owned();
                }
                asked.push((tag, message_id));
                Ok(())
            })?;
            for (delivery_tag, _) in &asked {
                self.listener.push(&BasicAck::one(*delivery_tag));
            }
            self.listener.flush()?;
            for (_, message_id) in asked.drain(..) {
                if let Some(message_id) = message_id {
                    let publish = BasicPublish {
                        mandatory: true,
                        ..BasicPublish::to("", &self.reply_queue)
                    };
                    let body = self.reply.answering(&message_id);
                    self.sender.push_message(&publish, &self.properties, body);
                    self.sender.flush()?;
                    self.faults.failed += confirmed(&mut self.sender)?;
                }
            }
        }
        self.faults.lost += self.sequence.lost(total.unwrap_or(0));
        let mut traffic = self.listener.traffic();
        traffic.add(self.sender.traffic());
        let served = Served {
            faults: self.faults,
            traffic,
        };
        self.leave()?;
        Ok(served)
    }

    fn leave(mut self) -> Result<(), WorkerError> {
        let names = &self.names;
        let own = format!("{}_{}", names.fanout(), names.server);
        for queue in [&names.topic, &names.server_queue(), &own] {
            let delete = QueueDelete {
                queue,
                ..QueueDelete::default()
            };
            self.listener.ask(&delete, "queue.delete-ok")?;
        }
        let delete = ExchangeDelete {
            exchange: &names.exchange,
            ..ExchangeDelete::default()
        };
        self.listener.ask(&delete, "exchange.delete-ok")?;
        self.sender.close()?;
        self.listener.close()
    }
}

/// Waits for a confirm; returns how many replies were returned as undeliverable.
fn confirmed(sender: &mut Wire) -> Result<u64, WorkerError> {
    let (mut confirms, mut failed) = (0, 0);
    while confirms == 0 {
        sender.receive(|event| {
            match event {
                Event::Ack { .. } => confirms += 1,
                Event::Nack { .. } => {
                    confirms += 1;
                    failed += 1;
                }
                Event::Return => failed += 1,
                Event::Delivery { .. } => {}
            }
            Ok(())
        })?;
    }
    Ok(failed)
}
