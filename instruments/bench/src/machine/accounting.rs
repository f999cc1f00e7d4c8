//! The usage of processes: processor time from the scheduler's nanosecond accounting, memory as proportional set size,
//! and the rest of the machine's activity meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of a set of processes at one moment, thread by thread.
///
/// Stored by thread because `/proc` forgets a thread that ends: a difference of sums could be negative.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuTime {
    tasks: BTreeMap<u32, u64>,
}

impl CpuTime {
    /// Reads it now. Ended processes count nothing.
    pub(crate) fn of(processes: &[u32]) -> Self {
        let mut times = Self::default();
        for process in processes {
            for task in tasks(*process).unwrap_or_default() {
                let path = format!("/proc/{process}/task/{task}/schedstat");
                let text = fs::read_to_string(path).unwrap_or_default();
                if let Some(nanoseconds) = parse_schedstat(&text) {
                    times.tasks.insert(task, nanoseconds);
                }
            }
        }
        times
    }

    /// Nanoseconds used since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> u64 {
        self.tasks
            .iter()
            .map(|(task, now)| now.saturating_sub(earlier.tasks.get(task).copied().unwrap_or(0)))
            .sum()
    }
}

pub(crate) fn tasks(process: u32) -> io::Result<Vec<u32>> {
    let mut tasks = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        tasks.extend(entry?.file_name().to_string_lossy().parse::<u32>());
    }
    Ok(tasks)
}

pub(crate) fn process_tree(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if let Some(parent) = parse_parent(&text) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(process) = tree.get(next) {
        tree.extend(children.remove(process).unwrap_or_default());
        next += 1;
    }
    tree
}

/// The process trees of several roots, each process once.
pub(crate) fn process_trees(roots: &[u32]) -> Vec<u32> {
    let mut trees: Vec<u32> = roots.iter().copied().flat_map(process_tree).collect();
    let mut seen = BTreeSet::new();
    trees.retain(|process| seen.insert(*process));
    trees
}

/// Processor time of this process, ended threads included.
pub(crate) fn own_cpu_ns() -> u64 {
    let clock = clock_gettime(ClockId::ProcessCPUTime);
    clock.tv_sec.unsigned_abs() * 1_000_000_000 + clock.tv_nsec.unsigned_abs()
}

/// Memory of a set of processes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Proportional set size: shared pages are divided among the processes that share them.
    pub pss: u64,
    pub rss: u64,
}

impl Memory {
    /// Reads and adds up. A process that has ended, or belongs to another user, is an error.
    pub(crate) fn of(processes: &[u32]) -> io::Result<Self> {
        let mut sum = Self::default();
        for process in processes {
            let one = parse_smaps(&fs::read_to_string(format!(
                "/proc/{process}/smaps_rollup"
            ))?);
            sum.pss += one.pss;
            sum.rss += one.rss;
        }
        Ok(sum)
    }
}

/// The kernel's own memory, in bytes: its slabs (sockets, descriptors) and TCP's buffers.
pub(crate) fn kernel_memory() -> u64 {
    let slab = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| kib_field(&text, "Slab:"))
        .unwrap_or(0);
    let sockets = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    slab + parse_tcp_pages(&sockets) * rustix::param::page_size() as u64
}

