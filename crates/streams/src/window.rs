//! Looks for the next record of a segment, across damaged ones.

use std::io;

use crosstie_disk::{DiskFile, read_part};

use crate::index::Entry;
use crate::record::{self, Found};

/// Bytes that are read at a time to look for records.
const WINDOW_BYTES: usize = 64 << 10;

/// Damaged records in a row whose lengths are believed.
const LEAPS_MAX: usize = 16;

/// A part of a segment in memory.
#[derive(Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    position: u64,
}

impl Window {
    /// The first record from that byte on with an offset of at least `offset_min`. Behind a damaged one, its length tells
    /// where the next begins, or else the index does. Bytes are never searched: a client's message may look like a
    /// record.
    pub(crate) fn next_record(
        &mut self,
        file: &dyn DiskFile,
        entries: &[Entry],
        (from, end): (u64, u64),
        offset_min: u64,
    ) -> io::Result<Option<(u64, record::Head)>> {
        let mut position = from;
        for _ in 0..LEAPS_MAX {
            match self.record(file, position, end)? {
                Found::Record(head) if head.offset >= offset_min => {
                    return Ok(Some((position, head)));
                }
                Found::Record(head) => position += head.bytes as u64,
                Found::Damaged { bytes } => position += bytes as u64,
                Found::Cut { .. } | Found::Nothing => break,
            }
        }
        for entry in entries.iter().filter(|entry| entry.position > from) {
            if let Found::Record(head) = self.record(file, entry.position, end)?
                && head.offset == entry.offset
                && head.offset >= offset_min
            {
                return Ok(Some((entry.position, head)));
            }
        }
        Ok(None)
    }

    /// The record at that byte.
    fn record(&mut self, file: &dyn DiskFile, position: u64, end: u64) -> io::Result<Found> {
        if position >= end {
            return Ok(Found::Nothing);
        }
        let left = usize::try_from(end - position).unwrap_or(usize::MAX);
        let within = position.checked_sub(self.position);
        let within = within.and_then(|within| self.bytes.get(usize::try_from(within).ok()?..));
        let mut wanted = WINDOW_BYTES;
        if let Some(bytes) = within {
            match record::read(bytes) {
                Found::Cut { bytes } => wanted = wanted.max(bytes),
                found => return Ok(found),
            }
        }
        loop {
            if wanted > left && wanted > WINDOW_BYTES {
                return Ok(Found::Cut { bytes: wanted });
            }
            self.bytes = read_part(file, position, wanted.min(left) as u64)?;
            self.position = position;
            match record::read(&self.bytes) {
                Found::Cut { bytes } if bytes > wanted => wanted = bytes,
                found => return Ok(found),
            }
        }
    }
}
