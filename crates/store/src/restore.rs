//! Puts a backup in the place of a store.

use std::path::{Path, PathBuf};

use crate::archive;
use crate::build::{restore_into, write_into};
use crate::check::{Checked, absent, check};
use crate::claim::Claim;
use crate::earlier;
use crate::error::{StoreError, StoreErrorKind};
use crate::file::StoreFile;
use crate::form::MESSAGES;
use crate::place::{self, Draft, Found, Lock};

/// A backup that is in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// The former store's new path, if there was one.
    pub former: Option<PathBuf>,
    pub queues: u64,
    pub messages: u64,
    /// When the backup was made, in milliseconds since 1970; `None` for a backup of version 0.1.0.
    pub time_ms: Option<u64>,
}

/// Puts a backup in the place of a store. A store that is there is refused, unless it is to be replaced; then it is kept
/// beside the new one. A store that is open is refused, and a backup with any damage. Until the new store is complete,
/// nothing has changed at the path.
pub fn restore(backup: &Path, store: &Path, replaces: bool) -> Result<PutBack, StoreError> {
    let of = place::find(backup)?;
    match of {
        Found::Backup | Found::Earlier => {}
        Found::Nothing => return Err(absent(backup)),
        Found::Empty | Found::Segments => {
            return Err(StoreError::new(backup, StoreErrorKind::NoBackup));
        }
    }
    let store = &place::follow(store)?;
    let found = place::find(store)?;
    let is_there = !matches!(found, Found::Nothing | Found::Empty);
    if is_there && !replaces {
        return Err(StoreError::new(store, StoreErrorKind::Replaces));
    }
    let _held = Held::take(store, found)?;
    let mut put_back = match of {
        Found::Earlier => PutBack::default(),
        _ => whole(backup)?,
    };
    let draft = Draft(place::make_draft(store)?);
    if of == Found::Earlier {
        let earlier::Read { restored, file, .. } = earlier::read(backup, false)?;
        for record in restored.iter().map(|found| &found.record) {
            use crosstie_queues::Record::{Enqueued, QueueDeclared};
            put_back.queues += u64::from(matches!(record, QueueDeclared { .. }));
            put_back.messages += u64::from(matches!(record, Enqueued { .. }));
        }
        drop(file);
        write_into(&draft.0, restored)?;
    } else {
        let _lock = Lock::take(&draft.0)?;
        restore_into(&draft.0, store, backup)?;
    }
    match is_there {
        true => put_back.former = Some(place::replace_by_draft(&draft.0, store)?),
        false => place::name_draft(&draft.0, store)?,
    }
    Ok(put_back)
}

/// Reads all of a backup before anything is made of it.
fn whole(backup: &Path) -> Result<PutBack, StoreError> {
    let checked: Checked = check(backup)?;
    if let Some(fault) = checked.faults.first() {
        let what = fault.what.clone();
        return Err(StoreError::new(
            backup,
            StoreErrorKind::DamagedBackup { what },
        ));
    }
    Ok(PutBack {
        former: None,
        queues: checked.queues().count() as u64,
        messages: checked.whole(),
        time_ms: Some(archive::end(backup)?.1),
    })
}

/// Keeps nodes away from a store's path.
enum Held {
    /// Its name is reserved: a node may run that has nothing durable yet.
    Name {
        _claim: Claim,
    },
    Directory {
        _lock: Lock,
    },
    /// A file of version 0.1.0, which SQLite locks.
    File {
        _file: Option<StoreFile>,
    },
}

impl Held {
    fn take(store: &Path, found: Found) -> Result<Self, StoreError> {
        Ok(match found {
            Found::Nothing | Found::Empty | Found::Backup => Self::Name {
                _claim: Claim::take(store)?,
            },
            Found::Segments => Self::Directory {
                _lock: Lock::take(store)?,
            },
            Found::Earlier => match StoreFile::open(store, &MESSAGES) {
                Err(error) if matches!(error.kind, StoreErrorKind::InUse) => return Err(error),
                // A damaged one is what is to be replaced.
                opened => Self::File {
                    _file: opened.ok().flatten(),
                },
            },
        })
    }
}
