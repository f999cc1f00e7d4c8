//! What happens by time: messages and queues expire, deliveries are too old.

use crosstie_amqp::ReplyCode;

use super::Vhost;
use crate::timers::Timer;
use crate::{ChannelKey, Fault, Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    /// When [`Self::handle_timeout`] is due. Now and then it will find nothing to do; and after one that
    /// had too much to do it is due at once.
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    pub fn handle_timeout(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.begin();
        while !self.steps.is_over()
            && let Some((at, timer)) = self.timers.take_due(now)
        {
            self.steps.spend(1);
            match timer {
                Timer::Head(key) => {
                    if let Some(queue) = self.queues.find_mut(key)
                        && queue.head_timer == Some(at)
                    {
                        queue.head_timer = None;
                        self.deliver(now, key, out);
                    }
                }
                Timer::Unused(key) => self.handle_unused(now, key, out),
                Timer::Unacked(key) => self.handle_unacked(now, key, out),
                Timer::Room(key) => self.handle_room(now, key, out),
            }
        }
        self.end(now, out);
        self.flush_confirms(out);
    }

    pub(super) fn set_timer(&mut self, at: Time, timer: Timer) {
        self.timers.set(at, timer);
        let (queues, channels) = (&self.queues, &self.channels);
        self.timers.sweep(|at, timer| match timer {
            Timer::Head(key) => queues.find(key).is_some_and(|q| q.head_timer == Some(at)),
            Timer::Unused(key) => queues.find(key).is_some(),
            Timer::Unacked(key) | Timer::Room(key) => channels.find(key).is_some(),
        });
    }

    /// Somebody uses the queue now; where that counts, a timer looks when it has been long ago.
    pub(super) fn touch(&mut self, now: Time, key: QueueKey) {
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        queue.used_at = now;
        if let Some(expires_ms) = queue.settings.expires_ms
            && !queue.has_unused_timer
            && queue.consumers.is_empty()
        {
            queue.has_unused_timer = true;
            let due = Time(now.0.saturating_add(expires_ms));
            self.set_timer(due, Timer::Unused(key));
        }
    }

    fn handle_unused(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        queue.has_unused_timer = false;
        let Some(expires_ms) = queue.settings.expires_ms else {
            return;
        };
        if !queue.consumers.is_empty() {
            return;
        }
        let due = Time(queue.used_at.0.saturating_add(expires_ms));
        if due <= now {
            self.remove_queue(key, out);
        } else {
            queue.has_unused_timer = true;
            self.set_timer(due, Timer::Unused(key));
        }
    }

    fn handle_unacked(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        let Some(timeout_ms) = self.config.consumer_timeout_ms else {
            return;
        };
        let Some(channel) = self.channels.find_mut(key).filter(|c| !c.is_closing) else {
            return;
        };
        channel.has_timer = false;
        let unacked_since = channel.unacked.oldest().map(|oldest| oldest.delivered_at);
        // An acknowledgement that is not committed is none yet.
        let held_since = channel.transaction.as_ref().and_then(|tx| tx.held_since());
        let Some(since) = unacked_since.into_iter().chain(held_since).min() else {
            return;
        };
        let due = Time(since.0.saturating_add(timeout_ms));
        if due > now {
            channel.has_timer = true;
            self.set_timer(due, Timer::Unacked(key));
            return;
        }
        let (number, connection) = (channel.number, channel.connection);
        let text = format!(
            "delivery acknowledgement on channel {number} timed out. Timeout value used: \
             {timeout_ms} ms. This timeout value can be configured, see consumers doc guide to \
             learn more"
        );
        let fault = Fault::in_method(ReplyCode::PreconditionFailed, (0, 0), text);
        // First it is told, then what it held goes to others. Nothing may follow its end.
        self.flush_channel(key, out);
        if let Some(connection) = self.connections.find(connection) {
            out.close_channel(&connection.handle, number, &fault);
        }
        self.end_channel(now, key, out);
    }
}
