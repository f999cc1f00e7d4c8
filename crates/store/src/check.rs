//! Reads everything of a store or of a backup that nothing has open, and reports what is whole, damaged or missing.
//! Nothing is changed.
//!
//! The verdict on confirmed data is that of a start ([`recover`]). Beyond that, each record of each segment is read, and
//! the manifest, the head and the indexes, so that damage is also named where a start would do without it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crosstie_disk::RealDisk;
use rustix::io::Errno;

use crate::archive;
use crate::error::{StoreError, StoreErrorKind};
use crate::names::Names;
use crate::place::{self, Found, Lock};
use crate::segments::contents::Item;
use crate::segments::entity::Entity;
use crate::segments::record::{QueueKey, RESTED};
use crate::segments::recover::{Recovered, recover};
use crate::tally::Tally;
use crate::tolerant::Tolerant;

/// The outcome of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// It is a backup, not a store.
    pub is_backup: bool,
    pub segments: u64,
    /// Records that were read.
    pub records: u64,
    /// By their names.
    pub vhosts: Vec<CheckedVhost>,
    /// Damage in the order of the files; empty if all is whole.
    pub faults: Vec<FileFault>,
    /// Confirmed records that are missing, of queues that are not known: at most as many messages.
    pub unknown_records: u64,
    /// Exchanges, queues, bindings, vhosts and settings that cannot be read.
    pub lost_declarations: u64,
    /// Damaged records of messages that are gone anyway: they are no fault.
    pub idle_records: u64,
    /// Settings of the broker: users, permissions, …
    pub settings: u64,
}

/// A vhost of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedVhost {
    /// `None` if its record cannot be read.
    pub name: Option<Arc<str>>,
    pub exchanges: u64,
    pub bindings: u64,
    pub queues: Vec<CheckedQueue>,
}

/// A queue of a store, with its confirmed messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedQueue {
    pub number: u64,
    /// `None` if its declaration cannot be read.
    pub name: Option<Arc<str>>,
    /// Messages that are as they were written.
    pub whole: u64,
    /// Messages whose bytes are not.
    pub damaged: u64,
    /// Messages whose records are not there.
    pub missing: u64,
    /// Records of acknowledgements that cannot be read: messages may come a second time.
    pub acknowledgements: u64,
}

/// Damage of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    pub file: String,
    pub what: String,
    /// Confirmed data is lost by it. Otherwise a start does without.
    pub is_loss: bool,
}

impl Checked {
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }

    pub fn queues(&self) -> impl Iterator<Item = &CheckedQueue> {
        self.vhosts.iter().flat_map(|vhost| &vhost.queues)
    }

    /// Messages that are as they were written.
    pub fn whole(&self) -> u64 {
        self.queues().map(|queue| queue.whole).sum()
    }

    /// Confirmed messages of known queues that are damaged or missing.
    pub fn lost(&self) -> u64 {
        self.queues()
            .map(|queue| queue.damaged + queue.missing)
            .sum()
    }
}

/// Checks a store, or a backup. A running node's store is refused.
pub fn check(path: &Path) -> Result<Checked, StoreError> {
    match place::find(path)? {
        Found::Segments => {
            let _lock = Lock::take(path)?;
            let disk = Tolerant::new(RealDisk::new(path));
            check_segments(&disk, path).map(|segments| segments.checked)
        }
        Found::Backup => check_backup(path).map(|(checked, _)| checked),
        Found::Earlier => Err(StoreError::new(path, StoreErrorKind::Earlier)),
        Found::Nothing | Found::Empty => Err(absent(path)),
    }
}

/// The segments of a store that were checked.
pub(crate) struct CheckedSegments {
    pub(crate) checked: Checked,
    /// The same as a start finds it.
    pub(crate) recovered: Recovered,
    pub(crate) transient: Transient,
}

/// Queues that are not declared and have transient messages, which a start forgets.
pub(crate) type Transient = BTreeSet<QueueKey>;

/// Checks the files of a store that is locked.
pub(crate) fn check_segments(
    disk: &Tolerant<RealDisk>,
    path: &Path,
) -> Result<CheckedSegments, StoreError> {
    let fault = |error| StoreError::io(path, "reading it", error);
    let recovered = recover(disk).map_err(fault)?;
    let mut tally = Tally::begin(disk, &recovered);
    tally.read().map_err(fault)?;
    let (checked, transient) = tally.conclude(&disk.unread());
    Ok(CheckedSegments {
        checked,
        recovered,
        transient,
    })
}

