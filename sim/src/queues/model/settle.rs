//! The fate of messages that are delivered, or must not be any more.

use super::super::operation::{Channel, Settlement};
use super::{Entry, Grave, Held, Model, Queue};

impl Model {
    /// Removes messages that have expired or exceed the bounds, and moves them to the dead-letter targets.
    pub fn settle_queues(&mut self) {
        self.remove_heads(Queue::is_over);
    }

    /// Removes expired messages only.
    pub(super) fn expire(&mut self) {
        self.remove_heads(|_| false);
    }

    fn remove_heads(&mut self, is_over: impl Fn(&Queue) -> bool) {
        for place in 0..self.queues.len() {
            self.remove_heads_of(place, &is_over);
        }
    }

    /// Removes messages that had expired when they were first, before the same input brought more urgent ones: the
    /// order is left open.
    pub fn expire_hidden(&mut self, name: &str) {
        let (now_ms, input) = (self.now_ms, self.input);
        while let Some(queue) = self.queue_mut(name) {
            let is_old = |entry: &Entry| {
                entry.held.is_none() && entry.expires_at.is_some_and(|due| due <= now_ms)
            };
            let hidden = queue.entries.iter().filter(|entry| is_old(entry));
            let mut hidden = hidden.map(|entry| entry.message);
            let place = hidden.find_map(|message| queue.head_that_is(message, input));
            let Some(place) = place else {
                return;
            };
            let grave = queue.grave();
            let entry = queue.entries.remove(place);
            self.bury(grave, &entry);
        }
    }

    pub(super) fn remove_heads_of(&mut self, place: usize, is_over: impl Fn(&Queue) -> bool) {
        while let Some(head) = self.queues[place].head() {
            let queue = &self.queues[place];
            let due = queue.entries[head].expires_at;
            if due.is_none_or(|due| due > self.now_ms) && !is_over(queue) {
                break;
            }
            let grave = queue.grave();
            let entry = self.queues[place].entries.remove(head);
            self.bury(grave, &entry);
        }
    }

    pub(super) fn settle(
        &mut self,
        from: Channel,
        tag: u64,
        multiple: bool,
        settlement: Settlement,
    ) -> Result<(), u16> {
        let mut held = self.unsaid_by(from);
        held.retain(|held| held.tag == tag || (multiple && (held.tag < tag || tag == 0)));
        if held.is_empty() && !(multiple && tag == 0) {
            return Err(406);
        }
        for held in held {
            match self.transaction_mut(from) {
                Some(transaction) => transaction.settle(held.tag, settlement),
                None => self.give_back(&held, settlement),
            }
        }
        Ok(())
    }

    pub(super) fn give_back(&mut self, held: &Held, settlement: Settlement) {
        self.orphans.retain(|orphan| orphan != held);
        for queue in &mut self.queues {
            let is_it = |entry: &Entry| entry.held.as_ref() == Some(held);
            let Some(place) = queue.entries.iter().position(is_it) else {
                continue;
            };
            let entry = &mut queue.entries[place];
            if matches!(settlement, Settlement::Requeue | Settlement::Left) {
                entry.held = None;
                entry.redelivered = true;
                if !queue.kind.is_quorum {
                    return;
                }
                entry.deliveries += 1;
                match queue.kind.delivery_limit {
                    Some(limit) if entry.deliveries > limit => {}
                    None if settlement == Settlement::Requeue => {
                        let entry = queue.entries.remove(place);
                        return queue.push(entry);
                    }
                    _ => return,
                }
            }
            let entry = queue.entries.remove(place);
            if settlement != Settlement::Accept {
                let grave = queue.grave();
                self.bury(grave, &entry);
            }
            return;
        }
    }

    /// After a crash: messages whose deliveries exceed the limit become dead letters.
    pub fn bury_over_limit(&mut self) {
        for place in 0..self.queues.len() {
            let queue = &mut self.queues[place];
            let Some(limit) = queue.kind.delivery_limit else {
                continue;
            };
            let grave = queue.grave();
            let is_over = |entry: &mut Entry| entry.deliveries > limit;
            let over: Vec<Entry> = queue.entries.extract_if(.., is_over).collect();
            for entry in over {
                self.bury(grave.clone(), &entry);
            }
        }
    }

    /// Publishes a dead letter.
    pub(super) fn bury(&mut self, grave: Grave, entry: &Entry) {
        if let Some(dying) = &mut self.dying {
            dying.push((grave, entry.clone()));
            return;
        }
        let input = self.input;
        let queue = grave.target.and_then(|name| self.queue_mut(&name));
        if let Some(queue) = queue {
            queue.push(Entry {
                message: entry.message,
                persistent: entry.persistent,
                priority: entry.priority,
                expires_at: None,
                redelivered: false,
                deliveries: 0,
                since: input,
                held: None,
            });
        } else if let Some(keeper) = grave.keeper.and_then(|name| self.queue_mut(&name)) {
            keeper.letters.push(entry.clone());
        }
    }

    /// Publishes the dead letters that were kept until that queue existed.
    pub(super) fn bury_kept(&mut self, target: &str) {
        for place in 0..self.queues.len() {
            let queue = &mut self.queues[place];
            if queue.kind.dead_letter_queue.as_deref() != Some(target) {
                continue;
            }
            let grave = queue.grave();
            for entry in std::mem::take(&mut queue.letters) {
                self.bury(grave.clone(), &entry);
            }
        }
    }
}
