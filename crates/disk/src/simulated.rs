//! A disk in memory. What was not synced may be lost at a crash, in any part and any order.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Disk, DiskFile, Room};

/// A disk; its clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By number: files without a name may still be open.
    files: BTreeMap<u64, Contents>,
    names: BTreeMap<String, u64>,
    /// The names that last.
    lasting_names: BTreeMap<String, u64>,
    /// Changes of names since the last sync of the directory.
    renamed: Vec<(String, Option<u64>)>,
    directories: BTreeSet<String>,
    /// Those made since the last sync of the directory that they are in: they may be lost, with all that is in them.
    new_directories: BTreeSet<String>,
    number_last: u64,
    random: u64,
    bytes_max: u64,
    /// Bytes of all reads.
    read_bytes: u64,
    /// Operations until the disk fails with this error, and how often it does.
    fails_in: Option<(u64, io::ErrorKind, u64)>,
    /// Operations until nothing works any more: the process has ended.
    ends_in: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    /// As the process sees it.
    bytes: Vec<u8>,
    /// As it was synced.
    lasting: Vec<u8>,
    /// Writes since the last sync: where, and what. `None`: the length was set.
    unsynced: Vec<(usize, Option<Vec<u8>>)>,
}

/// A disk works in sectors: a write is torn between two of them.
const SECTOR: usize = 512;

impl SimulatedDisk {
    /// An empty one of that size.
    pub fn new(seed: u64, bytes_max: u64) -> Self {
        let disk = Self::default();
        disk.lock().random = seed | 1;
        disk.lock().bytes_max = bytes_max;
        disk
    }

    /// After so many operations the next ones fail, `times` of them.
    pub fn fail_in(&self, operations: u64, error: io::ErrorKind, times: u64) {
        self.lock().fails_in = Some((operations, error, times));
    }

    /// No operation fails any more.
    pub fn work_again(&self) {
        self.lock().fails_in = None;
    }

    /// After so many operations all fail.
    pub fn end_in(&self, operations: Option<u64>) {
        self.lock().ends_in = operations;
    }

    /// Nothing works any more.
    pub fn has_ended(&self) -> bool {
        self.lock().ends_in == Some(0)
    }

    /// Bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used()
    }

    /// Bytes that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.lock().read_bytes
    }

    /// The process ends: what it wrote stays.
    pub fn kill(&self) -> Self {
        let inner = self.lock();
        let disk = Self::new(inner.random.wrapping_mul(77), inner.bytes_max);
        {
            let mut next = disk.lock();
            next.names = inner.names.clone();
            next.lasting_names = inner.lasting_names.clone();
            next.renamed = inner.renamed.clone();
            next.directories = inner.directories.clone();
            next.new_directories = inner.new_directories.clone();
            next.number_last = inner.number_last;
            next.files = inner.files.clone();
        }
        disk
    }

    /// Power is lost: of what was not synced, any part may be there.
    pub fn lose_power(&self) -> Self {
        let disk = self.kill();
        {
            let mut next = disk.lock();
            let renamed = std::mem::take(&mut next.renamed);
            let mut names = next.lasting_names.clone();
            for (name, number) in renamed {
                // A directory is a journal: some of it may be missing from the end only.
                if next.chance(4) {
                    break;
                }
                change(&mut names, name, number);
            }
            for directory in std::mem::take(&mut next.new_directories) {
                if next.chance(2) {
                    names.retain(|name, _| !is_within(name, &directory));
                    next.directories
                        .retain(|other| *other != directory && !is_within(other, &directory));
                }
            }
            next.lasting_names = names.clone();
            next.names = names;
            let numbers: Vec<u64> = next.files.keys().copied().collect();
            for number in numbers {
                let Some(mut file) = next.files.remove(&number) else {
                    continue;
                };
                let mut bytes = file.lasting.clone();
                for (at, written) in std::mem::take(&mut file.unsynced) {
                    match written {
                        None => {
                            if next.chance(2) {
                                bytes.resize(at, 0);
                            }
                        }
                        Some(written) => {
                            for (part, sector) in sectors(at, &written) {
                                if next.chance(2) {
                                    let end = part + sector.len();
                                    if bytes.len() < end {
                                        bytes.resize(end, 0);
                                    }
                                    bytes[part..end].copy_from_slice(sector);
                                }
                            }
                        }
                    }
                }
                file.lasting = bytes.clone();
                file.bytes = bytes;
                next.files.insert(number, file);
            }
        }
        disk
    }

    /// Files with their bytes.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let inner = self.lock();
        let names = inner.names.iter();
        names
            .map(|(name, number)| (name.clone(), inner.files[number].bytes.clone()))
            .collect()
    }

    /// The paths of all files.
    pub fn paths(&self) -> Vec<String> {
        self.lock().names.keys().cloned().collect()
    }

    /// Changes a file's bytes as no program would.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut inner = self.lock();
        let number = inner.names[name];
        if let Some(file) = inner.files.get_mut(&number) {
            change(&mut file.bytes);
            file.lasting = file.bytes.clone();
            file.unsynced.clear();
        }
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.lock().next_random()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change(names: &mut BTreeMap<String, u64>, name: String, number: Option<u64>) {
    match number {
        Some(number) => drop(names.insert(name, number)),
        None => drop(names.remove(&name)),
    }
}

