//! The contents of a store that no node has open.

use std::path::Path;

use crosstie_disk::RealDisk;

use crate::archive;
use crate::check::absent;
use crate::damage::describe;
use crate::earlier;
use crate::error::{StoreError, StoreErrorKind};
use crate::gather::Gathered;
use crate::opening::recover_at;
use crate::place::{self, Found, Lock};
use crate::segments::contents::Snapshot;
use crate::{Restored, Setting};

/// The contents of a store.
#[derive(Debug, Default)]
pub struct Contents {
    pub restored: Vec<Restored>,
    /// Of the broker, by their keys.
    pub settings: Vec<Setting>,
}

/// Reads the vhosts of a store, a backup or a file of version 0.1.0, and changes nothing.
pub fn contents(path: &Path) -> Result<Vec<Restored>, StoreError> {
    Ok(all_contents(path)?.restored)
}

/// The same with the settings of the broker.
pub fn all_contents(path: &Path) -> Result<Contents, StoreError> {
    match place::find(path)? {
        Found::Nothing | Found::Empty => Err(absent(path)),
        Found::Earlier => Ok(Contents {
            restored: earlier::read(path, false)?.restored,
            settings: Vec::new(),
        }),
        Found::Backup => {
            let mut gathered = Gathered::default();
            archive::read(path, &mut |queue, place, item| {
                gathered.add(queue, place, item.clone());
                Ok(())
            })?;
            Ok(all(gathered))
        }
        Found::Segments => {
            let mut gathered = Gathered::default();
            let _lock = Lock::take(path)?;
            let recovered = recover_at(path)?;
            let disk = RealDisk::new(path);
            for part in Snapshot::all(&recovered.state).parts {
                if recovered.loss.segments.contains(&part.number) {
                    continue;
                }
                let visited = part.visit(
                    &disk,
                    recovered.manifest.store,
                    &mut |queue, place, item| {
                        gathered.add(queue, place, item);
                        Ok(())
                    },
                );
                visited.map_err(|fault| StoreError::fault(path, fault))?;
            }
            let missing = describe(&recovered, &gathered.names, gathered.lost_entities.len());
            let damaged = gathered.damage(&recovered.loss.acknowledgements);
            let damaged = damaged.iter().map(ToString::to_string);
            let what: Vec<_> = missing.into_iter().chain(damaged).collect();
            if !what.is_empty() {
                let what = what.join("; ");
                return Err(StoreError::new(path, StoreErrorKind::Loss { what }));
            }
            Ok(all(gathered))
        }
    }
}

fn all(mut gathered: Gathered) -> Contents {
    Contents {
        settings: gathered.take_settings(),
        restored: gathered.into_restored().0,
    }
}
