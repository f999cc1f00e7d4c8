//! The messages that topics of MQTT retain, by routing key. [`super::Queues`] has their hidden queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::entry::Entry;
use crate::shrink::shrink;
use crate::{MessageContent, Position, QueueKey, Time};

/// The bounds of a vhost's retained messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainedMax {
    pub messages: usize,
    /// With their routing keys and properties.
    pub bytes: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Retained {
    /// The hidden queue, once there was a message. Its messages are here, except those of a restart that are not read yet.
    pub(super) queue: Option<QueueKey>,
    /// By routing key, the last one last. None is empty.
    pub(super) topics: BTreeMap<Arc<str>, VecDeque<Entry>>,
    /// Number of the last messages, without removals, and their bytes.
    pub(super) held: (usize, usize),
    /// Places of messages that the store has once it has committed the position.
    pub(super) settling: VecDeque<(Position, Arc<str>, i64)>,
    pub(super) expiring: BTreeSet<(Time, i64, Arc<str>)>,
    /// Number of messages that had no room.
    pub(super) refused: u64,
}

/// Bytes of a message beside its contents.
const MESSAGE_BYTES: usize = 160;

impl Retained {
    pub(super) fn has_room(&self, content: &MessageContent, max: RetainedMax) -> bool {
        let known = self.topics.get(content.routing_key());
        let before = known.map_or((0, 0), last);
        let messages = self.held.0 - before.0 + 1;
        let bytes = self.held.1 - before.1 + bytes_of(content);
        is_removal(content) || (messages <= max.messages && bytes <= max.bytes)
    }

    /// Adds a message behind the others of its topic, which it returns.
    pub(super) fn add(&mut self, entry: Entry) -> Arc<str> {
        let key = entry.content.routing_key();
        let known = self.topics.get_key_value(key);
        let topic = known.map_or_else(|| Arc::from(key), |(topic, _)| Arc::clone(topic));
        if let Some(at) = entry.expires_at {
            self.expiring.insert((at, entry.place, Arc::clone(&topic)));
        }
        self.change(&topic, |entries| entries.push_back(entry));
        topic
    }

    /// The store has the message at a place: takes out those that are gone by that.
    pub(super) fn settle(&mut self, topic: &Arc<str>, place: i64) -> Vec<Entry> {
        self.change(topic, |entries| {
            let Ok(at) = entries.binary_search_by_key(&place, |entry| entry.place) else {
                // It was withdrawn.
                return Vec::new();
            };
            let gone = at + usize::from(is_removal(&entries[at].content));
            entries.drain(..gone).collect()
        })
    }

    pub(super) fn end_expiry(&mut self, entry: &Entry) {
        if let Some(at) = entry.expires_at {
            let topic = entry.content.routing_key().into();
            self.expiring.remove(&(at, entry.place, topic));
        }
    }

    /// Changes the messages of a topic.
    pub(super) fn change<T>(
        &mut self,
        topic: &Arc<str>,
        change: impl FnOnce(&mut VecDeque<Entry>) -> T,
    ) -> T {
        let entries = self.topics.entry(Arc::clone(topic));
        let entries = entries.or_insert_with(|| VecDeque::with_capacity(1));
        let before = last(entries);
        let changed = change(entries);
        let after = last(entries);
        self.held.0 = self.held.0 - before.0 + after.0;
        self.held.1 = self.held.1 - before.1 + after.1;
        match entries.len() {
            0 => drop(self.topics.remove(topic)),
            // Most topics have one. Those that waited for a commit with it may have been many.
            1 => entries.shrink_to_fit(),
            _ => shrink(entries),
        }
        changed
    }

    /// Those in memory.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.topics.values().flatten()
    }

    /// Panics unless the sums are those of the messages.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let lasts = self.topics.values().map(last);
        let held = lasts.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        assert_eq!(self.held, held);
        for entries in self.topics.values() {
            assert!(!entries.is_empty());
            assert!(entries.iter().is_sorted_by(|a, b| a.place < b.place));
            assert!(entries.len() > 1 || entries.capacity() == 1);
        }
        let expiring = self.entries().filter(|entry| entry.expires_at.is_some());
        assert_eq!(self.expiring.len(), expiring.count());
    }
}

/// The number and the bytes that the last of these adds.
fn last(entries: &VecDeque<Entry>) -> (usize, usize) {
    let last = entries.back().filter(|last| !is_removal(&last.content));
    last.map_or((0, 0), |last| (1, bytes_of(&last.content)))
}

pub(super) fn is_removal(content: &MessageContent) -> bool {
    content.body().is_empty()
}

fn bytes_of(content: &MessageContent) -> usize {
    content.memory_bytes() + MESSAGE_BYTES
}
