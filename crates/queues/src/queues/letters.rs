//! Dead letters that a queue keeps until their targets have accepted them (`x-dead-letter-strategy: at-least-once`).
//!
//! ```text
//! the queue ─dies─▶ a hidden queue ─▶ to try (at most 32) ─▶ each target ─▶ all accepted: gone
//!                    (may be deep)        ▲                     │
//!                                         └───── refused ◀──────┘ no route, or a target is full
//! ```
//!
//! The hidden queue is durable as any other: its records follow the target's in the journal, so that one of both always
//! exists. Letters stay in their order: once a target has refused one, later ones wait until the next pass, which begins
//! with the first.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::hidden::arguments;
use super::role::{Kept, Letter, Letters, Role};
use super::{Entry, Queue, QueueTimer, Queues};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::{MessageContent, QueueKey, Time};

/// Letters in memory whose targets have not accepted them, as RabbitMQ's `dead_letter_worker_consumer_prefetch`.
const LETTERS_MAX: usize = 32;

/// Bytes of their bodies from which on no other is tried.
const BYTES_MAX: usize = 1 << 20;

/// The first attempts after a refusal follow each other sooner, by this divisor.
const SOONER: u64 = 16;

impl Queues {
    /// Keeps a dead letter of a queue. Returns the hidden queue; `None` if the queue itself is gone.
    pub(crate) fn keep_letter(
        &mut self,
        now: Time,
        source: QueueKey,
        content: Arc<MessageContent>,
        ledger: &mut Ledger,
    ) -> Option<QueueKey> {
        let key = self.letters_of(now, source, ledger)?;
        let kept = self.queues.find_mut(source)?.role.kept_mut()?;
        kept.letters += 1;
        kept.body_bytes += content.body().len() as u64;
        self.letters += 1;
        let queue = self.queues.find_mut(key)?;
        queue.append(content, None, ledger);
        if queue.is_deep() || self.are_many(ledger) {
            self.deepen(key, ledger);
        }
        Some(key)
    }

    /// The hidden queue of a queue, created with its first letter.
    fn letters_of(&mut self, now: Time, source: QueueKey, ledger: &mut Ledger) -> Option<QueueKey> {
        let queue = self.queues.find(source)?;
        let (id, kept) = (queue.id?, queue.role.kept()?);
        if let Some(key) = kept.queue {
            return Some(key);
        }
        let role = Role::Letters(Box::new(Letters::of(source)));
        let name = (Role::letters_name(id), arguments());
        let key = self.add_hidden(now, name, true, role, ledger);
        self.queues.find_mut(source)?.role.kept_mut()?.queue = Some(key);
        Some(key)
    }

    /// Gives a restored hidden queue to the queue whose letters it has. Returns whether there is such a queue.
    pub(super) fn adopt_letters(&mut self, key: QueueKey, source: QueueKey) -> bool {
        let Some(queue) = self.queues.find_mut(key) else {
            return false;
        };
        queue.role = Role::Letters(Box::new(Letters::of(source)));
        let found = Kept {
            queue: Some(key),
            letters: queue.messages.len(),
            body_bytes: queue.body_bytes,
        };
        let source = self.queues.find_mut(source);
        // A policy that was withdrawn may have left them.
        let Some(kept) = source.and_then(|source| source.role.keep()) else {
            return false;
        };
        *kept = found;
        self.letters += found.letters;
        true
    }

    /// Begins a pass over the letters of a hidden queue, unless the outcome would be the same as that of the last one.
    pub(crate) fn begin_pass(&mut self, key: QueueKey, changes: u64) -> bool {
        let queue = self.queues.find(key);
        let Some(letters) = queue.and_then(|queue| queue.role.letters()) else {
            return false;
        };
        let mut refusing = letters.refusing.iter();
        let is_as_before = letters.changes == changes
            && refusing.all(|key| self.queues.find(*key).is_some_and(|q| q.rejects(0)));
        let queue = self.queues.find_mut(key);
        let Some(letters) = queue.and_then(|queue| queue.role.letters_mut()) else {
            return false;
        };
        if !is_as_before {
            letters.begin_pass(changes);
        }
        !is_as_before
    }

    /// Takes the next letter to try. If the topology has changed since the last pass, another one begins.
    pub(crate) fn next_letter(&mut self, key: QueueKey, changes: u64) -> Option<Letter> {
        let queue = self.queues.find_mut(key)?;
        let letters = queue.role.letters_mut()?;
        if letters.changes != changes {
            letters.begin_pass(changes);
        }
        if let Some(letter) = letters.to_try.pop_front() {
            return Some(letter);
        }
        if letters.refused.len() >= LETTERS_MAX || letters.body_bytes >= BYTES_MAX {
            return None;
        }
        let entry = queue.pop()?;
        queue.unacknowledged += 1;
        let letters = queue.role.letters_mut()?;
        letters.body_bytes += entry.content.body().len();
        Some(Letter {
            entry,
            accepted: Vec::new(),
            is_delayed: false,
        })
    }

    /// The queues that have refused a letter in this pass; [`Self::put_refusing`] puts them back.
    pub(crate) fn take_refusing(&mut self, key: QueueKey) -> BTreeSet<QueueKey> {
        let queue = self.queues.find_mut(key);
        let letters = queue.and_then(|queue| queue.role.letters_mut());
        letters.map_or_else(BTreeSet::new, |letters| {
            std::mem::take(&mut letters.refusing)
        })
    }

