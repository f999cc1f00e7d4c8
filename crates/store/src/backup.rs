//! A copy of a store in use, made between its commits.
//!
//! SQLite's online backup copies pages over the connection that commits, so that later commits are included: the copy
//! shows the store at the time of its last page. It is made under a temporary name, and renamed once it is complete and
//! synced.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup as Copying, StepResult};

use crate::error::{StoreError, StoreErrorKind};
use crate::file::{StoreFile, beside, folder, open_plain};
use crate::form::MESSAGES;

/// The size of a finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    pub bytes: u64,
}

/// Pages of 4 KiB that are copied at least before the next commit: a millisecond or two.
const SLICE_PAGES: i32 = 256;

/// Copies a store that is not open, to a file that must not exist.
pub fn back_up(store: &Path, path: &Path) -> Result<Backup, StoreError> {
    let file = StoreFile::open(store, &MESSAGES)?;
    let Some(file) = file else {
        let error = io::Error::from(io::ErrorKind::NotFound);
        return Err(StoreError::io(store, "looking for it", error));
    };
    copy(Some(&file.connection), path, &mut || Ok(()), |_, _| Ok(()))
}

/// Copies the open database of a connection; without a connection the copy is an empty store. `between` is called after
/// each slice, and its error stops the copying; `last` is applied to the copy.
pub(crate) fn copy(
    source: Option<&Connection>,
    path: &Path,
    between: &mut dyn FnMut() -> Result<(), StoreError>,
    last: impl FnOnce(&Connection, &Path) -> Result<(), StoreError>,
) -> Result<Backup, StoreError> {
    check_vacancy(path)?;
    let Some(source) = source else {
        StoreFile::create(path, &MESSAGES)?;
        return made(path);
    };
    let draft = beside(path, ".partial");
    OpenOptions::new()
        .write(true)
        .create_new(true)
        // Only the owner may read messages.
        .mode(0o600)
        .open(&draft)
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::new(&draft, StoreErrorKind::Partial),
            _ => StoreError::io(&draft, "making it", error),
        })?;
    let copied = copy_pages(source, &draft, between, last).and_then(|()| name(&draft, path));
    // Complete or not, the draft is not needed any more.
    let _ = fs::remove_file(&draft);
    copied?;
    sync_folder(path)?;
    made(path)
}

fn copy_pages(
    source: &Connection,
    draft: &Path,
    between: &mut dyn FnMut() -> Result<(), StoreError>,
    last: impl FnOnce(&Connection, &Path) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let failed = |error| StoreError::sqlite(draft, "writing it", error);
    let open = || {
        let target = open_plain(draft)?;
        // One that is not whole is thrown away; a whole one is synced at the end.
        target.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        target.pragma_update(None, "journal_mode", "OFF")?;
        target.pragma_update(None, "synchronous", "OFF")?;
        Ok(target)
    };
    let mut target = open().map_err(failed)?;
    {
        let copying = Copying::new(source, &mut target).map_err(failed)?;
        // Of the source, when it was last looked at; nothing is known of it before the first step.
        let mut pages = 0;
        loop {
            // Twice as many as have come meanwhile, or it would never end.
            let count = copying.progress().pagecount;
            let grown = if pages == 0 { 0 } else { count - pages };
            let slice = SLICE_PAGES.max(grown.saturating_mul(2));
            pages = count;
            match copying.step(slice).map_err(failed)? {
                StepResult::Done => break,
                StepResult::More => {}
                // The source's lock is this connection's; that of a file with another process's
                // hand in it comes back.
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
            between()?;
        }
    }
    last(&target, draft)?;
    target.close().map_err(|(_, error)| failed(error))?;
    File::open(draft)
        .and_then(|file| file.sync_all())
        .map_err(|error| StoreError::io(draft, "syncing it", error))
}

/// A link takes no other file's place, so that one made meanwhile is found.
fn name(draft: &Path, path: &Path) -> Result<(), StoreError> {
    fs::hard_link(draft, path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::new(path, StoreErrorKind::Exists),
        _ => StoreError::io(path, "naming it", error),
    })
}

/// Neither a file, nor a log that SQLite would take for the copy's.
fn check_vacancy(path: &Path) -> Result<(), StoreError> {
    for ending in ["", "-wal", "-journal"] {
        let there = beside(path, ending);
        match fs::symlink_metadata(&there) {
            Ok(_) => return Err(StoreError::new(&there, StoreErrorKind::Exists)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&there, "looking for it", error)),
        }
    }
    Ok(())
}

fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(folder(path))
        .and_then(|folder| folder.sync_all())
        .map_err(|error| StoreError::io(path, "syncing its directory", error))
}

fn made(path: &Path) -> Result<Backup, StoreError> {
    let metadata = fs::metadata(path);
    let metadata = metadata.map_err(|error| StoreError::io(path, "looking at it", error))?;
    Ok(Backup {
        path: path.to_owned(),
        bytes: metadata.len(),
    })
}
