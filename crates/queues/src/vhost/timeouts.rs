//! Timeouts: messages and queues expire, deliveries are too old.

use crosstie_amqp::ReplyCode;

use super::Vhost;
use crate::channels::ChannelTimer;
use crate::queues::QueueTimer;
use crate::{ChannelKey, Fault, Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    /// When [`Self::handle_timeout`] is due. It may find nothing to do; after one with too much to do it is due at
    /// once.
    pub fn next_timeout(&self) -> Option<Time> {
        let timeouts = [
            self.queues.next_timeout(),
            self.queues.next_delay(),
            self.queues.next_expiry(),
            self.channels.next_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    pub fn handle_timeout(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.begin();
        while !self.ledger.steps.is_over() && self.handle_due(now, out) {
            self.ledger.steps.spend(1);
        }
        self.end(now, out);
        self.flush_confirms(out);
    }

    /// Handles the timer that is due first, of queues before those of channels; returns whether there was one.
    fn handle_due(&mut self, now: Time, out: &mut dyn Outbox<H>) -> bool {
        let next = self.next_timeout();
        if self.queues.next_delay() == next && next.is_some() && self.handle_delay(now, out) {
            return true;
        }
        if self.queues.next_expiry().is_some_and(|at| at <= now) {
            self.queues.forget_expired(now, &mut self.ledger);
            return true;
        }
        if self.queues.next_timeout() == next
            && let Some(timer) = self.queues.take_due(now)
        {
            match timer {
                Some(QueueTimer::Head(key)) => self.deliver(now, key, out),
                Some(QueueTimer::Unused(key)) => self.handle_unused(now, key, out),
                Some(QueueTimer::Letters(key)) => self.retry_letters(now, key, out),
                None => {}
            }
            return true;
        }
        match self.channels.take_due(now) {
            Some(Some(ChannelTimer::Unacked(key))) => self.handle_unacked(now, key, out),
            Some(Some(ChannelTimer::Room(key))) => self.handle_room(now, key, out),
            Some(None) => {}
            None => return false,
        }
        true
    }

    fn handle_unused(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        let is_consumed = self.consumers.count_of_queue(key) > 0;
        if self.queues.is_unused(now, key, is_consumed) {
            self.remove_queue(key, out);
        }
    }

    fn handle_unacked(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        let held = self.transactions.held(key);
        let queues = &self.queues;
        let timeout_of = |key| queues.find(key)?.settings.consumer_timeout_ms;
        let too_old = self.channels.is_too_old(now, key, held, timeout_of);
        let Some(timeout_ms) = too_old else {
            return;
        };
        let number = self.channels.find(key).map_or(0, |channel| channel.number);
        let text = format!(
            "delivery acknowledgement on channel {number} timed out. Timeout value used: \
             {timeout_ms} ms. This timeout value can be configured, see consumers doc guide to \
             learn more"
        );
        let fault = Fault::in_method(ReplyCode::PreconditionFailed, (0, 0), text);
        // First it is told, then its messages are returned. Nothing may follow its end.
        self.flush_channel(key, out);
        self.channels.tell_closed(key, &fault, out);
        self.end_channel(now, key, out);
    }
}
