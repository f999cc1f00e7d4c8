//! Transactions (class `tx`): what a channel publishes and acknowledges happens at its commit, all
//! of it in one input, so that its records are in the journal one behind the other and a store
//! that takes what it was handed at once has all of them or none.
//!
//! ```text
//! tx.select ─▶ publish, ack, nack, reject (held) ─▶ tx.commit ─▶ queues, journal ─▶ commit-ok,
//!                                              │                 when a store has what was kept
//!                                              └──▶ tx.rollback: as if nothing had been said
//! ```
//!
//! Publications are checked when they come (permissions, that the exchange is there, properties)
//! and routed at the commit. A commit whose exchanges are not all there any more does nothing and
//! closes the channel. As in RabbitMQ, a queue that refuses a publication (`x-overflow`) closes it
//! too, when the rest is done.

use crosstie_amqp::Arguments;
use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::{BasicPublish, TxCommit, TxCommitOk, TxRollbackOk, TxSelectOk};

use super::Vhost;
use super::dead_letters::Reason;
use super::enqueue::Incoming;
use super::methods::Context;
use super::publish::Facets;
use crate::topology::Resource;
use crate::transaction::{Acknowledgements, Contents, Publication, Transaction, Verdict};
use crate::unacked::Delivery;
use crate::{ChannelKey, Fault, Outbox, Time};

impl<H> Vhost<H> {
    /// Whether what the channel publishes and acknowledges waits for a commit.
    pub fn is_transactional(&self, channel: ChannelKey) -> bool {
        let channel = self.channels.find(channel);
        channel.is_some_and(|channel| channel.transaction.is_some())
    }

    pub(super) fn handle_select(
        &mut self,
        context: &Context,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.find_mut(context.channel) else {
            return Ok(());
        };
        if channel.confirms.is_some() {
            let text = "cannot switch from confirm to tx mode";
            return Err(context.caller().precondition_failed(text));
        }
        channel.transaction.get_or_insert_default();
        self.answer(context.channel, false, TxSelectOk {}, out)
    }

    pub(super) fn handle_commit(
        &mut self,
        now: Time,
        context: &Context,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let transaction = self.transaction(context)?;
        let exchanges = transaction
            .publications()
            .iter()
            .map(|p| p.content.exchange());
        for name in exchanges {
            if self.topology.exchange(name).is_none() {
                let resource = Resource::exchange(name, &self.config.name);
                return Err(context.caller().not_found(resource));
            }
        }
        let key = context.channel;
        let contents = self.take_contents(key);
        // Only what dies of this is a part of it.
        let died_before = std::mem::take(&mut self.dead);
        let position_before = self.journal.position;
        let mut is_rejected = false;
        for publication in contents.publications {
            is_rejected |= self.publish_committed(now, key, publication, out);
        }
        for acknowledgements in contents.acknowledgements {
            self.acknowledge_committed(now, key, acknowledgements, out);
        }
        self.serve(now, key, out);
        // What becomes of what it has refused is a part of it. What follows from that is not: a crash
        // between has it happen again.
        for _ in 0..self.dead.len() {
            self.bury_first(now, out);
        }
        let followed = std::mem::replace(&mut self.dead, died_before);
        self.dead.extend(followed);
        if is_rejected {
            let text = "partial tx completion";
            return Err(context.caller().precondition_failed(text));
        }
        self.counts.committed += 1;
        match self.journal.position > position_before {
            true => self.await_commit(key),
            false => self.answer(key, false, TxCommitOk {}, out)?,
        }
        Ok(())
    }

    pub(super) fn handle_rollback(
        &mut self,
        context: &Context,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        self.transaction(context)?;
        self.counts.rolled_back += 1;
        self.abandon_transaction(context.channel);
        self.answer(context.channel, false, TxRollbackOk {}, out)
    }

    /// Whatever a channel has said in its transaction was not said: what it published is nowhere,
    /// what it acknowledged waits for that.
    pub(super) fn abandon_transaction(&mut self, key: ChannelKey) {
        let contents = self.take_contents(key);
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let groups = contents.acknowledgements.into_iter();
        let deliveries: Vec<_> = groups.flat_map(|group| group.deliveries).collect();
        if !deliveries.is_empty() {
            self.steps.spend(deliveries.len());
            channel.unacked.put_back(deliveries);
            self.check_charge(key);
        }
    }

    /// That a channel does nothing while its commit waits for a store, as in RabbitMQ: an answer
    /// would overtake that of the commit.
    pub(super) fn check_not_committing(
        &self,
        key: ChannelKey,
        method: (u16, u16),
    ) -> Result<(), Fault> {
        let channel = self.channels.find(key);
        let transaction = channel.and_then(|channel| channel.transaction.as_ref());
        match transaction.is_some_and(|transaction| transaction.is_committing) {
            true => Err(Fault::in_method(
                ReplyCode::ChannelError,
                method,
                "unexpected command while processing 'tx.commit'",
            )),
            false => Ok(()),
        }
    }

    /// A publication in a transaction.
    pub(super) fn hold_publication(
        &mut self,
        key: ChannelKey,
        publication: Publication,
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.find_mut(key) else {
            return Ok(());
        };
        let Some(transaction) = &mut channel.transaction else {
            return Ok(());
        };
        let Some(connection) = self.connections.find_mut(channel.connection) else {
            return Ok(());
        };
        let limits = &self.config.limits;
        let bytes = publication.memory_bytes();
        if transaction.len() >= limits.transaction_messages_max {
            return Err(too_many::<BasicPublish<'_>>(
                limits.transaction_messages_max,
            ));
        }
        if connection.uncommitted_bytes + bytes > limits.transaction_bytes_max {
            let text = format!(
                "transactions of this connection hold {} bytes that are not committed, {bytes} \
                 more are beyond the most of {}",
                connection.uncommitted_bytes, limits.transaction_bytes_max
            );
            let code = ReplyCode::PreconditionFailed;
            return Err(Fault::of::<BasicPublish<'_>>(code, text));
        }
        connection.uncommitted_bytes += bytes;
        self.uncommitted_bytes += bytes;
        transaction.publish(publication);
        Ok(())
    }

