//! `node.pid`: states that a node runs in a directory, and its address.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosstie_router::passed;
use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::regular;

/// In the node's directory.
pub const PID_FILE: &str = "node.pid";
const BYTES_MAX: u64 = 1 << 20;
/// Readers hold the lock for a moment, too.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The directory belongs to this node until this is dropped or the process ends.
#[derive(Debug)]
pub struct Occupied {
    directory: PathBuf,
    file: File,
    started: String,
}

/// Why a node must not, or cannot, occupy a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// The only error that must stop a node.
    #[error("a node runs in '{}' already: {occupant}; `crosstie stop` ends it", .directory.display())]
    Running {
        directory: PathBuf,
        occupant: Occupant,
    },
    /// A read-only directory, or a file system without locks.
    #[error("no process id file '{}', so a second node would not be noticed: {error}", .path.display())]
    NotWritten { path: PathBuf, error: io::Error },
}

/// A running node's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupant {
    /// Unknown if the disk was full when it was written, and the kernel does not list the lock.
    pub pid: Option<u32>,
    /// In UTC, as written.
    pub started: Option<String>,
    /// The URL of its management realm.
    pub management: Option<String>,
    /// It holds no lock, as nodes of Crossbar.io do not.
    pub is_crossbar: bool,
}

impl std::fmt::Display for Occupant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_crossbar {
            "Crossbar.io, "
        } else {
            ""
        })?;
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("a process that could not write its id")?,
        }
        match &self.started {
            Some(started) => write!(f, ", since {started}"),
            None => Ok(()),
        }
    }
}

impl Occupied {
    /// Occupies a directory for this process. The file of a killed node is overwritten.
    pub fn take(directory: &Path) -> Result<Self, TakeError> {
        let path = directory.join(PID_FILE);
        let not_written = |error| TakeError::NotWritten {
            path: path.clone(),
            error,
        };
        let running = |occupant| TakeError::Running {
            directory: directory.to_owned(),
            occupant,
        };
        let mut tries = 0;
        let file = loop {
            let (file, is_writable) = open(&path).map_err(not_written)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // The locked file may have been removed since it was opened.
                Ok(()) if !is_at(&file, &path) => continue,
                Ok(()) if !is_writable => {
                    let error = io::ErrorKind::PermissionDenied.into();
                    return Err(not_written(error));
                }
                Ok(()) => break file,
                Err(Errno::WOULDBLOCK) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err(Errno::WOULDBLOCK) => return Err(running(holding(&file))),
                Err(e) => return Err(not_written(e.into())),
            }
        };
        let last = read(&file);
        if last.pid.is_some_and(is_crossbar) {
            let is_crossbar = true;
            return Err(running(Occupant {
                is_crossbar,
                ..last
            }));
        }
        // Another node's description must not remain, even if the disk is full.
        file.set_len(0).map_err(not_written)?;
        let occupied = Self::of(directory, file);
        // Only the lock matters; an error is reported when the file is written again.
        let _ = occupied.write(None);
        Ok(occupied)
    }

    /// Occupies a directory by the lock of a former process of the node, which lets go of it. Until
    /// [`passed::own_files`] the description stays that process's.
    pub fn inherit(directory: &Path, lock: OwnedFd) -> io::Result<Self> {
        let file = File::from(lock);
        let path = directory.join(PID_FILE);
        if !is_at(&file, &path) {
            let text = format!(
                "the former process of the node has its process id file elsewhere than '{}'",
                path.display()
            );
            return Err(io::Error::other(text));
        }
        Ok(Self::of(directory, file))
    }

    /// The locked file.
    pub(crate) fn lock(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn of(directory: &Path, file: File) -> Self {
        Self {
            directory: directory.to_owned(),
            file,
            started: chrono::Utc::now()
                .format("%Y-%m-%dT%H:%M:%S%.3fZ")
                .to_string(),
        }
    }

    /// Writes the node's description, with the URL of its management realm once that is reachable.
    pub fn write(&self, management: Option<&str>) -> io::Result<()> {
        let arguments: Vec<_> = std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        let mut text = json!({
            "pid": std::process::id(),
            "argv": arguments,
            "options": {"cbdir": self.directory.to_string_lossy()},
            "started": self.started,
            "management": management,
        })
        .to_string();
        text.push('\n');
        // In place, because the lock is on this file; in one write, so that readers get it whole.
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if !passed::owns_files() {
            // It is another process's, which holds the lock, too.
            return;
        }
        // While the file is locked: the next node creates another file.
        let _ = fs::remove_file(self.directory.join(PID_FILE));
    }
}

