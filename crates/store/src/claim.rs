//! A store without a file yet: checks whether the file can be created, and reserves its name.
//!
//! Checked at the start, and not with the first message. Neither leaves anything in the directory.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{StoreError, StoreErrorKind};
use crate::file::{beside, folder};

/// Reserves the name of a file that does not exist yet, while this value lives.
///
/// The name belongs to an unused socket: the system gives it to one process, and frees it however that process ends. A
/// lock on the directory would exclude processes with other files in it.
pub(crate) struct Claim {
    // `None` if the system has no such names; the file itself is still created only once.
    _socket: Option<UnixDatagram>,
}

impl Claim {
    /// Claims the file's name, and tries whether a file can be made there.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let folder = folder(path);
        let metadata = fs::metadata(folder)
            .map_err(|error| StoreError::io(path, "looking for its directory", error))?;
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        // Names of sockets are short.
        let name = format!(
            "crosstie-store/{:x}/{:x}/{:x}-{:08x}",
            metadata.dev(),
            metadata.ino(),
            name.len(),
            crc32fast::hash(name)
        );
        let bound = SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixDatagram::bind_addr(&address));
        let socket = match bound {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(StoreError::new(path, StoreErrorKind::InUse));
            }
            bound => bound.ok(),
        };
        match try_to_make(path) {
            // There may be room when there is something to write.
            Err(error) if !matches!(error.kind, StoreErrorKind::Full) => Err(error),
            _ => Ok(Self { _socket: socket }),
        }
    }
}

fn try_to_make(path: &Path) -> Result<(), StoreError> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    // An empty directory is filled; the one above it may be closed.
    let (folder, draft) = match path.is_dir() {
        true => (path, path.join(".try")),
        false => (folder(path), beside(path, ".try")),
    };
    let made = match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(()),
        // File systems that know no files without a name.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
            let made = OpenOptions::new().write(true).create_new(true).open(&draft);
            made.and_then(|_| fs::remove_file(&draft))
        }
        Err(error) => Err(error.into()),
    };
    made.map_err(|error| StoreError::io(path, "making it", error))
}
