//! The processes of a node, as in the document's picture of the system's load: the usage of each between two samples.

use std::fs;

use serde::Serialize;
use serde_json::Value;

use crate::machine::accounting::{CpuTime, Memory, kib_field, process_tree, tasks};

/// The role of a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// A node's first process; ours contains the routers.
    Controller,
    /// A router's worker process, or a router without a node.
    Router,
    /// Ensures that no child process survives.
    Guard,
    Container,
    Guest,
}

impl Role {
    /// Of a descendant of a node's first process.
    fn of(command: &str) -> Self {
        let command = command.to_ascii_lowercase();
        if command.contains("child-guard") {
            Self::Guard
        } else if command.contains("routercontroller") {
            Self::Router
        } else if command.contains("containercontroller") || command.contains("crosstie.container")
        {
            Self::Container
        } else {
            Self::Guest
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Router => "router",
            Self::Guard => "guard",
            Self::Container => "container",
            Self::Guest => "guest",
        }
    }

    /// Whether it is the node itself, and not a hosted component.
    pub(super) fn is_node(self) -> bool {
        matches!(self, Self::Controller | Self::Router | Self::Guard)
    }
}

#[derive(Debug)]
struct Seen {
    process: u32,
    /// Ticks after the machine's start: with the id it identifies the process.
    started: u64,
    role: Role,
    cpu: CpuTime,
    switches: Switches,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Switches {
    voluntary: u64,
    involuntary: u64,
}

/// All processes of some roots at one moment.
#[derive(Debug)]
pub(super) struct Look(Vec<Seen>);

/// The usage of one process between two samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Used {
    pub(super) role: Role,
    pub(super) pid: u32,
    /// Of one core.
    pub(super) cpu_percent: f64,
    pub(super) pss_bytes: u64,
    pub(super) rss_bytes: u64,
    pub(super) threads: usize,
    pub(super) voluntary_switches_per_s: f64,
    pub(super) involuntary_switches_per_s: f64,
}

impl Look {
    /// These processes and all their descendants. The known roles are given.
    pub(super) fn at(roots: &[(u32, Option<Role>)]) -> Self {
        let trees = roots.iter().flat_map(|(root, role)| {
            let role_of = move |process: u32| role.filter(|_| process == *root);
            let tree = process_tree(*root).into_iter();
            tree.map(move |process| (process, role_of(process)))
        });
        let seen = trees.filter_map(|(process, role)| Seen::now(process, role));
        Self(seen.collect())
    }

    /// Those that are in both samples, in the order of their ids.
    pub(super) fn since(&self, earlier: &Self, seconds: f64) -> Vec<Used> {
        let mut used: Vec<Used> = self
            .0
            .iter()
            .filter_map(|now| {
                let same =
                    |then: &&Seen| (then.process, then.started) == (now.process, now.started);
                Some(now.since(earlier.0.iter().find(same)?, seconds))
            })
            .collect();
        used.sort_by_key(|used| (used.role, used.pid));
        used
    }

    /// Those of this sample that still exist, zombies excluded.
    pub(super) fn left(&self) -> Vec<u32> {
        let left = self.0.iter().filter(|seen| {
            state(seen.process).is_some_and(|(state, started)| {
                started == seen.started && !matches!(state, 'Z' | 'X')
            })
        });
        left.map(|seen| seen.process).collect()
    }
}

impl Seen {
    /// `None` for an ended process.
    fn now(process: u32, role: Option<Role>) -> Option<Self> {
        let (_, started) = state(process)?;
        Some(Self {
            process,
            started,
            role: role.unwrap_or_else(|| Role::of(&command(process))),
            cpu: CpuTime::of(&[process]),
            switches: Switches::of(process),
        })
    }

    fn since(&self, earlier: &Self, seconds: f64) -> Used {
        let memory = Memory::of(&[self.process]).unwrap_or_default();
        let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let (now, then) = (self.switches, earlier.switches);
        Used {
            role: self.role,
            pid: self.process,
            cpu_percent: self.cpu.since(&earlier.cpu) as f64 / 1e7 / seconds,
            pss_bytes: memory.pss,
            rss_bytes: memory.rss,
            threads: tasks(self.process).map_or(0, |tasks| tasks.len()),
            voluntary_switches_per_s: per_s(now.voluntary, then.voluntary),
            involuntary_switches_per_s: per_s(now.involuntary, then.involuntary),
        }
    }
}

impl Used {
    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Switches {
    fn of(process: u32) -> Self {
        let mut sum = Self::default();
        for task in tasks(process).unwrap_or_default() {
            let path = format!("/proc/{process}/task/{task}/status");
            let one = parse_switches(&fs::read_to_string(path).unwrap_or_default());
            sum.voluntary += one.voluntary;
            sum.involuntary += one.involuntary;
        }
        sum
    }
}

fn parse_switches(status: &str) -> Switches {
    // The field's reader counts in KiB; these have no unit.
    let count = |name| kib_field(status, name).map_or(0, |bytes| bytes / 1024);
    Switches {
        voluntary: count("voluntary_ctxt_switches:"),
        involuntary: count("nonvoluntary_ctxt_switches:"),
    }
}

/// Its command line, or its own title.
fn command(process: u32) -> String {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// A process's state, and when it was started.
fn state(process: u32) -> Option<(char, u64)> {
    parse_state(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse_state(stat: &str) -> Option<(char, u64)> {
    // The name in parentheses may contain spaces and parentheses itself, so search for the last one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is the third field of all, the start time the twenty-second.
    let started = fields.nth(18)?.parse().ok()?;
    Some((state, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_roles() {
        #[track_caller]
        fn check(command: &str, expected: Role) {
            assert_eq!(Role::of(command), expected);
        }
        check("/usr/bin/crosstie child-guard", Role::Guard);
        check(
            "python3 -u -m crosstie.container --worker w",
            Role::Container,
        );
        check("crosstie roundtrip callee", Role::Guest);
        check(
            "crossbar-worker [crossbar.worker.router.RouterController]",
            Role::Router,
        );
        check(
            "crossbar-worker [crossbar.worker.container.ContainerController]",
            Role::Container,
        );
    }

    #[test]
    fn the_kernels_texts_are_read() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 88 9 9";
        assert_eq!(parse_state(stat), Some(('S', 88)));
        assert_eq!(parse_state("garbage"), None);
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t3\n";
        let expected = Switches {
            voluntary: 150,
            involuntary: 3,
        };
        assert_eq!(parse_switches(status), expected);
    }

    #[test]
    fn this_process_is_seen() {
        let own = [(std::process::id(), Some(Role::Controller))];
        let (first, second) = (Look::at(&own), Look::at(&own));
        let used = second.since(&first, 1.0);
        assert_eq!(used[0].role, Role::Controller);
        assert!(used[0].threads > 0 && used[0].rss_bytes > 0);
        assert!(second.left().contains(&own[0].0));
    }
}
