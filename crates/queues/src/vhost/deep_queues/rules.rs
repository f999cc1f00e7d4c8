//! Vhosts whose queues become deep by one rule or the other.

use super::*;

impl Deep {
    /// Without messages.
    pub(super) fn new(seed: u64, priority_max: u8) -> Self {
        Self::with(seed, priority_max, Disk::default(), Vec::new())
    }

    /// After a restart if there are messages of the queue.
    pub(super) fn with(seed: u64, priority_max: u8, disk: Disk, kept: Vec<Kept>) -> Self {
        let paging = Paging {
            memory_bytes: 0,
            messages: 10,
            body_bytes: u64::MAX,
            crowded_messages: 3,
            crowded_body_bytes: u64::MAX,
            spills: true,
        };
        let kept = kept.into_iter().map(Record::Kept).collect();
        Self::paging(seed, priority_max, paging, (disk, kept))
    }

    /// With a queue that is shallow until memory is crowded.
    pub(super) fn shallow(seed: u64, priority_max: u8) -> Self {
        Self::shallow_in(seed, priority_max, true)
    }

    /// The same in a vhost whose store forgets no messages at a restart.
    pub(super) fn in_a_log(seed: u64) -> Self {
        Self::shallow_in(seed, 0, false)
    }

    fn shallow_in(seed: u64, priority_max: u8, spills: bool) -> Self {
        let mut shallow = Self::restored(seed, priority_max, spills, Vec::new());
        shallow.declare();
        shallow
    }

    /// The same with these records of the queue, if there are any.
    pub(super) fn restored(
        seed: u64,
        priority_max: u8,
        spills: bool,
        records: Vec<Record>,
    ) -> Self {
        let paging = Paging {
            memory_bytes: usize::MAX,
            messages: 1_000,
            body_bytes: u64::MAX,
            crowded_messages: 4,
            crowded_body_bytes: u64::MAX,
            spills,
        };
        Self::paging(seed, priority_max, paging, (Disk::default(), records))
    }
}
