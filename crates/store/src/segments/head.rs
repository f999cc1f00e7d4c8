//! The file `head`: the last sequence that was confirmed, and when.
//!
//! It is written after each commit, in one of two slots by turns, and never synced. After the end of the process it is
//! exact; after a loss of power it may be older than the segments.

use std::io;
use std::sync::Arc;

use crosstie_disk::{Disk, DiskFile, read_whole};

use super::bytes::{Cursor, SEQUENCE_MAX, TIME_MAX_MS};

/// The contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Confirmed {
    /// The last one, or 0.
    pub(crate) sequence: u64,
    /// Milliseconds since 1970: the owner's clock at the last commit.
    pub(crate) time_ms: u64,
}

pub(crate) const NAME: &str = "head";

/// The slots are in different blocks of the disk.
const SLOT_BYTES: u64 = 4096;

#[derive(Debug)]
pub(crate) struct Head {
    file: Arc<dyn DiskFile>,
    is_second: bool,
}

impl Head {
    /// Opens the file for writing; creates it if it is missing.
    pub(crate) fn open(disk: &dyn Disk) -> io::Result<Self> {
        let file = match disk.open(NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => disk.create(NAME)?,
            opened => opened?,
        };
        Ok(Self {
            file,
            is_second: false,
        })
    }

    pub(crate) fn write(&mut self, confirmed: Confirmed) -> io::Result<()> {
        let at = if self.is_second { SLOT_BYTES } else { 0 };
        self.is_second = !self.is_second;
        self.file.write_at(&encode(confirmed), at)
    }
}

/// Reads the file. Nothing is confirmed if there is none, or if neither slot is right.
pub(crate) fn read(disk: &dyn Disk) -> io::Result<Confirmed> {
    match read_whole(disk, NAME) {
        Ok(bytes) => Ok(newest(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Confirmed::default()),
        Err(error) => Err(error),
    }
}

/// The number of slots with bytes that are not as they were written.
pub(crate) fn damaged_slots(bytes: &[u8]) -> usize {
    let second = bytes.get(SLOT_BYTES as usize..).unwrap_or_default();
    let slots = [bytes, second].into_iter();
    slots
        .filter(|slot| !slot.is_empty() && decode(slot).is_none())
        .count()
}

fn newest(bytes: &[u8]) -> Confirmed {
    let second = bytes.get(SLOT_BYTES as usize..).unwrap_or_default();
    let slots = [bytes, second].into_iter().filter_map(decode);
    slots
        .max_by_key(|confirmed| (confirmed.sequence, confirmed.time_ms))
        .unwrap_or_default()
}

fn encode(confirmed: Confirmed) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend_from_slice(&confirmed.sequence.to_le_bytes());
    out.extend_from_slice(&confirmed.time_ms.to_le_bytes());
    let checksum = crc32fast::hash(&out[4..]);
    out[..4].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// A slot at the beginning of these bytes.
pub(crate) fn decode(bytes: &[u8]) -> Option<Confirmed> {
    let mut cursor = Cursor::new(bytes);
    let checksum = cursor.u32()?;
    let body = cursor.rest().get(..16)?;
    (crc32fast::hash(body) == checksum).then_some(())?;
    let confirmed = Confirmed {
        sequence: cursor.u64()?,
        time_ms: cursor.u64()?.min(TIME_MAX_MS),
    };
    (confirmed.sequence <= SEQUENCE_MAX).then_some(confirmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_cannot_be_is_the_last_one_that_can() {
        let written = encode(Confirmed {
            sequence: 5,
            time_ms: u64::MAX,
        });
        let read = Confirmed {
            sequence: 5,
            time_ms: TIME_MAX_MS,
        };
        assert_eq!(decode(&written), Some(read));
    }
}
