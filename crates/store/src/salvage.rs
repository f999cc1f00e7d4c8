//! Brings what can be read of a damaged store, or of a damaged backup, into a new store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_disk::RealDisk;
use crosstie_queues::{QueueId, Record};

use crate::archive;
use crate::build::Copy;
use crate::check::{Checked, CheckedSegments, Transient, absent, check_backup, check_segments};
use crate::error::{StoreError, StoreErrorKind};
use crate::file::folder;
use crate::names::salvaged_name;
use crate::place::{self, Found, Lock};
use crate::segments::contents::{Item, Snapshot};
use crate::segments::entity::Entity;
use crate::segments::record::{ENTITIES, QueueKey};
use crate::tolerant::Tolerant;

/// The outcome of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    pub queues: u64,
    pub messages: u64,
    /// Queues whose declarations are lost, by vhost: they are declared anew, by these names.
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
    /// The check of the source: what the new store lacks.
    pub source: Checked,
}

/// Writes what can be read into a new store, at a path where nothing is. The source is not changed.
pub fn salvage(path: &Path, to: &Path) -> Result<Salvaged, StoreError> {
    let to = &place::follow(to)?;
    let found = place::find(path)?;
    match found {
        Found::Segments | Found::Backup => {}
        Found::Earlier => return Err(StoreError::new(path, StoreErrorKind::Earlier)),
        Found::Nothing | Found::Empty => return Err(absent(path)),
    }
    check_target(path, to)?;
    match found {
        Found::Backup => {
            let (source, transient) = check_backup(path)?;
            let end = archive::end(path)?;
            let mut new = New::begin(to, end, transient)?;
            archive::survey(path, &mut |queue, place, item| new.add(queue, place, item))?;
            new.end(source)
        }
        _ => {
            let _lock = Lock::take(path)?;
            let disk = Tolerant::new(RealDisk::new(path));
            let CheckedSegments {
                checked: source,
                recovered,
                transient,
            } = check_segments(&disk, path)?;
            let end = (recovered.next_sequence, recovered.confirmed.time_ms);
            let mut new = New::begin(to, end, transient)?;
            for part in Snapshot::all(&recovered.state).parts {
                if recovered.loss.segments.contains(&part.number) {
                    continue;
                }
                let mut failed = None;
                let visited = part.visit(
                    &disk,
                    recovered.manifest.store,
                    &mut |queue, place, item| {
                        new.add(queue, place, &item).map_err(|error| {
                            failed = Some(error);
                            io::Error::other("the new store cannot be written")
                        })
                    },
                );
                if let Err(fault) = visited {
                    return Err(failed.unwrap_or_else(|| StoreError::fault(path, fault)));
                }
            }
            new.end(source)
        }
    }
}

/// Nothing may be at the target, and it may not be inside the source.
fn check_target(path: &Path, to: &Path) -> Result<(), StoreError> {
    if place::find(to)? != Found::Nothing {
        return Err(StoreError::new(to, StoreErrorKind::Exists));
    }
    let real =
        |path: &Path| fs::canonicalize(path).map_err(|e| StoreError::io(path, "finding it", e));
    match real(folder(to))?.starts_with(real(path)?) {
        true => {
            let why = "it would be inside the damaged store";
            Err(StoreError::new(to, StoreErrorKind::Abandoned { why }))
        }
        false => Ok(()),
    }
}

/// The new store under its temporary name, which is removed unless the store is completed.
struct New {
    copy: Option<Copy>,
    _lock: Lock,
    draft: PathBuf,
    to: PathBuf,
    /// The place of the next declaration of our own.
    place: i64,
    /// Queues that are left out.
    transient: Transient,
    vhosts: BTreeMap<u16, Arc<str>>,
    declared: BTreeSet<QueueKey>,
    used: BTreeSet<QueueKey>,
    names: BTreeSet<(u16, Arc<str>)>,
    messages: u64,
}

/// Room for declarations of our own: more vhosts and queues than that are not salvaged by new names.
const DECLARATIONS_MAX: u64 = 1 << 32;

