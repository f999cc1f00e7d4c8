//! One record of a segment: a header of 48 bytes, and a payload.
//!
//! ```text
//!  0  checksum of the rest of the header     24  which record of its commit, from 0
//!  4  checksum of the payload                28  the segment that it is about, or 0
//!  8  length of the payload                  32  the queue
//! 12  kind, flags, number of the vhost       40  the place in the queue
//! 16  sequence, over all segments            48  the payload, then zeros up to a multiple of 8
//! ```
//!
//! The header has a checksum of its own, so that a record with a damaged payload still names its queue and its place.
//! A single wrong bit in a header is corrected: the checksum tells which one it is. The checksum begins with the store's
//! number ([`Salt`]), which no client knows: neither a message that looks like records, nor another store's segment, is
//! taken for records of this one.

use super::bytes::SEQUENCE_MAX;

/// The beginning of the checksums of a store's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Salt(u32);

impl Salt {
    pub(crate) fn of(store: u64) -> Self {
        Self(crc32fast::hash(&store.to_le_bytes()))
    }

    /// A header with a right checksum, for fuzzing.
    pub(crate) fn mended(self, bytes: &[u8; HEADER_BYTES]) -> [u8; HEADER_BYTES] {
        let mut out = *bytes;
        let checksum = self.checksum(&bytes[4..]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Writes right checksums into the records from an offset on, for fuzzing.
    pub(crate) fn mend(self, bytes: &mut [u8], from: usize) {
        let mut at = from;
        while let Some(header) = bytes
            .get(at..)
            .and_then(<[u8]>::first_chunk::<HEADER_BYTES>)
        {
            let length = u32::from_le_bytes([8, 9, 10, 11].map(|at: usize| header[at])) as usize;
            let mut header = *header;
            let payload = bytes
                .get(at + HEADER_BYTES..)
                .and_then(|rest| rest.get(..length));
            if let Some(payload) = payload {
                header[4..8].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
            }
            bytes[at..at + HEADER_BYTES].copy_from_slice(&self.mended(&header));
            at += record_bytes(length) as usize;
        }
    }

    fn checksum(self, bytes: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// A queue of the store: the number of its vhost, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueKey {
    pub(crate) vhost: u16,
    pub(crate) queue: u64,
}

/// The queue of vhosts, exchanges, queues and bindings. A place there is the sequence of its declaration.
pub(crate) const ENTITIES: QueueKey = QueueKey { vhost: 0, queue: 0 };

/// The queue of the places from which on messages were never delivered.
pub(crate) const RESTED: QueueKey = QueueKey { vhost: 0, queue: 1 };

/// The queue of the broker's settings. A place there is the sequence of its record. An earlier version leaves them as they
/// are.
pub(crate) const SETTINGS: QueueKey = QueueKey { vhost: 0, queue: 2 };

/// The effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something that stays until it is removed: a message, or an entity. About a segment: it has been moved from there.
    Stored = 1,
    /// Places of a queue in the segment that it is about are gone.
    Gone = 2,
    /// The deliveries of messages in the segment that it is about.
    Delivered = 3,
    /// The messages of a queue from this place to that of the payload are gone, in all segments so far.
    Cleared = 4,
    /// The places of a queue in the segment that it is about are these, and no others any more.
    Remains = 5,
}

/// The decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) payload_checksum: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) kind: Kind,
    /// The last of its commit.
    pub(crate) is_last: bool,
    pub(crate) queue: QueueKey,
    pub(crate) sequence: u64,
    /// Which record of its commit, from 0.
    pub(crate) nth: u32,
    /// A segment's number; 0: none.
    pub(crate) about: u32,
    pub(crate) place: i64,
}

pub(crate) const HEADER_BYTES: usize = 48;

/// Records begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

const LAST: u8 = 1;

impl Header {
    /// The bytes from this record's beginning to the next one's.
    pub(crate) fn record_bytes(&self) -> u64 {
        record_bytes(self.payload_bytes as usize)
    }

    /// The sequence of the first record of its commit.
    pub(crate) fn commit_start(&self) -> u64 {
        self.sequence - u64::from(self.nth)
    }

