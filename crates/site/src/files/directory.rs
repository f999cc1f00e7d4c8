//! A directory, and nothing outside of it.
//!
//! The kernel resolves the names (openat2 with `RESOLVE_BENEATH`): neither dots nor symbolic links that point outside,
//! even if created between two steps, leave the directory.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2, statat,
};
use rustix::io::Errno;

/// A directory that files are served from.
pub(super) struct Directory {
    path: PathBuf,
    /// The last open descriptor, with its time in the transport's seconds: a directory that is replaced or created is
    /// served a second later.
    opened: Mutex<(u32, rustix::io::Result<Arc<OwnedFd>>)>,
}

/// The result of a lookup.
pub(super) enum Found {
    File(OpenFile),
    Directory,
    Nothing,
}

/// A readable file.
pub(super) struct OpenFile {
    pub(super) file: Arc<File>,
    pub(super) state: State,
}

/// What tells one state of a file from another: every write changes the second time, which nothing sets back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    device: u64,
    inode: u64,
    pub(super) length: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

/// Maximum number of names in a listing.
const NAMES_MAX: usize = 10_000;

impl Directory {
    /// A missing directory is not an error: nothing is found below it until it exists.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let opened = open_directory(&path);
        match opened {
            Err(Errno::NOENT | Errno::NOTDIR) => tracing::warn!(
                "there is no directory {}: nothing is found below it until there is",
                path.display()
            ),
            Err(e) => {
                let e = io::Error::from(e);
                let text = format!("directory {}: {e}", path.display());
                return Err(io::Error::new(e.kind(), text));
            }
            Ok(_) => {}
        }
        Ok(Self {
            opened: Mutex::new((crosstie_transport::now_s(), opened)),
            path,
        })
    }

    /// Looks up names, with slashes between.
    pub(super) fn find(&self, path: &str) -> io::Result<Found> {
        if path.is_empty() {
            return Ok(match self.directory() {
                Ok(_) => Found::Directory,
                Err(Errno::NOENT | Errno::NOTDIR) => Found::Nothing,
                Err(e) => return Err(e.into()),
            });
        }
        // Opening a pipe without a writer would block the thread.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.beneath(path, flags);
        let file = match opened {
            Ok(descriptor) => File::from(descriptor),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => {
                return Ok(Found::Nothing);
            }
            Err(e) => return Err(e.into()),
        };
        let stat = fstat(&file)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Found::Directory,
            FileType::RegularFile => Found::File(OpenFile {
                state: State::of(&stat),
                file: Arc::new(file),
            }),
            _ => Found::Nothing,
        })
    }

    /// The state of the file at that path, whose last name is no link. The path may lead out of the directory.
    pub(super) fn state(&self, path: &str) -> Option<State> {
        let directory = self.directory().ok()?;
        let stat = statat(&*directory, path, AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().map(|stat| State::of(&stat))
    }

    /// The names in a directory, sorted; those of directories end with a slash.
    pub(super) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let path = if path.is_empty() { "." } else { path };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let mut found = Vec::new();
        for entry in Dir::new(self.beneath(path, flags)?)?.take(NAMES_MAX) {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            match name {
                "." | ".." => {}
                name if entry.file_type().is_dir() => found.push(format!("{name}/")),
                name => found.push(name.to_owned()),
            }
        }
        found.sort();
        Ok(found)
    }

    fn beneath(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let directory = self.directory()?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&*directory, path, flags, Mode::empty(), resolve)
    }

    fn directory(&self) -> rustix::io::Result<Arc<OwnedFd>> {
        let now_s = crosstie_transport::now_s();
        let mut opened = self.opened.lock();
        if opened.0 != now_s {
            *opened = (now_s, open_directory(&self.path));
        }
        opened.1.clone()
    }
}

fn open_directory(path: &PathBuf) -> rustix::io::Result<Arc<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map(Arc::new)
}

impl State {
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            length: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// The time of the last modification since 1970. A time that an HTTP header cannot express counts as none.
    pub(super) fn modified(&self) -> Duration {
        let since = since_1970(self.modified);
        match since < YEAR_10000 {
            true => since,
            false => Duration::ZERO,
        }
    }

    /// The time since 1970 of the last change of the file or its attributes.
    pub(super) fn changed(&self) -> Duration {
        since_1970(self.changed)
    }
}

fn since_1970((s, ns): (i64, u64)) -> Duration {
    // Below a billion.
    let ns = u32::try_from(ns).unwrap_or(0);
    u64::try_from(s).map_or(Duration::ZERO, |s| Duration::new(s, ns))
}

const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);
