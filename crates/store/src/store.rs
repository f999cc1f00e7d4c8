//! The store: one file, records in and out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_queues::Record;
use rusqlite::Connection;

use crate::claim::Claim;
use crate::error::StoreError;
use crate::file::StoreFile;
use crate::write::Writer;
use crate::{Backup, Batch, backup, read};

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

/// An open store. While it is open nobody else can open the file.
pub struct Store {
    config: StoreConfig,
    /// None before the first record.
    file: Option<StoreFile>,
    /// Its name, where there was none.
    claim: Option<Claim>,
    /// Why there can be none.
    obstacle: Option<StoreError>,
    vhosts: HashMap<Arc<str>, i64>,
}

/// Commits a batch, as [`Store::commit`] does.
pub(crate) type Commit<'a> = dyn FnMut(&Batch) -> Result<(), StoreError> + 'a;

const PAGE_BYTES: u64 = 4096;

impl Store {
    /// Opens the file, if there is one, and reads what it keeps: exchanges, queues, bindings, and
    /// then the messages of each queue in their order.
    pub fn open(mut config: StoreConfig) -> Result<(Self, Vec<Restored>), StoreError> {
        // SQLite knows names that are no file's, and the working directory may change.
        config.path = std::path::absolute(&config.path)
            .map_err(|error| StoreError::io(&config.path, "finding it", error))?;
        let mut store = Self {
            config,
            file: None,
            claim: None,
            obstacle: None,
            vhosts: HashMap::new(),
        };
        let Some(file) = StoreFile::open(&store.config.path)? else {
            match Claim::take(&store.config.path) {
                Ok(claim) => store.claim = Some(claim),
                Err(error) => store.obstacle = Some(error),
            }
            return Ok((store, Vec::new()));
        };
        let restored = read::read(&file.connection, &store.config.path)?;
        store.take_file(file)?;
        Ok((store, restored))
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
            let file = StoreFile::create(&self.config.path)?;
            self.take_file(file)?;
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        commit(&file.connection, &mut self.vhosts, batch, &self.config.path)
    }

    /// Copies it to a file that must not be there. `between` is called after each slice, with what
    /// commits a batch meanwhile; its error ends the copying.
    pub(crate) fn back_up(
        &mut self,
        path: &Path,
        between: &mut dyn FnMut(&mut Commit<'_>) -> Result<(), StoreError>,
    ) -> Result<Backup, StoreError> {
        let source = self.file.as_ref().map(|file| &file.connection);
        let (vhosts, own) = (&mut self.vhosts, &self.config.path);
        backup::copy(source, path, &mut || match source {
            Some(source) => between(&mut |batch| commit(source, vhosts, batch, own)),
            None => Ok(()),
        })
    }

    /// Why no file could be made when it was looked for, where there was none: what is to be kept
    /// might not be.
    pub fn obstacle(&self) -> Option<&StoreError> {
        self.obstacle.as_ref()
    }

    fn take_file(&mut self, file: StoreFile) -> Result<(), StoreError> {
        if let Some(bytes_max) = self.config.bytes_max {
            // Zero would be no bound.
            let pages_max = i64::try_from(bytes_max / PAGE_BYTES)
                .unwrap_or(i64::MAX)
                .max(1);
            file.connection
                .pragma_update(None, "max_page_count", pages_max)
                .map_err(|error| StoreError::sqlite(&self.config.path, "opening it", error))?;
        }
        self.file = Some(file);
        Ok(())
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
