//! The state that operators' orders leave: other bounds, and alarms raised by hand.

use std::sync::atomic::AtomicBool;

use crosstie_store::FreeMin;
use parking_lot::Mutex;

/// A resource whose shortage blocks publishers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Memory,
    Disk,
}

impl Resource {
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let mut all = [Self::Memory, Self::Disk].into_iter();
        all.find(|resource| resource.name() == name)
    }
}

/// The state that orders leave.
#[derive(Default)]
pub(super) struct Orders {
    /// What the store's thread expects.
    pub(super) free_min: Mutex<Option<FreeMin>>,
    pub(super) is_memory_alarm_raised: AtomicBool,
    pub(super) disk: Mutex<DiskAlarm>,
}

#[derive(Default)]
pub(super) struct DiskAlarm {
    pub(super) is_low: bool,
    pub(super) is_raised: bool,
}
