//! The faults of a log.

use std::fmt;

/// The format version of entries and records.
pub(crate) const FORMAT: u8 = 1;

/// That of a batch with settings. Version 0.1.0 knows no settings, and refuses such an entry by its format: it then neither
/// opens the vhost without them nor discards the log as damaged.
pub(crate) const FORMAT_OF_SETTINGS: u8 = 2;

/// The fault of an entry. A vhost is not opened from such a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Written by another program, or by a later version of this one.
    Format(u8),
    /// The entry was altered.
    Checksum,
    /// The entry does not follow the one before it.
    Chain,
    /// Entries before it were not read: the log was purged meanwhile, and has to be read from its front again.
    Missing,
    /// The log ends before an entry that was acknowledged.
    Shorter,
    /// The entry belongs to another log.
    Foreign,
    /// A field is malformed or exceeds the body.
    Body,
    /// A record of a kind that only a later version of this program knows.
    Kind(u8),
    /// A recovery of the log has begun and has not ended.
    Unfinished,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(
                f,
                "it has the format {format}, expected {FORMAT} or {FORMAT_OF_SETTINGS}"
            ),
            Self::Checksum => f.write_str("it was altered (wrong checksum)"),
            Self::Chain => f.write_str("it does not follow the one before it"),
            Self::Missing => f.write_str("entries before it were not read"),
            Self::Shorter => f.write_str("entries behind it were acknowledged and are missing"),
            Self::Foreign => f.write_str("it belongs to another log"),
            Self::Body => f.write_str("a field is malformed"),
            Self::Kind(kind) => write!(f, "its kind is unknown to this version ({kind})"),
            Self::Unfinished => f.write_str("its recovery has not ended"),
        }
    }
}

impl std::error::Error for Broken {}
