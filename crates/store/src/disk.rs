//! How much is free on a store's disk.

use std::mem;
use std::time::{Duration, Instant};

use crate::Store;

/// Whether the disk has become low, or is so no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLow {
    pub is_low: bool,
    pub free_bytes: u64,
    /// Space is low below this, and sufficient again above it by a tenth.
    pub free_bytes_min: u64,
}

/// The free bytes that the disk is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeMin {
    bytes: u64,
    is_exact: bool,
}

impl FreeMin {
    /// So many, or an eighth of a small disk.
    pub fn or_an_eighth(bytes: u64) -> Self {
        Self {
            bytes,
            is_exact: false,
        }
    }

    /// So many, of any disk.
    pub fn exactly(bytes: u64) -> Self {
        Self {
            bytes,
            is_exact: true,
        }
    }

    /// The free bytes that a disk of that size is to have.
    pub fn of(self, total_bytes: u64) -> u64 {
        match self.is_exact {
            true => self.bytes,
            false => self.bytes.min(total_bytes / 8),
        }
    }
}

pub(crate) type OnDiskLow = dyn Fn(DiskLow);

/// The last look at the disk.
#[derive(Default)]
pub(crate) struct Disk {
    looked_at: Option<Instant>,
    is_low: bool,
}

/// How long it is not looked at: a commit costs more than a look, but not everywhere.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// While it is low it is also looked at when nothing happens: others may make room.
const LOW_INTERVAL: Duration = Duration::from_secs(1);

impl Disk {
    /// Has the next look be taken at once: the minimum has changed.
    pub(crate) fn look_again(&mut self) {
        self.looked_at = None;
    }

    /// Looks how much is free, and says so if it is low, or is low no more. Returns when to look
    /// again at the latest.
    pub(crate) fn look(
        &mut self,
        store: &Store,
        free_min: FreeMin,
        on_disk_low: &OnDiskLow,
    ) -> Option<Instant> {
        let now = Instant::now();
        let is_due = self
            .looked_at
            .is_none_or(|at| now.duration_since(at) >= LOOK_INTERVAL);
        if !is_due {
            return self.looked_at.map(|at| at + LOOK_INTERVAL);
        }
        // Another minimum counts as it is.
        let is_other = self.looked_at.is_none();
        self.looked_at = Some(now);
        let is_bare = store.restore_reserve();
        if let Some(room) = store.room().filter(|_| free_min.bytes > 0 || self.is_low) {
            let free_bytes_min = free_min.of(room.total_bytes);
            let enough = match self.is_low && !is_other {
                true => free_bytes_min.saturating_add(free_bytes_min / 10),
                false => free_bytes_min,
            };
            let is_low = room.free_bytes < enough;
            let was_low = mem::replace(&mut self.is_low, is_low);
            if was_low != is_low || (is_other && is_low) {
                on_disk_low(DiskLow {
                    is_low,
                    free_bytes: room.free_bytes,
                    free_bytes_min,
                });
            }
        }
        (self.is_low || is_bare).then_some(now + LOW_INTERVAL)
    }
}
