//! The index of a segment: the place of a record in each 64 KiB, by offset and by time. It is never synced, and needs not be
//! whole: a lookup goes on by reading records from the last place before the wanted one.

use std::io;

use crosstie_disk::{DiskFile, read_part};

use crate::bytes::{sealed, unsealed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) offset: u64,
    pub(crate) at_ms: u64,
    /// The byte in the segment.
    pub(crate) position: u64,
}

const ENTRY_BYTES: usize = 3 * 8 + 4;

impl Entry {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend(sealed([self.offset, self.at_ms, self.position]));
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [offset, at_ms, position] = unsealed(bytes)?;
        Some(Self {
            offset,
            at_ms,
            position,
        })
    }
}

/// A segment's entries that are valid: up to the first that is damaged, out of order, or behind the segment's end.
/// Returns the bytes that they take, too.
pub(crate) fn read(file: &dyn DiskFile, segment_bytes: u64) -> io::Result<(Vec<Entry>, u64)> {
    let bytes = usize::try_from(file.bytes()?).map_err(io::Error::other)?;
    let bytes = read_part(file, 0, bytes as u64)?;
    let mut entries: Vec<Entry> = Vec::new();
    for entry in bytes.chunks_exact(ENTRY_BYTES) {
        let Some(entry) = Entry::read(entry) else {
            break;
        };
        let is_next = entries.last().is_none_or(|last| {
            last.offset < entry.offset
                && last.position < entry.position
                && last.at_ms <= entry.at_ms
        });
        if !is_next || entry.position >= segment_bytes {
            break;
        }
        entries.push(entry);
    }
    let bytes = (entries.len() * ENTRY_BYTES) as u64;
    Ok((entries, bytes))
}
