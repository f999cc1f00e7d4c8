//! A disk with sectors that cannot be read: they count as zeros, and are noted. It changes nothing.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crosstie_disk::{Disk, DiskFile, Room};
use rustix::io::Errno;

/// A part of a file that the system does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) file: String,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

type Noted = Arc<Mutex<Vec<Unread>>>;

/// Another disk, for reading.
#[derive(Debug)]
pub(crate) struct Tolerant<D> {
    disk: D,
    noted: Noted,
}

/// Bytes of one read around a bad sector.
const BLOCK: u64 = 4096;

impl<D: Disk> Tolerant<D> {
    pub(crate) fn new(disk: D) -> Self {
        Self {
            disk,
            noted: Arc::default(),
        }
    }

    /// The parts that could not be read so far, each once.
    pub(crate) fn unread(&self) -> Vec<Unread> {
        let noted = self.noted.lock();
        noted.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<D: Disk> Disk for Tolerant<D> {
    fn create(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(refused())
    }

    fn open(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(refused())
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(TolerantFile {
            file: self.disk.open_to_read(name)?,
            name: name.to_owned(),
            noted: Arc::clone(&self.noted),
        }))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        self.disk.names(directory)
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn room(&self) -> Option<Room> {
        self.disk.room()
    }
}

struct TolerantFile {
    file: Arc<dyn DiskFile>,
    name: String,
    noted: Noted,
}

impl TolerantFile {
    /// Reads block by block. A block that cannot be read is filled with zeros.
    fn read_blocks(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let end = self.file.bytes()?.min(at + bytes.len() as u64);
        let mut from = at;
        while from < end {
            let to = (from / BLOCK * BLOCK + BLOCK).min(end);
            let block = &mut bytes[(from - at) as usize..(to - at) as usize];
            match self.file.read_at(block, from) {
                Err(error) if is_unreadable(&error) => {
                    block.fill(0);
                    self.note(from, to - from);
                }
                Err(error) => return Err(error),
                // The file became shorter meanwhile.
                Ok(count) if count < block.len() => return Ok((from - at) as usize + count),
                Ok(_) => {}
            }
            from = to;
        }
        Ok(end.saturating_sub(at) as usize)
    }

    fn note(&self, at: u64, bytes: u64) {
        let unread = Unread {
            file: self.name.clone(),
            at,
            bytes,
        };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if !noted.contains(&unread) {
            noted.push(unread);
        }
    }
}

impl DiskFile for TolerantFile {
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(refused())
    }

    fn write_zeros(&self, _: u64, _: u64) -> io::Result<()> {
        Err(refused())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        match self.file.read_at(bytes, at) {
            Err(error) if is_unreadable(&error) => self.read_blocks(bytes, at),
            read => read,
        }
    }

    fn sync(&self) -> io::Result<()> {
        Err(refused())
    }

    fn set_bytes(&self, _: u64) -> io::Result<()> {
        Err(refused())
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
}

impl fmt::Debug for TolerantFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TolerantFile").field(&self.name).finish()
    }
}

/// A bad sector, or one whose checksum in the file system is wrong.
fn is_unreadable(error: &io::Error) -> bool {
    let errnos = [Errno::IO, Errno::BADMSG].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| errnos.contains(&code))
}

fn refused() -> io::Error {
    io::ErrorKind::ReadOnlyFilesystem.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of 10,000 bytes whose second block is bad.
    #[derive(Debug)]
    struct Worn;

    impl Disk for Worn {
        fn create(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
            Err(refused())
        }
        fn open(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
            Err(refused())
        }
        fn open_to_read(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
            Ok(Arc::new(Self))
        }
        fn rename(&self, _: &str, _: &str) -> io::Result<()> {
            Err(refused())
        }
        fn remove(&self, _: &str) -> io::Result<()> {
            Err(refused())
        }
        fn names(&self, _: &str) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }
        fn sync(&self, _: &str) -> io::Result<()> {
            Err(refused())
        }
        fn room(&self) -> Option<Room> {
            None
        }
    }

    impl DiskFile for Worn {
        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Err(refused())
        }
        fn write_zeros(&self, _: u64, _: u64) -> io::Result<()> {
            Err(refused())
        }
        fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
            let end = (at + bytes.len() as u64).min(10_000);
            if at < 8192 && end > 4096 {
                return Err(Errno::IO.into());
            }
            let count = end.saturating_sub(at) as usize;
            bytes[..count].fill(7);
            Ok(count)
        }
        fn sync(&self) -> io::Result<()> {
            Err(refused())
        }
        fn set_bytes(&self, _: u64) -> io::Result<()> {
            Err(refused())
        }
        fn bytes(&self) -> io::Result<u64> {
            Ok(10_000)
        }
    }

    #[test]
    fn bad_sectors_are_zeros_and_the_rest_is_read() {
        let disk = Tolerant::new(Worn);
        let file = disk.open_to_read("a").expect("a file");
        let mut bytes = vec![1; 12_000];
        for _ in 0..2 {
            assert_eq!(file.read_at(&mut bytes, 100).expect("the rest"), 9_900);
            assert!(bytes[..3996].iter().all(|byte| *byte == 7));
            assert!(bytes[3996..8092].iter().all(|byte| *byte == 0));
            assert!(bytes[8092..9900].iter().all(|byte| *byte == 7));
        }
        let unread = Unread {
            file: "a".to_owned(),
            at: 4096,
            bytes: 4096,
        };
        assert_eq!(disk.unread(), [unread]);
        assert_eq!(file.read_at(&mut bytes[..100], 9_950).expect("read"), 50);
    }
}
