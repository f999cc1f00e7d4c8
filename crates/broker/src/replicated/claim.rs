//! Becoming the owner: reads the log to its end, then competes for the next entry.

use std::time::{Duration, Instant};

use crosstie_jetstream::{Append, Failed, Stream};
use crosstie_ledger::{Broken, Effect, Owner, Role as LedgerRole, Sequence};

use super::driver::{Driver, Obstacle};
use super::heartbeats::Beats;
use super::held::Held;
use super::log;
use super::recovery_task::is_content;
use super::seen::Role;
use super::task::Whose;

/// Maximum duration of a claim.
const CLAIM_MAX: Duration = Duration::from_secs(20);

/// A former leader of the stream may briefly report an older, shorter end.
const SHORTER_MAX: Duration = Duration::from_secs(10);

impl Driver {
    /// Claims the vhost. Returns whether this node owns it now; another node may have won.
    pub(super) async fn claim(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
    ) -> Result<bool, Obstacle> {
        self.note(|seen| seen.role = Role::Claiming);
        // The target of a move has checked that before.
        if !self.is_prepared() {
            self.check_sync().await?;
        }
        let seen = self.ledger.status().epoch.max(self.others.epoch());
        self.read_all(stream).await?;
        // Heartbeats that arrived before the servers' answer are read now. If the silence was this node's own, because
        // it was stopped or starved of processor time, the owner has been heard by now.
        self.hear_waiting(beats);
        if self.others.has_owner() {
            return Ok(false);
        }
        // Another node has claimed the vhost meanwhile, and its heartbeats are yet to arrive.
        let epoch = self.ledger.status().epoch;
        if epoch > seen && (seen > 0 || self.task.settings.is_standby_warm) {
            self.others.note_epoch(epoch);
            return Ok(false);
        }
        match self.ledger.records().find(is_content) {
            None => self.check_held()?,
            Some(_) if self.holds().is_some() => {
                let vhost = &self.task.vhost;
                tracing::warn!(
                    "vhost '{vhost}': the store's content from before the replication stays there, \
                     because the log has other content"
                );
            }
            Some(_) => {}
        }
        let owner = Owner {
            node: self.task.node.as_str().into(),
            address: self
                .task
                .settings
                .address
                .as_deref()
                .unwrap_or_default()
                .into(),
            incarnation: self.task.incarnation,
        };
        let now = self.now();
        self.ledger.claim(now, &owner, self.task.log);
        let claimed = tokio::time::timeout(CLAIM_MAX, self.drive_claim(stream)).await;
        claimed.unwrap_or(Err(Obstacle::Unanswered(Failed::Silent)))
    }

    /// Reads the log to the leader's end, and checks that it is complete.
    async fn read_all(&mut self, stream: &Stream) -> Result<(), Obstacle> {
        let last = loop {
            let info = stream.info().await.map_err(Obstacle::Unanswered)?;
            let info = info.ok_or(Obstacle::Unanswered(Failed::Nobody))?;
            let why = "the log is being read";
            self.show(Whose::Nobody { why: why.into() });
            let before = self.ledger.status().sequence.0;
            self.read_to(stream, info.last).await?;
            let reached = self.ledger.status().sequence.0;
            if reached >= info.last || reached == before {
                break info.last;
            }
        };
        match self.ledger.check_end(Sequence(last), self.known.end()) {
            Ok(()) => {
                self.shorter_since = None;
                Ok(())
            }
            Err(Broken::Shorter) => {
                let since = *self.shorter_since.get_or_insert_with(Instant::now);
                if since.elapsed() < SHORTER_MAX {
                    return Err(Obstacle::Unanswered(Failed::Silent));
                }
                Err(Obstacle::Alarm(format!(
                    "its log is shorter than it was: it has {last} entries, and had {} (log {:016x})",
                    self.known.sequence, self.known.log
                )))
            }
            Err(Broken::Foreign) => Err(Obstacle::Alarm(format!(
                "its log is another one than it was (now {:016x}, before {:016x})",
                self.ledger.status().log,
                self.known.log
            ))),
            Err(broken) => Err(Obstacle::Alarm(format!(
                "its log is not whole up to entry {last}: {broken}"
            ))),
        }
    }

    /// Fails if a new log would hide the vhost's contents in the worker's store.
    pub(super) fn check_held(&self) -> Result<(), Obstacle> {
        let Some(Held { queues, messages }) = self.holds() else {
            return Ok(());
        };
        let vhost = &self.task.vhost;
        Err(Obstacle::Alarm(format!(
            "this node's store has {queues} queues and {messages} messages of it, from before it was replicated, \
             and its log has nothing: `crosstie amqp recover {vhost} --from store` writes them into it, \
             `--empty` begins without them"
        )))
    }

    /// Writes the entries of a claim or a recovery. Returns whether they are in the log.
    pub(super) async fn drive_claim(&mut self, stream: &Stream) -> Result<bool, Obstacle> {
        loop {
            let Some(effect) = self.ledger.next_effect() else {
                let is_recovering = self.ledger.role() == LedgerRole::Recovering;
                if is_recovering && self.ledger.is_settled() {
                    return Ok(true);
                }
                if let Some(due) = self.ledger.next_timeout() {
                    tokio::time::sleep_until(self.at(due)).await;
                }
                let now = self.now();
                self.ledger.handle_timeout(now);
                continue;
            };
            match effect {
                Effect::Append { after, entry } => {
                    let subject = self.names.subject(&entry);
                    let appended = stream.append(subject, after.0, &entry).await;
                    let now = self.now();
                    match appended {
                        Ok(Append::Appended(sequence)) if sequence == after.0 + 1 => {
                            self.ledger.handle_appended(now, Sequence(sequence));
                        }
                        Ok(Append::Refused | Append::Appended(_)) => {
                            self.ledger.handle_refused(now, after);
                        }
                        // The end is read when that is due.
                        Err(_) => {}
                    }
                }
                Effect::Read { after } => {
                    let end = log::read_end(stream, after.0).await;
                    let now = self.now();
                    match end {
                        Ok(end) if end.last >= after.0 => {
                            let reached = (after, Sequence(end.last));
                            self.ledger.handle_end(now, reached, end.entries());
                        }
                        _ => self.ledger.handle_unread(now),
                    }
                }
                Effect::Owning => return Ok(true),
                Effect::Deposed => return Ok(false),
                Effect::Broken(Sequence(at), broken) => {
                    let why = format!("its log is broken at entry {at}: {broken}");
                    return Err(Obstacle::Alarm(why));
                }
                Effect::Purge { .. } => self.ledger.handle_not_purged(),
                Effect::Fetch { .. } => {
                    let now = self.now();
                    self.ledger.handle_not_fetched(now);
                }
                Effect::Committed(_) | Effect::Released => {}
            }
        }
    }
}
