//! The file operations of streams, so that a simulated disk can take the real one's place.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories of files. A path is relative, with `/` between its parts; an empty one is the root.
pub(crate) trait Disk: Send + Sync + fmt::Debug {
    /// With the directories above it; it may exist.
    fn make_directory(&self, path: &str) -> io::Result<()>;
    /// Its entries, in no order; none if it does not exist.
    fn names(&self, path: &str) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals in a directory last.
    fn sync_directory(&self, path: &str) -> io::Result<()>;
    /// With its files.
    fn remove_directory(&self, path: &str) -> io::Result<()>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Opens a file to read and to write; makes it if it is absent.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    fn open_to_read(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
}

pub(crate) trait DiskFile: Send + Sync + fmt::Debug {
    /// Writes all of the bytes, or fails.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Reads up to the file's end, or until the buffer is full; returns the bytes read.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize>;
    /// Makes the data and the length last.
    fn sync(&self) -> io::Result<()>;
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;
    fn bytes(&self) -> io::Result<u64>;
}

/// A directory of the file system.
#[derive(Debug)]
pub(crate) struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }
}

impl Disk for RealDisk {
    fn make_directory(&self, path: &str) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        // Only the owner may read messages.
        builder.recursive(true).mode(0o700);
        builder.create(self.root.join(path))
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            // Ours are all text.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        File::open(self.root.join(path))?.sync_all()
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        fs::remove_dir_all(self.root.join(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.root.join(path))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        Ok(Arc::new(options.open(self.root.join(path))?))
    }

    fn open_to_read(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::open(self.root.join(path))?))
    }
}

impl DiskFile for File {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
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

/// Reads a part of a file, which may end early.
pub(crate) fn read_part(file: &dyn DiskFile, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    let count = file.read_at(&mut out, at)?;
    out.truncate(count);
    Ok(out)
}
