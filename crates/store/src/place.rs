//! The directory of a store: what is at its path, the lock on it, and how another one takes its place.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crosstie_disk::{Disk, RealDisk};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::error::{StoreError, StoreErrorKind};
use crate::file::{beside, folder};
use crate::form::{BACKUP_MAGIC, EARLIER_MAGIC};
use crate::segments::manifest;
use crate::segments::recover::is_file_of_store;

/// The kind of file at the path of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A directory without anything in it.
    Empty,
    Segments,
    /// The file of version 0.1.0.
    Earlier,
    Backup,
}

impl Found {
    /// Whether a store takes its place.
    pub(crate) fn is_to_be_replaced(self) -> bool {
        matches!(self, Self::Earlier | Self::Backup)
    }
}

/// A locked directory or file. Other processes, and other stores of this one, are refused while it exists.
#[derive(Debug)]
pub(crate) struct Lock {
    _directory: File,
}

/// Time for another process to end after its signal.
const IN_USE_MAX: Duration = Duration::from_secs(2);

/// The ending of a store that is not complete yet.
const DRAFT: &str = ".draft";

/// The ending of one that is complete, and takes another one's place.
const NEW: &str = ".new";

/// The ending of one that has been replaced.
const FORMER: &str = ".former";

/// A file that a directory has which was made for a store, until that has its name. Without it nothing is removed.
const MARK: &str = "draft";

/// A store under its temporary name, which is removed unless the store is completed.
pub(crate) struct Draft(pub(crate) PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // After a success it has another name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The path that a symbolic link leads to, from one to the next; it need not exist. A store is made, and kept beside its
/// successor, where its directory is: the link may lead to another file system.
pub(crate) fn follow(path: &Path) -> Result<PathBuf, StoreError> {
    let fault = |error| StoreError::io(path, "finding it", error);
    let mut found = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&found) {
            Ok(target) => found = folder(&found).join(target),
            // It is no link, or nothing; the rest is for those who open it.
            Err(_) => return Ok(found),
        }
    }
    Err(fault(Errno::LOOP.into()))
}

/// As in Linux.
const LINKS_MAX: usize = 40;

/// Whether a file system is mounted at a path.
fn is_mounted(path: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    device(path).is_some_and(|found| Some(found) != device(folder(path)))
}

/// Looks at a path, and changes nothing.
pub(crate) fn find(path: &Path) -> Result<Found, StoreError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Reported now, and not when the first message is to be stored.
            let metadata = fs::metadata(folder(path));
            metadata.map_err(|error| StoreError::io(path, "looking for its directory", error))?;
            return Ok(Found::Nothing);
        }
        Err(error) => return Err(StoreError::io(path, "looking for it", error)),
    };
    if metadata.is_dir() {
        let names = RealDisk::new(path).names("");
        let names = names.map_err(|error| StoreError::io(path, "reading it", error))?;
        // A file system of its own has this.
        let is_nothing = |name: &String| name == "lost+found" || *name == half_a_manifest();
        if names.iter().all(is_nothing) {
            return Ok(Found::Empty);
        }
        if !names.iter().any(|name| is_file_of_store(name)) {
            return Err(foreign(path, "it is a directory of something else"));
        }
        let manifest = fs::read(path.join(manifest::NAME)).unwrap_or_default();
        return match manifest::version(&manifest) {
            Some(version) if version != manifest::VERSION => Err(StoreError::new(
                path,
                StoreErrorKind::Version {
                    found: version.into(),
                    expected: manifest::VERSION.into(),
                },
            )),
            // If it cannot be read, that is damage.
            _ => Ok(Found::Segments),
        };
    }
    if !metadata.is_file() {
        return Err(foreign(path, "it is neither a directory nor a file"));
    }
    let mut magic = [0; 16];
    let count = File::open(path).and_then(|mut file| read_up_to(&mut file, &mut magic));
    let count = count.map_err(|error| StoreError::io(path, "reading it", error))?;
    if magic[..count].starts_with(EARLIER_MAGIC) {
        return Ok(Found::Earlier);
    }
    match magic[..count].starts_with(BACKUP_MAGIC) {
        true => Ok(Found::Backup),
        false => Err(foreign(path, "it is a file of something else")),
    }
}

/// The file that a creation leaves behind that was cut short.
fn half_a_manifest() -> String {
    format!("{}.new", manifest::NAME)
}

fn read_up_to(file: &mut File, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match file.read(&mut out[done..])? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

impl Lock {
    /// Locks a directory, or the file that a store replaces.
    pub(crate) fn take(directory: &Path) -> Result<Self, StoreError> {
        let fault = |error| StoreError::io(directory, "locking it", error);
        let until = Instant::now() + IN_USE_MAX;
        loop {
            let file = File::open(directory).map_err(fault)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, directory) => return Ok(Self { _directory: file }),
                // Another one has taken its place before it was locked.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(20));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(StoreError::new(directory, StoreErrorKind::InUse));
                }
                Err(error) => return Err(fault(error.into())),
            }
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: io::Result<fs::Metadata>| metadata.map(|m| (m.dev(), m.ino())).ok();
    let found = identity(file.metadata());
    found.is_some() && found == identity(fs::metadata(path))
}

