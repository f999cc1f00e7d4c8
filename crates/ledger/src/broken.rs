//! What can be wrong with a log.

use std::fmt;

/// The form of entries and records.
pub(crate) const FORMAT: u8 = 1;

/// An entry is not what has to be there. No vhost is opened from such a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Of another program, or of a later version of this one.
    Format(u8),
    /// It is not as it was written.
    Checksum,
    /// It does not follow the entry before it.
    Chain,
    /// Entries before it were not read: the log was purged meanwhile, and is to be read from its front again.
    Missing,
    /// The log ends before an entry that it has acknowledged.
    Shorter,
    /// Of another log.
    Foreign,
    /// A field in it ends too late, or is none.
    Body,
    /// It says what only a later version of this program knows.
    Kind(u8),
    /// It is being recovered, and that is not at its end.
    Unfinished,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(f, "it has the format {format}, expected {FORMAT}"),
            Self::Checksum => f.write_str("it is not as it was written (checksum)"),
            Self::Chain => f.write_str("it does not follow the one before it"),
            Self::Missing => f.write_str("there are entries before it that were not read"),
            Self::Shorter => f.write_str("what is behind it was acknowledged, and is not there"),
            Self::Foreign => f.write_str("it is of another log"),
            Self::Body => f.write_str("a field in it is none"),
            Self::Kind(kind) => write!(
                f,
                "it is of a kind that this version does not know ({kind})"
            ),
            Self::Unfinished => {
                f.write_str("it was being recovered, and that has not come to its end")
            }
        }
    }
}

impl std::error::Error for Broken {}
