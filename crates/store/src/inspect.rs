//! A store that no node has open: checked, read, salvaged, or restored from a backup.

use std::io;
use std::path::{Path, PathBuf};

use crate::archive;
use crate::build::{self, Copy};
use crate::damage::describe;
use crate::earlier;
use crate::error::{StoreError, StoreErrorKind};
use crate::gather::Gathered;
use crate::names::Names;
use crate::opening::recover_at;
use crate::place::{self, Found, Lock};
use crate::segments::contents::{Item, Snapshot};
use crate::segments::disk::RealDisk;
use crate::segments::recover::Recovered;
use crate::{Damaged, Restored};

/// The outcome of [`check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub segments: u64,
    pub queues: u64,
    pub messages: u64,
    /// Confirmed data that is missing, a clause each.
    pub missing: Vec<String>,
    /// Queues with data that cannot be read.
    pub damaged: Vec<Damaged>,
}

impl Checked {
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.damaged.is_empty()
    }
}

/// The outcome of [`salvage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    pub messages: u64,
    /// The data that the new store lacks.
    pub lost: Checked,
}

/// Reads a store, a backup or a file of version 0.1.0, and changes nothing.
pub fn contents(path: &Path) -> Result<Vec<Restored>, StoreError> {
    match place::find(path)? {
        Found::Nothing | Found::Empty => Err(missing(path)),
        Found::Earlier => Ok(earlier::read(path)?.0),
        Found::Backup => {
            let mut gathered = Gathered::default();
            archive::read(path, &mut |queue, place, item| {
                gathered.add(queue, place, item.clone());
                Ok(())
            })?;
            Ok(gathered.into_restored().0)
        }
        Found::Segments => {
            let mut gathered = Gathered::default();
            let survey = Survey::begin(path)?;
            survey.visit(&mut |queue, place, item| {
                gathered.add(queue, place, item);
                Ok(())
            })?;
            let missing = survey.missing(&gathered.names, &gathered);
            let damaged = gathered.damage(&survey.recovered.loss.acknowledgements);
            let damaged = damaged.iter().map(ToString::to_string);
            let what: Vec<_> = missing.into_iter().chain(damaged).collect();
            if !what.is_empty() {
                let what = what.join("; ");
                return Err(StoreError::new(path, StoreErrorKind::Loss { what }));
            }
            Ok(gathered.into_restored().0)
        }
    }
}

/// Reads everything of a store, and says what is missing or damaged.
pub fn check(path: &Path) -> Result<Checked, StoreError> {
    match place::find(path)? {
        Found::Segments => {}
        Found::Nothing | Found::Empty => return Err(missing(path)),
        Found::Earlier | Found::Backup => {
            let restored = contents(path)?;
            let count = |is: fn(&crosstie_queues::Record) -> bool| {
                restored.iter().filter(|found| is(&found.record)).count() as u64
            };
            use crosstie_queues::Record::{Enqueued, QueueDeclared};
            return Ok(Checked {
                queues: count(|record| matches!(record, QueueDeclared { .. })),
                messages: count(|record| matches!(record, Enqueued { .. })),
                ..Checked::default()
            });
        }
    }
    let survey = Survey::begin(path)?;
    let mut gathered = Gathered::default();
    let mut checked = Checked::default();
    survey.visit(&mut |queue, place, item| {
        checked.note(&item);
        // A whole message is not needed any more.
        if !matches!(item, Item::Message(Some(_))) {
            gathered.add(queue, place, item);
        }
        Ok(())
    })?;
    survey.conclude(&mut checked, &gathered);
    Ok(checked)
}

