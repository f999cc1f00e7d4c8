//! Transactions (class `tx`): publications and acknowledgements of channels since their last commit.
//!
//! ```text
//! select ─▶ publish, acknowledge ─▶ take (commit, rollback, the channel's end)
//!                                     └▶ await_store ─▶ end_commit
//! ```
//!
//! A transaction's messages are in no queue yet; this room bounds them. *Never:* a queue, a channel, the journal.

mod transaction;

use crosstie_amqp::method::BasicPublish;
use crosstie_amqp::{Arguments, ReplyCode};
use crosstie_collections::Beside;

pub(crate) use self::transaction::{Acknowledgements, Contents, Publication, Transaction, Verdict};

use crate::channels::Delivery;
use crate::keys::{OfChannel, OfConnection};
use crate::status::Uncommitted;
use crate::{ChannelKey, ConnectionKey, Fault, QueueKey, Time, VhostLimits};

#[derive(Debug)]
pub(crate) struct Transactions {
    /// Of channels in transaction mode.
    of_channels: Beside<OfChannel, Box<Transaction>>,
    /// Number of channels in transaction mode: mostly none, and nothing is looked up then.
    count: usize,
    /// Bytes of publications, by connection.
    of_connections: Beside<OfConnection, usize>,
    /// All of those.
    bytes: usize,
    /// Channels whose commit waits for a store.
    committing: usize,
    messages_max: usize,
    /// Of one connection.
    bytes_max: usize,
}

impl Transactions {
    pub(crate) fn new(limits: &VhostLimits) -> Self {
        Self {
            of_channels: Beside::new(),
            count: 0,
            of_connections: Beside::new(),
            bytes: 0,
            committing: 0,
            messages_max: limits.transaction_messages_max,
            bytes_max: limits.transaction_bytes_max,
        }
    }

    pub(crate) fn set_limits(&mut self, limits: &VhostLimits) {
        self.messages_max = limits.transaction_messages_max;
        self.bytes_max = limits.transaction_bytes_max;
    }

    /// Puts a channel in transaction mode: its publications and acknowledgements wait for its commit.
    pub(crate) fn select(&mut self, key: ChannelKey) {
        if self.of_channels.find(key).is_none() {
            self.of_channels.entry(key, Box::default);
            self.count += 1;
        }
    }

