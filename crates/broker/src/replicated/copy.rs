//! The owner's local copy of its vhost: a separate store that delays no confirms.
//!
//! Each term has its own file, so that no earlier copy contradicts the log. Once the new file has all contents from the
//! term's beginning, the earlier ones are deleted.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crosstie_nats::escaped;
use crosstie_queues::{Position, Record};
use crosstie_store::{Committer, Store, StoreConfig, StoreError};

/// A term's copy.
pub(super) struct Copy {
    vhost: Arc<str>,
    committer: Option<Committer>,
    position: u64,
    waiting_bytes_max: usize,
    failed: Arc<AtomicBool>,
}

/// Number of records per submission when a copy begins.
const RECORDS_MAX: usize = 10_000;

impl Copy {
    /// Begins a copy with the vhost's contents.
    pub(super) fn begin(
        directory: &Path,
        (vhost, epoch): (&Arc<str>, u64),
        records: impl Iterator<Item = Record>,
        waiting_bytes_max: usize,
    ) -> Result<Self, String> {
        let path = file(directory, vhost, epoch);
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        remove(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let store = Store::open(StoreConfig {
            path,
            bytes_max: None,
        });
        let (store, _) = store.map_err(|e| e.to_string())?;
        let failed = Arc::new(AtomicBool::new(false));
        let mut copy = Self {
            vhost: Arc::clone(vhost),
            committer: None,
            position: 0,
            waiting_bytes_max,
            failed: Arc::clone(&failed),
        };
        let mut parts = Vec::new();
        let mut part = Vec::new();
        for record in records {
            part.push(record);
            if part.len() == RECORDS_MAX {
                parts.push(std::mem::take(&mut part));
            }
        }
        parts.push(part);
        let whole = Position(parts.len() as u64);
        let (directory, name) = (directory.to_owned(), Arc::clone(vhost));
        let is_whole = AtomicBool::new(false);
        let on_committed = move |_: &str, position, result: Result<(), &StoreError>| match result {
            Ok(()) => {
                failed.store(false, Ordering::Relaxed);
                if position >= whole && !is_whole.swap(true, Ordering::Relaxed) {
                    remove_others(&directory, &name, epoch);
                }
            }
            Err(e) => {
                if !failed.swap(true, Ordering::Relaxed) {
                    tracing::error!("the copy of vhost '{name}' cannot be written: {e}");
                }
            }
        };
        let committer = Committer::start(store, on_committed).map_err(|e| e.to_string())?;
        for part in parts {
            copy.position += 1;
            committer.submit(vhost, part, Position(copy.position));
        }
        copy.committer = Some(committer);
        Ok(copy)
    }

    /// Adds records. Returns false if the copy has just been abandoned because its disk is too slow.
    pub(super) fn submit(&mut self, records: Vec<Record>) -> bool {
        let Some(committer) = &self.committer else {
            return true;
        };
        self.position += 1;
        let waiting = committer.submit(&self.vhost, records, Position(self.position));
        if waiting <= self.waiting_bytes_max {
            return true;
        }
        self.end();
        false
    }

    /// Whether the copy cannot be written, or was abandoned.
    pub(super) fn is_failing(&self) -> bool {
        self.committer.is_none() || self.failed.load(Ordering::Relaxed)
    }

    fn end(&mut self) {
        if let Some(committer) = self.committer.take() {
            // The remaining records are written first, on a thread of their own.
            let ending = thread::Builder::new().name("copy".to_owned());
            let _ = ending.spawn(move || drop(committer));
        }
    }

    /// Writes the remaining records.
    pub(super) fn finish(mut self) {
        drop(self.committer.take());
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.end();
    }
}

fn file(directory: &Path, vhost: &str, epoch: u64) -> PathBuf {
    directory.join(format!("{}.{epoch}.store", escaped(vhost)))
}

/// The existing copies: one term's, and an earlier one's while the last is not known to be complete.
pub(super) fn copies(directory: &Path, vhost: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let prefix = format!("{}.", escaped(vhost));
    let of_vhost = |name: &str| {
        let epoch = name.strip_prefix(&prefix)?.strip_suffix(".store")?;
        epoch.parse::<u64>().ok()
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        if let Some(epoch) = entry.file_name().to_str().and_then(of_vhost) {
            found.push((epoch, entry.path()));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The records of a vhost in a store, in an order that a vhost can restore.
pub(crate) fn read(path: &Path, vhost: &str) -> Result<Vec<Record>, String> {
    if !path.exists() {
        return Err(format!("{}: there is no such file", path.display()));
    }
    let opened = Store::open(StoreConfig {
        path: path.to_owned(),
        bytes_max: None,
    });
    let (_, restored) = opened.map_err(|e| e.to_string())?;
    let mut others = BTreeSet::new();
    let mut records = Vec::new();
    for found in restored {
        match *found.vhost == *vhost {
            // A log has no such records.
            true if matches!(found.record, Record::Rested { .. }) => {}
            true => records.push(found.record),
            false => drop(others.insert(found.vhost)),
        }
    }
    if !records.is_empty() {
        return Ok(records);
    }
    let others: Vec<_> = others.iter().map(|name| format!("'{name}'")).collect();
    Err(match others.is_empty() {
        true => format!("{}: there is nothing in it", path.display()),
        false => format!(
            "{}: there is nothing of vhost '{vhost}' in it, but of {}",
            path.display(),
            others.join(", ")
        ),
    })
}

/// Deletes a store with the files that SQLite and the store keep beside it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Ok(());
    };
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_of_it = entry
            .file_name()
            .to_str()
            .is_some_and(|found| found.starts_with(name));
        if is_of_it {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn remove_others(directory: &Path, vhost: &str, epoch: u64) {
    let prefix = format!("{}.", escaped(vhost));
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let other = rest.and_then(|rest| rest.split_once(".store"));
        let other = other.and_then(|(epoch, _)| epoch.parse::<u64>().ok());
        if other.is_some_and(|other| other < epoch)
            && let Err(e) = fs::remove_file(entry.path())
        {
            tracing::warn!("{}: {e}", entry.path().display());
        }
    }
}
