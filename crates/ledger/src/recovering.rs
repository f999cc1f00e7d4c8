//! A log that an operator has had recovered: taken as it is, or written anew from somewhere else.
//!
//! A log is not opened by who has known another one, or a longer one. An operator may say that it is to be taken all the same,
//! and so that each node need not be told, the log says it: with a name of its own, and the names of the logs in whose
//! place it is. Who knows one of those takes it.
//!
//! ```text
//! taken as it is   … entries ─▶ Recovered(Whole) ─▶ a claim …
//! written anew     … whatever ─▶ Recovered(Begins) ─▶ what is to count ─▶ Recovered(Ends) ─▶ a claim …
//! ```
//!
//! Between its beginning and its end nobody claims it. Each append names the entry that it expects to be the last one, as an owner's
//! does: so a log in which anybody else writes meanwhile is not recovered, and who owned the vhost does no more.

use crosstie_queues::Time;

use crate::entry::Kind;
use crate::history::End;
use crate::ledger::{Config, Ledger, Role, Sequence};
use crate::recovery::{Phase, REPLACED_MAX, Recovery};

/// A log that is to be written anew, and what was found of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remains {
    /// The number of its last entry.
    pub last: Sequence,
    /// The highest that is known of.
    pub epoch: u64,
}

impl Ledger {
    /// Takes the log as it was read, whatever was known of it. `log` is its new name, and not 0. It is done when
    /// nothing waits, and not if [`crate::Effect::Deposed`] follows; the ledger is of no use then.
    pub fn recover_whole(&mut self, now: Time, recovery: Recovery, log: u64) {
        if self.role != Role::Following || self.history.is_unfinished() {
            return;
        }
        self.role = Role::Recovering;
        let replaced = self.history.end.log;
        self.history.end.epoch += 1;
        self.write_recovery(now, recovery, (Phase::Whole, replaced), log);
    }

    /// Begins a log anew behind what is left of one. Then [`Self::submit`] has what is to count, and [`Self::recover_end`]
    /// follows.
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

    /// What was submitted is all that is to count.
    pub fn recover_end(&mut self, now: Time) {
        while self.batch_waiting() {}
        if let (Role::Recovering, Some((recovery, _))) = (self.role, self.history.recovery.clone())
        {
            self.append(Kind::Recovered, &recovery.encode(Phase::Ends), None);
            self.history.note_recovery(Phase::Ends, recovery);
            self.proceed(now);
        }
    }

    /// What has become of the log by an operator's hand, if anything has.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.history.recovery.as_ref().map(|(recovery, _)| recovery)
    }

    /// Whether the log that was read is in the place of that one.
    pub fn replaces(&self, log: u64) -> bool {
        let recovery = self.recovery();
        !self.history.is_unfinished() && recovery.is_some_and(|found| found.replaced.contains(&log))
    }

    /// Says it again, where it would go with the log's front.
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
        self.keeping = Some(self.history.end.sequence);
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
        self.acknowledged = self.history.end.sequence;
        self.claimed_at = self.acknowledged;
        self.append(Kind::Recovered, &recovery.encode(phase), None);
        self.history.note_recovery(phase, recovery);
        self.proceed(now);
    }
}
