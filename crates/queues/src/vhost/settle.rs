//! Carries out the answers of a channel to its deliveries.

use super::Vhost;
use crate::channels::{Delivery, Unacked};
use crate::queues::Reason;
use crate::settlements::Settling;
use crate::transactions::Verdict;
use crate::{ChannelKey, Outbox, Time};

impl<H> Vhost<H> {
    /// Adds the same answer for all of these; processes as many as this input's steps allow.
    pub(super) fn settle_all(
        &mut self,
        now: Time,
        key: ChannelKey,
        deliveries: Unacked,
        verdict: Verdict,
        out: &mut dyn Outbox<H>,
    ) {
        self.settlements
            .push(key, deliveries, verdict, &mut self.queues);
        self.go_on_settling(now, key, out);
    }

    /// Continues with a channel's answers, and then delivers what its limits allow.
    pub(super) fn go_on_settling(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        if let Some(settling) = self.settlements.take(key) {
            self.settle_some(now, key, settling, out);
        }
        self.serve(now, key, out);
    }

    /// Processes as many as this input's steps allow.
    fn settle_some(
        &mut self,
        now: Time,
        key: ChannelKey,
        mut settling: Settling,
        out: &mut dyn Outbox<H>,
    ) {
        while !self.ledger.steps.is_over()
            && let Some((tag, delivery, verdict)) = settling.next()
        {
            self.ledger.steps.spend(1);
            self.settle(key, tag, &delivery, verdict == Verdict::Done);
            match verdict {
                Verdict::Done => self.forget(delivery.queue, &delivery.entry),
                Verdict::Refused => self.reject(delivery),
                Verdict::GivenBack | Verdict::Left => {
                    self.give_back(&mut settling, delivery, verdict);
                }
            }
        }
        match settling.is_done() {
            true => self.end_return(now, settling, out),
            false => self.settlements.put(key, settling),
        }
    }

    /// Returns deliveries to their queues at once, as a client requested.
    pub(super) fn requeue(
        &mut self,
        now: Time,
        deliveries: impl IntoIterator<Item = Delivery>,
        out: &mut dyn Outbox<H>,
    ) {
        let mut settling = Settling::default();
        for delivery in deliveries {
            self.ledger.steps.spend(1);
            self.give_back(&mut settling, delivery, Verdict::GivenBack);
        }
        self.end_return(now, settling, out);
    }

    /// Handles a rejected message: it becomes a dead letter.
    pub(super) fn reject(&mut self, delivery: Delivery) {
        let Delivery { queue, entry, .. } = delivery;
        let (ledger, confirms) = (&mut self.ledger, &mut self.confirms);
        self.queues
            .die(queue, entry, Reason::Rejected, ledger, confirms);
    }

    /// Returns a message to its queue, which does not deliver until all are back. It returns to its place. If a client
    /// returned it to a quorum queue without a delivery limit, it moves behind all others, as in RabbitMQ, which
    /// otherwise would deliver it before them for ever.
    fn give_back(&mut self, settling: &mut Settling, delivery: Delivery, verdict: Verdict) {
        let Delivery { queue, entry, .. } = delivery;
        settling.begin_return(queue, &mut self.queues);
        let is_wish = verdict == Verdict::GivenBack;
        let (ledger, confirms) = (&mut self.ledger, &mut self.confirms);
        self.queues
            .give_back(queue, entry, is_wish, ledger, confirms);
    }

    /// Ends the return: all are in their places.
    fn end_return(&mut self, now: Time, settling: Settling, out: &mut dyn Outbox<H>) {
        for key in settling.into_returning() {
            if self.queues.end_return(key) {
                self.attend(now, key, out);
            }
        }
    }
}
