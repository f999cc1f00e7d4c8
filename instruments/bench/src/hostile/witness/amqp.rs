//! Well-behaved AMQP clients: a publisher that waits for confirms, its consumer, and a client that connects and leaves.

use std::time::{Duration, Instant};

use crosstie_amqp::method::BasicPublish;

use super::{Act, Note, Order};
use crate::broker::wire::{Event, Wire, properties};
use crate::broker::{Broker, Queue};
use crate::process::WorkerError;

pub(super) fn acts(order: &Order) -> Vec<Box<dyn Act>> {
    let Some(broker) = &order.ways.broker else {
        return Vec::new();
    };
    let exchanger = Exchanger {
        broker: broker.clone(),
        patience: order.patience,
        queue: format!("crosstie-witness-{}", std::process::id()),
        kept: None,
    };
    let connector = Connector {
        broker: broker.clone(),
        patience: order.patience,
    };
    vec![Box::new(exchanger), Box::new(connector)]
}

/// One message at a time through a queue of its own.
struct Exchanger {
    broker: Broker,
    patience: Duration,
    queue: String,
    /// The publisher and the consumer.
    kept: Option<[Wire; 2]>,
}

impl Act for Exchanger {
    fn name(&self) -> &'static str {
        "message"
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(5)
    }

    fn act(&mut self, note: &mut Note) -> Result<(), WorkerError> {
        let mut pair = match self.kept.take() {
            Some(pair) => pair,
            None => self.open()?,
        };
        let [publisher, consumer] = &mut pair;
        let begun = Instant::now();
        let publish = BasicPublish::to("", &self.queue);
        publisher.push_message(&publish, &properties(&Default::default()), b"witness");
        publisher.flush()?;
        let mut delivered = 0;
        while delivered == 0 {
            consumer.receive(|event| {
                delivered += u64::from(matches!(event, Event::Delivery { .. }));
                Ok(())
            })?;
        }
        note.waited(self.name(), begun);
        let mut confirmed = false;
        while !confirmed {
            publisher.receive(|event| match event {
                Event::Ack { .. } => {
                    confirmed = true;
                    Ok(())
                }
                _ => Err(WorkerError::Refused("a message of the witness".to_owned())),
            })?;
        }
        note.waited("confirm", begun);
        self.kept = Some(pair);
        Ok(())
    }
}

impl Exchanger {
    fn open(&self) -> Result<[Wire; 2], WorkerError> {
        let open = || Wire::open_patiently(&self.broker, "crosstie witness", self.patience);
        let (mut publisher, mut consumer) = (open()?, open()?);
        publisher.select_confirms()?;
        consumer.declare_queue(Queue {
            name: &self.queue,
            expires_ms: Some(60_000),
            ..Queue::default()
        })?;
        // The rest from before a connection was lost.
        consumer.purge(&self.queue)?;
        consumer.consume(&self.queue, "witness", true)?;
        Ok([publisher, consumer])
    }
}

/// A client that connects and leaves.
struct Connector {
    broker: Broker,
    patience: Duration,
}

impl Act for Connector {
    fn name(&self) -> &'static str {
        "connect"
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(25)
    }

    fn act(&mut self, note: &mut Note) -> Result<(), WorkerError> {
        let begun = Instant::now();
        Wire::open_patiently(&self.broker, "crosstie witness", self.patience)?.close()?;
        note.waited(self.name(), begun);
        Ok(())
    }
}
