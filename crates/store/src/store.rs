//! The store: one file, records in and out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_queues::{Page, Record, Want};
use rusqlite::Connection;

use crate::claim::Claim;
use crate::error::StoreError;
use crate::file::StoreFile;
use crate::form::{self, MESSAGES};
use crate::room::{PAGE_BYTES, Reserve, ReserveState, Room, room};
use crate::write::Writer;
use crate::{Backup, Batch, backup, page, read, rows};

/// Which file, and how large it may become.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    pub path: PathBuf,
    /// The file's size, its write-ahead log apart; a commit beyond it fails as on a full disk.
    pub bytes_max: Option<u64>,
}

/// A record that a store has kept, for [`crosstie_queues::Vhost::restore`].
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    pub vhost: Arc<str>,
    pub record: Record,
}

/// An open store. No other process can open the file meanwhile.
pub struct Store {
    config: StoreConfig,
    /// None before the first record.
    file: Option<StoreFile>,
    /// The reservation of its name, if the file does not exist.
    claim: Option<Claim>,
    /// Why there can be none.
    obstacle: Option<StoreError>,
    /// Beside the file.
    reserve: Option<Reserve>,
    vhosts: HashMap<Arc<str>, i64>,
}

/// Commits a batch, as [`Store::commit`] does.
pub(crate) type Commit<'a> = dyn FnMut(&Batch) -> Result<(), StoreError> + 'a;

/// Maximum number of messages removed per commit while the disk is full: that takes little space.
const DEPARTURES_MAX: usize = 500;

/// SQLite's own bound.
const PAGES_MAX: u64 = 0xffff_fffe;

impl Store {
    /// Opens the file, if it exists, and reads its contents: exchanges, queues, bindings, and then the messages of each
    /// queue in their order.
    pub fn open(config: StoreConfig) -> Result<(Self, Vec<Restored>), StoreError> {
        Self::open_deep(config, usize::MAX)
    }

    /// The same, but of queues with more messages than `loaded_max` and without priorities it reads only the extent
    /// ([`Record::Kept`]): their vhost requests them page by page.
    pub fn open_deep(
        mut config: StoreConfig,
        loaded_max: usize,
    ) -> Result<(Self, Vec<Restored>), StoreError> {
        // SQLite knows names that are no file's, and the working directory may change.
        config.path = std::path::absolute(&config.path)
            .map_err(|error| StoreError::io(&config.path, "finding it", error))?;
        let mut store = Self {
            config,
            file: None,
            claim: None,
            obstacle: None,
            reserve: None,
            vhosts: HashMap::new(),
        };
        let Some(file) = StoreFile::open(&store.config.path, &MESSAGES)? else {
            match Claim::take(&store.config.path) {
                Ok(claim) => store.claim = Some(claim),
                Err(error) => store.obstacle = Some(error),
            }
            return Ok((store, Vec::new()));
        };
        let path = &store.config.path;
        let restored = read::read(&file.connection, path, loaded_max)?;
        store.take_file(file);
        Ok((store, restored))
    }

    /// Reads the first messages of a page, about that many bytes.
    pub(crate) fn read_page(
        &self,
        vhost: &str,
        want: &Want,
        bytes_max: usize,
    ) -> Result<Page, StoreError> {
        let Some(file) = &self.file else {
            return Ok(Page {
                messages: Vec::new(),
                upto: want.to,
            });
        };
        let connection = &file.connection;
        let read = || {
            let number = page::number(connection, vhost)?;
            page::read(connection, number, want, bytes_max)
        };
        read().map_err(|error| rows::error(&self.config.path, error))
    }

    /// The vhosts run from now on: drops the table that a store has only of vhosts that have ended in
    /// good order.
    pub fn wake(&mut self) -> Result<(), StoreError> {
        match self.try_wake() {
            Err(error) if error.is_full() => {}
            other => return other,
        }
        // The file is full: the reserve is used for this write, too.
        let pages_max = self.pages_max();
        if let (Some(file), Some(reserve)) = (&self.file, &mut self.reserve) {
            reserve.give_up();
            copy_log(&file.connection);
            bound_pages(&file.connection, pages_max);
        }
        let woken = self.try_wake();
        self.restore_reserve();
        woken
    }

