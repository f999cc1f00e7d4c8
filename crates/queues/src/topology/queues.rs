//! The names of queues, and the bindings that lead to each.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;

use super::Topology;
use super::exchange::BindingKeys;
use crate::{Journal, QueueKey};

/// Queues by name, and by the place in their key.
#[derive(Debug)]
pub(super) struct Queues {
    keys: HashMap<Arc<str>, QueueKey, RandomState>,
    places: Vec<Option<QueueEntry>>,
}

#[derive(Debug)]
pub(super) struct QueueEntry {
    key: QueueKey,
    pub(super) name: Arc<str>,
    pub(super) is_durable: bool,
    /// Bytes of its definition.
    bytes: usize,
    pub(super) incoming: BindingKeys,
    /// The number of the last message that passed.
    visit: u64,
}

impl Topology {
    pub(crate) fn queue(&self, name: &str) -> Option<QueueKey> {
        self.queues.keys.get(name).copied()
    }

    pub(crate) fn queue_count(&self) -> usize {
        self.queues.keys.len()
    }

    /// Adds a queue with that many bytes of arguments. Its name must be free.
    pub(crate) fn add_queue(
        &mut self,
        name: Arc<str>,
        key: QueueKey,
        is_durable: bool,
        argument_bytes: usize,
    ) {
        let bytes = name.len() + argument_bytes;
        self.bytes.held += bytes;
        self.changes += 1;
        let place = place(key);
        let places = &mut self.queues.places;
        if places.len() <= place {
            places.resize_with(place + 1, || None);
        }
        places[place] = Some(QueueEntry {
            key,
            name: name.clone(),
            is_durable,
            bytes,
            incoming: BindingKeys::default(),
            visit: 0,
        });
        self.queues.keys.insert(name, key);
    }

    /// Removes a queue; its bindings, and auto-delete exchanges without others, remain to be cleared away, unless they
    /// are few.
    pub(crate) fn remove_queue(&mut self, key: QueueKey, journal: &mut Journal) {
        if self.queues.find(key).is_none() {
            return;
        }
        if let Some(entry) = self.queues.places[place(key)].take() {
            self.queues.keys.remove(&entry.name);
            self.changes += 1;
            self.bytes.held -= entry.bytes;
            let remains_before = self.remains.len();
            self.leave_queue(entry.incoming);
            self.clear_few(remains_before, journal);
        }
    }
}

impl Queues {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            keys: HashMap::with_hasher(hasher.clone()),
            places: Vec::new(),
        }
    }

    pub(super) fn find(&self, key: QueueKey) -> Option<&QueueEntry> {
        let entry = self.places.get(place(key))?.as_ref();
        entry.filter(|entry| entry.key == key)
    }

    pub(super) fn find_mut(&mut self, key: QueueKey) -> Option<&mut QueueEntry> {
        let entry = self.places.get_mut(place(key))?.as_mut();
        entry.filter(|entry| entry.key == key)
    }

    /// Marks a queue as visited by a message; returns whether it is the first time. `None`: the queue does not exist
    /// any more.
    #[inline]
    pub(super) fn visit(&mut self, key: QueueKey, visit: u64) -> Option<bool> {
        let entry = self.find_mut(key)?;
        Some(std::mem::replace(&mut entry.visit, visit) != visit)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.places.iter().flatten().map(|entry| &entry.name)
    }
}

/// The low half of a key's number: no two existing queues share it.
fn place(key: QueueKey) -> usize {
    key.number() as u32 as usize
}