pub(crate) fn check_backup(path: &Path) -> Result<(Checked, Transient), StoreError> {
    let mut rows = Rows::default();
    let surveyed = archive::survey(path, &mut |queue, place, item| {
        rows.add(queue, place, item);
        Ok(())
    })?;
    let mut checked = Checked {
        is_backup: true,
        records: surveyed.records,
        unknown_records: surveyed.missing,
        lost_declarations: rows.lost_declarations,
        settings: rows.settings,
        ..Checked::default()
    };
    if surveyed.missing + surveyed.damaged > 0 {
        let name = path.file_name().unwrap_or_default();
        checked.faults.push(FileFault {
            file: name.to_string_lossy().into_owned(),
            what: format!(
                "{} of its {} records cannot be read",
                surveyed.missing + surveyed.damaged,
                surveyed.records + surveyed.missing
            ),
            is_loss: true,
        });
    }
    let transient = rows.transient(surveyed.missing > 0);
    checked.vhosts = rows.into_vhosts(&transient);
    Ok((checked, transient))
}

pub(crate) fn absent(path: &Path) -> StoreError {
    StoreError::io(path, "looking for it", Errno::NOENT.into())
}

/// Messages counted by queue, and declarations.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    names: Names,
    queues: BTreeMap<QueueKey, Counts>,
    /// Exchanges and bindings of each vhost.
    entities: BTreeMap<u16, (u64, u64)>,
    pub(crate) lost_declarations: u64,
    pub(crate) settings: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) whole: u64,
    pub(crate) damaged: u64,
    pub(crate) missing: u64,
    pub(crate) acknowledgements: u64,
}

impl Rows {
    pub(crate) fn of(&mut self, queue: QueueKey) -> &mut Counts {
        self.queues.entry(queue).or_default()
    }

    pub(crate) fn add(&mut self, queue: QueueKey, place: i64, item: &Item) {
        match item {
            Item::Message(Some(_)) => self.of(queue).whole += 1,
            Item::Message(None) => self.of(queue).damaged += 1,
            Item::Entity(Some(entity)) => self.declare(entity, place),
            // Without that, messages count as delivered.
            Item::Entity(None) if queue == RESTED => {}
            Item::Entity(None) => self.lost_declarations += 1,
        }
    }

    pub(crate) fn declare(&mut self, entity: &Entity, place: i64) {
        use crosstie_queues::Record::{Bound, ExchangeDeclared, QueueDeclared};
        self.names.restore(entity, place);
        match entity {
            Entity::Vhost { number, .. } => drop(self.entities.entry(*number).or_default()),
            Entity::Setting { .. } => self.settings += 1,
            Entity::Declared { vhost, record } => {
                let (exchanges, bindings) = self.entities.entry(*vhost).or_default();
                match record {
                    ExchangeDeclared { .. } => *exchanges += 1,
                    Bound { .. } => *bindings += 1,
                    QueueDeclared { id, .. } => {
                        let (vhost, queue) = (*vhost, id.0);
                        self.of(QueueKey { vhost, queue });
                    }
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn queue_text(&self, queue: QueueKey) -> String {
        let vhost = match self.names.vhost_name(queue.vhost) {
            Some(name) => format!("vhost '{name}'"),
            None => format!("vhost number {}", queue.vhost),
        };
        match self.names.queue_name(queue) {
            Some(name) => format!("queue '{name}' of {vhost}"),
            None => format!("queue number {} of {vhost}", queue.queue),
        }
    }

    /// Queues without a declaration have transient messages, unless declarations may be lost.
    pub(crate) fn transient(&self, may_be_lost: bool) -> Transient {
        let is_any = !may_be_lost && self.lost_declarations == 0;
        let queues = self.queues.keys().filter(|_| is_any).copied();
        queues
            .filter(|key| self.names.queue_name(*key).is_none())
            .collect()
    }

    pub(crate) fn into_vhosts(self, transient: &Transient) -> Vec<CheckedVhost> {
        let mut vhosts: BTreeMap<u16, CheckedVhost> = BTreeMap::new();
        let names = &self.names;
        let vhost = |number: u16| CheckedVhost {
            name: names.vhost_name(number).map(Arc::clone),
            exchanges: 0,
            bindings: 0,
            queues: Vec::new(),
        };
        for (number, (exchanges, bindings)) in self.entities {
            let of = vhosts.entry(number).or_insert_with(|| vhost(number));
            (of.exchanges, of.bindings) = (exchanges, bindings);
        }
        for (key, counts) in self.queues {
            if transient.contains(&key) {
                continue;
            }
            let name = names.queue_name(key).map(Arc::clone);
            let of = vhosts.entry(key.vhost);
            let of = of.or_insert_with(|| vhost(key.vhost));
            of.queues.push(CheckedQueue {
                number: key.queue,
                name,
                whole: counts.whole,
                damaged: counts.damaged,
                missing: counts.missing,
                acknowledgements: counts.acknowledgements,
            });
        }
        let mut vhosts: Vec<_> = vhosts.into_values().collect();
        vhosts.sort_by(|a, b| a.name.cmp(&b.name));
        for vhost in &mut vhosts {
            vhost.queues.sort_by(|a, b| a.name.cmp(&b.name));
        }
        vhosts
    }
}
