//! Recovery of a log by an operator: accepting the log as it is, or rewriting it from another source.
//!
//! A node does not open a log if it has known another one, or a longer one. An operator may decide that the log is
//! valid all the same. So that each node need not be configured, the log itself says so: it gets a new name and lists
//! the logs that it replaces. A node that knows one of the replaced logs accepts this one in its place.
//!
//! ```text
//! accepted as it is   … entries ─▶ Recovered(Whole) ─▶ a claim …
//! rewritten           … anything ─▶ Recovered(Begins) ─▶ the new records ─▶ Recovered(Ends) ─▶ a claim …
//! ```
//!
//! Between its beginning and its end no node claims the log. Each append names the entry that it expects to be the last
//! one, as an owner's does. A log to which another node writes meanwhile is therefore not recovered, and the previous
//! owner cannot write any more.

use crosstie_queues::Time;

use crate::config::Config;
use crate::entry::Kind;
use crate::history::End;
use crate::ledger::{Ledger, Role, Sequence};
use crate::record::{Phase, REPLACED_MAX, Recovery};

/// A log that is to be rewritten, and the findings about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remains {
    /// The number of its last entry.
    pub last: Sequence,
    /// The highest epoch that is known.
    pub epoch: u64,
}

impl Ledger {
    /// Accepts the log as it was read. `log` is its new name, and not 0. Complete when nothing waits, unless
    /// [`crate::Effect::Deposed`] follows; the ledger cannot be used afterwards.
    pub fn recover_whole(&mut self, now: Time, recovery: Recovery, log: u64) {
        if self.role != Role::Following || self.history.is_unfinished() {
            return;
        }
        self.role = Role::Recovering;
        let replaced = self.history.end.log;
        self.history.end.epoch += 1;
        self.write_recovery(now, recovery, (Phase::Whole, replaced), log);
    }

    /// Begins the log anew behind the rest of the old one. [`Self::submit`] takes the new records, and
    /// [`Self::recover_end`] follows.
    pub fn recover_anew(
        config: Config,
        now: Time,
        recovery: Recovery,
        log: u64,
        remains: Remains,
    ) -> Self {
        let mut ledger = Self::new(config);
        ledger.role = Role::Recovering;
        ledger.history.end = End {
            sequence: remains.last.0,
            epoch: remains.epoch + 1,
            ..End::default()
        };
        ledger.write_recovery(now, recovery, (Phase::Begins, 0), log);
        ledger
    }

    /// Ends the recovery: all new records were submitted.
    pub fn recover_end(&mut self, now: Time) {
        while self.batch_waiting() {}
        if let (Role::Recovering, Some((recovery, _))) = (self.role, self.history.recovery.clone())
        {
            self.append(Kind::Recovered, &recovery.encode(Phase::Ends), None);
            self.history.note_recovery(Phase::Ends, recovery);
            self.proceed(now);
        }
    }

    /// The last recovery of the log by an operator, if any.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.history.recovery.as_ref().map(|(recovery, _)| recovery)
    }

    /// Whether the log that was read replaces that one.
    pub fn replaces(&self, log: u64) -> bool {
        let recovery = self.recovery();
        !self.history.is_unfinished() && recovery.is_some_and(|found| found.replaced.contains(&log))
    }

    /// Writes the recovery's description again, if it would be purged with the log's front.
    pub(crate) fn repeat_recovery(&mut self, Sequence(to): Sequence) -> bool {
        let Some((recovery, at)) = &self.history.recovery else {
            return false;
        };
        if *at > to {
            return false;
        }
        let recovery = recovery.clone();
        self.append(Kind::Recovered, &recovery.encode(Phase::Again), None);
        self.history.note_recovery(Phase::Again, recovery);
        true
    }

    fn write_recovery(
        &mut self,
        now: Time,
        mut recovery: Recovery,
        (phase, replaced): (Phase, u64),
        log: u64,
    ) {
        let before = self.recovery().map_or(&[][..], |before| &before.replaced);
        let mut logs = before.to_vec();
        logs.extend(recovery.replaced.iter().copied().chain([replaced]));
        let mut known = Vec::new();
        for name in logs.into_iter().rev() {
            if name != 0 && name != log && !known.contains(&name) && known.len() < REPLACED_MAX {
                known.insert(0, name);
            }
        }
        recovery.replaced = known;
        self.history.end.log = log.max(1);
        self.begin_writing();
        self.append(Kind::Recovered, &recovery.encode(phase), None);
        self.history.note_recovery(phase, recovery);
        self.proceed(now);
    }
}
