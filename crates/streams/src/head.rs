//! The head of a stream: what was synced when messages were confirmed last.
//!
//! It is written in place after each sync, and not synced itself: after the end of the process it says exactly what was
//! confirmed; after a power loss it may say less.

use std::io;

use crosstie_disk::DiskFile;

use crate::bytes::{NUMBER_MAX, sealed, unsealed};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The first kept offset: that of the oldest segment.
    pub(crate) first: u64,
    /// The newest segment, by its first offset, and how many of its bytes are synced.
    pub(crate) segment: u64,
    pub(crate) bytes: u64,
    /// The offset behind the last message.
    pub(crate) end: u64,
    pub(crate) last_at_ms: u64,
}

const HEAD_BYTES: usize = 5 * 8 + 4;

impl Head {
    pub(crate) fn write(&self, file: &dyn DiskFile) -> io::Result<()> {
        let numbers = [
            self.first,
            self.segment,
            self.bytes,
            self.end,
            self.last_at_ms,
        ];
        file.write_at(&sealed(numbers), 0)
    }

    /// `None`: there is none, or it is damaged.
    pub(crate) fn read(file: &dyn DiskFile) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEAD_BYTES];
        let count = file.read_at(&mut bytes, 0)?;
        let numbers = unsealed(&bytes[..count]);
        let numbers = numbers.filter(|numbers: &[u64; 5]| numbers.iter().all(|n| *n <= NUMBER_MAX));
        Ok(
            numbers.map(|[first, segment, bytes, end, last_at_ms]| Self {
                first,
                segment,
                bytes,
                end,
                last_at_ms,
            }),
        )
    }
}
