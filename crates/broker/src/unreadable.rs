//! The queues of which pages cannot be read.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use crosstie_queues::{QueueKey, Want};

/// By the names of the queues.
pub(super) struct Unreadable<K = QueueKey, W = Want> {
    queues: BTreeMap<Arc<str>, Failed<K, W>>,
}

struct Failed<K, W> {
    /// A later queue of that name has another key.
    key: K,
    /// The failed pages, one of each priority at most; without those that are read again.
    wants: Vec<W>,
    why: String,
}

impl<K, W> Unreadable<K, W> {
    /// Adds a page that failed. Returns whether it is the queue's first one.
    pub(super) fn add(&mut self, (queue, key): (Arc<str>, K), want: W, why: &str) -> bool {
        let is_new = !self.queues.contains_key(&queue);
        let failed = self.queues.entry(queue).or_insert_with(|| Failed {
            key,
            wants: Vec::new(),
            why: String::new(),
        });
        failed.wants.push(want);
        why.clone_into(&mut failed.why);
        is_new
    }

    /// Adds a queue of which nothing is read again.
    pub(super) fn add_lost(&mut self, (queue, key): (Arc<str>, K), why: String) {
        let wants = Vec::new();
        self.queues.insert(queue, Failed { key, wants, why });
    }

    /// A page of the queue was read. One of another priority may have failed.
    pub(super) fn note_read(&mut self, queue: &str) {
        let failed = self.queues.get(queue);
        if failed.is_some_and(|failed| failed.wants.is_empty()) {
            self.queues.remove(queue);
        }
    }

    /// Takes the pages that are to be read again.
    pub(super) fn take_wants(&mut self) -> Vec<W> {
        let failed = self.queues.values_mut();
        failed
            .flat_map(|failed| mem::take(&mut failed.wants))
            .collect()
    }

    /// Forgets queues that were deleted, and pages of which there is no use any more because their queue was purged.
    pub(super) fn retain(
        &mut self,
        is_there: impl Fn(&K) -> bool,
        is_awaited: impl Fn(&W) -> bool,
    ) {
        self.queues.retain(|_, failed| {
            let had = !failed.wants.is_empty();
            failed.wants.retain(&is_awaited);
            is_there(&failed.key) && !(had && failed.wants.is_empty())
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.queues.values().map(|failed| &failed.key)
    }

    /// The queues, and why they cannot be read.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let queues = self.queues.iter();
        queues.map(|(queue, failed)| (&**queue, &*failed.why))
    }
}

impl<K, W> Default for Unreadable<K, W> {
    fn default() -> Self {
        let queues = BTreeMap::new();
        Self { queues }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_page_is_read_again() {
        let mut unreadable = Unreadable::<u8, u8>::default();
        assert!(unreadable.add(("q".into(), 1), 0, "no answer"));
        // A message of a higher priority has left memory, and cannot be read either.
        assert!(!unreadable.add(("q".into(), 1), 3, "no disk"));
        assert_eq!(unreadable.iter().collect::<Vec<_>>(), [("q", "no disk")]);
        assert_eq!(unreadable.take_wants(), [0, 3]);
        assert!(!unreadable.add(("q".into(), 1), 0, "no disk"));
        unreadable.note_read("q");
        assert_eq!(unreadable.take_wants(), [0]);
        unreadable.note_read("q");
        assert!(unreadable.is_empty());
    }

    #[test]
    fn deleted_and_purged_queues_are_forgotten() {
        let mut unreadable = Unreadable::<u8, u8>::default();
        unreadable.add(("deleted".into(), 1), 0, "no disk");
        unreadable.add_lost(("declared again".into(), 2), "damaged".into());
        unreadable.add_lost(("damaged".into(), 3), "damaged".into());
        unreadable.add(("purged".into(), 4), 7, "no disk");
        unreadable.add(("failing".into(), 5), 8, "no disk");
        unreadable.add(("failing".into(), 5), 7, "no disk");
        unreadable.retain(|key| *key > 2, |want| *want != 7);
        let left: Vec<_> = unreadable.iter().map(|(queue, _)| queue).collect();
        assert_eq!(left, ["damaged", "failing"]);
        assert_eq!(unreadable.take_wants(), [8]);
        // While it is read again, it is still an alarm.
        unreadable.retain(|_| true, |_| false);
        assert_eq!(unreadable.iter().count(), 2);
    }
}
