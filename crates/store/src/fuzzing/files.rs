//! Files in memory, of an input's bytes.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crosstie_disk::{Disk, DiskFile, Room};

use crate::segments::index;
use crate::segments::record::Salt;
use crate::segments::segment::{index_name, segment_name};

/// The number of the store of all inputs.
pub(super) const STORE: u64 = 0x0123_4567_89ab_cdef;

pub(super) const SEGMENT: u8 = 0;
pub(super) const INDEX: u8 = 1;
pub(super) const MANIFEST: u8 = 2;
pub(super) const HEAD: u8 = 3;

pub(super) fn files(files: &[(u8, u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, number, bytes) in files {
        out.extend_from_slice(&[*kind, *number]);
        out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out
}

/// With a checksum as it has to be, if there are such bytes.
pub(super) fn mended(input: &[u8], at: usize, of: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = input.to_vec();
    if let Some(covered) = input.get(of) {
        let checksum = crc32fast::hash(covered).to_le_bytes();
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&checksum);
        }
    }
    bytes
}

/// With right checksums in all headers, as far as the lengths of the records lead.
pub(super) fn records_mended(input: &[u8]) -> Vec<u8> {
    let salt = Salt::of(STORE);
    let mut bytes = input.to_vec();
    salt.mend(&mut bytes, 64);
    bytes
}

/// Files in memory.
#[derive(Debug)]
pub(super) struct Files(BTreeMap<String, Arc<[u8]>>);

impl Files {
    /// A kind, a number, a length of two bytes and the content of each. Checksums are mended.
    pub(super) fn parse(mut input: &[u8]) -> Self {
        let mut files = BTreeMap::new();
        while let Some(([kind, number, low, high], rest)) = input.split_first_chunk() {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
            let (content, rest) = rest.split_at(length);
            let number = u32::from(*number);
            let (name, bytes) = match kind % 4 {
                SEGMENT => (
                    segment_name(number),
                    records_mended(&mended(content, 8, 12..32)),
                ),
                INDEX => (index_name(number), index::mended(content)),
                MANIFEST => ("manifest".to_owned(), mended(content, 8, 12..content.len())),
                _ => ("head".to_owned(), mended(content, 0, 4..20)),
            };
            files.insert(name, bytes.into());
            input = rest;
        }
        Self(files)
    }
}

impl Disk for Files {
    fn create(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let found = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(File(Arc::clone(found))))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn names(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn room(&self) -> Option<Room> {
        None
    }
}

#[derive(Debug)]
pub(super) struct File(pub(super) Arc<[u8]>);

impl DiskFile for File {
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_zeros(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = self.0.get(at as usize..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_bytes(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}