    fn try_wake(&self) -> Result<(), StoreError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let connection = &file.connection;
        let woken = page::forget_spilled(connection).and_then(|()| form::wake(connection));
        woken.map_err(|error| StoreError::sqlite(&self.config.path, "writing it", error))
    }

    /// Writes a batch in one transaction; when this returns it is on the disk. Of a batch that
    /// fails nothing is.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            if self.claim.is_none() {
                self.claim = Some(Claim::take(&self.config.path)?);
                self.obstacle = None;
            }
            let file = StoreFile::create(&self.config.path, &MESSAGES)?;
            self.take_file(file);
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        commit(&file.connection, &mut self.vhosts, batch, &self.config.path)
    }

    /// The same. If there is no room, removals are written first, by means of the reserve: that makes room, in which
    /// the rest is tried.
    pub(crate) fn commit_or_make_room(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let failed = match self.commit(batch) {
            Err(error) if error.is_full() => error,
            other => return other,
        };
        let (Some(file), Some(reserve)) = (&self.file, &mut self.reserve) else {
            return Err(failed);
        };
        if batch.departures().next().is_none() {
            // The reserve is not for more messages. The log may have room when it is copied.
            copy_log(&file.connection);
            return self.commit(batch);
        }
        reserve.give_up();
        copy_log(&file.connection);
        bound_pages(&file.connection, self.pages_max());
        let written = write_departures(&file.connection, batch);
        copy_log(&file.connection);
        self.restore_reserve();
        written.map_err(|error| StoreError::sqlite(&self.config.path, "writing it", error))?;
        self.commit(batch)
    }

    /// The space on the file system, if it is reported.
    pub fn room(&self) -> Option<Room> {
        let connection = self.file.as_ref().map(|file| &file.connection);
        room(&self.config.path, connection)
    }

    /// Creates the reserve again, if it was given up; returns whether it is still missing. Without it the file keeps to
    /// its present pages, even if there is some room: that is for deleting.
    pub(crate) fn restore_reserve(&mut self) -> bool {
        let pages_max = self.pages_max();
        let (Some(file), Some(reserve)) = (&self.file, &mut self.reserve) else {
            return false;
        };
        reserve.make();
        let is_missing = reserve.state() == ReserveState::Missing;
        // It is never less than the present size.
        bound_pages(&file.connection, if is_missing { 1 } else { pages_max });
        is_missing
    }

    fn pages_max(&self) -> u64 {
        let bytes_max = self.config.bytes_max.unwrap_or(u64::MAX);
        // Zero would be no bound.
        (bytes_max / PAGE_BYTES).clamp(1, PAGES_MAX)
    }

    /// Copies the store to a file that must not exist. `between` is called after each slice, with a function that
    /// commits a batch; its error stops the copying. Only the copy has the records of `last`.
    pub(crate) fn back_up(
        &mut self,
        path: &Path,
        between: &mut dyn FnMut(&mut Commit<'_>) -> Result<(), StoreError>,
        last: impl FnOnce() -> Batch,
    ) -> Result<Backup, StoreError> {
        let source = self.file.as_ref().map(|file| &file.connection);
        let (vhosts, own) = (&mut self.vhosts, &self.config.path);
        let mut between = || match source {
            Some(source) => between(&mut |batch| commit(source, vhosts, batch, own)),
            None => Ok(()),
        };
        backup::copy(source, path, &mut between, |copy, path| {
            commit(copy, &mut HashMap::new(), &last(), path)
        })
    }

    /// Why the missing file could not be created when that was tried: records might not be stored.
    pub fn obstacle(&self) -> Option<&StoreError> {
        self.obstacle.as_ref()
    }

    fn take_file(&mut self, file: StoreFile) {
        self.reserve = Some(Reserve::of(&self.config.path));
        self.file = Some(file);
        self.restore_reserve();
    }
}

fn commit(
    connection: &Connection,
    vhosts: &mut HashMap<Arc<str>, i64>,
    batch: &Batch,
    path: &Path,
) -> Result<(), StoreError> {
    if batch.is_empty() {
        return Ok(());
    }
    let numbered = write(connection, vhosts, batch)
        .map_err(|error| StoreError::sqlite(path, "writing it", error))?;
    vhosts.extend(numbered);
    Ok(())
}

/// The numbers of vhosts that had none.
fn write(
    connection: &Connection,
    vhosts: &HashMap<Arc<str>, i64>,
    batch: &Batch,
) -> rusqlite::Result<Vec<(Arc<str>, i64)>> {
    // Shared, since a backup may be reading it. There is no other transaction: this is the only place.
    let transaction = connection.unchecked_transaction()?;
    let mut numbered: Vec<(Arc<str>, i64)> = Vec::new();
    let mut writer = Writer::new(&transaction, batch)?;
    let mut last: Option<(&Arc<str>, i64)> = None;
    for (vhost, record) in batch.records() {
        let number = match last {
            Some((name, number)) if Arc::ptr_eq(name, vhost) => number,
            _ => match vhosts.get(vhost) {
                Some(number) => *number,
                None => {
                    let number = writer.number_vhost(vhost)?;
                    numbered.push((Arc::clone(vhost), number));
                    number
                }
            },
        };
        last = Some((vhost, number));
        writer.write(number, record)?;
    }
    drop(writer);
    transaction.commit()?;
    Ok(numbered)
}

fn bound_pages(connection: &Connection, pages_max: u64) {
    // It cannot fail, and if it did it would be as before.
    let _ = connection.pragma_update(None, "max_page_count", pages_max as i64);
}

/// Copies the log into the file as far as there is room for it, and gives the log's own room back.
fn copy_log(connection: &Connection) {
    // Pages that could not be copied stay in the log, which is as safe.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

/// Takes messages away, in commits so small that they need little room. All of it will be written
/// again with the rest of the batch, and then does nothing.
fn write_departures(connection: &Connection, batch: &Batch) -> rusqlite::Result<()> {
    let departures: Vec<_> = batch.departures().collect();
    for departures in departures.chunks(DEPARTURES_MAX) {
        try_twice(connection, |writer| {
            for (vhost, record) in departures {
                if let Record::Dequeued { .. } = record {
                    writer.write(writer.number_vhost(vhost)?, record)?;
                }
            }
            Ok(false)
        })?;
        for (vhost, record) in departures {
            if let Record::Purged { queue } | Record::QueueDeleted { id: queue } = record {
                let purge = |writer: &mut Writer<'_>| {
                    writer.purge_some(writer.number_vhost(vhost)?, *queue, DEPARTURES_MAX as u32)
                };
                while try_twice(connection, purge)? {}
            }
        }
    }
    Ok(())
}

/// Commits a small batch: if there is no room, tries again after a checkpoint.
fn try_twice(
    connection: &Connection,
    write: impl Fn(&mut Writer<'_>) -> rusqlite::Result<bool>,
) -> rusqlite::Result<bool> {
    let commit = || {
        let transaction = connection.unchecked_transaction()?;
        let mut writer = Writer::new(&transaction, &Batch::default())?;
        let has_more = write(&mut writer)?;
        drop(writer);
        transaction.commit()?;
        Ok(has_more)
    };
    commit().or_else(|_: rusqlite::Error| {
        copy_log(connection);
        commit()
    })
}
