//! Publishes dead letters to their exchanges.

use crosstie_amqp::{DeliveryMode, Properties};

use super::Vhost;
use crate::ledger::Ledger;
use crate::queues::{DeadLetter, DeadLetters, Deaths, FOLLOWING_MAX, Handling, Incoming, Reason};
use crate::topology::Routed;
use crate::{Outbox, Time};

/// A message that has died more often is dropped. Its headers would grow with each death.
pub(super) const DEATHS_MAX: usize = 64;

/// Steps of a dead letter, beside routing and copying: its headers are rewritten.
const DEATH_STEPS: usize = 16;
/// Long headers cost more: they are parsed and rewritten with each death.
const HEADER_BYTES_PER_STEP: usize = 64;

impl<H> Vhost<H> {
    /// Publishes dead letters, as far as this input's steps allow. This is the last step of each input: it follows all
    /// causes of death, and may cause further ones.
    pub(super) fn bury(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.publish_traces(now, out);
        while !self.queues.dead().is_empty() && !self.ledger.steps.is_over() {
            self.bury_first(now, out);
        }
        self.queues.dead_mut().shrink();
    }

    /// The same for a publication, from which no more may follow than from one death, whatever it pushes out of queues.
    /// While many dead letters wait, the publisher processes as many as its message may cause.
    #[cold]
    pub(super) fn bury_published(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.queues.dead_mut().share_following();
        self.bury(now, out);
        let mut share = 0;
        while self.queues.dead().are_many() && share <= FOLLOWING_MAX {
            share += 1;
            self.bury_first(now, out);
        }
    }

    /// Publishes the dead letter that has waited longest.
    pub(super) fn bury_first(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let Some(dead) = self.queues.dead_mut().pop() else {
            return;
        };
        let waiting = self.queues.dead().len();
        // Messages that it pushes out of queues follow from it, and are known as followers only now.
        let end = self.ledger.steps.lift();
        match dead.source {
            // It is counted once its targets have accepted it.
            Some(source) if self.keep_letter(now, &dead, source, out) => {}
            None if self.publish_dead(now, &dead, out) => self.ledger.counts.dead_lettered += 1,
            _ => self.ledger.counts.dropped += 1,
        }
        self.ledger.steps.until(end);
        let routed = self.topology.take_steps();
        self.ledger.steps.spend(routed as usize);
        if dead.source.is_none() && self.queues.dead().len() > waiting {
            let following_max = dead.following_max;
            self.queues
                .dead_mut()
                .bound_following(waiting, following_max, &mut self.ledger);
        }
        DeadLetters::let_go(dead, &mut self.ledger);
    }

    /// Publishes it; returns whether a queue accepted it.
    fn publish_dead(&mut self, now: Time, dead: &DeadLetter, out: &mut dyn Outbox<H>) -> bool {
        self.ledger.steps.spend(1);
        let Some(exchange) = self.topology.exchange(&dead.exchange) else {
            return false;
        };
        let content = &dead.content;
        let deaths = Deaths::of(content.properties());
        if deaths.count() >= DEATHS_MAX {
            return false;
        }
        let bytes = dead_letter_properties(now, dead, &mut self.ledger);
        let properties = Properties::from_checked_bytes(&bytes);
        let named = properties.parse_for_broker();
        let routing_key = dead.routing_key.as_deref();
        let mut incoming = Incoming {
            exchange: &dead.exchange,
            routing_key: routing_key.unwrap_or_else(|| content.routing_key()),
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
        let routed = Routed {
            routing_key: incoming.routing_key,
            headers: named.headers.unwrap_or_default(),
            properties,
        };
        self.topology.route(exchange, routed, &mut targets);
        let mut is_taken = false;
        for target in &targets {
            let queue = self.queues.find(*target);
            let is_circle = dead.reason != Reason::Rejected
                && queue.is_some_and(|queue| deaths.is_circle(&queue.name, &dead.queue));
            if !is_circle {
                self.enqueue(now, *target, &mut incoming, out);
                is_taken = true;
            }
        }
        self.targets = targets;
        if self.topology.has_passed() {
            is_taken |= self.topology.has_passed_delay();
            self.keep_passed(now, routed.headers, &mut incoming);
        }
        is_taken
    }
}

/// The bytes of a dead letter's properties, which tell how it died.
pub(super) fn dead_letter_properties(now: Time, dead: &DeadLetter, ledger: &mut Ledger) -> Vec<u8> {
    let content = &dead.content;
    let bytes = Deaths::of(content.properties()).with(now, dead);
    let steps = &mut ledger.steps;
    steps.spend(DEATH_STEPS + bytes.len() / HEADER_BYTES_PER_STEP);
    steps.spend_on_body(content.body().len());
    bytes
}
