//! Counts of recent events by key, in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// Counts that expire. Time is in milliseconds of any monotonic clock.
#[derive(Debug)]
pub(crate) struct Recent<K> {
    /// The counts since `turned_at_ms`, and those of the period before. A key in neither is forgotten.
    young: HashMap<K, u32>,
    old: HashMap<K, u32>,
    turned_at_ms: u64,
}

/// A count is kept for at least this long without a new event, and for at most twice as long.
const REMEMBERED_MS: u64 = 60_000;
/// Maximum number of keys in each of the two tables. Beyond it the older table is dropped.
const KEYS_MAX: usize = 10_000;

impl<K: Copy + Eq + Hash> Recent<K> {
    pub(crate) fn new() -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            turned_at_ms: 0,
        }
    }

    pub(crate) fn count(&mut self, now_ms: u64, key: K) {
        self.forget(now_ms);
        let before = self.find(key);
        if self.young.len() >= KEYS_MAX && !self.young.contains_key(&key) {
            self.turn(now_ms);
        }
        self.young.insert(key, before.saturating_add(1));
    }

    pub(crate) fn find(&self, key: K) -> u32 {
        let found = self.young.get(&key).or_else(|| self.old.get(&key));
        found.copied().unwrap_or(0)
    }

    /// Number of remembered keys.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub(crate) fn forget(&mut self, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(self.turned_at_ms);
        if age_ms >= 2 * REMEMBERED_MS {
            self.young.clear();
        }
        if age_ms >= REMEMBERED_MS {
            self.turn(now_ms);
        }
    }

    fn turn(&mut self, now_ms: u64) {
        self.old = mem::take(&mut self.young);
        self.turned_at_ms = now_ms;
    }
}
