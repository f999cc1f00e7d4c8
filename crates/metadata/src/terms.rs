//! Entries of run time of replicated vhosts: their logs have them, and a node while it owns the vhost.
//!
//! Terms begin and end at any time, also while a change waits for the store. So a state is put in the place of another
//! with the terms of that one ([`Metadata::with_terms_of`]).

use std::sync::Arc;

use crate::key::Key;
use crate::metadata::Metadata;

/// The key of the first setting of each log. Settings that a node's store has from before the vhost was replicated count
/// as long as the log has none: a removed one is not to come back with a node that returns late.
pub const BEGUN: &str = "[\"settings\"]";

/// The entries of a vhost's log that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// The configuration has them: they do not count, and the log is to forget them.
    pub overridden: Vec<Key>,
    /// They cannot be read, and stay in the log. A later version may have written them.
    pub unreadable: Vec<Arc<str>>,
}

impl Metadata {
    /// This node owns a replicated vhost, whose log has these entries. `number` is no other term's.
    pub fn begin_term<'s>(
        &mut self,
        vhost: &Arc<str>,
        number: u64,
        entries: impl IntoIterator<Item = (&'s Arc<str>, &'s Arc<str>)>,
    ) -> Begun {
        self.end_term(vhost);
        self.terms.insert(Arc::clone(vhost), number);
        let mut begun = Begun::default();
        for (text, value) in entries {
            let key = Key::parse(text).filter(|key| key.vhost() == Some(vhost));
            let value = serde_json::from_str(value).ok();
            let restored = key.as_ref().zip(value);
            let restored = restored.and_then(|(key, value)| self.restore_value(key, value).ok());
            match (restored, key) {
                (Some(true), _) => {}
                (Some(false), Some(key)) => begun.overridden.push(key),
                (None | Some(false), _) => begun.unreadable.push(Arc::clone(text)),
            }
        }
        begun
    }

    /// This node does not own the vhost any more: another one has its entries.
    pub fn end_term(&mut self, vhost: &str) {
        if self.terms.remove(vhost).is_some() {
            let empty = Self::new(crate::Layers::default());
            self.replace_entries(&empty, |of| **of == *vhost);
        }
    }

    /// This state with the terms of another, and the entries of those that are other ones here. `None` if none is.
    pub fn with_terms_of(&self, now: &Self) -> Option<Self> {
        if self.terms == now.terms {
            return None;
        }
        let mut next = self.clone();
        let is_other = |vhost: &Arc<str>| self.terms.get(vhost) != now.terms.get(vhost);
        next.replace_entries(now, is_other);
        next.terms.clone_from(&now.terms);
        Some(next)
    }

    fn replace_entries(&mut self, by: &Self, is_meant: impl Fn(&Arc<str>) -> bool) {
        self.abouts.replace(&by.abouts, &is_meant);
        self.permissions
            .replace(&by.permissions, |(vhost, _)| is_meant(vhost));
        self.topic_permissions
            .replace(&by.topic_permissions, |(vhost, ..)| is_meant(vhost));
        self.vhost_limits.replace(&by.vhost_limits, &is_meant);
        self.policies
            .replace(&by.policies, |(vhost, _)| is_meant(vhost));
        self.operator_policies
            .replace(&by.operator_policies, |(vhost, _)| is_meant(vhost));
    }
}