    /// An acknowledgement in a transaction, of a delivery that is there.
    pub(super) fn hold_one<M: Arguments>(
        &mut self,
        key: ChannelKey,
        tag: u64,
        verdict: Verdict,
    ) -> Result<(), Fault> {
        let max = self.config.limits.transaction_messages_max;
        if let Some(channel) = self.channels.find_mut(key)
            && let Some(transaction) = &mut channel.transaction
        {
            if transaction.len() >= max {
                return Err(too_many::<M>(max));
            }
            if let Some(delivery) = channel.unacked.take(tag) {
                transaction.acknowledge(verdict, tag, delivery);
            }
        }
        self.check_charge(key);
        Ok(())
    }

    /// The same of all deliveries up to that one. Returns whether the channel is transactional.
    pub(super) fn hold_up_to<M: Arguments>(
        &mut self,
        key: ChannelKey,
        up_to: u64,
        verdict: Verdict,
    ) -> Result<bool, Fault> {
        let max = self.config.limits.transaction_messages_max;
        let Some(channel) = self.channels.find_mut(key) else {
            return Ok(false);
        };
        let Some(transaction) = &mut channel.transaction else {
            return Ok(false);
        };
        while let Some((tag, delivery)) = channel.unacked.take_up_to(up_to) {
            transaction.acknowledge(verdict, tag, delivery);
            if transaction.len() > max {
                return Err(too_many::<M>(max));
            }
        }
        self.check_charge(key);
        Ok(true)
    }

    fn transaction(&self, context: &Context) -> Result<&Transaction, Fault> {
        let channel = self.channels.find(context.channel);
        let transaction = channel.and_then(|channel| channel.transaction.as_deref());
        transaction.ok_or_else(|| {
            let text = "channel is not transactional";
            context.caller().precondition_failed(text)
        })
    }

    /// Empties a channel's transaction. One whose commit waits for a store is empty, and does not
    /// wait any more.
    fn take_contents(&mut self, key: ChannelKey) -> Contents {
        let Some(channel) = self.channels.find_mut(key) else {
            return Contents::default();
        };
        let Some(transaction) = &mut channel.transaction else {
            return Contents::default();
        };
        self.committing -= usize::from(transaction.is_committing);
        let contents = transaction.take();
        self.uncommitted_bytes -= contents.bytes;
        if let Some(connection) = self.connections.find_mut(channel.connection) {
            connection.uncommitted_bytes -= contents.bytes;
        }
        contents
    }

    /// Routes what was published. Returns whether a queue refuses it.
    fn publish_committed(
        &mut self,
        now: Time,
        key: ChannelKey,
        publication: Publication,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        let Publication {
            content,
            full_headers,
            mandatory,
        } = publication;
        // They are all there: that was looked at, and nothing of a commit deletes any.
        let Some(exchange) = self.topology.exchange(content.exchange()) else {
            return false;
        };
        let facets = Facets::of_checked(content.properties());
        let headers = match &full_headers {
            Some(headers) => headers.as_table(),
            None => facets.headers,
        };
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        let routing_key = content.routing_key();
        self.topology
            .route(exchange, routing_key, headers, &mut targets);
        let publish = BasicPublish {
            exchange: content.exchange(),
            routing_key,
            mandatory,
            immediate: false,
        };
        let mut incoming = Incoming {
            exchange: publish.exchange,
            routing_key,
            properties: content.properties(),
            body: content.body(),
            handling: facets.handling,
            content: Some(content.clone()),
        };
        let distributed = self.distribute(now, key, &publish, &targets, &mut incoming, out);
        self.targets = targets;
        distributed.is_rejected
    }

    fn acknowledge_committed(
        &mut self,
        now: Time,
        key: ChannelKey,
        acknowledgements: Acknowledgements,
        out: &mut dyn Outbox<H>,
    ) {
        let Acknowledgements {
            verdict,
            mut deliveries,
        } = acknowledgements;
        deliveries.sort_unstable_by_key(|(tag, _)| *tag);
        for (tag, delivery) in &deliveries {
            self.steps.spend(1);
            self.settle(key, *tag, delivery);
        }
        let deliveries = deliveries.into_iter().map(|(_, delivery)| delivery);
        match verdict {
            Verdict::Done => {
                for Delivery { queue, entry, .. } in deliveries {
                    self.counts.acknowledged += 1;
                    self.forget(queue, entry);
                }
            }
            Verdict::Refused => {
                for Delivery { queue, entry, .. } in deliveries {
                    self.die(queue, entry, Reason::Rejected);
                }
            }
            Verdict::GivenBack => self.requeue(now, deliveries, out),
        }
    }
}

fn too_many<M: Arguments>(max: usize) -> Fault {
    let text = format!("a transaction holds at most {max} publications and acknowledgements");
    Fault::of::<M>(ReplyCode::PreconditionFailed, text)
}

/// How a commit that a store could not keep ends.
pub(super) fn not_committed() -> Fault {
    Fault::of::<TxCommit>(ReplyCode::PreconditionFailed, "partial tx completion")
}
