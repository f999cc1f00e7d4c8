//! A copy of a store in use, made beside its commits.
//!
//! A snapshot is taken between two commits, and then read by a thread of its own; segments that are freed meanwhile
//! keep their files until the copy is complete. It is made under a temporary name.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_disk::{Disk, RealDisk};
use crosstie_queues::Record;

use crate::archive::Archive;
use crate::error::{StoreError, StoreErrorKind};
use crate::file::beside;
use crate::opening::recover_at;
use crate::place::{self, Found, Lock, sync_folder};
use crate::segments::contents::{Item, Snapshot};
use crate::segments::entity::Entity;
use crate::segments::keeper::Pin;
use crate::segments::record::{QueueKey, RESTED};
use crate::store::lock;
use crate::{Batch, Store};

/// A finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    pub bytes: u64,
    /// Messages that are not in it, since they are not as they were written.
    pub damaged: u64,
}

/// A copy that is to be made.
pub(crate) struct Job {
    disk: Arc<dyn Disk>,
    /// The store's path.
    source: PathBuf,
    snapshot: Snapshot,
    store: u64,
    /// The sequence after the last record.
    end_sequence: u64,
    time_ms: u64,
    /// Entities that only the copy has, and deliveries that only the copy counts.
    added: Vec<Entity>,
    delivered: HashMap<QueueKey, BTreeMap<i64, u32>>,
    /// Keeps the files.
    _held: Held,
}

enum Held {
    Nothing,
    Segments { _pin: Pin },
    Directory { _lock: Lock },
}

/// Copies a store that is not open, to a file that must not exist.
pub fn back_up(store: &Path, path: &Path) -> Result<Backup, StoreError> {
    let store = place::follow(store)?;
    match place::find(&store)? {
        Found::Segments => {}
        Found::Nothing | Found::Empty => {
            let error = io::Error::from(io::ErrorKind::NotFound);
            return Err(StoreError::io(&store, "looking for it", error));
        }
        Found::Earlier | Found::Backup => {
            let what = "it is no store of this version: start the node once".to_owned();
            return Err(StoreError::new(&store, StoreErrorKind::Foreign { what }));
        }
    }
    Job::of_closed(&store)?.run(path, &mut || false)
}

impl Job {
    /// A copy of what a store has now, with the records of `last`.
    pub(crate) fn of(store: &mut Store, last: &Batch) -> Result<Self, StoreError> {
        store.open_log()?;
        let Some(log) = store.log() else {
            return Ok(Self {
                disk: Arc::new(RealDisk::new(store.path())),
                source: store.path().to_owned(),
                snapshot: Snapshot { parts: Vec::new() },
                store: 0,
                end_sequence: 1,
                time_ms: store.now_ms(),
                added: Vec::new(),
                delivered: HashMap::new(),
                _held: Held::Nothing,
            });
        };
        let mut job = Self {
            disk: Arc::clone(log.disk()),
            source: store.path().to_owned(),
            _held: Held::Segments {
                _pin: log.keeper().pin(),
            },
            snapshot: Snapshot::all(&lock(log.state())),
            store: log.store(),
            end_sequence: log.next_sequence(),
            time_ms: store.now_ms(),
            added: Vec::new(),
            delivered: HashMap::new(),
        };
        job.add(store, last);
        Ok(job)
    }

    fn of_closed(path: &Path) -> Result<Self, StoreError> {
        let held = Lock::take(path)?;
        let recovered = recover_at(path)?;
        if !recovered.loss.is_empty() {
            let what = "a start says what is missing".to_owned();
            return Err(StoreError::new(path, StoreErrorKind::Damaged { what }));
        }
        Ok(Self {
            disk: Arc::new(RealDisk::new(path)),
            source: path.to_owned(),
            snapshot: Snapshot::all(&recovered.state),
            store: recovered.manifest.store,
            end_sequence: recovered.next_sequence,
            time_ms: recovered.confirmed.time_ms,
            added: Vec::new(),
            delivered: HashMap::new(),
            _held: Held::Directory { _lock: held },
        })
    }

