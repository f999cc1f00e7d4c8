//! A message comes to a queue: straight on to a consumer, or into the line.

use std::sync::Arc;

use crosstie_amqp::Properties;

use super::Vhost;
use super::dead_letters::Reason;
use super::deliver::Sending;
use super::publish::Handling;
use crate::queue::Entry;
use crate::timers::Timer;
use crate::topology::Overflow;
use crate::{MessageContent, Outbox, Position, QueueKey, Time};

/// A message on its way into queues. Its bytes are copied when the first of them keeps it.
pub(super) struct Incoming<'a> {
    pub(super) exchange: &'a str,
    pub(super) routing_key: &'a str,
    pub(super) properties: Properties<'a>,
    pub(super) body: &'a [u8],
    pub(super) handling: Handling,
    pub(super) content: Option<Arc<MessageContent>>,
}

/// What a queue did with a message.
pub(super) enum Enqueued {
    /// It took it.
    Taken,
    /// It took it, and a store has to.
    Stored(Position),
    /// It is full, and takes nothing (`x-overflow`).
    Rejected,
}

impl Incoming<'_> {
    pub(super) fn content(&mut self) -> Arc<MessageContent> {
        let content = self.content.get_or_insert_with(|| {
            Arc::new(MessageContent::of(
                self.exchange,
                self.routing_key,
                self.properties,
                self.body,
            ))
        });
        Arc::clone(content)
    }
}

impl<H> Vhost<H> {
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        key: QueueKey,
        incoming: &mut Incoming<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Enqueued {
        let Some(queue) = self.queues.find_mut(key) else {
            return Enqueued::Taken;
        };
        self.steps.spend(1);
        if queue.rejects(incoming.body.len()) {
            if matches!(queue.settings.overflow, Overflow::RejectPublishDeadLetter) {
                let content = incoming.content();
                self.reject_dead(key, content);
            }
            return Enqueued::Rejected;
        }
        let is_quorum = queue.is_quorum();
        let is_stored = queue.id.is_some() && (incoming.handling.is_persistent || is_quorum);
        let ttl_ms = match (queue.settings.message_ttl_ms, incoming.handling.ttl_ms) {
            (Some(queue), Some(message)) => Some(queue.min(message)),
            (queue, message) => queue.or(message),
        };
        let expires_at = ttl_ms.map(|ttl_ms| Time(now.0.saturating_add(ttl_ms)));

        let mut sent = None;
        let is_next = match queue.messages.front() {
            None => queue.returning == 0,
            Some(first) if first.is_expired(now) => {
                self.drop_expired(now, key);
                let queue = self.queues.find(key);
                queue.is_some_and(|queue| queue.messages.is_empty() && queue.returning == 0)
            }
            Some(_) => false,
        };
        if is_next {
            while let Some(next) = self.next_consumer(key) {
                let sending = Sending {
                    exchange: incoming.exchange,
                    routing_key: incoming.routing_key,
                    properties: incoming.properties,
                    body: incoming.body,
                    is_redelivered: false,
                };
                match self.send(next, &sending, out) {
                    Ok(None) => return Enqueued::Taken,
                    Ok(Some(tag)) => {
                        sent = Some((next.consumer, tag));
                        break;
                    }
                    Err(_) => {}
                }
            }
        }

        let Some(queue) = self.queues.find_mut(key) else {
            return Enqueued::Taken;
        };
        let entry = Entry {
            content: incoming.content(),
            place: queue.take_place(),
            expires_at,
            deliveries: 0,
            level: queue.level(incoming.properties),
            is_redelivered: false,
            is_stored,
        };
        let id = queue.id.filter(|_| is_stored);
        if let Some(id) = id {
            let record = entry.record(id);
            self.record(record);
        }
        let position = self.journal.position;
        self.account(&entry);
        match sent {
            Some((consumer, tag)) => self.hold(now, key, Some(consumer), tag, entry),
            None => {
                if let Some(queue) = self.queues.find_mut(key) {
                    queue.push(entry);
                    if queue.overflows() {
                        self.drop_overflow(key);
                    }
                }
                self.drop_expired(now, key);
                self.set_head_timer(key);
            }
        }
        match id {
            Some(_) => Enqueued::Stored(position),
            None => Enqueued::Taken,
        }
    }

    /// Messages at the front whose time is over go, as far as this input's steps reach: for the rest
    /// the queue is attended to later.
    #[inline(always)]
    pub(super) fn drop_expired(&mut self, now: Time, key: QueueKey) {
        if let Some(queue) = self.queues.find(key)
            && let Some(first) = queue.messages.front()
            && first.is_expired(now)
        {
            self.expire_first(now, key);
        }
    }

    #[cold]
    fn expire_first(&mut self, now: Time, key: QueueKey) {
        while let Some(queue) = self.queues.find_mut(key)
            && queue.messages.front().is_some_and(|e| e.is_expired(now))
        {
            if self.steps.is_over() {
                return self.postpone(key);
            }
            let Some(entry) = queue.pop() else {
                return;
            };
            self.counts.expired += 1;
            self.steps.spend(1);
            self.die(key, entry, Reason::Expired);
        }
    }

    /// Messages at the front go until the queue is within its bounds: those that would be next,
    /// whatever their priority.
    pub(super) fn drop_overflow(&mut self, key: QueueKey) {
        while let Some(queue) = self.queues.find_mut(key) {
            // Older ones are on their way back.
            if queue.returning > 0 || !queue.overflows() {
                return;
            }
            if self.steps.is_over() {
                return self.postpone(key);
            }
            let Some(entry) = queue.pop() else {
                return;
            };
            self.steps.spend(1);
            self.die(key, entry, Reason::MaxLength);
        }
    }

    /// That somebody looks when the first message expires.
    #[inline]
    pub(super) fn set_head_timer(&mut self, key: QueueKey) {
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        let Some(expires_at) = queue.messages.front().and_then(|first| first.expires_at) else {
            return;
        };
        if queue.is_postponed {
            return;
        }
        if queue.head_timer.is_none_or(|at| expires_at < at) {
            queue.head_timer = Some(expires_at);
            self.set_timer(expires_at, Timer::Head(key));
        }
    }
}
