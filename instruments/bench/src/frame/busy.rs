//! The load of the rest of the machine during a round. Goals of a busy machine are not judged
//! (`crate::figures::unfit`); this is the figure for rounds whose instrument does not measure one itself.

use std::thread;
use std::time::{Duration, Instant};

use super::site::Site;
use crate::figures::{FOREIGN_BUSY, Round};
use crate::machine::accounting::{machine_busy, tree_busy};

/// The kernel accounts in ticks of 10 ms: a shorter time is meaningless.
const LEAST: Duration = Duration::from_millis(500);

pub(super) struct Busy {
    since: Instant,
    machine_ns: u64,
    own_ns: u64,
}

impl Busy {
    pub(super) fn now(site: &Site) -> Self {
        Self {
            since: Instant::now(),
            machine_ns: machine_busy(),
            own_ns: tree_busy(&site.pids),
        }
    }

    /// Completes a round's figures. A short round is watched for a while longer.
    pub(super) fn complete(&self, site: &Site, round: &mut Round) {
        let found = match round {
            Ok(figures) => figures,
            Err(fault) => &mut *fault.found,
        };
        if found.is_empty() || found.value(FOREIGN_BUSY).is_some() {
            return;
        }
        thread::sleep(LEAST.saturating_sub(self.since.elapsed()));
        let now = Self::now(site);
        let seconds = now.since.duration_since(self.since).as_secs_f64();
        let others_ns = (now.machine_ns.saturating_sub(self.machine_ns))
            .saturating_sub(now.own_ns.saturating_sub(self.own_ns));
        found.set(FOREIGN_BUSY, others_ns as f64 / 1e9 / seconds);
    }
}
