//! A directory, and nothing outside of it.
//!
//! The kernel resolves the names (openat2 with `RESOLVE_BENEATH`): neither dots nor symbolic links that point outside,
//! even if created between two steps, leave the directory.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, open, openat2};
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
    pub(super) file: File,
    pub(super) length: u64,
    /// Since 1970.
    pub(super) modified: Duration,
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

    /// Looks up these names.
    pub(super) fn find(&self, names: &[&str]) -> io::Result<Found> {
        if names.is_empty() {
            return Ok(match self.directory() {
                Ok(_) => Found::Directory,
                Err(Errno::NOENT | Errno::NOTDIR) => Found::Nothing,
                Err(e) => return Err(e.into()),
            });
        }
        // Opening a pipe without a writer would block the thread.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.beneath(names, flags);
        let file = match opened {
            Ok(descriptor) => File::from(descriptor),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => {
                return Ok(Found::Nothing);
            }
            Err(e) => return Err(e.into()),
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(Found::Directory);
        }
        if !metadata.is_file() {
            return Ok(Found::Nothing);
        }
        Ok(Found::File(OpenFile {
            length: metadata.len(),
            modified: since_1970(metadata.modified()),
            file,
        }))
    }

    /// The names in a directory, sorted; those of directories end with a slash.
    pub(super) fn list(&self, names: &[&str]) -> io::Result<Vec<String>> {
        let path = if names.is_empty() { &["."][..] } else { names };
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

    fn beneath(&self, names: &[&str], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let directory = self.directory()?;
        let path = OsString::from(names.join("/"));
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

/// A time that an HTTP header cannot express counts as none.
fn since_1970(time: io::Result<SystemTime>) -> Duration {
    let since = time.map(|time| time.duration_since(SystemTime::UNIX_EPOCH));
    let since = since.ok().and_then(Result::ok).unwrap_or_default();
    match since < YEAR_10000 {
        true => since,
        false => Duration::ZERO,
    }
}

const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);