/// The node that runs in a directory, if any.
pub fn occupant(directory: &Path) -> io::Result<Option<Occupant>> {
    let path = directory.join(PID_FILE);
    let file = match regular::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            let text = format!("cannot read '{}': {e}", path.display());
            return Err(io::Error::new(e.kind(), text));
        }
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Ok(Some(holding(&file))),
        // No process holds the lock, or the file system has none.
        _ => {
            let told = read(&file);
            let is_crossbar = told.pid.is_some_and(is_crossbar);
            Ok(is_crossbar.then_some(Occupant {
                is_crossbar,
                ..told
            }))
        }
    }
}

/// Whether the process of that id, as seen by this process, holds the directory: a node in a container writes the id
/// that it has there.
pub fn is_held_by(directory: &Path, pid: u32) -> bool {
    let Ok(file) = regular::open(&directory.join(PID_FILE)) else {
        return false;
    };
    let held = fs::read_dir(format!("/proc/{pid}/fd"));
    held.into_iter()
        .flatten()
        .flatten()
        .any(|descriptor| is_at(&file, &descriptor.path()))
}

/// The node that holds a file's lock.
fn holding(file: &File) -> Occupant {
    let told = read(file);
    Occupant {
        pid: told.pid.or_else(|| holder(file)),
        ..told
    }
}

/// The process that holds a file's lock, from the kernel's list. The file itself does not name it if the disk was full.
fn holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (major(metadata.dev()), minor(metadata.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    // `1: FLOCK  ADVISORY  WRITE 4242 00:2a:17 0 EOF`
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_lock = words.next()? == "FLOCK";
        let pid = words.nth(2)?.parse().ok().filter(|&pid| pid > 0);
        pid.filter(|_| is_lock && words.next() == Some(place.as_str()))
    })
}

/// Opens or creates the file. Also returns whether it is writable: another user's file can only be read.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    match regular::open_with(&mut options, path) {
        Ok(file) => Ok((file, true)),
        Err(e) => regular::open(path).map(|file| (file, false)).map_err(|_| e),
    }
}

/// Whether a path still leads to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    let both = file
        .metadata()
        .and_then(|open| Ok((open, fs::metadata(path)?)));
    both.is_ok_and(|(open, named)| (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// The description in a file, as far as it can be read.
fn read(file: &File) -> Occupant {
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    let told: Value = read
        .ok()
        .and_then(|_| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let word = |name: &str| told.get(name).and_then(Value::as_str).map(str::to_owned);
    let pid = told.get("pid").and_then(Value::as_u64);
    Occupant {
        // 0 would mean all processes.
        pid: pid
            .and_then(|pid| u32::try_from(pid).ok())
            .filter(|&pid| pid > 0),
        started: word("started"),
        management: word("management"),
        is_crossbar: false,
    }
}

/// Whether a process is a node of Crossbar.io: by its program, not by its arguments, which may mention a folder
/// `.crossbar`.
fn is_crossbar(pid: u32) -> bool {
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else {
        return false;
    };
    // The interpreter, or its script.
    line.split(|&byte| byte == 0).take(2).any(|argument| {
        let name = argument
            .rsplit(|&byte| byte == b'/')
            .next()
            .unwrap_or_default();
        name == b"crossbar" || name == b"crossbarfx"
    })
}