/// Writes what can be read of a store into a new store, at a path where nothing is.
pub fn salvage(path: &Path, to: &Path) -> Result<Salvaged, StoreError> {
    if place::find(path)? != Found::Segments {
        return Err(missing(path));
    }
    check_vacancy(to)?;
    let survey = Survey::begin(path)?;
    let mut gathered = Gathered::default();
    let mut salvaged = Salvaged::default();
    let draft = place::make_draft(to)?;
    let _lock = Lock::take(&draft)?;
    let recovered = &survey.recovered;
    let end = (recovered.next_sequence, recovered.confirmed.time_ms);
    let mut copy = Copy::begin(&draft, to, end)?;
    let mut failed = None;
    let visited = survey.visit(&mut |queue, place, item| {
        salvaged.lost.note(&item);
        if let Err(error) = copy.add(queue, place, &item) {
            failed = Some(error);
            return Err(io::Error::other("the new store cannot be written"));
        }
        if !matches!(item, Item::Message(Some(_))) {
            gathered.add(queue, place, item);
        }
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error);
    }
    visited?;
    copy.end()?;
    place::name_draft(&draft, to)?;
    survey.conclude(&mut salvaged.lost, &gathered);
    salvaged.messages = salvaged.lost.messages;
    Ok(salvaged)
}

/// Puts a backup in the place of a store, which is kept beside it; returns the new path of that, if there was one.
pub fn restore(backup: &Path, path: &Path) -> Result<Option<PathBuf>, StoreError> {
    if place::find(backup)? != Found::Backup {
        let what = "it is no backup".to_owned();
        return Err(StoreError::new(backup, StoreErrorKind::Foreign { what }));
    }
    let found = place::find(path)?;
    let _former = match found {
        Found::Segments | Found::Empty => Some(Lock::take(path)?),
        Found::Nothing | Found::Earlier | Found::Backup => None,
    };
    let draft = place::make_draft(path)?;
    let _lock = Lock::take(&draft)?;
    build::restore_into(&draft, path, backup)?;
    match found {
        Found::Nothing | Found::Empty => place::name_draft(&draft, path).map(|()| None),
        Found::Segments | Found::Earlier | Found::Backup => {
            place::replace_by_draft(&draft, path).map(Some)
        }
    }
}

/// The reading of a store that is locked meanwhile.
struct Survey {
    path: PathBuf,
    recovered: Recovered,
    _lock: Lock,
}

impl Survey {
    fn begin(path: &Path) -> Result<Self, StoreError> {
        let lock = Lock::take(path)?;
        Ok(Self {
            path: path.to_owned(),
            recovered: recover_at(path)?,
            _lock: lock,
        })
    }

    fn visit(
        &self,
        visit: &mut dyn FnMut(crate::segments::record::QueueKey, i64, Item) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let disk = RealDisk::new(&self.path);
        for part in Snapshot::take(&self.recovered.state, |_| true).parts {
            if self.recovered.loss.segments.contains(&part.number) {
                continue;
            }
            let visited = part.visit(&disk, self.recovered.manifest.store, visit);
            visited.map_err(|fault| StoreError::fault(&self.path, fault))?;
        }
        Ok(())
    }

    fn missing(&self, names: &Names, gathered: &Gathered) -> Vec<String> {
        describe(&self.recovered, names, gathered.lost_entities.len())
    }

    fn conclude(&self, checked: &mut Checked, gathered: &Gathered) {
        checked.segments = self.recovered.state.segments.len() as u64;
        checked.missing = self.missing(&gathered.names, gathered);
        checked.damaged = gathered.damage(&self.recovered.loss.acknowledgements);
    }
}

impl Checked {
    fn note(&mut self, item: &Item) {
        use crate::segments::entity::Entity;
        use crosstie_queues::Record::QueueDeclared;
        match item {
            Item::Message(Some(_)) => self.messages += 1,
            Item::Entity(Some(Entity::Declared {
                record: QueueDeclared { .. },
                ..
            })) => self.queues += 1,
            _ => {}
        }
    }
}

fn check_vacancy(path: &Path) -> Result<(), StoreError> {
    match place::find(path)? {
        Found::Nothing => Ok(()),
        _ => Err(StoreError::new(path, StoreErrorKind::Exists)),
    }
}

fn missing(path: &Path) -> StoreError {
    StoreError::io(path, "looking for it", io::ErrorKind::NotFound.into())
}
