//! The file `manifest`: which segments there are, so that a missing one is noticed.
//!
//! It names the segments that were complete when it was written, and the gaps that an operator has accepted. Segments
//! after the last of these are found by their names, since their sequences continue without a gap. The contents are in
//! it twice, each with a checksum.

use std::io;

use crosstie_disk::{Disk, read_whole, replace_file};

use super::bytes::{Cursor, put_number};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The store that all of its files name.
    pub(crate) store: u64,
    /// The number of the last segment that was complete, whether it still exists or not; 0: none was.
    pub(crate) last: u32,
    /// The sequence after its last record.
    pub(crate) end_sequence: u64,
    pub(crate) segments: Vec<Listed>,
    /// Sequences whose loss was accepted, from and to.
    pub(crate) accepted: Vec<(u64, u64)>,
}

/// A complete segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) number: u32,
    pub(crate) first_sequence: u64,
    /// The sequence after its last one.
    pub(crate) end_sequence: u64,
}

pub(crate) const NAME: &str = "manifest";

const MAGIC: &[u8; 8] = b"XTIEMAN\x01";

/// The version of the format, of all files.
pub(crate) const VERSION: u8 = 1;

/// The version that a manifest names, if it is one. A manifest of this version is that, whatever else it names: a bit
/// may be wrong.
pub(crate) fn version(bytes: &[u8]) -> Option<u8> {
    if Manifest::decode(bytes).is_some() {
        return Some(VERSION);
    }
    let (_, rest) = MAGIC.split_last()?;
    let version = *bytes.get(rest.len())?;
    bytes.starts_with(rest).then_some(version)
}

impl Manifest {
    /// Reads the file; `None` if neither copy is right.
    pub(crate) fn read(disk: &dyn Disk) -> io::Result<Option<Self>> {
        Ok(Self::decode(&read_whole(disk, NAME)?))
    }

    pub(crate) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        replace_file(disk, NAME, &self.encode())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.store.to_le_bytes());
        put_number(&mut body, self.last.into());
        put_number(&mut body, self.end_sequence);
        put_number(&mut body, self.segments.len() as u64);
        for listed in &self.segments {
            put_number(&mut body, listed.number.into());
            put_number(&mut body, listed.first_sequence);
            put_number(&mut body, listed.end_sequence);
        }
        put_number(&mut body, self.accepted.len() as u64);
        for (from, to) in &self.accepted {
            put_number(&mut body, *from);
            put_number(&mut body, *to);
        }
        let mut copy = MAGIC.to_vec();
        copy.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
        copy.extend_from_slice(&body);
        [&copy[..], &copy[..]].concat()
    }

    /// The first copy that is right, wherever it begins: one may be cut off.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut starts = bytes.windows(MAGIC.len()).enumerate();
        starts.find_map(|(at, found)| {
            let is_start = found == MAGIC;
            is_start.then(|| decode_copy(&bytes[at..])).flatten()
        })
    }
}

/// A copy at the beginning of these bytes.
fn decode_copy(bytes: &[u8]) -> Option<Manifest> {
    let mut cursor = Cursor::new(bytes);
    (cursor.fixed()? == *MAGIC).then_some(())?;
    let checksum = cursor.u32()?;
    let body = cursor.rest();
    let manifest = decode_body(&mut cursor)?;
    let body = &body[..body.len() - cursor.rest().len()];
    (crc32fast::hash(body) == checksum).then_some(manifest)
}

fn decode_body(cursor: &mut Cursor<'_>) -> Option<Manifest> {
    let store = cursor.u64()?;
    let last = u32::try_from(cursor.number()?).ok()?;
    let end_sequence = cursor.sequence()?;
    let mut segments = Vec::new();
    for _ in 0..cursor.count()? {
        let listed = Listed {
            number: u32::try_from(cursor.number()?).ok()?,
            first_sequence: cursor.sequence()?,
            end_sequence: cursor.sequence()?,
        };
        (1 <= listed.first_sequence && listed.first_sequence <= listed.end_sequence)
            .then_some(())?;
        segments.push(listed);
    }
    let mut accepted = Vec::new();
    for _ in 0..cursor.count()? {
        accepted.push((cursor.sequence()?, cursor.sequence()?));
    }
    Some(Manifest {
        store,
        last,
        end_sequence,
        segments,
        accepted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_bit_leaves_a_whole_copy() {
        let manifest = Manifest {
            store: 77,
            last: 9,
            end_sequence: 1200,
            segments: vec![
                Listed {
                    number: 3,
                    first_sequence: 1,
                    end_sequence: 500,
                },
                Listed {
                    number: 9,
                    first_sequence: 900,
                    end_sequence: 1200,
                },
            ],
            accepted: vec![(7, 8)],
        };
        let bytes = manifest.encode();
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                Manifest::decode(&wrong),
                Some(manifest.clone()),
                "bit {bit}"
            );
        }
        for length in 0..bytes.len() {
            let is_there = length >= bytes.len() / 2;
            let expected = is_there.then(|| manifest.clone());
            assert_eq!(
                Manifest::decode(&bytes[..length]),
                expected,
                "cut at {length}"
            );
            let rest = &bytes[bytes.len() - length..];
            assert_eq!(Manifest::decode(rest), expected, "the last {length}");
        }
        assert_eq!(Manifest::decode(b"something else"), None);
    }
}
