//! Free space on the disk.

use std::path::Path;

use crate::file::folder;

/// Space on the store's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Of the file system.
    pub total_bytes: u64,
}

/// The log takes no more than this part of a small file system.
const SHARE: u64 = 12;

const PAGE_BYTES: u64 = 4096;

/// `None` if the system does not report it.
pub(crate) fn room(path: &Path) -> Option<Room> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(Room {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

/// Pages of the log: at most `pages_max`, and no more than a small file system has room for.
pub(crate) fn log_pages(path: &Path, pages_max: u32) -> u32 {
    let share = room(folder(path)).map(|room| room.total_bytes / SHARE / PAGE_BYTES);
    let share = share.and_then(|pages| u32::try_from(pages).ok());
    share.unwrap_or(pages_max).clamp(16, pages_max)
}