    pub(crate) fn encode(&self, salt: Salt) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[4..8].copy_from_slice(&self.payload_checksum.to_le_bytes());
        out[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        out[12] = self.kind as u8;
        out[13] = if self.is_last { LAST } else { 0 };
        out[14..16].copy_from_slice(&self.queue.vhost.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..28].copy_from_slice(&self.nth.to_le_bytes());
        out[28..32].copy_from_slice(&self.about.to_le_bytes());
        out[32..40].copy_from_slice(&self.queue.queue.to_le_bytes());
        out[40..48].copy_from_slice(&self.place.to_le_bytes());
        let checksum = salt.checksum(&out[4..]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES], salt: Salt) -> Option<Self> {
        let header = Self::read(bytes)?;
        let (checksum, rest) = bytes.split_first_chunk::<4>()?;
        (salt.checksum(rest) == u32::from_le_bytes(*checksum)).then_some(header)
    }

    /// The header with one bit changed, if that makes it a right one.
    pub(crate) fn repair(bytes: &[u8; HEADER_BYTES], salt: Salt) -> Option<Self> {
        if *bytes == [0; HEADER_BYTES] {
            return None;
        }
        let mut changed = *bytes;
        for bit in 0..HEADER_BYTES * 8 {
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Some(header) = Self::decode(&changed, salt) {
                return Some(header);
            }
            changed[bit / 8] ^= 1 << (bit % 8);
        }
        None
    }

    /// Whether bytes may be a header with a sequence after this one: cheaper than the checksum.
    pub(crate) fn may_follow(bytes: &[u8; HEADER_BYTES], sequence: u64) -> bool {
        Self::read(bytes)
            .is_some_and(|header| (sequence..sequence + FAR).contains(&header.sequence))
    }

    fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let header = Self {
            payload_checksum: u32_at(4),
            payload_bytes: u32_at(8),
            kind: kind(bytes[12])?,
            is_last: bytes[13] & LAST != 0,
            queue: QueueKey {
                vhost: u16::from_le_bytes([bytes[14], bytes[15]]),
                queue: u64_at(32),
            },
            sequence: u64_at(16),
            nth: u32_at(24),
            about: u32_at(28),
            place: u64_at(40) as i64,
        };
        let nth = u64::from(header.nth);
        let is_possible = nth <= header.sequence && header.sequence <= SEQUENCE_MAX;
        (bytes[13] <= LAST && is_possible).then_some(header)
    }
}

/// No gap in a segment is wider.
const FAR: u64 = 1 << 32;

fn kind(byte: u8) -> Option<Kind> {
    Some(match byte {
        1 => Kind::Stored,
        2 => Kind::Gone,
        3 => Kind::Delivered,
        4 => Kind::Cleared,
        5 => Kind::Remains,
        _ => return None,
    })
}

/// The bytes of a record with such a payload.
pub(crate) fn record_bytes(payload_bytes: usize) -> u64 {
    (HEADER_BYTES + payload_bytes.next_multiple_of(ALIGNMENT)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            payload_checksum: 0x1234_5678,
            payload_bytes: 1000,
            kind: Kind::Stored,
            is_last: true,
            queue: QueueKey {
                vhost: 3,
                queue: 1 << 40,
            },
            sequence: 77,
            nth: 7,
            about: 9,
            place: -5,
        }
    }

    #[test]
    fn a_header_returns_as_it_was() {
        let salt = Salt::of(1 << 40);
        let bytes = header().encode(salt);
        assert_eq!(Header::decode(&bytes, salt), Some(header()));
        // In another store it is none.
        for other in [0, 1 << 41, 1] {
            assert_eq!(Header::decode(&bytes, Salt::of(other)), None);
            assert_eq!(Header::repair(&bytes, Salt::of(other)), None);
        }
        assert_eq!(header().record_bytes(), 1048);
        assert_eq!(header().commit_start(), 70);
    }

    #[test]
    fn any_wrong_bit_of_a_header_is_noticed_and_corrected() {
        let salt = Salt::of(77);
        let bytes = header().encode(salt);
        for bit in 0..HEADER_BYTES * 8 {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&wrong, salt), None, "bit {bit}");
            assert_eq!(Header::repair(&wrong, salt), Some(header()), "bit {bit}");
            // With a second one it is no header, and no other header either.
            let second = (bit + 100) % (HEADER_BYTES * 8);
            wrong[second / 8] ^= 1 << (second % 8);
            assert_eq!(
                Header::repair(&wrong, salt),
                None,
                "bits {bit} and {second}"
            );
        }
        assert_eq!(Header::decode(&[0; HEADER_BYTES], salt), None);
        assert_eq!(Header::repair(&[0; HEADER_BYTES], salt), None);
    }
}