    pub(crate) fn put_refusing(&mut self, key: QueueKey, refusing: BTreeSet<QueueKey>) {
        let queue = self.queues.find_mut(key);
        if let Some(letters) = queue.and_then(|queue| queue.role.letters_mut()) {
            letters.refusing = refusing;
        }
    }

    /// Puts a letter back that not all of its targets have accepted.
    pub(crate) fn put_refused(&mut self, key: QueueKey, letter: Letter, ledger: &mut Ledger) {
        let queue = self.queues.find_mut(key);
        match queue.and_then(|queue| queue.role.letters_mut()) {
            Some(letters) => letters.refused.push_back(letter),
            None => ledger.release(&letter.entry),
        }
    }

    /// Forgets a letter that all of its targets have accepted.
    pub(crate) fn forget_letter(
        &mut self,
        key: QueueKey,
        letter: &Letter,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        let body_bytes = letter.entry.content.body().len();
        let mut source = None;
        if let Some(queue) = self.queues.find_mut(key) {
            queue.unacknowledged -= 1;
            if let Some(letters) = queue.role.letters_mut() {
                letters.body_bytes -= body_bytes;
                letters.has_progress = true;
                source = Some(letters.source);
            }
        }
        self.forget(key, &letter.entry, ledger, confirms);
        let source = source.and_then(|key| self.queues.find_mut(key));
        if let Some(kept) = source.and_then(|source| source.role.kept_mut()) {
            kept.letters -= 1;
            // Of those that a restart left to the disk, the sum may be an estimate.
            kept.body_bytes = kept.body_bytes.saturating_sub(body_bytes as u64);
            self.letters -= 1;
        }
    }

    /// Ends an attempt: sets a timer for the next pass if any letter was refused, and requests the next page.
    pub(crate) fn rest_letters(&mut self, now: Time, key: QueueKey, retry_ms: u64) {
        self.want_page(key);
        let queue = self.queues.find_mut(key);
        let Some(letters) = queue.and_then(|queue| queue.role.letters_mut()) else {
            return;
        };
        if letters.refused.is_empty() {
            letters.retry_at = None;
            letters.wait_ms = 0;
            self.refused.remove(&key);
            return;
        }
        if letters.retry_at.is_some() {
            return;
        }
        let soonest_ms = retry_ms / SOONER;
        letters.wait_ms = match std::mem::take(&mut letters.has_progress) {
            true => soonest_ms,
            false => (2 * letters.wait_ms).clamp(soonest_ms, retry_ms),
        };
        let at = Time(now.0.saturating_add(letters.wait_ms.max(1)));
        letters.retry_at = Some(at);
        self.refused.insert(key);
        self.set_timer(at, QueueTimer::Letters(key));
    }

    /// Whether a hidden queue has dead letters.
    pub(crate) fn has_letters(&self, key: QueueKey) -> bool {
        let queue = self.queues.find(key);
        queue.is_some_and(|queue| queue.role.letters().is_some())
    }

    /// The hidden queues with letters that were refused.
    pub(crate) fn refused(&self) -> &BTreeSet<QueueKey> {
        &self.refused
    }

    /// The name of the queue whose letters a hidden queue has.
    pub(crate) fn source_of_letters(&self, key: QueueKey) -> Option<Arc<str>> {
        let source = self.queues.find(key)?.role.letters()?.source;
        Some(self.queues.find(source)?.name.clone())
    }

    /// Number of dead letters that are kept.
    pub(crate) fn letters(&self) -> usize {
        self.letters
    }

    /// Whether the timer of a hidden queue is the present one; it is taken then.
    pub(super) fn take_retry(&mut self, key: QueueKey, at: Time) -> bool {
        let queue = self.queues.find_mut(key);
        let letters = queue.and_then(|queue| queue.role.letters_mut());
        letters.is_some_and(|letters| letters.retry_at.take_if(|due| *due == at).is_some())
    }

    /// Removes the letters of a removed queue: they are gone with it.
    pub(super) fn end_letters(&mut self, kept: Kept, ledger: &mut Ledger) {
        self.letters -= kept.letters;
        if let Some(key) = kept.queue {
            self.refused.remove(&key);
            self.remove(key, ledger);
        }
    }
}

impl Queue {
    /// Adds a message to a hidden queue, and records it if the queue is durable.
    pub(super) fn append(
        &mut self,
        content: Arc<MessageContent>,
        due: Option<Time>,
        ledger: &mut Ledger,
    ) {
        let entry = self.new_entry(content, due, ledger);
        self.push(entry, ledger);
    }

    /// Makes the next entry of a hidden queue, and records it if the queue is durable.
    pub(super) fn new_entry(
        &mut self,
        content: Arc<MessageContent>,
        due: Option<Time>,
        ledger: &mut Ledger,
    ) -> Entry {
        let entry = Entry {
            content,
            place: self.take_place(0),
            expires_at: due,
            deliveries: 0,
            level: 0,
            is_redelivered: false,
            is_stored: self.id.is_some(),
            is_spilled: false,
        };
        if let Some(id) = self.id {
            ledger.record(entry.record(id));
        }
        ledger.account(&entry);
        entry
    }
}
