//! Persistent publications to a durable queue of a replicated vhost: each is an operation, and its confirm the answer.

use std::time::Instant;

use crosstie_amqp::BasicProperties;
use crosstie_amqp::method::{BasicPublish, QueueDelete, QueuePurge};
use serde::{Deserialize, Serialize};

use crate::amqp::worker::kept_max;
use crate::broker::confirms::Confirms;
use crate::broker::wire::{Wire, properties};
use crate::broker::{Broker, Queue};
use crate::load::{Answer, Exchange, Traffic};
use crate::process::WorkerError;

const NUMBER_BYTES: usize = 8;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConfirmsOrder {
    pub(crate) broker: Broker,
    pub(crate) queue: String,
    pub(crate) payload_bytes: usize,
}

/// A publisher without a consumer.
pub(crate) struct Confirmed {
    wire: Wire,
    queue: String,
    properties: Vec<u8>,
    body: Vec<u8>,
    published: u64,
    confirms: Confirms,
    refused: u64,
    /// The messages in the queue, confirmed or not.
    kept: u64,
    kept_max: u64,
}

impl Confirmed {
    pub(crate) fn open(order: ConfirmsOrder) -> Result<Self, WorkerError> {
        let mut wire = Wire::open(&order.broker, "crosstie bench: publisher")?;
        wire.declare_queue(Queue {
            name: &order.queue,
            is_durable: true,
            ..Queue::default()
        })?;
        wire.select_confirms()?;
        Ok(Self {
            wire,
            queue: order.queue,
            properties: properties(&BasicProperties {
                delivery_mode: Some(2),
                ..BasicProperties::default()
            }),
            body: vec![b'x'; NUMBER_BYTES + order.payload_bytes],
            published: 0,
            confirms: Confirms::default(),
            refused: 0,
            kept: 0,
            kept_max: kept_max(NUMBER_BYTES + order.payload_bytes),
        })
    }

    /// Purges and deletes the queue; returns how many messages it lacked or had too many.
    pub(crate) fn leave(mut self) -> Result<u64, WorkerError> {
        let found = self.wire.purge(&self.queue)?;
        let delete = QueueDelete {
            queue: &self.queue,
            if_unused: false,
            if_empty: false,
            no_wait: false,
        };
        self.wire.ask(&delete, "queue.delete-ok")?;
        self.wire.close()?;
        Ok(found.abs_diff(self.kept))
    }
}

impl Exchange for Confirmed {
    fn push(&mut self) -> Result<(), WorkerError> {
        if self.kept == self.kept_max {
            // Its answer would arrive between confirms; the queue's length at the end proves that it was done.
            self.wire.push(&QueuePurge {
                queue: &self.queue,
                no_wait: true,
            });
            self.kept = 0;
        }
        self.published += 1;
        self.kept += 1;
        self.body[..NUMBER_BYTES].copy_from_slice(&self.published.to_be_bytes());
        let publish = BasicPublish::to("", &self.queue);
        self.wire
            .push_message(&publish, &self.properties, &self.body);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.wire.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let confirms = &mut self.confirms;
        let (before, refused_before) = (confirms.all_up_to(), self.refused);
        let mut at = None;
        let received = self.wire.receive(|event| {
            at.get_or_insert_with(Instant::now);
            confirms.take(&event);
            Ok(())
        });
        match received {
            Err(WorkerError::TimedOut) => return Ok(None),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        self.refused = confirms.refused();
        // Any refusal invalidates a round, whichever message it was for.
        let refused = self.refused - refused_before;
        for at in 0..confirms.all_up_to() - before {
            answers.push(match at < refused {
                true => Answer::Failed,
                false => Answer::Right,
            });
        }
        Ok(at)
    }

    fn traffic(&self) -> Traffic {
        self.wire.traffic()
    }
}
