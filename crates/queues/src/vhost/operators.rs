//! What operators see and do, and what definitions make.

use std::fmt;

use crosstie_amqp::method::{
    ExchangeBind, ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare,
};
use crosstie_amqp::{ReplyCode, Table};
use crosstie_auth::Permissions;

use super::Vhost;
use crate::channel::Turn;
use crate::status::{
    BindingStatus, ChannelStatus, ConsumerStatus, Counts, ExchangeStatus, QueueStatus,
};
use crate::topology::{Caller, OPERATOR};
use crate::{ConnectionKey, Destination, Fault, Outbox, QueueKey, Time};

/// Why an operator's request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorError {
    NoQueue { name: String, vhost: String },
}

impl<H> Vhost<H> {
    /// Ready messages of that queue go. Returns how many.
    pub fn purge_queue(
        &mut self,
        now: Time,
        name: &str,
        out: &mut dyn Outbox<H>,
    ) -> Result<usize, OperatorError> {
        let key = self.named_queue(name)?;
        self.begin();
        let purged = self.purge(now, key, out);
        self.end(now, out);
        Ok(purged)
    }

    /// Returns how many ready messages went with it.
    pub fn delete_queue(
        &mut self,
        now: Time,
        name: &str,
        out: &mut dyn Outbox<H>,
    ) -> Result<usize, OperatorError> {
        let key = self.named_queue(name)?;
        let ready = self.queues.find(key).map_or(0, |q| q.messages.len());
        self.begin();
        self.remove_queue(key, out);
        self.end(now, out);
        Ok(ready)
    }

    /// As `exchange.delete` does, by nobody in particular; but what is not there is a fault. (It
    /// takes the time as all inputs do.)
    pub fn delete_exchange(&mut self, _now: Time, name: &str) -> Result<(), Fault> {
        let permissions = Permissions::all();
        let delete = ExchangeDelete {
            exchange: name,
            ..ExchangeDelete::default()
        };
        if self.topology.exchange(name).is_none() {
            let text = format!("no exchange '{name}' in vhost '{}'", self.config.name);
            return Err(Fault::of::<ExchangeDelete<'_>>(ReplyCode::NotFound, text));
        }
        self.topology
            .delete_exchange(&definer(&permissions), &delete, &mut self.journal)
    }

    /// As `exchange.declare` does, by nobody in particular. (It takes the time as all inputs do.)
    pub fn define_exchange(
        &mut self,
        _now: Time,
        declare: &ExchangeDeclare<'_>,
    ) -> Result<(), Fault> {
        let permissions = Permissions::all();
        self.topology
            .declare_exchange(&definer(&permissions), declare, &mut self.journal)
    }

    /// As `queue.declare` does, by nobody in particular; it is no connection's own.
    pub fn define_queue(&mut self, now: Time, declare: &QueueDeclare<'_>) -> Result<(), Fault> {
        let permissions = Permissions::all();
        let declare = QueueDeclare {
            exclusive: false,
            ..*declare
        };
        let caller = definer(&permissions);
        let key = self.declare(now, &caller, declare.queue, &declare, None)?;
        self.touch(now, key);
        Ok(())
    }

    /// As `queue.bind` and `exchange.bind` do, by nobody in particular.
    pub fn define_binding(
        &mut self,
        _now: Time,
        source: &str,
        destination: &Destination,
        routing_key: &str,
        arguments: Table<'_>,
    ) -> Result<(), Fault> {
        let permissions = Permissions::all();
        let caller = definer(&permissions);
        match destination {
            Destination::Queue(queue) => {
                let method = QueueBind {
                    queue,
                    exchange: source,
                    routing_key,
                    no_wait: true,
                    arguments,
                };
                self.topology
                    .bind_queue(&caller, &method, |_| Ok(()), &mut self.journal)
            }
            Destination::Exchange(exchange) => {
                let method = ExchangeBind {
                    destination: exchange,
                    source,
                    routing_key,
                    no_wait: true,
                    arguments,
                };
                self.topology
                    .bind_exchange(&caller, &method, &mut self.journal)
            }
        }
    }

    pub fn queues(&self) -> impl Iterator<Item = QueueStatus> {
        self.queues.iter().map(|(_, queue)| queue.status())
    }

    pub fn exchanges(&self) -> impl Iterator<Item = ExchangeStatus> {
        self.topology.exchanges()
    }

    /// With those that the default exchange has by nature.
    pub fn bindings(&self) -> impl Iterator<Item = BindingStatus> {
        self.topology.bindings()
    }

    pub fn consumers(&self) -> impl Iterator<Item = ConsumerStatus> {
        self.consumers.iter().filter_map(|(_, consumer)| {
            let queue = self.queues.find(consumer.queue)?;
            let channel = self.channels.find(consumer.channel)?;
            let connection = self.connections.find(channel.connection)?;
            Some(ConsumerStatus {
                queue: queue.name.clone(),
                consumer_tag: consumer.tag.clone(),
                user: connection.client.user.clone(),
                channel: channel.number,
                no_ack: consumer.no_ack,
                exclusive: consumer.is_exclusive,
                prefetch_count: consumer.prefetch_count,
                priority: consumer.seat.priority.0,
                messages_unacknowledged: consumer.unacked,
                active: consumer.turn != Turn::Inactive,
            })
        })
    }

    /// Those of one connection.
    pub fn channels(&self, connection: ConnectionKey) -> impl Iterator<Item = ChannelStatus> {
        let connection = self.connections.find(connection);
        connection.into_iter().flat_map(|connection| {
            let channels = connection.channels.iter();
            channels.filter_map(|key| {
                let channel = self.channels.find(*key).filter(|c| !c.is_closing)?;
                Some(ChannelStatus {
                    user: connection.client.user.clone(),
                    number: channel.number,
                    confirms: channel.confirms.is_some(),
                    consumers: channel.consumers.len()
                        + usize::from(channel.reply_consumer.is_some()),
                    messages_unacknowledged: channel.unacked.len(),
                    messages_unconfirmed: channel.confirms.as_ref().map_or(0, |c| c.waiting),
                    prefetch_count: channel.prefetch_count,
                })
            })
        })
    }

    /// Walks all queues.
    pub fn counts(&self) -> Counts {
        let queues = self.queues.iter().map(|(_, queue)| queue);
        let (ready, unacknowledged) = queues.fold((0, 0), |(ready, unacknowledged), queue| {
            (
                ready + queue.messages.len(),
                unacknowledged + queue.unacknowledged,
            )
        });
        Counts {
            messages_ready: ready,
            messages_unacknowledged: unacknowledged,
            ..self.totals()
        }
    }

    fn named_queue(&self, name: &str) -> Result<QueueKey, OperatorError> {
        self.topology
            .queue(name)
            .ok_or_else(|| OperatorError::NoQueue {
                name: name.to_owned(),
                vhost: self.config.name.to_string(),
            })
    }
}

/// Who may do everything.
fn definer(permissions: &Permissions) -> Caller<'_> {
    Caller {
        user: "",
        permissions,
        method: OPERATOR,
    }
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQueue { name, vhost } => write!(f, "no queue '{name}' in vhost '{vhost}'"),
        }
    }
}

impl std::error::Error for OperatorError {}
