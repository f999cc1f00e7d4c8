//! The present metadata.

use std::sync::Arc;

use crosstie_metadata::{Key, Layers, Metadata, Unreadable};
use crosstie_store::{NewSetting, Setting};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::owed::Owed;
use super::seats::Seats;

/// The present metadata, which one change at a time replaces.
pub(crate) struct LiveMetadata {
    now: RwLock<Arc<Metadata>>,
    changing: Mutex<()>,
    /// Held for the whole of an import, whose change is only a part of it.
    pub(crate) importing: Mutex<()>,
    pub(crate) owed: Owed,
    pub(crate) seats: Seats,
}

impl LiveMetadata {
    pub(crate) fn new(metadata: Metadata) -> Self {
        Self {
            now: RwLock::new(Arc::new(metadata)),
            changing: Mutex::default(),
            importing: Mutex::default(),
            owed: Owed::default(),
            seats: Seats::default(),
        }
    }

    /// The metadata of a configuration with what a store has kept. Also returns the records that the store is to delete,
    /// because the configuration has those entries.
    pub(crate) fn restore(
        layers: Layers,
        settings: &[Setting],
        accepts_loss: bool,
    ) -> Result<(Metadata, Vec<NewSetting>), Unreadable> {
        let mut metadata = Metadata::new(layers);
        let mut overridden = Vec::new();
        for Setting { key, value } in settings {
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
        let deleted = deletions(overridden.iter().chain(&orphans));
        Ok((metadata, deleted.collect()))
    }

    pub(crate) fn now(&self) -> Arc<Metadata> {
        Arc::clone(&self.now.read())
    }

    /// Keeps other changes waiting.
    pub(crate) fn begin(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Replaces the metadata. The caller has begun a change.
    pub(crate) fn put(&self, metadata: Arc<Metadata>) {
        *self.now.write() = metadata;
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