    /// Adds deliveries, and places from which on messages were never delivered.
    fn add(&mut self, store: &Store, last: &Batch) {
        let mut delivered: HashMap<QueueKey, BTreeMap<i64, u32>> = HashMap::new();
        for (name, record) in last.records() {
            let Some(vhost) = store.vhost_number(name) else {
                continue;
            };
            match record {
                Record::Delivered {
                    queue,
                    place,
                    deliveries,
                } => {
                    let queue = QueueKey {
                        vhost,
                        queue: queue.0,
                    };
                    delivered
                        .entry(queue)
                        .or_default()
                        .insert(*place, *deliveries);
                }
                Record::Rested { .. } => {
                    let record = record.clone();
                    self.added.push(Entity::Declared { vhost, record });
                }
                _ => {}
            }
        }
        self.delivered = delivered;
    }

    /// Makes the copy, unless `is_over` says that the node stops.
    pub(crate) fn run(
        mut self,
        path: &Path,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Backup, StoreError> {
        check_vacancy(path)?;
        // Here, and not on the committer's thread: a backup may have many of them.
        for part in &mut self.snapshot.parts {
            part.note_deliveries(&self.delivered);
        }
        let draft = beside(path, ".partial");
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            // Only the owner may read messages.
            .mode(0o600)
            .open(&draft)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => StoreError::new(&draft, StoreErrorKind::Partial),
                _ => StoreError::io(&draft, "making it", error),
            })?;
        let copied = self.copy(&file, &draft, path, is_over);
        let named = copied.and_then(|copied| name(&draft, path).map(|()| copied));
        // Complete or not, the draft is not needed any more.
        let _ = fs::remove_file(&draft);
        let (bytes, damaged) = named?;
        sync_folder(path)?;
        Ok(Backup {
            path: path.to_owned(),
            bytes,
            damaged,
        })
    }

    fn copy(
        &self,
        file: &File,
        draft: &Path,
        path: &Path,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<(u64, u64), StoreError> {
        let fault = |error| StoreError::io(draft, "writing it", error);
        let mut archive = Archive::begin(file);
        let mut damaged = 0;
        let mut failed = None;
        for part in &self.snapshot.parts {
            let visited = part.visit(&*self.disk, self.store, &mut |queue, place, item| {
                damaged += u64::from(matches!(item, Item::Message(None)));
                if queue != RESTED && matches!(item, Item::Entity(None)) {
                    // A restore of the copy would take the messages of its queue for transient ones.
                    let what = "a declaration of an exchange, a queue or a binding, or a setting"
                        .to_owned();
                    failed = Some(StoreError::new(&self.source, StoreErrorKind::Loss { what }));
                    return Err(io::Error::other("a declaration is damaged"));
                }
                let added = archive.add(queue, place, &item);
                let added = added.map_err(|error| {
                    failed = Some(fault(error));
                    io::Error::other("the copy cannot be written")
                })?;
                if added && is_over() {
                    let why = "the node is being stopped";
                    let error = StoreErrorKind::Abandoned { why };
                    failed = Some(StoreError::new(path, error));
                    return Err(io::Error::other(why));
                }
                Ok(())
            });
            if let Err(error) = visited {
                return Err(failed.unwrap_or_else(|| StoreError::fault(path, error)));
            }
        }
        for (at, entity) in self.added.iter().enumerate() {
            // After all places of the store, so that none is used twice.
            let place = (self.end_sequence + at as u64) as i64;
            let item = Item::Entity(Some(entity.clone()));
            archive.add(RESTED, place, &item).map_err(fault)?;
        }
        let end_sequence = self.end_sequence + self.added.len() as u64;
        let bytes = archive.end(end_sequence, self.time_ms).map_err(fault)?;
        Ok((bytes, damaged))
    }
}

/// A link takes no other file's place, so that one made meanwhile is found.
fn name(draft: &Path, path: &Path) -> Result<(), StoreError> {
    fs::hard_link(draft, path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::new(path, StoreErrorKind::Exists),
        _ => StoreError::io(path, "naming it", error),
    })
}

fn check_vacancy(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(StoreError::new(path, StoreErrorKind::Exists)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::io(path, "looking for it", error)),
    }
}
