//! Delivery from a queue to the consumer whose turn it is.

use super::Vhost;
use crate::channels::{Channels, Delivery, Outgoing};
use crate::consumers::{Consumers, Next, Sent};
use crate::ledger::Ledger;
use crate::queues::{Entry, Popped};
use crate::{ChannelKey, ConnectionKey, Outbox, QueueKey, Refused, Time};

impl<H> Vhost<H> {
    /// Drops messages beyond a queue's bounds, and sends ready ones to consumers with room.
    pub(super) fn attend(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        if self
            .queues
            .find(key)
            .is_some_and(|queue| queue.role.is_hidden())
        {
            return self.attend_hidden(now, key, out);
        }
        self.queues.sink(key, &mut self.ledger);
        // First the bounds, then the consumers: a message beyond a bound is sent to none.
        self.queues
            .drop_overflow(key, &mut self.ledger, &mut self.confirms);
        self.deliver(now, key, out);
    }

    /// Sends ready messages to consumers with room, drops expired ones, and sets the timer for the next expiry.
    /// Messages that are left when this input's steps are spent wait for other inputs.
    pub(super) fn deliver(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        self.drop_expired(now, key);
        while self.queues.is_ready(key) {
            if self.ledger.steps.is_over() {
                return self.queues.postpone(key);
            }
            let Some(next) = self.next_consumer(key) else {
                break;
            };
            let Some(popped) = self.queues.pop(now, key, &mut self.ledger) else {
                break;
            };
            let Popped {
                entry,
                is_quorum,
                waited_ms,
            } = popped;
            match self.send_entry(next, (key, &entry, is_quorum), out) {
                Ok(sent) if sent.needs_ack => {
                    self.ledger.waits.note(waited_ms);
                    if is_quorum {
                        self.queues.count_delivery(key, &entry, &mut self.ledger);
                    }
                    self.hold(now, key, sent, entry);
                }
                Ok(_) => {
                    self.ledger.waits.note(waited_ms);
                    self.forget(key, &entry);
                }
                Err(_) => {
                    self.ledger.steps.spend(1);
                    self.queues.put_back(key, entry, &mut self.ledger);
                }
            }
            self.drop_expired(now, key);
        }
        self.queues.set_head_timer(key);
        if self.streams.are_any() {
            self.deliver_stream(now, key, out);
        }
    }

    fn send_entry(
        &mut self,
        next: Next,
        (queue, entry, is_quorum): (QueueKey, &Entry, bool),
        out: &mut dyn Outbox<H>,
    ) -> Result<Sent, Refused> {
        let rooms = (&mut self.consumers, &mut self.channels, &mut self.ledger);
        let outgoing = Outgoing::of(entry);
        let sent = match is_quorum && entry.deliveries > 0 {
            true => {
                let mut counted = Vec::new();
                let outgoing = outgoing.with_delivery_count(entry.deliveries, &mut counted);
                send(next, &outgoing, rooms, out)
            }
            false => send(next, &outgoing, rooms, out),
        };
        if (entry.is_redelivered | self.tracing.is_some())
            && let Ok(sent) = &sent
        {
            let redelivered = u64::from(entry.is_redelivered);
            self.channels
                .count(sent.channel, |counts| counts.redelivered += redelivered);
            if self.tracing.is_some() {
                self.trace_delivered(sent.channel, queue, &outgoing, out);
            }
        }
        sent
    }

    /// The consumer whose turn it is.
    #[inline]
    pub(super) fn next_consumer(&mut self, key: QueueKey) -> Option<Next> {
        let steps = &mut self.ledger.steps;
        self.consumers.next(key, &self.channels, steps)
    }

    /// Holds a message until it is acknowledged.
    #[inline]
    pub(super) fn hold(&mut self, now: Time, queue: QueueKey, sent: Sent, entry: Entry) {
        self.queues.hold_one(queue, &mut self.ledger);
        let delivery = Delivery::new(queue, Some(sent.consumer), now, entry);
        self.channels.hold(sent.channel, sent.tag, delivery);
    }

    /// Forgets a message: it does not exist any more for this queue.
    #[inline]
    pub(super) fn forget(&mut self, key: QueueKey, entry: &Entry) {
        self.queues
            .forget(key, entry, &mut self.ledger, &mut self.confirms);
    }

    /// Drops expired messages at a queue's front.
    #[inline(always)]
    pub(super) fn drop_expired(&mut self, now: Time, key: QueueKey) {
        self.queues
            .drop_expired(now, key, &mut self.ledger, &mut self.confirms);
    }

    /// Serves consumers after deliveries of a channel were settled: those that have room again are sent ready messages.
    /// Groups that wait for their channel come first, each in its turn, so that a consumer at its own limit does not
    /// precede them. Mostly none waits: inlined up to that check.
    #[inline(always)]
    pub(super) fn serve(&mut self, now: Time, channel: ChannelKey, out: &mut dyn Outbox<H>) {
        self.serve_waiting(now, channel, out);
        self.channels.check_charge(channel);
        if self.consumers.has_unblocked() {
            self.serve_unblocked(now, out);
        }
    }

    fn serve_unblocked(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let mut queues = self.consumers.take_unblocked();
        for queue in queues.drain(..) {
            self.deliver(now, queue, out);
        }
        self.consumers.reuse(queues);
    }

    /// Serves the groups that wait for their channel's room in turn, until there is none.
    #[inline(always)]
    pub(super) fn serve_waiting(
        &mut self,
        now: Time,
        channel: ChannelKey,
        out: &mut dyn Outbox<H>,
    ) {
        while let Some(queue) = self.consumers.stop_waiting(channel, &self.channels) {
            self.deliver(now, queue, out);
        }
    }

    /// The connection takes messages again, after it had refused one as [`crate::Refused::Full`].
    pub fn resume(&mut self, now: Time, connection: ConnectionKey, out: &mut dyn Outbox<H>) {
        self.begin();
        let Some(is_to_begin) = self.channels.resume(connection) else {
            return;
        };
        if is_to_begin {
            self.go_on_resuming(now, connection, out);
        }
        self.end(now, out);
    }

    /// Returns its groups to the lines, as many as this input's steps allow.
    pub(super) fn go_on_resuming(
        &mut self,
        now: Time,
        key: ConnectionKey,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(channels) = self.channels.channels_to_resume(key) else {
            return;
        };
        // All of them before any is sent a message: the highest priority comes first.
        let mut queues = Vec::new();
        let mut is_over = false;
        for channel in channels {
            while !is_over && let Some(queue) = self.consumers.stop_waiting(channel, &self.channels)
            {
                self.ledger.steps.spend(1);
                queues.push(queue);
                is_over = self.ledger.steps.is_over();
            }
        }
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            self.deliver(now, queue, out);
        }
        if is_over {
            self.channels.resume_later(key);
        }
    }
}

/// Sends to the consumer whose turn it is.
#[inline]
pub(super) fn send<H>(
    next: Next,
    outgoing: &Outgoing<'_>,
    (consumers, channels, ledger): (&mut Consumers, &mut Channels<H>, &mut Ledger),
    out: &mut dyn Outbox<H>,
) -> Result<Sent, Refused> {
    let sent = consumers.send(next, outgoing, channels, out)?;
    ledger.steps.spend_on_body(outgoing.body.len());
    Ok(sent)
}
