//! Deletions of records that the store has not made.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_metadata::Key;
use crosstie_store::NewSetting;
use parking_lot::Mutex;

use super::live::deletions;

/// Entries that are gone, and whose records the store may still have. They are deleted before the next change, so that
/// no later vhost or user of the same name has them after a restart.
#[derive(Clone, Default)]
pub(crate) struct Owed(Arc<Mutex<BTreeSet<Key>>>);

/// Deletions for the store to make now.
pub(crate) struct Due {
    keys: Vec<Key>,
    owed: Owed,
}

impl Owed {
    pub(crate) fn add(&self, keys: impl IntoIterator<Item = Key>) {
        self.0.lock().extend(keys);
    }

    /// The deletions to make now. Those of vhosts that pass `is_kept` wait: the store may still have such a vhost.
    pub(crate) fn due(&self, is_kept: impl Fn(&Arc<str>) -> bool) -> Option<Due> {
        let owed = self.0.lock();
        let due = owed.iter().filter(|key| !key.vhost().is_some_and(&is_kept));
        let keys: Vec<_> = due.cloned().collect();
        let owed = self.clone();
        (!keys.is_empty()).then_some(Due { keys, owed })
    }

    /// Whether the store may have records of a former vhost of that name.
    pub(crate) fn has_vhost(&self, vhost: &Arc<str>) -> bool {
        let owed = self.0.lock();
        owed.iter().any(|key| key.vhost() == Some(vhost))
    }
}

impl Due {
    pub(crate) fn settings(&self) -> Vec<NewSetting> {
        deletions(&self.keys).collect()
    }

    /// The store has made the deletions.
    pub(crate) fn done(self) {
        let mut owed = self.owed.0.lock();
        for key in &self.keys {
            owed.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_are_due_until_they_are_made_and_those_of_a_present_vhost_wait() {
        let [vhost, other] = ["v", "w"].map(Arc::<str>::from);
        let owed = Owed::default();
        assert!(owed.due(|_| false).is_none());
        owed.add([
            Key::VhostLimits(Arc::clone(&vhost)),
            Key::Permission(Arc::clone(&other), "al".into()),
            Key::User("al".into()),
        ]);
        let is_vhost = |name: &Arc<str>| *name == vhost;
        let due = || owed.due(is_vhost).map(|due| due.keys);
        let expected = vec![
            Key::Permission(Arc::clone(&other), "al".into()),
            Key::User("al".into()),
        ];
        assert_eq!(due(), Some(expected.clone()));
        // The store could not make them.
        assert_eq!(due(), Some(expected));
        assert!(owed.has_vhost(&other));
        owed.due(is_vhost).expect("is due").done();
        assert_eq!(due(), None);
        assert!(!owed.has_vhost(&other));
        assert!(owed.has_vhost(&vhost));
        let due = owed.due(|_| false).expect("the vhost is gone");
        assert_eq!(due.settings(), [("[\"vhost-limits\",\"v\"]".into(), None)]);
        due.done();
        assert!(!owed.has_vhost(&vhost));
    }
}
