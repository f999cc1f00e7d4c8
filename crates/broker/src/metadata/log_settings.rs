//! The settings in the log of a replicated vhost, as a term begins with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_metadata::{BEGUN, Key, Stored};

/// The settings of a log, as far as it has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogSettings(pub(super) BTreeMap<Arc<str>, Arc<str>>);

/// The settings that the log is to get when a term has begun.
pub(crate) struct Begin {
    pub(super) settings: Vec<Stored>,
    /// The settings among them that the store has.
    pub(super) held: Vec<Key>,
}

impl LogSettings {
    pub(crate) fn set(&mut self, key: Arc<str>, value: Option<Arc<str>>) {
        match value {
            Some(value) => self.0.insert(key, value),
            None => self.0.remove(&key),
        };
    }

    /// Whether the log has ever had a setting.
    pub(crate) fn has_begun(&self) -> bool {
        self.0.contains_key(BEGUN)
    }
}
