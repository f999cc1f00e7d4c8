//! Dead letters: what was rejected, has expired or had no room goes to another exchange, and its
//! headers say how it died.

use std::sync::Arc;

use crosstie_amqp::{DeliveryMode, Properties};

use super::Vhost;
use super::deaths::Deaths;
use super::enqueue::Incoming;
use super::publish::Handling;
use crate::queue::Entry;
use crate::shrink::shrink;
use crate::{MessageContent, Outbox, QueueId, QueueKey, Record, Time};

/// Why a message died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Rejected,
    Expired,
    MaxLength,
    DeliveryLimit,
}

impl Reason {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

/// A message that has died and is to go to an exchange.
#[derive(Debug)]
pub(super) struct DeadLetter {
    pub(super) content: Arc<MessageContent>,
    /// What is let go of when it is done; none, if the queue never took it.
    entry: Option<Entry>,
    /// What a store is told then: in the same journal after what it became, so that it is never
    /// in neither.
    stored: Option<QueueId>,
    pub(super) reason: Reason,
    pub(super) queue: Arc<str>,
    pub(super) exchange: Arc<str>,
    pub(super) routing_key: Option<Arc<str>>,
    /// How many deaths may follow from this one.
    following_max: u32,
}

/// A message that has died more often is dropped. Its headers would grow with each death.
const DEATHS_MAX: usize = 64;

/// So many deaths may follow at once from one message's: of copies of it, and of what these push out
/// of queues. It is more hops than anybody's retries have; and queues without room or time, each of
/// which has all others for its dead letters, would make the factorial of their number of copies.
/// What is beyond the bound is dropped, and counted as such.
const FOLLOWING_MAX: u32 = 256;

/// Beyond so many that wait, those that follow from a message's death go before the others, so that
/// there are no more than that at a time beside what died by itself; and who publishes does as
/// much as he may cause.
const WAITING_MAX: usize = 10_000;

/// A dead letter's steps beside what is routed and copied: its headers are written anew.
const DEATH_STEPS: usize = 16;
const HEADER_BYTES_PER_STEP: usize = 64;

#[cfg(test)]
impl DeadLetter {
    pub(super) fn content(&self) -> &Arc<MessageContent> {
        &self.content
    }

    /// A queue had it, and its place counts still.
    pub(super) fn is_in_memory(&self) -> bool {
        self.entry.is_some()
    }
}

impl<H> Vhost<H> {
    /// A message has left a queue (or a channel) for that reason.
    pub(super) fn die(&mut self, key: QueueKey, entry: Entry, reason: Reason) {
        let queue = self.queues.find(key);
        let Some((queue, exchange)) =
            queue.and_then(|queue| Some((queue, queue.settings.dead_letter_exchange.clone()?)))
        else {
            self.counts.dropped += u64::from(reason != Reason::Expired);
            self.forget(key, entry);
            return;
        };
        self.died += 1;
        self.dead.push_back(DeadLetter {
            following_max: FOLLOWING_MAX,
            content: Arc::clone(&entry.content),
            stored: queue.id.filter(|_| entry.is_stored),
            entry: Some(entry),
            reason,
            queue: queue.name.clone(),
            exchange,
            routing_key: queue.settings.dead_letter_routing_key.clone(),
        });
    }

    /// A message was not taken, and goes where the queue's dead letters go.
    pub(super) fn reject_dead(&mut self, key: QueueKey, content: Arc<MessageContent>) {
        let Some(queue) = self.queues.find(key) else {
            return;
        };
        let Some(exchange) = queue.settings.dead_letter_exchange.clone() else {
            return;
        };
        let letter = DeadLetter {
            following_max: FOLLOWING_MAX,
            content,
            entry: None,
            stored: None,
            reason: Reason::MaxLength,
            queue: queue.name.clone(),
            exchange,
            routing_key: queue.settings.dead_letter_routing_key.clone(),
        };
        self.account_content(&letter.content);
        self.died += 1;
        self.dead.push_back(letter);
    }

    /// Publishes what has died, as far as this input's steps reach. The last step of each input: it
    /// comes after whatever caused it, and may cause more of its kind.
    pub(super) fn bury(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        while !self.dead.is_empty() && !self.steps.is_over() {
            self.bury_first(now, out);
        }
        shrink(&mut self.dead);
    }