/// Makes an empty directory for a new store, which gets its name when it is complete. One that another process is filling
/// is left to it.
pub(crate) fn make_draft(path: &Path) -> Result<PathBuf, StoreError> {
    if is_mounted(path) {
        // It cannot be renamed, and nothing else can get its name.
        return Err(StoreError::new(path, StoreErrorKind::Mounted));
    }
    let draft = beside(path, DRAFT);
    let fault = |error| StoreError::io(path, "making it", error);
    if draft.is_dir() {
        drop(Lock::take(&draft)?);
    }
    remove_draft(&draft)?;
    // Only the owner may read messages.
    DirBuilder::new()
        .mode(0o700)
        .create(&draft)
        .and_then(|()| File::create_new(draft.join(MARK)))
        .map_err(fault)?;
    Ok(draft)
}

/// Removes a directory that was made for a store, and refuses to remove another one.
fn remove_draft(draft: &Path) -> Result<(), StoreError> {
    let fault = |error| StoreError::io(draft, "removing it", error);
    // An empty one may have been cut short before its mark.
    if fs::symlink_metadata(draft).is_err() || fs::remove_dir(draft).is_ok() {
        return Ok(());
    }
    if !is_draft(draft) {
        return Err(StoreError::new(draft, StoreErrorKind::InTheWay));
    }
    // Without a manifest it is no complete store, whatever is left of it; and the mark stays until nothing is.
    match fs::remove_file(draft.join(manifest::NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(error)),
        _ => {}
    }
    for entry in fs::read_dir(draft).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if entry.file_name() != MARK {
            fs::remove_file(entry.path()).map_err(fault)?;
        }
    }
    fs::remove_dir_all(draft).map_err(fault)
}

fn is_draft(directory: &Path) -> bool {
    directory.join(MARK).is_file()
}

/// Removes the mark of a store that has its name.
fn unmark(path: &Path) {
    // A store that keeps it works as well.
    let _ = fs::remove_file(path.join(MARK));
}

/// Removes a store that was to take the place of the one at a path, which has gone on instead.
pub(crate) fn forget_replacement(path: &Path) {
    let new = beside(path, NEW);
    if is_draft(&new) {
        // The next start tries again.
        let _ = remove_draft(&new);
    }
}

/// Gives a draft its name, which nothing may have but an empty directory.
pub(crate) fn name_draft(draft: &Path, path: &Path) -> Result<(), StoreError> {
    rename_draft(draft, path)?;
    sync_folder(path)
}

/// The same, without a sync.
pub(crate) fn rename_draft(draft: &Path, path: &Path) -> Result<(), StoreError> {
    fs::rename(draft, path).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::NotADirectory => StoreError::new(path, StoreErrorKind::InUse),
        _ => StoreError::io(path, "making it", error),
    })?;
    unmark(path);
    Ok(())
}

/// Puts a draft in the place of what is there, which is kept beside it; returns its new path.
pub(crate) fn replace_by_draft(draft: &Path, path: &Path) -> Result<PathBuf, StoreError> {
    let (former, new) = (former(path), beside(path, NEW));
    let fault = |error| StoreError::io(path, "naming it", error);
    remove_draft(&new)?;
    // By this name it is known to be complete.
    fs::rename(draft, &new).map_err(fault)?;
    sync_folder(path)?;
    fs::rename(path, &former).map_err(fault)?;
    for ending in ["-wal", "-shm"] {
        // They belong to a file of version 0.1.0, and are mostly not there.
        let _ = fs::rename(beside(path, ending), beside(&former, ending));
    }
    let _ = fs::remove_file(beside(path, "-reserve"));
    fs::rename(&new, path).map_err(fault)?;
    unmark(path);
    sync_folder(path)?;
    Ok(former)
}

/// Removes the empty log of a file of version 0.1.0 that has been replaced.
pub(crate) fn forget_empty_log(former: &Path) {
    let log = beside(former, "-wal");
    if fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
        // It would be read as empty, too.
        let _ = fs::remove_file(log);
    }
}

/// Whether there is a replacement that was cut short between its two renames, or is there at present.
pub(crate) fn is_half_replaced(path: &Path) -> bool {
    let new = beside(path, NEW);
    fs::symlink_metadata(path).is_err()
        && is_draft(&new)
        && new.join(manifest::NAME).exists()
        && beside(path, FORMER).exists()
}

/// Finishes that.
pub(crate) fn finish_replacement(path: &Path) -> Result<(), StoreError> {
    name_draft(&beside(path, NEW), path)
}

/// A free name for what is replaced.
fn former(path: &Path) -> PathBuf {
    let names = (1..).map(|number| match number {
        1 => beside(path, FORMER),
        _ => beside(path, &format!("{FORMER}.{number}")),
    });
    let mut free = names.filter(|name| fs::symlink_metadata(name).is_err());
    free.next().unwrap_or_default()
}

pub(crate) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(folder(path))
        .and_then(|folder| folder.sync_all())
        .map_err(|error| StoreError::io(path, "syncing its directory", error))
}

fn foreign(path: &Path, what: &str) -> StoreError {
    let what = what.to_owned();
    StoreError::new(path, StoreErrorKind::Foreign { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_file_system_is_named_before_anything_is_made() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(!is_mounted(directory.path()));
        assert!(!is_mounted(&directory.path().join("none")));
        let refused = make_draft(Path::new("/proc")).expect_err("it is mounted");
        assert!(refused.to_string().contains("mounted"), "{refused}");
    }

    #[test]
    fn links_are_followed_to_what_need_not_be_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let link = |to: &Path, name| std::os::unix::fs::symlink(to, at(name)).expect("a link");
        link(&at("there"), "first");
        link(Path::new("first"), "second");
        link(Path::new("round"), "round");
        for name in ["there", "first", "second"] {
            assert_eq!(follow(&at(name)).expect("found"), at("there"), "{name}");
        }
        follow(&at("round")).expect_err("it comes to no end");
    }
}
