//! Free space on the disk.

use std::path::Path;

use crosstie_disk::room;

use crate::file::folder;

/// The log takes no more than this part of a small file system.
const SHARE: u64 = 12;

const PAGE_BYTES: u64 = 4096;

/// Pages of the log: at most `pages_max`, and no more than a small file system has room for.
pub(crate) fn log_pages(path: &Path, pages_max: u32) -> u32 {
    let share = room(folder(path)).map(|room| room.total_bytes / SHARE / PAGE_BYTES);
    let share = share.and_then(|pages| u32::try_from(pages).ok());
    share.unwrap_or(pages_max).clamp(16, pages_max)
}