    /// A publication in a transaction.
    pub(crate) fn publish(
        &mut self,
        key: ChannelKey,
        connection: ConnectionKey,
        publication: Publication,
    ) -> Result<(), Fault> {
        let Some(transaction) = self.of_channels.find_mut(key) else {
            return Ok(());
        };
        if transaction.len() >= self.messages_max {
            return Err(too_many::<BasicPublish<'_>>(self.messages_max));
        }
        let held = self.of_connections.entry(connection, usize::default);
        let bytes = publication.memory_bytes();
        if *held + bytes > self.bytes_max {
            let text = format!(
                "transactions of this connection hold {held} bytes that are not committed, {bytes} \
                 more are beyond the most of {}",
                self.bytes_max
            );
            let code = ReplyCode::PreconditionFailed;
            return Err(Fault::of::<BasicPublish<'_>>(code, text));
        }
        *held += bytes;
        self.bytes += bytes;
        transaction.publish(publication);
        Ok(())
    }

    /// Adds an acknowledgement to a transaction, made by method `M`. Beyond the bound its channel is to be closed.
    pub(crate) fn acknowledge<M: Arguments>(
        &mut self,
        key: ChannelKey,
        verdict: Verdict,
        tag: u64,
        delivery: Delivery,
    ) -> Result<(), Fault> {
        let Some(transaction) = self.of_channels.find_mut(key) else {
            return Ok(());
        };
        transaction.acknowledge(verdict, tag, delivery);
        match transaction.len() > self.messages_max {
            true => Err(too_many::<M>(self.messages_max)),
            false => Ok(()),
        }
    }

    /// Empties a channel's transaction. A transaction whose commit waits for a store is empty, and stops waiting.
    pub(crate) fn take(&mut self, key: ChannelKey, connection: ConnectionKey) -> Contents {
        let Some(transaction) = self.of_channels.find_mut(key) else {
            return Contents::default();
        };
        self.committing -= usize::from(transaction.is_committing);
        let contents = transaction.take();
        self.bytes -= contents.bytes;
        if let Some(held) = self.of_connections.find_mut(connection) {
            *held -= contents.bytes;
        }
        contents
    }

    /// Ends a channel whose transaction was taken.
    pub(crate) fn end_channel(&mut self, key: ChannelKey) {
        if self.count > 0 && self.of_channels.remove(key).is_some() {
            self.count -= 1;
        }
    }

    /// Ends a connection whose channels have all ended.
    pub(crate) fn end_connection(&mut self, key: ConnectionKey) {
        self.of_connections.remove(key);
    }

    /// Has a channel's commit wait for a store.
    pub(crate) fn await_store(&mut self, key: ChannelKey) {
        if let Some(transaction) = self.of_channels.find_mut(key) {
            transaction.is_committing = true;
            self.committing += 1;
        }
    }

    /// The store has kept all of a channel's commit. Returns whether the channel is to be told.
    pub(crate) fn end_commit(&mut self, key: ChannelKey) -> bool {
        // A channel that has been closed since does not wait any more.
        let transaction = self.of_channels.find_mut(key);
        let Some(transaction) = transaction.filter(|tx| tx.is_committing) else {
            return false;
        };
        transaction.is_committing = false;
        self.committing -= 1;
        true
    }

    /// A channel's transaction, if it is in that mode.
    #[inline]
    pub(crate) fn find(&self, key: ChannelKey) -> Option<&Transaction> {
        match self.count {
            0 => None,
            _ => self.of_channels.find(key).map(|transaction| &**transaction),
        }
    }

    /// The size of a channel's open transaction.
    pub(crate) fn uncommitted(&self, key: ChannelKey) -> Uncommitted {
        let transaction = self.find(key);
        transaction
            .map(Transaction::uncommitted)
            .unwrap_or_default()
    }

    /// Whether a channel waits for its commit. Until then its methods are refused, as in RabbitMQ: an answer would
    /// overtake that of the commit.
    #[inline]
    pub(crate) fn check_not_committing(
        &self,
        key: ChannelKey,
        method: (u16, u16),
    ) -> Result<(), Fault> {
        match self.committing {
            0 => Ok(()),
            _ => self.check_channel_not_committing(key, method),
        }
    }

    #[cold]
    fn check_channel_not_committing(
        &self,
        key: ChannelKey,
        method: (u16, u16),
    ) -> Result<(), Fault> {
        match self.find(key) {
            Some(transaction) if transaction.is_committing => Err(Fault::in_method(
                ReplyCode::ChannelError,
                method,
                "unexpected command while processing 'tx.commit'",
            )),
            _ => Ok(()),
        }
    }

    /// All deliveries whose acknowledgement or rejection is not committed.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (u64, &Delivery)> {
        let transactions = self.of_channels.iter().map(|(_, transaction)| transaction);
        transactions.flat_map(|transaction| transaction.deliveries())
    }

    /// The delivery time of the oldest delivery that a channel's transaction acknowledges.
    pub(crate) fn held(&self, key: ChannelKey) -> Option<(QueueKey, Time)> {
        self.find(key)?.held()
    }

    /// Bytes of uncommitted publications.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those of one connection.
    #[inline]
    pub(crate) fn bytes_of(&self, connection: ConnectionKey) -> usize {
        match self.bytes {
            0 => 0,
            _ => self.of_connections.find(connection).copied().unwrap_or(0),
        }
    }

    #[cfg(test)]
    pub(crate) fn check_invariants(&self) {
        let of_channels: Vec<_> = self.of_channels.iter().map(|(_, tx)| tx).collect();
        assert_eq!(self.count, of_channels.len());
        let committing = of_channels.iter().filter(|tx| tx.is_committing);
        assert_eq!(self.committing, committing.count());
        let bytes = of_channels.iter().map(|tx| tx.publication_bytes());
        assert_eq!(self.bytes, bytes.sum::<usize>());
        let of_connections = self.of_connections.iter().map(|(_, bytes)| bytes);
        assert_eq!(self.bytes, of_connections.sum::<usize>());
    }
}

fn too_many<M: Arguments>(max: usize) -> Fault {
    let text = format!("a transaction holds at most {max} publications and acknowledgements");
    Fault::of::<M>(ReplyCode::PreconditionFailed, text)
}
