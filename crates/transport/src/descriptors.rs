//! File descriptors: their limit, and the reserve for the last ones.
//!
//! The kernel assigns the lowest free number. The number of a new descriptor therefore is a lower bound on how many are
//! open, whatever opened them: counting is not necessary.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Descriptors reserved from peers' sessions; of a small limit a quarter.
const RESERVE_MAX: u32 = 128;

/// How many descriptors are left after the one just opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    Enough,
    /// The rest is for short uses: rejecting peers that cannot be served, pages for operators.
    Reserve,
    /// The rest is for the process itself: files, its children, its management.
    Last,
}

impl Room {
    /// Judges by a descriptor that was just opened.
    pub fn left_by(descriptor: &impl AsFd) -> Self {
        let number = descriptor.as_fd().as_raw_fd().unsigned_abs();
        Self::of(number, limit())
    }

    fn of(number: u32, limit: u32) -> Self {
        let reserve = reserve_of(limit);
        match limit.saturating_sub(number) {
            left if left > reserve => Self::Enough,
            left if left > reserve / 2 => Self::Reserve,
            _ => Self::Last,
        }
    }
}

/// The process's limit on open descriptors when it first opened a connection.
pub fn limit() -> u32 {
    static LIMIT: OnceLock<u32> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile).current;
        limit.map_or(u32::MAX, |limit| u32::try_from(limit).unwrap_or(u32::MAX))
    })
}

/// The number of descriptors that are reserved.
pub fn reserve() -> u32 {
    reserve_of(limit())
}

fn reserve_of(limit: u32) -> u32 {
    RESERVE_MAX.min(limit / 4)
}

/// Whether an operation failed for want of descriptors, or of kernel resources for one. A retry may succeed.
pub fn is_shortage(e: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(e),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_reserved() {
        for (limit, number, expected) in [
            (1024, 3, Room::Enough),
            (1024, 895, Room::Enough),
            (1024, 896, Room::Reserve),
            (1024, 959, Room::Reserve),
            (1024, 960, Room::Last),
            (1024, 1023, Room::Last),
            (1 << 20, (1 << 20) - 129, Room::Enough),
            (1 << 20, (1 << 20) - 128, Room::Reserve),
            (200, 149, Room::Enough),
            (200, 150, Room::Reserve),
            (200, 175, Room::Last),
            (8, 5, Room::Enough),
            (8, 7, Room::Last),
            (0, 5, Room::Last),
        ] {
            assert_eq!(Room::of(number, limit), expected, "{number} of {limit}");
        }
    }
}
