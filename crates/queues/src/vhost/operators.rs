//! Listings for operators, and their commands.

use std::fmt;

use crosstie_collections::Histogram;

use super::Vhost;
use crate::status::{
    BindingStatus, ChannelStatus, ConsumerStatus, Counts, ExchangeStatus, QueueStatus,
};
use crate::{ConnectionKey, Outbox, QueueKey, QueueKind, Sizes, Time};

/// Why an operator's request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorError {
    NoQueue {
        name: String,
        vhost: String,
    },
    /// A stream cannot be purged.
    Stream {
        name: String,
        vhost: String,
    },
    /// The queue has consumers.
    InUse,
    /// The queue has ready messages.
    NotEmpty,
}

/// Conditions on a queue that is to be deleted.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeleteIf {
    pub is_empty: bool,
    pub is_unused: bool,
}

impl<H> Vhost<H> {
    /// Removes the ready messages of that queue; returns how many.
    pub fn purge_queue(
        &mut self,
        now: Time,
        name: &str,
        out: &mut dyn Outbox<H>,
    ) -> Result<usize, OperatorError> {
        let key = self.named_queue(name)?;
        if self.streams.find(key).is_some() {
            return Err(OperatorError::Stream {
                name: name.to_owned(),
                vhost: self.config.name.to_string(),
            });
        }
        self.begin();
        let purged = self.purge(now, key, out);
        self.end(now, out);
        Ok(purged)
    }

    /// Deletes a queue; returns how many ready messages it had.
    pub fn delete_queue(
        &mut self,
        now: Time,
        name: &str,
        out: &mut dyn Outbox<H>,
    ) -> Result<usize, OperatorError> {
        self.delete_queue_if(now, name, DeleteIf::default(), out)
    }

    /// The same under conditions.
    pub fn delete_queue_if(
        &mut self,
        now: Time,
        name: &str,
        condition: DeleteIf,
        out: &mut dyn Outbox<H>,
    ) -> Result<usize, OperatorError> {
        let key = self.named_queue(name)?;
        let ready = self.ready_count(key);
        if condition.is_unused && self.consumers.count_of_queue(key) > 0 {
            return Err(OperatorError::InUse);
        }
        if condition.is_empty && ready > 0 {
            return Err(OperatorError::NotEmpty);
        }
        self.begin();
        self.remove_queue(key, out);
        self.end(now, out);
        Ok(ready)
    }

    pub fn queues(&self) -> impl Iterator<Item = QueueStatus> {
        let queues = self.queues.visible();
        queues.map(|(key, queue)| self.queue_status(key, queue))
    }

    pub fn exchanges(&self) -> impl Iterator<Item = ExchangeStatus> {
        let exchanges = self.topology.exchanges();
        exchanges.map(|(key, exchange)| self.exchange_status(key, exchange))
    }

    /// Includes the default exchange's implicit bindings.
    pub fn bindings(&self) -> impl Iterator<Item = BindingStatus> {
        self.topology.bindings()
    }

    pub fn consumers(&self) -> impl Iterator<Item = ConsumerStatus> {
        let consumers = self.consumers.iter();
        consumers.filter_map(|consumer| self.consumer_status(consumer))
    }

    /// Those of one connection.
    pub fn channels(&self, connection: ConnectionKey) -> impl Iterator<Item = ChannelStatus> {
        let connection = self.channels.connection(connection);
        connection.into_iter().flat_map(|connection| {
            let channels = connection.channels.iter().copied();
            channels.filter_map(|key| {
                let channel = self.channels.find_open(key)?;
                let consumers = self.consumers.count_of_channel(key);
                Some(ChannelStatus {
                    user: connection.client.user.clone(),
                    number: channel.number,
                    confirms: self.confirms.is_selected(key),
                    consumers: consumers + usize::from(channel.reply_consumer.is_some()),
                    messages_unacknowledged: channel.unacked.len(),
                    messages_unconfirmed: self.confirms.waiting(key),
                    prefetch_count: channel.prefetch_count,
                    prefetch_count_global: channel.prefetch_count_global,
                    is_transactional: self.transactions.find(key).is_some(),
                    uncommitted: self.transactions.uncommitted(key),
                    tally: channel.tally(self.confirms.confirmed(key)),
                })
            })
        })
    }

    /// The sizes of published bodies, and their number.
    pub fn body_sizes(&self) -> (Sizes, u64) {
        (self.ledger.counts.sizes, self.ledger.counts.published)
    }

    /// Milliseconds that messages waited in queues until they were sent.
    pub fn queue_waits(&self) -> Histogram {
        let kinds = [QueueKind::Classic, QueueKind::Quorum];
        let sent = kinds.map(|kind| self.ledger.deliveries[kind as usize].0.all());
        self.ledger.waits.of_sent(sent.iter().sum())
    }

    /// Walks all queues.
    pub fn counts(&self) -> Counts {
        let queues = self.queues.visible();
        let (ready, unacknowledged) = queues.fold((0, 0), |(ready, held), (key, queue)| {
            let queue_held = match queue.is_stream() {
                true => 0,
                false => queue.unacknowledged,
            };
            (ready + self.ready_count(key), held + queue_held)
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

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQueue { name, vhost } => write!(f, "no queue '{name}' in vhost '{vhost}'"),
            Self::Stream { name, vhost } => write!(
                f,
                "queue '{name}' in vhost '{vhost}' is a stream, which cannot be purged"
            ),
            Self::InUse => f.write_str("the queue is in use"),
            Self::NotEmpty => f.write_str("the queue is not empty"),
        }
    }
}

impl std::error::Error for OperatorError {}
