//! A private directory for a node's sockets, while it runs.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tempfile::TempDir;

const PREFIX: &str = "crosstie-router-";
/// The prefix in a node's own directory.
const OWN_PREFIX: &str = ".run-";
/// Maximum length of a Unix socket's path, without the terminating zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Maximum length of a socket's name in it.
const SOCKET_NAME_BYTES_MAX: usize = 24;

/// A directory of mode 0700: in `$XDG_RUNTIME_DIR`, or else in the node's directory, or else among temporary files.
///
/// With systemd's `PrivateTmp`, a service has its own temporary directory, in which no command finds its sockets. The
/// node's directory may be too deep for a socket's path, read-only, or on a file system without sockets. The directory
/// is locked while its node lives, so that the next node recognizes and removes what killed nodes left.
pub struct RunDirectory {
    directory: TempDir,
    /// Held until the directory is removed.
    _lock: File,
}

impl RunDirectory {
    /// `preferred` is `$XDG_RUNTIME_DIR`, `own` the node's directory; the first usable place is taken.
    pub fn make(preferred: Option<&Path>, own: &Path) -> io::Result<Self> {
        let mut first_error = None;
        let temporary = std::env::temp_dir();
        let places = [
            (preferred.unwrap_or_else(|| Path::new("")), PREFIX),
            (own, OWN_PREFIX),
            (temporary.as_path(), PREFIX),
            // Usable if the others are too deep.
            (Path::new("/tmp"), PREFIX),
        ];
        for (place, prefix) in places.into_iter().filter(|(place, _)| place.is_absolute()) {
            match Self::make_in(place, prefix) {
                Ok(made) => return Ok(made),
                Err(e) => first_error = first_error.or(Some(e)),
            }
        }
        Err(first_error.unwrap_or_else(|| io::Error::other("no place for sockets")))
    }

    fn make_in(place: &Path, prefix: &str) -> io::Result<Self> {
        let about = |e: io::Error| {
            let text = format!(
                "cannot make a directory for sockets in '{}': {e}",
                place.display()
            );
            io::Error::new(e.kind(), text)
        };
        let bytes = place.as_os_str().len() + 1 + prefix.len() + 6 + 1 + SOCKET_NAME_BYTES_MAX;
        if bytes > SOCKET_PATH_BYTES_MAX {
            return Err(about(io::ErrorKind::InvalidFilename.into()));
        }
        remove_leftovers(place, prefix);
        loop {
            let directory = tempfile::Builder::new()
                .prefix(prefix)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(place)
                .map_err(about)?;
            let probe = directory.path().join("probe.sock");
            UnixListener::bind(&probe).map_err(about)?;
            fs::remove_file(&probe).map_err(about)?;
            let lock = File::open(directory.path()).map_err(about)?;
            // Another node may take it for a leftover before it is locked. On file systems without locks, no node finds
            // leftovers.
            let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
            if locked != Err(Errno::WOULDBLOCK) && directory.path().exists() {
                return Ok(Self {
                    directory,
                    _lock: lock,
                });
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The path for a socket; names have at most 24 bytes.
    pub fn socket(&self, name: &str) -> PathBuf {
        debug_assert!(name.len() <= SOCKET_NAME_BYTES_MAX, "{name}");
        self.path().join(name)
    }
}

/// Removes the directories of killed nodes.
fn remove_leftovers(place: &Path, prefix: &str) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries {
        let is_named_so = entry.file_name().to_string_lossy().starts_with(prefix);
        if is_named_so && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // A leftover that cannot be removed is harmless.
            let _ = remove_leftover(&entry.path());
        }
    }
}

fn remove_leftover(path: &Path) -> io::Result<()> {
    let directory = File::open(path)?;
    if directory.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_socket() {
            fs::remove_file(entry.path())?;
        }
    }
    // Fails if it contains anything else, and then is not a node's.
    fs::remove_dir(path)
}
