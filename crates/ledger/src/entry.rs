//! The entries of a log: a head of 40 octets, and a part of a batch.
//!
//! ```text
//! format kind last 0 | log (8) | epoch (8) | batch (8) | part (4) | before (4) | checksum (4) | part of the body
//! ```
//!
//! An entry's checksum covers its head and its part, and `before` is the checksum of the entry before it. This chain
//! reveals an entry that is missing, altered or of another log.

use std::sync::Arc;

use crate::broken::{Broken, FORMAT, FORMAT_OF_SETTINGS};
use crate::reader::{Reader, put};

/// With the checksum.
pub(crate) const HEAD_BYTES: usize = 40;

/// Bytes of the head that its checksum covers.
const COVERED_BYTES: usize = HEAD_BYTES - 4;

/// The kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A node owns the vhost from here on: an [`Owner`].
    Owned = 1,
    /// New records.
    Fresh = 2,
    /// Records that were written before and are still live, repeated so that older entries can be purged.
    Kept = 3,
    /// The owner's last entry, which names the next owner: a [`crate::Release`].
    Released = 4,
    /// An operator has had the log accepted, or rewritten: a [`crate::Recovery`].
    Recovered = 5,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub format: u8,
    pub kind: Kind,
    /// The batch is complete with this part.
    pub is_last: bool,
    /// The log's name, drawn when it began.
    pub log: u64,
    /// The epoch of the owner that wrote it.
    pub epoch: u64,
    pub batch: u64,
    pub part: u32,
    pub before: u32,
    pub checksum: u32,
}

/// The owner of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub node: Arc<str>,
    /// The address for its clients.
    pub address: Arc<str>,
    /// Distinguishes the starts of the node.
    pub incarnation: u64,
}

impl Head {
    /// An entry with this head and its checksum.
    pub(crate) fn seal(&self, part: &[u8]) -> (Arc<[u8]>, u32) {
        let mut out = Vec::with_capacity(HEAD_BYTES + part.len());
        out.extend_from_slice(&[self.format, self.kind as u8, u8::from(self.is_last), 0]);
        for number in [self.log, self.epoch, self.batch] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.part, self.before] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        let checksum = checksum(&out, part);
        out.extend_from_slice(&checksum.to_be_bytes());
        out.extend_from_slice(part);
        (out.into(), checksum)
    }

    /// The head and the part of an unaltered entry.
    pub(crate) fn open(entry: &[u8]) -> Result<(Self, &[u8]), Broken> {
        let mut reader = Reader(entry);
        let format = reader.octet()?;
        if !matches!(format, FORMAT | FORMAT_OF_SETTINGS) {
            return Err(Broken::Format(format));
        }
        let (Some(covered), Some(part)) = (entry.get(..COVERED_BYTES), entry.get(HEAD_BYTES..))
        else {
            return Err(Broken::Body);
        };
        let kind = reader.octet()?;
        let is_last = reader.octet()?;
        reader.octet()?;
        let numbers = [reader.long()?, reader.long()?, reader.long()?];
        let [log, epoch, batch] = numbers;
        let (in_batch, before) = (reader.short()?, reader.short()?);
        let checksum = reader.short()?;
        if checksum != self::checksum(covered, part) {
            return Err(Broken::Checksum);
        }
        // The checksum is right, so an unknown kind is another version's.
        let kind = match kind {
            1 => Kind::Owned,
            2 => Kind::Fresh,
            3 => Kind::Kept,
            4 => Kind::Released,
            5 => Kind::Recovered,
            other => return Err(Broken::Kind(other)),
        };
        let head = Self {
            format,
            kind,
            is_last: Reader(&[is_last]).flag()?,
            log,
            epoch,
            batch,
            part: in_batch,
            before,
            checksum,
        };
        Ok((head, part))
    }
}

impl Owner {
    /// The owner of the vhost from that entry on, with the epoch; `None` for an entry of another kind.
    pub fn of(entry: &[u8]) -> Result<Option<(u64, Self)>, Broken> {
        let (head, part) = Head::open(entry)?;
        match head.kind {
            Kind::Owned => Ok(Some((head.epoch, Self::decode(part)?))),
            Kind::Fresh | Kind::Kept | Kind::Released | Kind::Recovered => Ok(None),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(self.node.as_bytes(), &mut out);
        put(self.address.as_bytes(), &mut out);
        out.extend_from_slice(&self.incarnation.to_be_bytes());
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Broken> {
        let mut reader = Reader(body);
        Ok(Self {
            node: reader.shared_text()?,
            address: reader.shared_text()?,
            incarnation: reader.long()?,
        })
    }
}

fn checksum(covered: &[u8], part: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(covered);
    hasher.update(part);
    hasher.finalize()
}
