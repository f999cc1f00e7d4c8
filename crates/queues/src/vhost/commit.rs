//! Transactions (class `tx`): publications and acknowledgements of a channel take effect at its commit, in one input.
//! Their records are consecutive in the journal, so that a store that writes atomically has all of them or none.
//!
//! ```text
//! tx.select ─▶ publish, ack, nack, reject (held) ─▶ tx.commit ─▶ queues, journal ─▶ commit-ok,
//!                                              │                 when a store has what was kept
//!                                              └──▶ tx.rollback: as if nothing had been said
//! ```
//!
//! Publications are checked when they arrive (permissions, existence of the exchange, properties) and routed at the
//! commit. If an exchange has been deleted, the commit does nothing and closes the channel. As in RabbitMQ, a queue
//! that refuses a publication (`x-overflow`) closes it, too, after the rest is done.

use std::sync::Arc;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::{BasicPublish, TxCommit, TxCommitOk, TxRollbackOk, TxSelectOk};

use super::Vhost;
use super::facets::Facets;
use super::methods::Context;
use crate::queues::Incoming;
use crate::topology::{Resource, Routed};
use crate::transactions::{Acknowledgements, Contents, Publication, Transaction, Verdict};
use crate::{ChannelKey, Fault, Outbox, Time};

impl<H> Vhost<H> {
    /// Whether the channel's publications and acknowledgements wait for a commit.
    pub fn is_transactional(&self, channel: ChannelKey) -> bool {
        self.transactions.find(channel).is_some()
    }

    pub(super) fn handle_select(
        &mut self,
        context: &Context,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if self.confirms.is_selected(context.channel) {
            let text = "cannot switch from confirm to tx mode";
            return Err(context.caller().precondition_failed(text));
        }
        self.transactions.select(context.channel);
        self.answer(context.channel, false, TxSelectOk {}, out)
    }

    pub(super) fn handle_commit(
        &mut self,
        now: Time,
        context: &Context,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        self.check_exchanges(context)?;
        let key = context.channel;
        let contents = self.take_contents(key);
        // Only its own dead letters are a part of it.
        let died_before = self.queues.dead_mut().set_aside();
        let position_before = self.ledger.journal.position;
        let mut is_rejected = false;
        // If the store fails, publications alone are withdrawn. Acknowledged messages have gone, so that without the
        // publications beside them their contents would be lost: such a transaction is written later, as a whole.
        let is_withdrawable = contents.acknowledgements.is_empty();
        let mut withdrawable = Vec::new();
        for publication in contents.publications {
            if is_withdrawable {
                withdrawable.push(Arc::clone(&publication.content));
            }
            is_rejected |= self.publish_committed(now, key, publication, out);
        }
        for acknowledgements in contents.acknowledgements {
            self.acknowledge_committed(now, key, acknowledgements, out);
        }
        self.serve(now, key, out);
        // The dead letters of refused deliveries are part of the transaction. Their followers are not: after a crash in
        // between these happen again.
        for _ in 0..self.queues.dead().len() {
            self.bury_first(now, out);
        }
        self.queues.dead_mut().put_first(died_before);
        if is_rejected {
            let text = "partial tx completion";
            return Err(context.caller().precondition_failed(text));
        }
        self.ledger.counts.committed += 1;
        let position = self.ledger.journal.position;
        if position == position_before {
            return self.answer(key, false, TxCommitOk {}, out);
        }
        self.transactions.await_store(key);
        self.confirms.await_commit(key, position, &withdrawable);
        Ok(())
    }

    /// Checks that all exchanges of a channel's publications exist.
    fn check_exchanges(&self, context: &Context) -> Result<(), Fault> {
        for publication in self.transaction(context)?.publications() {
            let name = publication.content.exchange();
            if self.topology.exchange(name).is_none() {
                let resource = Resource::exchange(name, &self.config.name);
                return Err(context.caller().not_found(resource));
            }
        }
        Ok(())
    }

    pub(super) fn handle_rollback(
        &mut self,
        context: &Context,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        self.transaction(context)?;
        self.ledger.counts.rolled_back += 1;
        self.abandon_transaction(context.channel);
        self.answer(context.channel, false, TxRollbackOk {}, out)
    }

    /// Rolls a channel's transaction back: its publications vanish, and its acknowledged deliveries are unacknowledged
    /// again.
    pub(super) fn abandon_transaction(&mut self, key: ChannelKey) {
        let groups = self.take_contents(key).acknowledgements.into_iter();
        let deliveries: Vec<_> = groups.flat_map(|group| group.deliveries).collect();
        if !deliveries.is_empty() {
            self.ledger.steps.spend(deliveries.len());
            self.channels.put_back(key, deliveries);
        }
    }

    fn transaction(&self, context: &Context) -> Result<&Transaction, Fault> {
        self.transactions.find(context.channel).ok_or_else(|| {
            let text = "channel is not transactional";
            context.caller().precondition_failed(text)
        })
    }

    fn take_contents(&mut self, key: ChannelKey) -> Contents {
        match self.channels.find(key) {
            Some(channel) => self.transactions.take(key, channel.connection),
            None => Contents::default(),
        }
    }

    /// Routes the publications. Returns whether a queue refused one.
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
        // They all exist: that was checked, and nothing in a commit deletes any.
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
        let routed = Routed {
            routing_key,
            headers,
            properties: content.properties(),
        };
        self.topology.route(exchange, routed, &mut targets);
        self.count_routed(exchange, targets.len());
        let publish = BasicPublish {
            exchange: content.exchange(),
            routing_key,
            mandatory,
            immediate: false,
        };
        let mut incoming = Incoming::kept(&content, facets.handling);
        if self.tracing.is_some() {
            let traced = (&incoming.outgoing(), headers);
            self.trace_published(key, traced, &targets, out);
        }
        let distributed = self.distribute(now, key, &publish, &targets, &mut incoming, out);
        self.targets = targets;
        if self.topology.has_passed() {
            self.keep_passed(now, headers, &mut incoming);
        }
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
            self.ledger.steps.spend(1);
            self.settle(key, *tag, delivery, verdict == Verdict::Done);
        }
        let deliveries = deliveries.into_iter().map(|(_, delivery)| delivery);
        match verdict {
            Verdict::Done => {
                for delivery in deliveries {
                    self.forget(delivery.queue, &delivery.entry);
                }
            }
            Verdict::Refused => deliveries.for_each(|delivery| self.reject(delivery)),
            Verdict::GivenBack | Verdict::Left => self.requeue(now, deliveries, out),
        }
    }
}

/// The fault of a commit that a store could not keep.
pub(super) fn not_committed() -> Fault {
    Fault::of::<TxCommit>(ReplyCode::PreconditionFailed, "partial tx completion")
}
