//! The owner's local copy of its vhost: a separate store that delays no confirms.
//!
//! Its commits have a pause between them: one commit for each append would cost the owner more than all else that an
//! append does, and a message that is consumed within the pause is not written at all.
//!
//! Each term has its own file, so that no earlier copy contradicts the log. Once the new file has all contents from the
//! term's beginning, the earlier ones are deleted. Until then a file beside it says that it is not whole.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crosstie_metadata::{BEGUN, Key};
use crosstie_nats::escaped;
use crosstie_queues::{Position, Record};
use crosstie_store::{Committer, CommitterConfig, NotCommitted, Setting, Store, StoreConfig};
use parking_lot::Mutex;

use super::journal::record_bytes;

/// A term's copy.
pub(super) struct Copy {
    shared: Arc<Shared>,
    /// Opens the store, and fills it with the contents from the term's beginning.
    beginning: Option<JoinHandle<()>>,
    waiting_bytes_max: usize,
}

struct Shared {
    directory: PathBuf,
    vhost: Arc<str>,
    epoch: u64,
    state: Mutex<State>,
    /// Why the last commit failed.
    failure: Mutex<Option<String>>,
    /// The position with which it has all contents from the term's beginning, and the committed one.
    whole: AtomicU64,
    committed: AtomicU64,
}

enum State {
    /// Until the store is open: the records of the term so far, and their approximate size.
    Beginning {
        waiting: Vec<Vec<Record>>,
        bytes: usize,
    },
    Running {
        committer: Committer,
        position: u64,
    },
    Over,
}

/// Size of a copy's segments: a node may keep copies of many vhosts, with three segments each at least.
const SEGMENT_BYTES: u64 = 4 << 20;

/// Pause between two commits.
const PAUSE_MS: u64 = 100;

/// Approximate bytes that are committed without a pause.
const PAUSE_BYTES_MAX: usize = 1 << 20;

/// Number of records per submission when a copy begins.
const RECORDS_MAX: usize = 10_000;

impl Copy {
    /// Begins a copy with the vhost's contents, on a thread of its own: the term does not wait for that. `is_whole`: these
    /// are all; otherwise [`Self::complete`] follows.
    pub(super) fn begin(
        directory: &Path,
        (vhost, epoch): (&Arc<str>, u64),
        (records, is_whole): (Vec<Record>, bool),
        waiting_bytes_max: usize,
    ) -> Self {
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            vhost: Arc::clone(vhost),
            epoch,
            state: Mutex::new(State::Beginning {
                waiting: Vec::new(),
                bytes: 0,
            }),
            failure: Mutex::new(None),
            whole: AtomicU64::new(u64::MAX),
            committed: AtomicU64::new(0),
        });
        let of_thread = Arc::clone(&shared);
        let begin = move || {
            // The copy is abandoned if more than `waiting_bytes_max` waits, so the pause ends far below.
            let pause_bytes_max = PAUSE_BYTES_MAX.min(waiting_bytes_max / 4);
            if let Err(why) = of_thread.begin((records, is_whole), pause_bytes_max) {
                let name = &of_thread.vhost;
                tracing::error!("vhost '{name}': this node keeps no copy of it: {why}");
                *of_thread.state.lock() = State::Over;
            }
        };
        let beginning = thread::Builder::new().name("copy".to_owned()).spawn(begin);
        if let Err(e) = &beginning {
            tracing::error!("vhost '{vhost}': this node keeps no copy of it: {e}");
            *shared.state.lock() = State::Over;
        }
        Self {
            shared,
            beginning: beginning.ok(),
            waiting_bytes_max,
        }
    }

    /// Adds records. Returns false if the copy has just been abandoned because its disk is too slow.
    pub(super) fn submit(&self, records: Vec<Record>) -> bool {
        let mut state = self.shared.state.lock();
        let waits = match &mut *state {
            State::Over => return true,
            State::Beginning { waiting, bytes } => {
                *bytes += records.iter().map(record_bytes).sum::<usize>();
                waiting.push(records);
                *bytes
            }
            State::Running {
                committer,
                position,
            } => {
                *position += 1;
                committer.submit(&self.shared.vhost, records, Position(*position))
            }
        };
        drop(state);
        let has_room = waits <= self.waiting_bytes_max;
        if !has_room {
            self.abandon();
        }
        has_room
    }

    /// Writes nothing any more.
    pub(super) fn abandon(&self) {
        end(std::mem::replace(
            &mut *self.shared.state.lock(),
            State::Over,
        ));
    }

    /// The bytes that wait to be written; `None` until the store is open.
    pub(super) fn waiting_bytes(&self) -> Option<usize> {
        match &*self.shared.state.lock() {
            State::Running { committer, .. } => Some(committer.waiting_bytes()),
            State::Beginning { .. } | State::Over => None,
        }
    }

    /// Whether nothing is written any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.shared.state.lock(), State::Over)
    }

    /// All contents from the term's beginning were submitted.
    pub(super) fn complete(&self) {
        if let State::Running { position, .. } = &*self.shared.state.lock() {
            self.shared.whole.store(*position, Ordering::SeqCst);
        }
        self.shared.judge_whole();
    }

    /// Why the copy cannot be written, or that it was abandoned.
    pub(super) fn failure(&self) -> Option<String> {
        if let Some(why) = &*self.shared.failure.lock() {
            return Some(format!("this node's copy cannot be written: {why}"));
        }
        let is_over = matches!(*self.shared.state.lock(), State::Over);
        is_over.then(|| "this node keeps no copy, as its log says".to_owned())
    }

    /// Writes the remaining records.
    pub(super) fn finish(mut self) {
        if let Some(beginning) = self.beginning.take() {
            // A thread that panicked has logged that.
            let _ = beginning.join();
        }
        drop(std::mem::replace(
            &mut *self.shared.state.lock(),
            State::Over,
        ));
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let Some(beginning) = self.beginning.take() else {
            return;
        };
        // The remaining records are written first, on a thread of their own.
        let shared = Arc::clone(&self.shared);
        let ending = thread::Builder::new().name("copy".to_owned());
        let _ = ending.spawn(move || {
            let _ = beginning.join();
            let rest = std::mem::replace(&mut *shared.state.lock(), State::Over);
            drop(rest);
        });
    }
}

