//! The names of a stream's files.

use std::fmt::Write as _;

use crosstie_queues::QueueId;

use crate::bytes::NUMBER_MAX;

pub(crate) const HEAD: &str = "head";
const SEGMENT: &str = ".segment";
const INDEX: &str = ".index";

/// Marks the directory of a stream that was deleted, and the one that no queue declares.
pub(crate) const DELETED: &str = ".deleted";
pub(crate) const ORPHAN: &str = ".orphan";

/// A file in the directory of a vhost that is being deleted.
pub(crate) const MARK: &str = "deleted";

pub(crate) fn segment(directory: &str, first: u64) -> String {
    format!("{directory}/{first:020}{SEGMENT}")
}

pub(crate) fn index(directory: &str, first: u64) -> String {
    format!("{directory}/{first:020}{INDEX}")
}

pub(crate) fn head(directory: &str) -> String {
    format!("{directory}/{HEAD}")
}

/// The first offset of the segment with that name.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT)?;
    let first = digits.parse().ok()?;
    (format!("{first:020}") == digits && first <= NUMBER_MAX).then_some(first)
}

/// The directory of a vhost's streams. Names of directories are shorter than those of vhosts may be.
pub(crate) fn of_vhost(vhost: &str) -> String {
    const BYTES_MAX: usize = 160;
    let mut name = "vhost-".to_owned();
    for byte in vhost.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            // Writing to a string does not fail.
            byte => drop(write!(name, "%{byte:02x}")),
        }
    }
    if name.len() > BYTES_MAX {
        name.truncate(BYTES_MAX);
        let _ = write!(name, "~{:016x}", fnv(vhost.as_bytes()));
    }
    name
}

/// The directory of a stream. Its name is a part of it: a number may be that of another stream later, if a backup is put in
/// place.
pub(crate) fn of_stream(vhost: &str, id: QueueId, name: &str) -> String {
    format!("{}/{}", of_vhost(vhost), stream_name(id, name))
}

/// The last part of that.
pub(crate) fn stream_name(id: QueueId, name: &str) -> String {
    format!("{}-{:016x}", id.0, fnv(name.as_bytes()))
}

/// Whether a directory is that of some stream.
pub(crate) fn is_of_stream(directory: &str) -> bool {
    let is_hash = |text: &str| text.len() == 16 && u64::from_str_radix(text, 16).is_ok();
    let (id, hash) = directory.split_once('-').unzip();
    id.unwrap_or(directory).parse::<u64>().is_ok() && hash.is_none_or(is_hash)
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_vhosts_are_told_apart() {
        assert_eq!(of_vhost("/"), "vhost-%2f");
        assert_eq!(of_vhost("a.b"), "vhost-a%2eb");
        let (one, other) = ("x".repeat(255), format!("{}y", "x".repeat(254)));
        assert_ne!(of_vhost(&one), of_vhost(&other));
        assert!(of_vhost(&"\u{e9}".repeat(127)).len() < 255);
        assert_eq!(first_of("00000000000000000012.segment"), Some(12));
        assert_eq!(first_of("12.segment"), None);
    }
}