    /// The same for a publication, from which no more may follow than from one death, whatever it has
    /// pushed out of queues. While many wait its publisher does as much as he may cause.
    #[cold]
    pub(super) fn bury_published(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let died = std::mem::take(&mut self.died);
        let of_each = FOLLOWING_MAX / died.max(1) as u32;
        for dead in self.dead.iter_mut().rev().take(died) {
            dead.following_max = of_each;
        }
        self.bury(now, out);
        let mut share = 0;
        while self.dead.len() > WAITING_MAX && share <= FOLLOWING_MAX {
            share += 1;
            self.bury_first(now, out);
        }
    }

    /// The one that has waited longest goes where it is to go.
    pub(super) fn bury_first(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let Some(dead) = self.dead.pop_front() else {
            return;
        };
        let waiting = self.dead.len();
        // What it pushes out of queues has followed from it, and is known as that only now.
        let end = self.steps.lift();
        self.publish_dead(now, &dead, out);
        self.steps.until(end);
        let routed = self.topology.take_steps();
        self.steps.spend(routed as usize);
        if self.dead.len() > waiting {
            self.bound_following(waiting, dead.following_max);
        }
        self.let_go(dead);
    }

    /// Those behind `waiting` have followed from a death from which so many may.
    fn bound_following(&mut self, waiting: usize, following_max: u32) {
        let following = (self.dead.len() - waiting) as u32;
        let kept = following.min(following_max);
        while self.dead.len() > waiting + kept as usize {
            if let Some(dead) = self.dead.pop_back() {
                self.counts.dropped += 1;
                self.counts.dead_letters_cut += 1;
                self.let_go(dead);
            }
        }
        if kept == 0 {
            return;
        }
        let of_each = (following_max - kept) / kept;
        for dead in self.dead.range_mut(waiting..) {
            dead.following_max = of_each;
        }
        if waiting > WAITING_MAX {
            self.dead.rotate_right(kept as usize);
        }
    }

    /// One is where it goes, or nowhere.
    fn let_go(&mut self, dead: DeadLetter) {
        match dead.entry {
            None => self.release_content(&dead.content),
            Some(entry) => {
                if let Some(queue) = dead.stored {
                    let place = entry.place;
                    self.record(Record::Dequeued { queue, place });
                }
                self.release(&entry);
            }
        }
    }

    fn publish_dead(&mut self, now: Time, dead: &DeadLetter, out: &mut dyn Outbox<H>) {
        self.steps.spend(1);
        let Some(exchange) = self.topology.exchange(&dead.exchange) else {
            self.counts.dropped += 1;
            return;
        };
        let content = &dead.content;
        let deaths = Deaths::of(content.properties());
        if deaths.count() >= DEATHS_MAX {
            self.counts.dropped += 1;
            return;
        }
        let bytes = deaths.with(now, dead);
        self.steps
            .spend(DEATH_STEPS + bytes.len() / HEADER_BYTES_PER_STEP);
        self.steps.spend_on_body(content.body().len());
        let properties = Properties::from_checked_bytes(&bytes);
        let named = properties.parse_for_broker();
        let mut incoming = Incoming {
            exchange: &dead.exchange,
            routing_key: dead
                .routing_key
                .as_deref()
                .unwrap_or_else(|| content.routing_key()),
            properties,
            body: content.body(),
            handling: Handling {
                is_persistent: named.delivery_mode == Some(DeliveryMode::Persistent as u8),
                ttl_ms: None,
            },
            content: None,
        };
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        let headers = named.headers.unwrap_or_default();
        self.topology
            .route(exchange, incoming.routing_key, headers, &mut targets);
        let mut is_taken = false;
        for target in &targets {
            let is_circle = dead.reason != Reason::Rejected
                && self
                    .queues
                    .find(*target)
                    .is_some_and(|queue| deaths.is_circle(&queue.name, &dead.queue));
            if !is_circle {
                self.enqueue(now, *target, &mut incoming, out);
                is_taken = true;
            }
        }
        self.targets = targets;
        match is_taken {
            true => self.counts.dead_lettered += 1,
            false => self.counts.dropped += 1,
        }
    }
}
