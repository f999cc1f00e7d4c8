//! Obeys orders of operators to a running broker: other bounds, and alarms raised by hand.

use std::sync::atomic::Ordering;

use crosstie_store::FreeMin;

use super::FlowControl;
use super::orders::{DiskAlarm, Resource};

/// A bound below this blocks publishers of an empty broker, too: RabbitMQ's own code takes more. Tests of clients rely on
/// that, with a billionth of the machine's memory. The configuration accepts no such bound.
const MEMORY_BYTES_LEAST: usize = 1_000;

impl FlowControl {
    /// Whether memory counts as full, however much is in use.
    pub(super) fn must_block(&self) -> bool {
        self.memory_bytes_max() < MEMORY_BYTES_LEAST
            || self.orders.is_memory_alarm_raised.load(Ordering::SeqCst)
    }

    /// Changes the maximum memory. Publishers are free at the new bound, and not only at nine tenths of it.
    pub(crate) fn set_memory_bytes_max(&self, bytes: usize) {
        self.memory_bytes_max.store(bytes, Ordering::Relaxed);
        self.judge_anew();
    }

    /// Judges the memory in use as if publishers had not been blocked until now.
    fn judge_anew(&self) {
        self.judge_memory();
        if !self.must_block() && self.memory_bytes() <= self.memory_bytes_max() {
            self.end_memory();
        }
    }

    /// The free space below which publishers are blocked, in bytes, on a disk of that size.
    pub fn disk_free_bytes_min(&self, total_bytes: u64) -> u64 {
        let free_min = *self.orders.free_min.lock();
        free_min.map_or(0, |free_min| free_min.of(total_bytes))
    }

    /// Notes the free space that the store's thread now expects.
    pub(crate) fn note_free_min(&self, free_min: FreeMin) {
        *self.orders.free_min.lock() = Some(free_min);
    }

    /// The free space of the store's disk has fallen below its minimum, or has recovered.
    pub(crate) fn disk_changed(&self, is_low: bool) {
        self.change_disk(|alarm| alarm.is_low = is_low);
    }

    /// Raises an alarm, or withdraws one that was raised so. A shortage keeps its alarm.
    pub(crate) fn order_alarm(&self, resource: Resource, is_raised: bool) {
        match resource {
            Resource::Memory => {
                let raised = &self.orders.is_memory_alarm_raised;
                raised.store(is_raised, Ordering::SeqCst);
                self.judge_anew();
            }
            Resource::Disk => self.change_disk(|alarm| alarm.is_raised = is_raised),
        }
    }

    /// Whether an operator has raised this alarm.
    pub(crate) fn is_raised(&self, resource: Resource) -> bool {
        match resource {
            Resource::Memory => self.orders.is_memory_alarm_raised.load(Ordering::SeqCst),
            Resource::Disk => self.orders.disk.lock().is_raised,
        }
    }

    fn change_disk(&self, change: impl FnOnce(&mut DiskAlarm)) {
        let mut alarm = self.orders.disk.lock();
        change(&mut alarm);
        match alarm.is_low || alarm.is_raised {
            true => drop(self.disk.begin(true)),
            false => drop(self.disk.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowControl {
        FlowControl::new(1 << 20, usize::MAX)
    }

    #[test]
    fn a_bound_that_no_broker_meets_blocks_an_empty_one() {
        let flow = flow();
        for (bytes, is_full) in [(25, true), (0, true), (1_000, false)] {
            flow.set_memory_bytes_max(bytes);
            assert_eq!(flow.is_memory_full(), is_full, "{bytes}");
            flow.judge_memory();
            assert_eq!(flow.is_memory_full(), is_full, "{bytes}");
        }
    }

    #[test]
    fn another_bound_counts_as_it_is() {
        let flow = flow();
        flow.memory_changed(0, 95_000);
        for (bytes, is_full) in [
            (90_000, true),
            (100_000, false),
            (94_999, true),
            (95_000, false),
        ] {
            flow.set_memory_bytes_max(bytes);
            assert_eq!(flow.is_memory_full(), is_full, "{bytes}");
        }
    }

    #[test]
    fn a_raised_alarm_outlives_a_shortage() {
        let flow = flow();
        flow.order_alarm(Resource::Disk, true);
        flow.disk_changed(true);
        flow.disk_changed(false);
        assert!(flow.is_disk_low());
        flow.order_alarm(Resource::Disk, false);
        assert!(!flow.is_disk_low());
        flow.order_alarm(Resource::Memory, true);
        flow.memory_changed(0, 2 << 20);
        flow.judge_memory();
        flow.memory_changed(2 << 20, 0);
        flow.judge_memory();
        assert!(flow.is_memory_full());
        flow.order_alarm(Resource::Memory, false);
        assert!(!flow.is_memory_full());
    }

    #[test]
    fn a_withdrawn_alarm_leaves_nothing_behind_below_the_bound() {
        let flow = flow();
        flow.memory_changed(0, 95 * (1 << 20) / 100);
        flow.order_alarm(Resource::Memory, true);
        assert!(flow.is_memory_full());
        flow.order_alarm(Resource::Memory, false);
        assert!(!flow.is_memory_full());
    }

    #[test]
    fn a_shortage_outlives_a_raised_alarm() {
        let flow = flow();
        flow.disk_changed(true);
        flow.order_alarm(Resource::Disk, true);
        flow.order_alarm(Resource::Disk, false);
        assert!(flow.is_disk_low());
        flow.memory_changed(0, 2 << 20);
        flow.judge_memory();
        flow.order_alarm(Resource::Memory, false);
        assert!(flow.is_memory_full());
    }
}