/// Busy time of the whole machine, in nanoseconds, in steps of a clock tick.
pub(crate) fn machine_busy() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    parse_busy_ticks(&text) * (1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// Processor time of this process, of these, and of all descendants, in nanoseconds; ended ones are in their parents'
/// account.
pub(crate) fn tree_busy(beside: &[u32]) -> u64 {
    let own = [std::process::id()];
    let roots: Vec<u32> = own.iter().chain(beside).copied().collect();
    let ticks = process_trees(&roots).into_iter().map(|process| {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        parse_ticks(&text).unwrap_or(0)
    });
    ticks.sum::<u64>() * (1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// The processor time of all at one moment.
#[derive(Debug)]
pub(crate) struct Usage {
    at: Instant,
    subject: CpuTime,
    drivers: CpuTime,
    machine: u64,
}

/// ... and between two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub seconds: f64,
    /// `None` if its processes are unknown, or if they used no processor at all: then another process did the work.
    pub subject_ns: Option<f64>,
    pub drivers_ns: f64,
    /// Of all others.
    pub others_ns: f64,
}

impl Usage {
    pub(crate) fn now(subject: &[u32], drivers: &[u32]) -> Self {
        Self {
            at: Instant::now(),
            subject: CpuTime::of(subject),
            drivers: CpuTime::of(drivers),
            machine: machine_busy(),
        }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Used {
        let subject_ns = self.subject.since(&earlier.subject) as f64;
        let drivers_ns = self.drivers.since(&earlier.drivers) as f64;
        let machine_ns = self.machine.saturating_sub(earlier.machine) as f64;
        Used {
            seconds: self.at.duration_since(earlier.at).as_secs_f64(),
            subject_ns: (subject_ns > 0.0).then_some(subject_ns),
            drivers_ns,
            // The machine's account is in ticks, theirs in nanoseconds.
            others_ns: (machine_ns - subject_ns - drivers_ns).max(0.0),
        }
    }
}

impl Used {
    /// With the drivers' own figures: the kernel's accounts forget ended threads.
    pub(crate) fn with_drivers(self, nanoseconds: f64) -> Self {
        Self {
            drivers_ns: nanoseconds,
            others_ns: (self.others_ns + self.drivers_ns - nanoseconds).max(0.0),
            ..self
        }
    }

    /// The number of processors that so much time kept busy.
    pub(crate) fn cores(&self, nanoseconds: f64) -> f64 {
        nanoseconds / 1e9 / self.seconds
    }

    /// Microseconds of it per operation, at this rate. The readings of processor time are a little late at times; the
    /// ratio of the two rates cancels that.
    pub(crate) fn us_per_operation(&self, nanoseconds: f64, operations_per_s: f64) -> f64 {
        nanoseconds / 1e3 / self.seconds / operations_per_s
    }
}

fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn parse_parent(stat: &str) -> Option<u32> {
    // The name in parentheses may contain spaces and parentheses itself, so search for the last one.
    stat.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// User and system time, the process's own and that of its ended children.
fn parse_ticks(stat: &str) -> Option<u64> {
    let times = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    times.take(4).map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn parse_smaps(text: &str) -> Memory {
    Memory {
        pss: kib_field(text, "Pss:").unwrap_or(0),
        rss: kib_field(text, "Rss:").unwrap_or(0),
    }
}

/// The bytes of a line such as `Pss:    1752 kB`.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn parse_tcp_pages(sockstat: &str) -> u64 {
    let Some(line) = sockstat.lines().find_map(|line| line.strip_prefix("TCP:")) else {
        return 0;
    };
    let mut words = line
        .split_ascii_whitespace()
        .skip_while(|word| *word != "mem");
    words
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0)
}

fn parse_busy_ticks(stat: &str) -> u64 {
    let Some(line) = stat.lines().find_map(|line| line.strip_prefix("cpu ")) else {
        return 0;
    };
    let ticks: Vec<u64> = line.split_ascii_whitespace().flat_map(str::parse).collect();
    // user nice system idle iowait irq softirq steal: all but the two kinds of waiting, and nothing after steal, which
    // user and nice include already.
    ticks
        .iter()
        .take(8)
        .enumerate()
        .filter(|(at, _)| !matches!(at, 3 | 4))
        .map(|(_, t)| t)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        assert_eq!(parse_schedstat("72868 57675 2\n"), Some(72868));
        assert_eq!(parse_schedstat(""), None);
        assert_eq!(parse_parent("26707 (a (b) c) S 26700 1 2"), Some(26700));
        assert_eq!(parse_parent("garbage"), None);
        let stat = "26707 (a (b) c) S 26700 26707 1 0 -1 4194560 9 8 7 6 10 20 300 4000 20 0";
        assert_eq!(parse_ticks(stat), Some(4_330));
        assert_eq!(parse_ticks("garbage"), None);
        let smaps = "55606d07a000-7ffe5387c000 ---p 00000000 00:00 0  [rollup]\n\
                     Rss:                1752 kB\nPss:                 348 kB\n\
                     Pss_Dirty:           112 kB\n";
        assert_eq!(
            parse_smaps(smaps),
            Memory {
                pss: 348 * 1024,
                rss: 1752 * 1024
            }
        );
        let sockstat = "sockets: used 120\nTCP: inuse 5 orphan 0 tw 0 alloc 7 mem 31\n\
                        UDP: inuse 1 mem 9\n";
        assert_eq!(parse_tcp_pages(sockstat), 31);
        let stat = "cpu  10 1 20 1000 500 3 4 2 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(parse_busy_ticks(stat), 40);
    }

    #[test]
    fn this_process_is_found() {
        let process = std::process::id();
        assert!(tasks(process).unwrap().contains(&process));
        assert!(process_tree(process).starts_with(&[process]));
        assert!(Memory::of(&[process]).unwrap().pss > 0);
        let earlier = CpuTime::default();
        assert!(CpuTime::of(&[process]).since(&earlier) > 0);
        let trees = process_trees(&[process, process]);
        assert_eq!(trees.iter().filter(|one| **one == process).count(), 1);
    }
}
