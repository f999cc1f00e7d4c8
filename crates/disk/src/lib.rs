//! File operations of the store and of streams, so that a simulated disk can take the real one's place.
//!
//! A path is relative to the disk's root, with `/` between its parts; an empty one is the root.

pub mod simulated;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Space on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Of the file system.
    pub total_bytes: u64,
}

/// `None` if the system does not report it.
pub fn room(path: &Path) -> Option<Room> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(Room {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

/// Directories of files.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a file, which must not exist, for reading and writing.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Replaces a file of the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The files and directories in a directory.
    fn names(&self, directory: &str) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals in a directory last.
    fn sync(&self, directory: &str) -> io::Result<()>;
    /// Free space, if it is known.
    fn room(&self) -> Option<Room>;
    /// Makes a directory with those above it; it may exist.
    fn make_directory(&self, _directory: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// With its files.
    fn remove_directory(&self, _directory: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Writes all of the bytes, or fails.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Writes so many zeros, or fails.
    fn write_zeros(&self, bytes: u64, at: u64) -> io::Result<()>;
    /// Reads up to the file's end, or until the buffer is full; returns the bytes read.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize>;
    /// Makes the data and the length last.
    fn sync(&self) -> io::Result<()>;
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;
    fn bytes(&self) -> io::Result<u64>;
}

static ZEROS: [u8; 4096] = [0; 4096];

/// A directory of the file system.
#[derive(Debug)]
pub struct RealDisk {
    directory: PathBuf,
}

impl RealDisk {
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Disk for RealDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        // Only the owner may read messages.
        options.read(true).write(true).create_new(true).mode(0o600);
        Ok(Arc::new(options.open(self.path(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path(name));
        Ok(Arc::new(opened?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(directory))? {
            // Ours are all text.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync(&self, directory: &str) -> io::Result<()> {
        File::open(self.path(directory))?.sync_all()
    }

    fn make_directory(&self, directory: &str) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        // Only the owner may read messages.
        builder.recursive(true).mode(0o700);
        builder.create(self.path(directory))
    }

    fn remove_directory(&self, directory: &str) -> io::Result<()> {
        fs::remove_dir_all(self.path(directory))
    }

    fn room(&self) -> Option<Room> {
        room(&self.directory)
    }
}

impl DiskFile for File {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn write_zeros(&self, bytes: u64, at: u64) -> io::Result<()> {
        // The same page many times: less memory, and fewer calls.
        let slices = [IoSlice::new(&ZEROS); 256];
        let end = at + bytes;
        let mut at = at;
        while at < end {
            let pages = ((end - at) / ZEROS.len() as u64).min(slices.len() as u64);
            let written = match pages {
                0 => {
                    let rest = (end - at) as usize;
                    self.write_all_at(&ZEROS[..rest], at)?;
                    rest
                }
                pages => rustix::io::pwritev(self, &slices[..pages as usize], at)?,
            };
            at += written as u64;
        }
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match FileExt::read_at(self, &mut bytes[done..], at + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }
}

/// The files and directories in a directory, none if that is missing.
pub fn names_if_there(disk: &dyn Disk, directory: &str) -> io::Result<Vec<String>> {
    match disk.names(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

/// Opens a file to read and to write; makes it if it is missing.
pub fn open_or_create(disk: &dyn Disk, name: &str) -> io::Result<Arc<dyn DiskFile>> {
    match disk.open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => disk.create(name),
        opened => opened,
    }
}

/// Reads a whole file.
pub fn read_whole(disk: &dyn Disk, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open_to_read(name)?;
    read_part(&*file, 0, file.bytes()?)
}

/// Reads a part of a file, which may end early.
pub fn read_part(file: &dyn DiskFile, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut out = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    let count = file.read_at(&mut out, at)?;
    out.truncate(count);
    Ok(out)
}

/// Removes a file that may be missing.
pub fn remove_if_there(disk: &dyn Disk, name: &str) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file of the root under another name, synced, and then gives it its name.
pub fn replace_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = format!("{name}.new");
    remove_if_there(disk, &draft)?;
    let file = disk.create(&draft)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(&draft, name)?;
    disk.sync("")
}
