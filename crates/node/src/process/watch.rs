//! Watches directories for changes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout_at};

/// Including subdirectories; a larger tree was hardly intended.
const DIRECTORIES_MAX: usize = 8_192;
/// Number of changed paths that are reported; further ones add nothing.
const PATHS_MAX: usize = 16;
/// Programs write a file in several steps, and editors write several files.
const QUIET: Duration = Duration::from_millis(200);
const QUIET_WAITED_MAX: Duration = Duration::from_secs(2);

/// Watches directories and all below them, except those whose names begin with a dot and Python's caches: tools change
/// these on their own.
///
/// A directory that is removed or moved away is reported and then no longer watched: create a new watch.
pub struct Watch {
    /// Not a pipe, but read like one: whole events at a time.
    notifier: pipe::Receiver,
    directories: BTreeMap<i32, PathBuf>,
}

impl Watch {
    /// Needs a tokio context.
    pub fn new(directories: &[PathBuf]) -> io::Result<Self> {
        let notifier = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut watch = Self {
            notifier: pipe::Receiver::from_owned_fd_unchecked(notifier)?,
            directories: BTreeMap::new(),
        };
        for directory in directories {
            watch.add(directory).map_err(|e| {
                let text = format!("cannot watch '{}': {e}", directory.display());
                io::Error::new(e.kind(), text)
            })?;
        }
        Ok(watch)
    }

    /// Waits for a change and a quiet period, and returns the changed paths. Dropping the wait may lose a change.
    pub async fn changed(&mut self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        while paths.is_empty() {
            self.collect(&mut paths).await?;
        }
        let latest = Instant::now() + QUIET_WAITED_MAX;
        loop {
            let quiet = (Instant::now() + QUIET).min(latest);
            match timeout_at(quiet, self.collect(&mut paths)).await {
                Ok(collected) => collected?,
                Err(_) => return Ok(paths),
            }
            if Instant::now() >= latest {
                return Ok(paths);
            }
        }
    }

    /// The first file, or directory below the named ones, whose modification time is `since` or later, as earlier
    /// events were not watched. Removals are not detected.
    pub fn changed_since(&self, since: SystemTime) -> Option<PathBuf> {
        let directories = self.directories.values();
        let entries = directories.filter_map(|directory| fs::read_dir(directory).ok());
        let mut entries = entries.flatten().filter_map(Result::ok);
        let changed = entries.find(|entry| {
            let metadata = entry.metadata();
            metadata.is_ok_and(|metadata| {
                let is_watched = !(metadata.is_dir() && is_left_out(&entry.file_name()));
                is_watched && metadata.modified().is_ok_and(|modified| modified >= since)
            })
        });
        changed.map(|entry| entry.path())
    }

    /// Waits for events, and collects all present ones.
    async fn collect(&mut self, paths: &mut Vec<PathBuf>) -> io::Result<()> {
        self.notifier.readable().await?;
        let mut buffer = [0; 4096];
        loop {
            match self.notifier.try_read(&mut buffer) {
                Ok(bytes) => events(&buffer[..bytes]).for_each(|event| self.handle(&event, paths)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }

    fn handle(&mut self, event: &Event<'_>, paths: &mut Vec<PathBuf>) {
        if event.what.contains(ReadFlags::QUEUE_OVERFLOW) {
            // The event queue overflowed: any directory may have changed.
            paths.extend(self.directories.values().take(1).cloned());
            return;
        }
        if event.what.contains(ReadFlags::IGNORED) {
            self.directories.remove(&event.directory);
            return;
        }
        let Some(directory) = self.directories.get(&event.directory) else {
            return;
        };
        let is_directory = event.what.contains(ReadFlags::ISDIR);
        if is_directory && is_left_out(event.name) {
            return;
        }
        let path = directory.join(event.name);
        if is_directory {
            // It may be gone again already.
            let _ = self.add(&path);
        }
        if paths.len() < PATHS_MAX && !paths.contains(&path) {
            paths.push(path);
        }
    }

    fn add(&mut self, directory: &Path) -> io::Result<()> {
        let mut left = vec![directory.to_owned()];
        while let Some(directory) = left.pop() {
            if self.directories.len() >= DIRECTORIES_MAX {
                let text = format!("expected at most {DIRECTORIES_MAX} directories in all");
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
            }
            let what = WatchFlags::CREATE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            let number = inotify::add_watch(&self.notifier, &directory, what)?;
            for entry in fs::read_dir(&directory)? {
                let entry = entry?;
                if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && !is_left_out(&entry.file_name())
                {
                    left.push(entry.path());
                }
            }
            self.directories.insert(number, directory);
        }
        Ok(())
    }
}

fn is_left_out(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") || name == OsStr::new("__pycache__")
}

/// inotify(7), `struct inotify_event`.
struct Event<'a> {
    directory: i32,
    what: ReadFlags,
    /// Empty for the directory itself.
    name: &'a OsStr,
}

/// The kernel returns whole events, in native byte order.
fn events(mut bytes: &[u8]) -> impl Iterator<Item = Event<'_>> {
    std::iter::from_fn(move || {
        let (directory, rest) = bytes.split_first_chunk()?;
        let (what, rest) = rest.split_first_chunk()?;
        let (_cookie, rest) = rest.split_first_chunk::<4>()?;
        let (name_bytes, rest) = rest.split_first_chunk()?;
        let name_bytes = usize::try_from(u32::from_ne_bytes(*name_bytes)).ok()?;
        let (name, rest) = rest.split_at_checked(name_bytes)?;
        bytes = rest;
        // Padded with zeros.
        let name = name.split(|&byte| byte == 0).next()?;
        Some(Event {
            directory: i32::from_ne_bytes(*directory),
            what: ReadFlags::from_bits_retain(u32::from_ne_bytes(*what)),
            name: OsStr::from_bytes(name),
        })
    })
}