/// The directory of a path, and the name in it.
/// Whether something is in a directory, at any depth.
fn is_within(name: &str, directory: &str) -> bool {
    let rest = name.strip_prefix(directory);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A write in the parts that a disk writes at once.
fn sectors(at: usize, bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < bytes.len() {
        let to = ((at + from) / SECTOR + 1) * SECTOR - at;
        let to = to.min(bytes.len());
        parts.push((at + from, &bytes[from..to]));
        from = to;
    }
    parts
}

impl Inner {
    fn next_random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// One of so many times.
    fn chance(&mut self, of: u64) -> bool {
        self.next_random().is_multiple_of(of)
    }

    fn used(&self) -> u64 {
        let named = self.names.values();
        named
            .map(|number| self.files[number].bytes.len() as u64)
            .sum()
    }

    /// Counts an operation that changes something.
    fn operate(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.ends_in {
            if *left == 0 {
                return Err(io::Error::other("the process has ended"));
            }
            *left -= 1;
        }
        if let Some((left, error, times)) = &mut self.fails_in {
            if *left == 0 {
                let error = *error;
                *times = times.saturating_sub(1);
                if *times == 0 {
                    self.fails_in = None;
                }
                return Err(error.into());
            }
            *left -= 1;
        }
        Ok(())
    }

    fn find(&self, name: &str) -> io::Result<u64> {
        self.names
            .get(name)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&mut self, name: &str, number: Option<u64>) {
        change(&mut self.names, name.to_owned(), number);
        self.renamed.push((name.to_owned(), number));
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.lock();
        inner.operate()?;
        if inner.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        inner.number_last += 1;
        let number = inner.number_last;
        inner.files.insert(number, Contents::default());
        inner.rename(name, Some(number));
        Ok(self.file(number))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let number = self.lock().find(name)?;
        Ok(self.file(number))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.operate()?;
        let number = inner.find(from)?;
        // One entry of the journal: both names or neither.
        inner.rename(to, Some(number));
        inner.rename(from, None);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.find(name)?;
        inner.operate()?;
        inner.rename(name, None);
        Ok(())
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        let inner = self.lock();
        let names = inner.names.keys().chain(&inner.directories);
        let names = names.map(|name| split(name));
        let found = names.filter(|(of, name)| *of == directory && !name.is_empty());
        Ok(found.map(|(_, name)| name.to_owned()).collect())
    }

    fn sync(&self, directory: &str) -> io::Result<()> {
        let inner = &mut *self.lock();
        inner.operate()?;
        let is_in = |(name, _): &mut (String, _)| split(name).0 == directory;
        for (name, number) in inner.renamed.extract_if(.., is_in) {
            change(&mut inner.lasting_names, name, number);
        }
        let new = &mut inner.new_directories;
        new.retain(|name| split(name).0 != directory);
        Ok(())
    }

    fn make_directory(&self, directory: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.operate()?;
        let mut directory = directory;
        while !directory.is_empty() {
            if inner.directories.insert(directory.to_owned()) {
                inner.new_directories.insert(directory.to_owned());
            }
            directory = split(directory).0;
        }
        Ok(())
    }

    fn room(&self) -> Option<Room> {
        let inner = self.lock();
        Some(Room {
            free_bytes: inner.bytes_max.saturating_sub(inner.used()),
            total_bytes: inner.bytes_max,
        })
    }
}

impl SimulatedDisk {
    fn file(&self, number: u64) -> Arc<dyn DiskFile> {
        let disk = self.clone();
        Arc::new(SimulatedFile { disk, number })
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    number: u64,
}

impl DiskFile for SimulatedFile {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let (used, bytes_max) = (inner.used(), inner.bytes_max);
        let failed = inner.operate().err();
        let cut = match failed {
            // A part of it may be there.
            Some(_) => inner.next_random() as usize % (bytes.len() + 1),
            None => bytes.len(),
        };
        let Some(file) = inner.files.get_mut(&self.number) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let at = at as usize;
        let grown = (at + cut).saturating_sub(file.bytes.len()) as u64;
        let room = bytes_max.saturating_sub(used);
        let (cut, failed) = match grown > room {
            true => {
                let fits = cut - (grown - room) as usize;
                (fits, Some(io::ErrorKind::StorageFull.into()))
            }
            false => (cut, failed),
        };
        if file.bytes.len() < at + cut {
            file.bytes.resize(at + cut, 0);
        }
        file.bytes[at..at + cut].copy_from_slice(&bytes[..cut]);
        file.unsynced.push((at, Some(bytes[..cut].to_vec())));
        failed.map_or(Ok(()), Err)
    }

    fn write_zeros(&self, bytes: u64, at: u64) -> io::Result<()> {
        self.write_at(&vec![0; bytes as usize], at)
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let mut inner = self.disk.lock();
        let Some(file) = inner.files.get(&self.number) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let found = file.bytes.get(at as usize..).unwrap_or_default();
        let count = found.len().min(bytes.len());
        bytes[..count].copy_from_slice(&found[..count]);
        inner.read_bytes += count as u64;
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let done = inner.operate();
        if done.is_err() && inner.chance(2) {
            // As Linux does: the pages count as clean, whether they are on the disk or not.
            if let Some(file) = inner.files.get_mut(&self.number) {
                let keep = file.unsynced.len() / 2;
                file.unsynced.truncate(keep);
            }
        }
        done?;
        if let Some(file) = inner.files.get_mut(&self.number) {
            file.unsynced.clear();
            file.lasting = file.bytes.clone();
        }
        Ok(())
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut inner = self.disk.lock();
        inner.operate()?;
        if let Some(file) = inner.files.get_mut(&self.number) {
            file.bytes.resize(bytes as usize, 0);
            file.unsynced.push((bytes as usize, None));
        }
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        let inner = self.disk.lock();
        let file = inner.files.get(&self.number);
        Ok(file.map_or(0, |file| file.bytes.len() as u64))
    }
}