impl Shared {
    fn begin(
        self: &Arc<Self>,
        (records, is_whole): (Vec<Record>, bool),
        pause_bytes_max: usize,
    ) -> Result<(), String> {
        let (directory, vhost) = (&self.directory, &self.vhost);
        let path = file(directory, vhost, self.epoch);
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let named = |e: io::Error| format!("{}: {e}", path.display());
        remove(&path).map_err(named)?;
        File::create(partial(&path)).map_err(named)?;
        let store = Store::open(StoreConfig {
            segment_bytes: SEGMENT_BYTES,
            ..StoreConfig::new(path.clone())
        });
        let (store, _) = store.map_err(|e| e.to_string())?;
        let whole = records.len().div_ceil(RECORDS_MAX).max(1) as u64;
        if is_whole {
            self.whole.store(whole, Ordering::SeqCst);
        }
        let shared = Arc::clone(self);
        let on_committed =
            move |_: &str, position: Position, result: Result<(), NotCommitted<'_>>| match result {
                Ok(()) => {
                    *shared.failure.lock() = None;
                    shared.committed.store(position.0, Ordering::SeqCst);
                    shared.judge_whole();
                }
                Err(NotCommitted { error, .. }) => {
                    let why = Some(error.to_string());
                    if std::mem::replace(&mut *shared.failure.lock(), why).is_none() {
                        let name = &shared.vhost;
                        tracing::error!("the copy of vhost '{name}' cannot be written: {error}");
                    }
                }
            };
        let config = CommitterConfig {
            pause_ms: PAUSE_MS,
            pause_bytes_max,
            ..CommitterConfig::default()
        };
        let committer = Committer::start_with(store, config, on_committed, |_| {});
        let committer = committer.map_err(|e| e.to_string())?;
        let mut records = records.into_iter();
        for position in 1..=whole {
            let part = records.by_ref().take(RECORDS_MAX).collect();
            committer.submit(vhost, part, Position(position));
        }
        let mut state = self.state.lock();
        if let State::Beginning { waiting, .. } = &mut *state {
            let mut position = whole;
            for records in std::mem::take(waiting) {
                position += 1;
                committer.submit(vhost, records, Position(position));
            }
            *state = State::Running {
                committer,
                position,
            };
        }
        Ok(())
    }
}

impl Shared {
    /// Deletes earlier copies once this one has all contents on the disk.
    fn judge_whole(&self) {
        let whole = self.whole.load(Ordering::SeqCst);
        let is_whole = self.committed.load(Ordering::SeqCst) >= whole;
        // Once only.
        if is_whole && self.whole.swap(u64::MAX, Ordering::SeqCst) == whole {
            let path = partial(&file(&self.directory, &self.vhost, self.epoch));
            if let Err(e) = fs::remove_file(&path) {
                tracing::warn!("{}: {e}", path.display());
            }
            remove_others(&self.directory, &self.vhost, self.epoch);
        }
    }
}

/// Ends a copy that was abandoned, on a thread of its own.
fn end(rest: State) {
    let ending = thread::Builder::new().name("copy".to_owned());
    let _ = ending.spawn(move || drop(rest));
}

fn file(directory: &Path, vhost: &str, epoch: u64) -> PathBuf {
    directory.join(format!("{}.{epoch}.store", escaped(vhost)))
}

/// The file beside a copy that is not whole.
fn partial(path: &Path) -> PathBuf {
    path.with_added_extension("partial")
}

/// Whether a copy is not known to have all contents from its term's beginning.
pub(super) fn is_partial(path: &Path) -> bool {
    partial(path).exists()
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
    let contents = crosstie_store::all_contents(path).map_err(|e| e.to_string())?;
    let mut others = BTreeSet::new();
    let mut records = Vec::new();
    // A worker's store has them beside its vhosts.
    for Setting { key, value } in contents.settings {
        let of = Key::parse(&key);
        if of
            .as_ref()
            .and_then(Key::vhost)
            .is_some_and(|of| **of == *vhost)
        {
            records.push(setting(key, value));
        }
    }
    if !records.is_empty() {
        records.push(setting(BEGUN.into(), "{}".into()));
    }
    for found in contents.restored {
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

fn setting(key: Arc<str>, value: Arc<str>) -> Record {
    let value = Some(value);
    Record::Setting { key, value }
}

/// Deletes a store with what is kept beside it.
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
            remove_entry(&entry.path())?;
        }
    }
    Ok(())
}

/// Deletes a store, which is a directory, or a file of version 0.1.0.
fn remove_entry(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
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
            && let Err(e) = remove_entry(&entry.path())
        {
            tracing::warn!("{}: {e}", entry.path().display());
        }
    }
}
