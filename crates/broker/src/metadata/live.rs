//! The present metadata.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_metadata::{Key, Layers, Metadata, Promise, Unreadable};
use crosstie_store::{NewSetting, Setting};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::owed::Owed;
use super::seats::Seats;

/// Settings of a store, by vhost.
pub(crate) type Held = BTreeMap<Arc<str>, Vec<Setting>>;

/// By the entries that they are about.
pub(crate) type Promises = BTreeMap<Key, Promise>;

/// Settings and promises in a store that are for the logs of replicated vhosts.
#[derive(Debug, Default)]
pub(crate) struct HeldSettings {
    /// From before the vhosts were replicated.
    settings: Held,
    promises: Promises,
}

/// The settings of a store, restored.
pub(crate) struct Restored {
    pub(crate) metadata: Metadata,
    pub(crate) held: HeldSettings,
    /// The records that the store is to delete, because the configuration has those entries.
    pub(crate) deleted: Vec<NewSetting>,
}

/// The present metadata, which one change at a time replaces.
pub(crate) struct LiveMetadata {
    now: RwLock<Arc<Metadata>>,
    changing: Mutex<()>,
    /// Held while the users are made of the metadata and put into effect, so that the last ones are the present ones.
    pub(crate) following: Mutex<()>,
    /// Settings of the store from before their vhosts were replicated, by vhost.
    held: Mutex<Held>,
    /// Changes that the store has and that logs have not acknowledged.
    promises: Mutex<Promises>,
    terms: AtomicU64,
    /// Held for the whole of an import, whose change is only a part of it.
    pub(crate) importing: Mutex<()>,
    pub(crate) owed: Owed,
    pub(crate) seats: Seats,
}

impl LiveMetadata {
    pub(crate) fn new(metadata: Metadata, held: HeldSettings) -> Self {
        Self {
            now: RwLock::new(Arc::new(metadata)),
            changing: Mutex::default(),
            following: Mutex::default(),
            held: Mutex::new(held.settings),
            promises: Mutex::new(held.promises),
            terms: AtomicU64::new(0),
            importing: Mutex::default(),
            owed: Owed::default(),
            seats: Seats::default(),
        }
    }

    /// The metadata of a configuration with what a store has kept.
    pub(crate) fn restore(
        layers: Layers,
        settings: &[Setting],
        accepts_loss: bool,
    ) -> Result<Restored, Unreadable> {
        let mut metadata = Metadata::new(layers);
        let mut overridden = Vec::new();
        let mut held = HeldSettings::default();
        let mut groundless = Vec::new();
        for setting @ Setting { key, value } in settings {
            if let Some(promise) = Promise::parse(key, value) {
                let vhost = promise.key().vhost();
                match vhost.is_some_and(|vhost| metadata.is_replicated(vhost)) {
                    true => drop(held.promises.insert(promise.key().clone(), promise)),
                    // There is no log any more.
                    false => groundless.push(promise.owed_key()),
                }
                continue;
            }
            let parsed = Key::parse(key);
            let vhost = parsed.as_ref().and_then(Key::vhost);
            if let Some(vhost) = vhost.filter(|vhost| metadata.is_replicated(vhost)) {
                let of_vhost = held.settings.entry(Arc::clone(vhost)).or_default();
                of_vhost.push(setting.clone());
                continue;
            }
            match metadata.restore(key, value) {
                Ok(None) => {}
                Ok(Some(key)) => overridden.push(key),
                Err(error) if accepts_loss => {
                    tracing::error!("continuing without an entry of the store: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        let orphans = metadata.forget_orphans();
        report_overridden(&overridden);
        let deleted = deletions(overridden.iter().chain(&orphans).chain(&groundless));
        Ok(Restored {
            deleted: deleted.collect(),
            metadata,
            held,
        })
    }

    pub(crate) fn now(&self) -> Arc<Metadata> {
        Arc::clone(&self.now.read())
    }

    /// Keeps other changes waiting.
    pub(crate) fn begin(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Replaces the metadata, except for terms that have begun or ended since [`Self::now`]. The caller has begun a change.
    pub(crate) fn put(&self, metadata: Metadata) {
        let mut now = self.now.write();
        let metadata = metadata.with_terms_of(&now).unwrap_or(metadata);
        *now = Arc::new(metadata);
    }

    /// Changes the terms, also while a change waits for the store.
    pub(crate) fn update<R>(&self, update: impl FnOnce(&mut Metadata) -> R) -> R {
        let mut now = self.now.write();
        let mut next = Metadata::clone(&now);
        let updated = update(&mut next);
        *now = Arc::new(next);
        updated
    }

    /// A number that no term of this process had.
    pub(crate) fn next_term(&self) -> u64 {
        self.terms.fetch_add(1, Ordering::Relaxed)
    }

    /// The settings of a replicated vhost that the store has.
    pub(crate) fn held_of(&self, vhost: &str) -> Vec<Setting> {
        self.held.lock().get(vhost).cloned().unwrap_or_default()
    }

    /// The promises to the log of a vhost.
    pub(crate) fn promises_to(&self, vhost: &str) -> Promises {
        let promises = self.promises.lock();
        let is_to_it = |key: &Key| key.vhost().is_some_and(|to| **to == *vhost);
        let found = promises.iter().filter(|(key, _)| is_to_it(key));
        found.map(|(key, one)| (key.clone(), one.clone())).collect()
    }

    /// Adds promises that the store has. Each replaces an earlier one about the same entry.
    pub(crate) fn promise<'p>(&self, added: impl Iterator<Item = &'p Promise>) {
        let added = added.map(|promise| (promise.key().clone(), promise.clone()));
        self.promises.lock().extend(added);
    }

    /// A log has what was promised, or will not have it. Later promises about the same entries stay.
    pub(crate) fn end_promises(&self, ended: &[Promise]) {
        let mut promises = self.promises.lock();
        for promise in ended {
            if promises.get(promise.key()) == Some(promise) {
                promises.remove(promise.key());
                self.owed.add([promise.owed_key()]);
            }
        }
    }

    pub(crate) fn forget_held(&self, vhost: &str) {
        self.held.lock().remove(vhost);
    }
}

/// Warns of entries of run time that the configuration has too.
pub(crate) fn report_overridden(overridden: &[Key]) {
    for key in overridden {
        tracing::warn!(
            "{key} was changed at run time, and the configuration has it now: the configuration counts, the change is \
             deleted"
        );
    }
}

/// The records that delete entries.
pub(crate) fn deletions<'k>(
    keys: impl IntoIterator<Item = &'k Key>,
) -> impl Iterator<Item = NewSetting> {
    keys.into_iter().map(|key| (key.text().into(), None))
}
