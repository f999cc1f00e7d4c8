//! Free space on the disk, and a reserve for deleting.
//!
//! Deleting takes space as well: changes are written to the log first. So a file beside the store occupies some space.
//! It is removed when the disk is full and records are to be deleted, and created again afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::file::{beside, folder};

/// Space on the store's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that may still be written: free space on the file system, and within the store's file.
    pub free_bytes: u64,
    /// Of the file system.
    pub total_bytes: u64,
}

/// The file that holds a place.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    state: ReserveState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReserveState {
    There,
    /// It was given up, or never had room. Until it has, the store must not grow: nothing would be
    /// left to delete by.
    Missing,
    /// The file system, or a limit on files, does not let it be.
    Impossible,
}

/// As much as the log has when it is copied into the store: that may have to be written twice.
const RESERVE_BYTES: u64 = 16 << 20;

/// Neither reserve nor log takes more than this part of a small file system.
const SHARE: u64 = 12;

pub(crate) const PAGE_BYTES: u64 = 4096;

/// `None` if the system does not report it.
pub(crate) fn room(path: &Path, connection: Option<&Connection>) -> Option<Room> {
    let found = rustix::fs::statvfs(folder(path)).ok()?;
    let pages: Option<u64> = connection.and_then(|connection| {
        let count = connection.query_row("PRAGMA freelist_count", (), |row| row.get::<_, i64>(0));
        count.ok()?.try_into().ok()
    });
    let within = pages.unwrap_or_default() * PAGE_BYTES;
    Some(Room {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize) + within,
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

/// Pages of the log: at most `pages_max`, and no more than a small file system has room for.
pub(crate) fn log_pages(path: &Path, pages_max: u32) -> u32 {
    let share = room(path, None).map(|room| room.total_bytes / SHARE / PAGE_BYTES);
    let share = share.and_then(|pages| u32::try_from(pages).ok());
    share.unwrap_or(pages_max).clamp(16, pages_max)
}

impl Reserve {
    /// Of a store's file; made if there is room for it.
    pub(crate) fn of(path: &Path) -> Self {
        let share = room(path, None).map(|room| room.total_bytes / SHARE);
        let mut reserve = Self {
            path: beside(path, "-reserve"),
            bytes: share.unwrap_or(RESERVE_BYTES).min(RESERVE_BYTES),
            state: ReserveState::Missing,
        };
        reserve.make();
        reserve
    }

    pub(crate) fn state(&self) -> ReserveState {
        self.state
    }

    /// Creates it, if it is missing and there is room for half as much again.
    pub(crate) fn make(&mut self) {
        if self.state != ReserveState::Missing {
            return;
        }
        // A file from an earlier run has its space already.
        let has = fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        let free = room(&self.path, None).map_or(0, |room| room.free_bytes);
        if has < self.bytes && free < self.bytes + self.bytes / 2 {
            return;
        }
        self.state = match self.try_make() {
            Ok(()) => ReserveState::There,
            Err(error) => {
                let _ = fs::remove_file(&self.path);
                match error.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        ReserveState::Missing
                    }
                    _ => ReserveState::Impossible,
                }
            }
        };
    }

    fn try_make(&self) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)?;
        file.set_len(self.bytes)?;
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, self.bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(&file, self.bytes),
            other => Ok(other?),
        }
    }

    /// Gives its room away.
    pub(crate) fn give_up(&mut self) {
        if self.state == ReserveState::There {
            let _ = fs::remove_file(&self.path);
            self.state = ReserveState::Missing;
        }
    }
}

fn fill(mut file: &File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let count = left.min(zeros.len() as u64);
        file.write_all(&zeros[..count as usize])?;
        left -= count;
    }
    Ok(())
}
