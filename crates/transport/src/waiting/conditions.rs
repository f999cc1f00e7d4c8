//! The right of the thread to its core, as the system tells it. A look reads one small file, and a spinning thread reads
//! it every 10 ms.

use std::cell::{Cell, RefCell};
use std::fs;
use std::sync::OnceLock;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::controller::Conditions;
use crate::schedstat::Schedstat;

/// The interval at which the quota is read: it is several files.
const QUOTA_EVERY_NS: u64 = 1_000_000_000;

thread_local! {
    /// The time of the next reading, and the last one.
    static QUOTA: Cell<(u64, Option<usize>)> = const { Cell::new((0, None)) };
    static TIMES: RefCell<Option<Schedstat>> = const { RefCell::new(None) };
}

/// Reads them for the calling thread. If the system does not tell one, it is no reason not to spin.
pub(super) fn read(now: u64) -> Conditions {
    let machine = machine_cores();
    Conditions {
        is_alone: machine == 1 || quota(now).is_some_and(|cores| cores < 2),
        delay_ns: delay_ns().unwrap_or(0),
    }
}

/// The cores of the machine, at the first call.
fn machine_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        let listed = fs::read_to_string("/sys/devices/system/cpu/online");
        let cores = listed.ok().and_then(|text| count(text.trim()));
        cores.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
    })
}

/// The number of cores in a list such as `0-3,6`.
fn count(list: &str) -> Option<usize> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    list.split(',').map(range).sum()
}

/// The quota of the control group in whole cores, if it is less than the affinity allows. A thread that is bound to one
/// core may spin: its peers may run on others.
fn quota(now: u64) -> Option<usize> {
    let (next, quota) = QUOTA.get();
    if now < next {
        return quota;
    }
    let bound = sched_getaffinity(None).map_or(0, |cores: CpuSet| cores.count() as usize);
    let usable = thread::available_parallelism().map_or(bound, usize::from);
    let quota = (usable < bound).then_some(usable);
    QUOTA.set((now + QUOTA_EVERY_NS, quota));
    quota
}

/// The time for which the calling thread was ready while another one ran.
fn delay_ns() -> Option<u64> {
    TIMES.with_borrow_mut(|file| {
        // A file that could not be opened, as descriptors ran out, is tried again.
        if file.is_none() {
            *file = Schedstat::of_this_thread();
        }
        Some(file.as_ref()?.read()?.delayed_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_system_are_understood() {
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,6"), Some(5));
        assert_eq!(count(""), None);
        assert!(machine_cores() >= 1);
        assert!(delay_ns().is_some());
    }
}