impl New {
    fn begin(
        to: &Path,
        (end_sequence, time_ms): (u64, u64),
        transient: Transient,
    ) -> Result<Self, StoreError> {
        let draft = place::make_draft(to)?;
        let lock = Lock::take(&draft)?;
        let mut new = Self {
            copy: None,
            _lock: lock,
            draft,
            to: to.to_owned(),
            place: end_sequence as i64,
            transient,
            vhosts: BTreeMap::new(),
            declared: BTreeSet::new(),
            used: BTreeSet::new(),
            names: BTreeSet::new(),
            messages: 0,
        };
        let end = (end_sequence.saturating_add(DECLARATIONS_MAX), time_ms);
        new.copy = Some(Copy::begin(&new.draft, to, end)?);
        Ok(new)
    }

    fn add(&mut self, queue: QueueKey, place: i64, item: &Item) -> Result<(), StoreError> {
        match item {
            Item::Message(Some(_)) if self.transient.contains(&queue) => return Ok(()),
            Item::Message(Some(_)) => {
                self.used.insert(queue);
                self.messages += 1;
            }
            Item::Entity(Some(Entity::Vhost { number, name })) => {
                self.vhosts.insert(*number, Arc::clone(name));
            }
            Item::Entity(Some(Entity::Declared { vhost, record })) => {
                if let Record::QueueDeclared { id, name, .. } = record {
                    let (vhost, queue) = (*vhost, id.0);
                    self.declared.insert(QueueKey { vhost, queue });
                    self.names.insert((vhost, Arc::clone(name)));
                }
            }
            Item::Entity(Some(Entity::Setting { .. })) => {}
            Item::Message(None) | Item::Entity(None) => return Ok(()),
        }
        self.write(queue, place, item)
    }

    fn write(&mut self, queue: QueueKey, place: i64, item: &Item) -> Result<(), StoreError> {
        match &mut self.copy {
            Some(copy) => copy.add(queue, place, item),
            None => Ok(()),
        }
    }

    fn end(mut self, source: Checked) -> Result<Salvaged, StoreError> {
        let mut salvaged = Salvaged {
            messages: self.messages,
            source,
            ..Salvaged::default()
        };
        // Their declarations are lost: other queues without one are transient.
        let orphans: Vec<_> = self.used.difference(&self.declared).copied().collect();
        for queue in orphans {
            let renamed = self.declare(queue)?;
            salvaged.renamed.push(renamed);
        }
        let vhosts: BTreeSet<_> = self.declared.iter().map(|queue| queue.vhost).collect();
        for vhost in vhosts {
            self.vhost(vhost)?;
        }
        salvaged.queues = self.declared.len() as u64;
        if let Some(copy) = self.copy.take() {
            copy.end()?;
        }
        place::name_draft(&self.draft, &self.to)?;
        Ok(salvaged)
    }

    /// Declares a queue whose own declaration is lost: a durable classic one.
    fn declare(&mut self, queue: QueueKey) -> Result<(Arc<str>, Arc<str>), StoreError> {
        let vhost = self.vhost(queue.vhost)?;
        let taken = &self.names;
        let name = salvaged_name(queue.queue, |name| {
            taken.contains(&(queue.vhost, name.into()))
        });
        let record =
            Record::queue_declared(QueueId(queue.queue), Arc::clone(&name), Default::default());
        self.declared.insert(queue);
        self.write_entity(Entity::Declared {
            vhost: queue.vhost,
            record,
        })?;
        Ok((vhost, name))
    }

    /// The name of a vhost; one whose record is lost gets a new one.
    fn vhost(&mut self, number: u16) -> Result<Arc<str>, StoreError> {
        if let Some(name) = self.vhosts.get(&number) {
            return Ok(Arc::clone(name));
        }
        let vhosts = &self.vhosts;
        let name = salvaged_name(number.into(), |name| {
            vhosts.values().any(|known| **known == *name)
        });
        self.vhosts.insert(number, Arc::clone(&name));
        self.write_entity(Entity::Vhost {
            number,
            name: Arc::clone(&name),
        })?;
        Ok(name)
    }

    fn write_entity(&mut self, entity: Entity) -> Result<(), StoreError> {
        let place = self.place;
        self.place += 1;
        self.write(ENTITIES, place, &Item::Entity(Some(entity)))
    }
}

impl Drop for New {
    fn drop(&mut self) {
        // Closed first. After a success the draft has another name.
        self.copy = None;
        let _ = fs::remove_dir_all(&self.draft);
    }
}
