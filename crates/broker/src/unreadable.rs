//! The queues of which pages cannot be read.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use crosstie_queues::Want;

/// By the names of the queues.
pub(super) struct Unreadable<W = Want> {
    queues: BTreeMap<Arc<str>, Failed<W>>,
}

struct Failed<W> {
    /// The failed pages, one of each priority at most; without those that are read again.
    wants: Vec<W>,
    why: String,
}

impl<W> Unreadable<W> {
    /// Adds a page that failed. Returns whether it is the queue's first one.
    pub(super) fn add(&mut self, queue: Arc<str>, want: W, why: &str) -> bool {
        let is_new = !self.queues.contains_key(&queue);
        let failed = self.queues.entry(queue).or_insert_with(|| Failed {
            wants: Vec::new(),
            why: String::new(),
        });
        failed.wants.push(want);
        why.clone_into(&mut failed.why);
        is_new
    }

    /// Adds a queue of which nothing is read again.
    pub(super) fn add_lost(&mut self, queue: Arc<str>, why: String) {
        let wants = Vec::new();
        self.queues.insert(queue, Failed { wants, why });
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

    /// Forgets all but these queues.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.queues.retain(|queue, _| is_there(queue));
    }

    /// The queues, and why they cannot be read.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let queues = self.queues.iter();
        queues.map(|(queue, failed)| (&**queue, &*failed.why))
    }
}

impl<W> Default for Unreadable<W> {
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
        let mut unreadable = Unreadable::<u8>::default();
        assert!(unreadable.add("q".into(), 0, "no answer"));
        // A message of a higher priority has left memory, and cannot be read either.
        assert!(!unreadable.add("q".into(), 3, "no disk"));
        assert_eq!(unreadable.iter().collect::<Vec<_>>(), [("q", "no disk")]);
        assert_eq!(unreadable.take_wants(), [0, 3]);
        assert!(!unreadable.add("q".into(), 0, "no disk"));
        unreadable.note_read("q");
        assert_eq!(unreadable.take_wants(), [0]);
        unreadable.note_read("q");
        assert_eq!(unreadable.iter().next(), None);
    }
}
