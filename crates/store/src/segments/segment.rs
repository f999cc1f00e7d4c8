//! A segment's file: its name, and the 64 bytes before its records.

use super::bytes::{Cursor, SEQUENCE_MAX};

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    /// The store that it belongs to.
    pub(crate) store: u64,
    pub(crate) number: u32,
    /// The sequence of its first record. Records of earlier segments from there on do not count: their commit failed.
    pub(crate) first_sequence: u64,
}

pub(crate) const SEGMENT_HEAD_BYTES: u64 = 64;

/// With the version of the format.
const MAGIC: &[u8; 8] = b"XTIESEG\x01";

impl SegmentHead {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEAD_BYTES as usize] {
        let mut out = [0; SEGMENT_HEAD_BYTES as usize];
        out[..8].copy_from_slice(MAGIC);
        out[12..20].copy_from_slice(&self.store.to_le_bytes());
        out[20..24].copy_from_slice(&self.number.to_le_bytes());
        out[24..32].copy_from_slice(&self.first_sequence.to_le_bytes());
        let checksum = crc32fast::hash(&out[12..32]);
        out[8..12].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        (cursor.fixed()? == *MAGIC).then_some(())?;
        let checksum = cursor.u32()?;
        (crc32fast::hash(cursor.rest().get(..20)?) == checksum).then_some(())?;
        let head = Self {
            store: cursor.u64()?,
            number: cursor.u32()?,
            first_sequence: cursor.u64()?,
        };
        (head.first_sequence <= SEQUENCE_MAX).then_some(head)
    }
}

pub(crate) fn segment_name(number: u32) -> String {
    format!("{number:010}.segment")
}

pub(crate) fn index_name(number: u32) -> String {
    format!("{number:010}.index")
}

/// A segment that was written with zeros for later use.
pub(crate) fn spare_name(number: u32) -> String {
    format!("{number}.spare")
}

/// The number in a file's name with this ending.
pub(crate) fn number_in(name: &str, ending: &str) -> Option<u32> {
    let digits = name.strip_suffix(ending)?;
    let number = digits.parse().ok()?;
    // Not another way to write it: that is another file.
    let is_ours = [segment_name(number), index_name(number), spare_name(number)];
    is_ours.iter().any(|ours| ours == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_returns_as_it_was_or_not_at_all() {
        let head = SegmentHead {
            store: 77,
            number: 5,
            first_sequence: 1 << 40,
        };
        let bytes = head.encode();
        assert_eq!(SegmentHead::decode(&bytes), Some(head));
        for bit in 0..32 * 8 {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHead::decode(&wrong), None, "bit {bit}");
        }
        assert_eq!(number_in(&segment_name(12), ".segment"), Some(12));
        for name in ["x.segment", "12.segment", "+12.spare", "012.spare"] {
            let (_, ending) = name.split_once('.').expect("an ending");
            assert_eq!(number_in(name, &format!(".{ending}")), None, "{name}");
        }
        assert_eq!(number_in(&spare_name(12), ".spare"), Some(12));
    }
}
