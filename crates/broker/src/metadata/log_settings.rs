//! The settings in the log of a replicated vhost, as a term begins with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_metadata::{BEGUN, Key, LogPlace, Promise, Stored};

/// The settings of a log, as far as it has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogSettings {
    pub(super) entries: BTreeMap<Arc<str>, Arc<str>>,
    /// The epochs that have set them. Known once the term begins.
    pub(crate) epochs: BTreeMap<Arc<str>, u64>,
    /// The place at which it does.
    pub(crate) place: LogPlace,
}

/// The settings that the log is to get when a term has begun.
pub(crate) struct Begin {
    /// The promises that the log then has, or will not have.
    pub(super) promises: Vec<Promise>,
    pub(super) settings: Vec<Stored>,
    /// The settings among them that the store has.
    pub(super) held: Vec<Key>,
}

impl LogSettings {
    pub(crate) fn set(&mut self, key: Arc<str>, value: Option<Arc<str>>) {
        match value {
            Some(value) => self.entries.insert(key, value),
            None => self.entries.remove(&key),
        };
    }

    /// Whether the log has ever had a setting.
    pub(crate) fn has_begun(&self) -> bool {
        self.entries.contains_key(BEGUN)
    }
}
