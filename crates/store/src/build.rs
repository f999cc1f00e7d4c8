//! Makes a new store of what another one, a backup or a file of version 0.1.0 has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_queues::{MessageContent, Position, Record};

use crate::archive;
use crate::earlier;
use crate::error::{StoreError, StoreErrorKind};
use crate::items;
use crate::opening::{create_in, log_config};
use crate::place::{self, Draft, Found, Lock};
use crate::segments::contents::Item;
use crate::segments::draft;
use crate::segments::entity::Entity;
use crate::segments::log::{Fault, Log, Purpose};
use crate::segments::message;
use crate::segments::record::{QueueKey, record_bytes};
use crate::{Batch, Restored, Store, StoreConfig};

/// Approximate bytes of a commit.
const COMMIT_BYTES: u64 = 4 << 20;

/// Puts a store in the place of the file at a path. The file is kept beside it. Returns the loss that was accepted, a
/// clause each.
pub(crate) fn replace_file(
    path: &Path,
    found: Found,
    accepts_loss: bool,
) -> Result<Vec<String>, StoreError> {
    let _lock = Lock::take(path)?;
    if place::find(path)? != found {
        // By another process, which has no part in the names that this one claims.
        return Err(StoreError::new(path, StoreErrorKind::InUse));
    }
    if found == Found::Backup {
        let draft = Draft(place::make_draft(path)?);
        let _lock = Lock::take(&draft.0)?;
        restore_into(&draft.0, path, path)?;
        place::replace_by_draft(&draft.0, path)?;
        return Ok(Vec::new());
    }
    // A program of version 0.1.0 is refused by this lock.
    let earlier::Read {
        restored,
        damaged,
        file,
    } = earlier::read(path, accepts_loss)?;
    let draft = Draft(place::make_draft(path)?);
    write_into(&draft.0, restored)?;
    // Now that the new store is complete, its log is copied into it. It stays locked until it has its other name.
    file.copy_log()
        .map_err(|error| StoreError::sqlite(path, "closing it", error))?;
    let former = place::replace_by_draft(&draft.0, path)?;
    drop(file);
    place::forget_empty_log(&former);
    Ok(damaged)
}

/// Writes a backup's contents into an empty directory.
pub(crate) fn restore_into(draft: &Path, path: &Path, backup: &Path) -> Result<(), StoreError> {
    let mut copy = Copy::begin(draft, path, archive::end(backup)?)?;
    archive::read(backup, &mut |queue, place, item| {
        copy.add(queue, place, item)
    })?;
    copy.end()
}

/// Writes records into an empty directory.
pub(crate) fn write_into(draft: &Path, restored: Vec<Restored>) -> Result<(), StoreError> {
    drop(create_in(
        draft,
        draft,
        log_config(&StoreConfig::new(draft)),
        1,
    )?);
    let (mut store, _) = Store::open(StoreConfig::new(draft))?;
    let mut batch = Batch::default();
    for Restored { vhost, record } in restored {
        batch.push(&vhost, vec![record], Position::default());
        if batch.bytes() as u64 >= COMMIT_BYTES {
            store.commit(&batch)?;
            batch = Batch::default();
        }
    }
    store.commit(&batch)
}

/// A new store that takes items as they are: with their vhosts' numbers and their places.
pub(crate) struct Copy {
    log: Log,
    path: PathBuf,
    /// Of the source's last commit: the store's clock does not go back by a copy.
    time_ms: u64,
    draft: Option<draft::Draft>,
    /// Contents of the present commit that several messages share.
    shared: HashMap<*const MessageContent, (Arc<MessageContent>, u32)>,
}

impl Copy {
    /// Begins in an empty directory. No place of an entity may be at or after `end_sequence`. `time_ms` is that of the
    /// source's last commit.
    pub(crate) fn begin(
        directory: &Path,
        path: &Path,
        (end_sequence, time_ms): (u64, u64),
    ) -> Result<Self, StoreError> {
        let config = log_config(&StoreConfig::new(directory));
        Ok(Self {
            log: create_in(directory, path, config, end_sequence.max(1))?,
            path: path.to_owned(),
            time_ms,
            draft: None,
            shared: HashMap::new(),
        })
    }

    /// Adds an item. One that is not as it was written is left out.
    pub(crate) fn add(
        &mut self,
        queue: QueueKey,
        place: i64,
        item: &Item,
    ) -> Result<(), StoreError> {
        self.try_add(queue, place, item)
            .map_err(|fault| StoreError::fault(&self.path, fault))
    }

    /// Commits the rest.
    pub(crate) fn end(mut self) -> Result<(), StoreError> {
        self.commit()
            .map_err(|fault| StoreError::fault(&self.path, fault))
    }

    fn try_add(&mut self, queue: QueueKey, place: i64, item: &Item) -> Result<(), Fault> {
        let bytes_max = match item {
            Item::Message(Some(message)) => record_bytes(message::bytes_max(message)),
            Item::Entity(Some(Entity::Setting { key, value })) => {
                record_bytes(key.len() + value.len() + 32)
            }
            Item::Entity(Some(Entity::Declared {
                record: Record::Setting { key, value },
                ..
            })) => {
                let value_bytes = value.as_ref().map_or(0, |value| value.len());
                record_bytes(key.len() + value_bytes + 32)
            }
            Item::Entity(Some(_)) => 4096,
            Item::Message(None) | Item::Entity(None) => return Ok(()),
        };
        let is_full = self.draft.as_ref();
        if is_full.is_some_and(|draft| draft.len() as u64 + bytes_max > COMMIT_BYTES) {
            self.commit()?;
        }
        let draft = match &mut self.draft {
            Some(draft) => draft,
            empty => {
                let draft = self
                    .log
                    .begin(bytes_max.max(COMMIT_BYTES), Purpose::Adding)?;
                empty.insert(draft)
            }
        };
        items::write(draft, &mut self.shared, (queue, place), item);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Fault> {
        self.shared.clear();
        match self.draft.take() {
            Some(draft) => self.log.commit(draft, self.time_ms),
            None => Ok(()),
        }
    }
}
