//! Publishes the dead letters that a queue keeps until their targets have accepted them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_amqp::Properties;

use super::Vhost;
use super::bury::{DEATHS_MAX, dead_letter_properties};
use super::facets::Facets;
use crate::queues::{DeadLetter, Deaths, FOLLOWING_MAX, Incoming, Letter};
use crate::topology::Routed;
use crate::{MessageContent, Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    /// Keeps a dead letter, and publishes it if no earlier one waits. Returns whether its queue still exists.
    pub(super) fn keep_letter(
        &mut self,
        now: Time,
        dead: &DeadLetter,
        source: QueueKey,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        let content = &dead.content;
        let bytes = dead_letter_properties(now, dead, &mut self.ledger);
        let routing_key = dead.routing_key.as_deref();
        let content = MessageContent::of(
            &dead.exchange,
            routing_key.unwrap_or_else(|| content.routing_key()),
            Properties::from_checked_bytes(&bytes),
            content.body(),
        );
        let ledger = &mut self.ledger;
        let kept = self
            .queues
            .keep_letter(now, source, Arc::new(content), ledger);
        if let Some(key) = kept {
            self.send_letters(now, key, out);
        }
        kept.is_some()
    }

    /// Publishes letters of a hidden queue, as far as this input's steps allow. The rest waits for other inputs.
    pub(super) fn send_letters(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        self.queues.sink(key, &mut self.ledger);
        loop {
            if self.ledger.steps.is_over() {
                return self.queues.postpone(key);
            }
            let Some(mut letter) = self.queues.next_letter(key, self.topology.changes()) else {
                break;
            };
            let mut refusing = self.queues.take_refusing(key);
            let is_accepted = self.try_letter(now, &mut letter, &mut refusing, out);
            self.queues.put_refusing(key, refusing);
            let (ledger, confirms) = (&mut self.ledger, &mut self.confirms);
            match is_accepted {
                true => {
                    ledger.counts.dead_lettered += 1;
                    self.queues.forget_letter(key, &letter, ledger, confirms);
                }
                false => self.queues.put_refused(key, letter, ledger),
            }
        }
        let retry_ms = self.config.dead_letter_retry_ms;
        self.queues.rest_letters(now, key, retry_ms);
    }

    /// Gives a letter to those of its targets that have not accepted it. Returns whether all of them have, and there was
    /// any.
    fn try_letter(
        &mut self,
        now: Time,
        letter: &mut Letter,
        refusing: &mut BTreeSet<QueueKey>,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        self.ledger.steps.spend(1);
        let content = Arc::clone(&letter.entry.content);
        let Some(exchange) = self.topology.exchange(content.exchange()) else {
            return false;
        };
        let deaths = Deaths::of(content.properties());
        // Its headers would grow with each death.
        if deaths.count() > DEATHS_MAX {
            return false;
        }
        let facets = Facets::of_checked(content.properties());
        let mut incoming = Incoming::kept(&content, facets.handling);
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        let routed = Routed {
            routing_key: incoming.routing_key,
            headers: facets.headers,
            properties: incoming.properties,
        };
        self.topology.route(exchange, routed, &mut targets);
        // Messages that it pushes out of other queues follow from it.
        let waiting = self.queues.dead().len();
        let mut is_refused = false;
        for target in &targets {
            let Some(queue) = self.queues.find(*target) else {
                continue;
            };
            if letter.accepted.contains(target) || deaths.is_circle_to(&queue.name) {
                continue;
            }
            // A full target that has dead letters of its own would make one at each attempt.
            let stream = self.streams.find(*target);
            let is_failing = stream.is_some_and(|stream| stream.is_failing);
            if is_failing || refusing.contains(target) || queue.rejects(incoming.body.len()) {
                refusing.insert(*target);
                is_refused = true;
                continue;
            }
            self.enqueue(now, *target, &mut incoming, out);
            letter.accepted.push(*target);
        }
        self.targets = targets;
        if self.topology.has_passed() {
            self.pass_letter(now, letter, &mut incoming);
        }
        if self.queues.dead().len() > waiting {
            let dead = self.queues.dead_mut();
            dead.bound_following(waiting, FOLLOWING_MAX, &mut self.ledger);
        }
        let routed = self.topology.take_steps();
        self.ledger.steps.spend(routed as usize);
        !is_refused && (letter.is_delayed || !letter.accepted.is_empty())
    }

    /// Keeps a letter for the exchanges that it has passed; those that delay it get it once.
    fn pass_letter(&mut self, now: Time, letter: &mut Letter, incoming: &mut Incoming<'_>) {
        let is_delayed = self.topology.has_passed_delay();
        if letter.is_delayed {
            self.topology.take_passed();
            return;
        }
        let headers = incoming.properties.parse_for_broker().headers;
        self.keep_passed(now, headers.unwrap_or_default(), incoming);
        letter.is_delayed = is_delayed;
    }

    /// Attends to a hidden queue.
    pub(super) fn attend_hidden(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        if self.queues.has_letters(key) {
            self.send_letters(now, key, out);
        } else if self.queues.has_retained(key) {
            self.queues.tend_retained(now, key, &mut self.ledger);
        } else {
            self.queues.move_on(now, key, &mut self.ledger);
        }
    }

    /// A pass over refused letters is due.
    pub(super) fn retry_letters(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        match self.queues.begin_pass(key, self.topology.changes()) {
            true => self.send_letters(now, key, out),
            false => {
                let retry_ms = self.config.dead_letter_retry_ms;
                self.queues.rest_letters(now, key, retry_ms);
            }
        }
    }

    /// Tries refused letters again after a change of the topology. At most once in a while for all of them; between,
    /// each has its timer.
    pub(super) fn follow_topology(&mut self, now: Time) {
        let changes = self.topology.changes();
        if self.changes_followed == changes {
            return;
        }
        self.changes_followed = changes;
        if self.queues.refused().is_empty() || now < self.next_follow {
            return;
        }
        self.next_follow = Time(now.0.saturating_add(self.config.dead_letter_retry_ms));
        let keys: Vec<QueueKey> = self.queues.refused().iter().copied().collect();
        self.ledger.steps.spend(keys.len());
        for key in keys {
            self.queues.postpone(key);
        }
    }
}
