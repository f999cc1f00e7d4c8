//! Standing by while another node owns the vhost: hears its heartbeats, follows its log, and claims the vhost when it
//! falls silent.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_jetstream::answer::StreamInfo;
use crosstie_jetstream::{Failed, Stream, Subscription};
use crosstie_ledger::{Broken, News, Sequence};

use super::driver::{Driver, Obstacle, Saying};
use super::heartbeats::Beats;
use super::log;
use super::peers::OWNER_SILENCE_MAX;
use super::preparation::{Held, PREPARING_BEAT_EVERY, Preparation, built};
use super::reading::Reading;
use super::spare::FRESH_MAX;
use super::task::Whose;

/// Wait of the last owner after a restart, and of a node that would create a log, for another owner.
const BEGIN_WAIT: Duration = Duration::from_millis(1500);

/// A node that did not follow the log lets others claim first.
const COLD_DELAY: Duration = Duration::from_secs(2);

/// Interval of heartbeats.
pub(super) const BEAT_EVERY: Duration = Duration::from_millis(500);

const TICK: Duration = Duration::from_millis(100);

/// Number of reads for which a server may lag behind its leader.
const BEHIND_MAX: u32 = 100;

/// Maximum size of a "no responders" answer.
const ANSWER_BYTES_MAX: usize = 4096;

impl Driver {
    /// Returns when the vhost shall be claimed.
    pub(super) async fn stand_by(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
    ) -> Result<(), Obstacle> {
        let is_warm = self.task.settings.is_standby_warm;
        let mut reading = Reading::default();
        if is_warm {
            reading.to = self.examine(stream, beats).await?.last;
            self.read_to(stream, reading.to).await?;
            self.ask_for_owner(stream);
        }
        let mut told = Instant::now() - BEAT_EVERY;
        let mut question = None;
        loop {
            // A cold standby reads the log when the owner wants to move the vhost to this node.
            if is_warm || self.preparation.is_some() {
                self.read_along(stream, beats, &mut reading).await?;
            }
            // Examining may have taken longer than an owner may be silent.
            self.hear_waiting(beats);
            self.prepare(stream, beats).await?;
            let every = match &self.preparation {
                Some(_) => PREPARING_BEAT_EVERY,
                None => BEAT_EVERY,
            };
            if told.elapsed() >= every {
                told = Instant::now();
                self.beat(stream, self.leaving());
            }
            // A claim over a server that does not answer would wait in vain; this node is about to leave that server.
            if self.is_to_claim() && stream.connection.silence() < FRESH_MAX {
                self.tell_ended();
                if !is_warm && self.preparation.is_none() {
                    self.examine(stream, beats).await?;
                }
                return Ok(());
            }
            self.show_owner();
            self.note_ledger();
            question = self.question(stream).or(question);
            self.judge_handing();
            tokio::select! {
                heard = beats.next() => self.handle_beat(stream, beats, heard).await,
                Some(order) = self.orders.recv() => {
                    if self.obey(stream, beats, order).await && is_warm {
                        reading.to = self.examine(stream, beats).await?.last;
                    }
                }
                built = built(&mut self.preparation) => {
                    self.handle_built(built);
                    told = Instant::now() - BEAT_EVERY;
                }
                () = tokio::time::sleep(TICK) => {}
                (after, entries) = reading.next() => {
                    let entries = entries.map_err(Obstacle::Unanswered)?;
                    // The log may have been replaced meanwhile.
                    if after == self.ledger.status().sequence.0 {
                        self.take(entries)?;
                    }
                }
                is_nobody = is_nobody(&mut question) => {
                    question = None;
                    if is_nobody {
                        self.others.handle_nobody();
                    }
                }
            }
        }
    }

    /// Begins to read the log up to the owner's last entry.
    async fn read_along(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
        reading: &mut Reading,
    ) -> Result<(), Obstacle> {
        if let Some(owner) = self.others.owner() {
            // The owner's current sequence: another node may have reported a higher one.
            reading.to = owner.sequence;
            let (read, log) = (self.ledger.status().log, owner.log);
            // The log was replaced meanwhile, and is read from its beginning.
            if read != 0 && log != 0 && read != log {
                self.begin_anew();
                reading.to = self.examine(stream, beats).await?.last;
            }
        }
        reading.go_on(stream, self.ledger.status().sequence.0);
        Ok(())
    }

    /// Probes the owner, if that is due.
    fn question(&mut self, stream: &Stream) -> Option<Subscription> {
        let epoch = self.others.next_question(stream.connection.tidings())?;
        let subject = self.names.term(epoch);
        let connection = &stream.connection;
        let asked = connection.ask_many(&subject, &[], b"", ANSWER_BYTES_MAX);
        asked.ok()
    }

    /// Probes the owner that the log names, which answers at once if it exists.
    fn ask_for_owner(&self, stream: &Stream) {
        let owner = self.names.term(self.ledger.status().epoch);
        let _ = stream.connection.publish(&owner, b"");
    }

    /// Logs the reason of a claim that does not follow from an owner's silence.
    fn tell_ended(&self) {
        if let (Some(owner), true) = (self.others.silent(), self.others.has_ended()) {
            let (vhost, node) = (&self.task.vhost, &owner.node);
            tracing::info!(
                "vhost '{vhost}': its owner, node {node}, has lost its connection to NATS"
            );
        }
    }

    /// Whether the vhost seems to have no owner.
    fn is_to_claim(&self) -> bool {
        let others = &self.others;
        // The successor in a handover gets its time.
        if self.is_handing() || others.is_held_for_another() {
            return false;
        }
        if others.is_for_this() {
            return true;
        }
        let last = self.ledger.status().owner;
        let is_own = last.is_none_or(|owner| *owner.node == *self.task.node);
        let is_warm = self.task.settings.is_standby_warm;
        let wait = match () {
            () if others.has_left() || others.has_ended() => Duration::ZERO,
            // A node that has not read the log does not know the last owner.
            () if is_own && is_warm && !others.has_heard_owner() => BEGIN_WAIT,
            () => OWNER_SILENCE_MAX,
        };
        let behind_others = if is_warm { Duration::ZERO } else { COLD_DELAY };
        others.silence() >= wait + behind_others + others.delay
    }

    /// Shows the owner, as far as it is known.
    pub(super) fn show_owner(&mut self) {
        let whose = match (self.others.owner(), self.others.silent()) {
            (Some(owner), _) => Whose::Elsewhere {
                node: owner.node.as_str().into(),
                address: owner.address.as_str().into(),
            },
            (None, Some(silent)) => {
                let how = match self.others.has_ended() {
                    true => "has ended",
                    false => "is silent",
                };
                let why = format!("its owner, node {}, {how}", silent.node);
                Whose::Nobody { why: why.into() }
            }
            (None, None) => {
                let why = "its owner is being looked for".into();
                Whose::Nobody { why }
            }
        };
        self.show(whose);
        // If another node owns it, this node's own obstacle does not matter.
        if self.others.has_owner() {
            self.note(|seen| seen.alarm = None);
        }
    }

    /// Reads the state of the stream, and creates the stream if none has ever existed.
    pub(super) async fn examine(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
    ) -> Result<StreamInfo, Obstacle> {
        let replicas = self.task.settings.replicas;
        if let Some(info) = stream.info().await.map_err(Obstacle::Unanswered)? {
            return log::fit(info, replicas).map_err(Obstacle::Alarm);
        }
        let missing = |who: &str, sequence: u64| {
            Obstacle::Alarm(format!(
                "its log is missing: {who} knows one of {sequence} entries, and the servers have no stream '{}'",
                stream.name
            ))
        };
        if self.known.log != 0 {
            return Err(missing("this node", self.known.sequence));
        }
        self.check_held()?;
        if let Some(info) = self.await_others(stream, beats).await? {
            return log::fit(info, replicas).map_err(Obstacle::Alarm);
        }
        if let Some(knowing) = self.others.knowing() {
            return Err(missing(&format!("node {}", knowing.node), knowing.sequence));
        }
        let config = self.names.config(replicas);
        let made = stream
            .create(&config)
            .await
            .map_err(|failed| match failed {
                Failed::Refused(problem) => {
                    Obstacle::Alarm(format!("its stream cannot be made: {problem}"))
                }
                failed => Obstacle::Unanswered(failed),
            })?;
        let vhost = Arc::clone(&self.task.vhost);
        tracing::info!("vhost '{vhost}': its log begins, stream '{}'", stream.name);
        Ok(made)
    }

    /// Other nodes may report a log: then it is lost and must not be created again, or has just been created.
    async fn await_others(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
    ) -> Result<Option<StreamInfo>, Obstacle> {
        let begun = Instant::now();
        while begun.elapsed() < BEGIN_WAIT + self.others.delay {
            if let Ok(heard) = tokio::time::timeout(TICK, beats.next()).await {
                self.handle_beat(stream, beats, heard).await;
            }
            if let Some(holding) = self.others.holding() {
                return Err(Obstacle::Alarm(format!(
                    "it has no log yet, and node {} has what it held before it was replicated: \
                     `crosstie amqp recover` there",
                    holding.node
                )));
            }
            // The server that was asked first may have lagged behind.
            if self.others.knowing().is_some()
                && let Some(info) = stream.info().await.map_err(Obstacle::Unanswered)?
            {
                return Ok(Some(info));
            }
        }
        Ok(None)
    }

    /// Reads the log up to that entry.
    pub(super) async fn read_to(&mut self, stream: &Stream, to: u64) -> Result<(), Obstacle> {
        let mut behind = 0;
        let mut told = Instant::now();
        loop {
            let after = self.ledger.status().sequence.0;
            if after >= to {
                return Ok(());
            }
            // A node that reads a long log is there all the same.
            if told.elapsed() >= BEAT_EVERY {
                told = Instant::now();
                self.beat(stream, Saying::Waiting);
            }
            let read = log::read_some(stream, after).await;
            let entries = read.map_err(Obstacle::Unanswered)?;
            if entries.is_empty() {
                behind += 1;
                // The stream is empty: a claim examines that.
                if behind > BEHIND_MAX || after == 0 {
                    return Ok(());
                }
                tokio::time::sleep(TICK / 2).await;
                continue;
            }
            self.take(entries)?;
            self.note_ledger();
        }
    }

    /// Takes the next entries of the log.
    fn take(&mut self, entries: Vec<(u64, Vec<u8>)>) -> Result<(), Obstacle> {
        for (sequence, entry) in entries {
            match self.ledger.handle_entry(Sequence(sequence), &entry) {
                Ok(News::Released(handed)) => self.others.note_handed(&handed.to),
                Ok(News::Owned(_)) => {
                    let epoch = self.ledger.status().epoch;
                    self.others.note_taken(epoch);
                }
                Ok(News::Records(records)) => {
                    let is_deep = self.ledger.is_deep();
                    if let Some(preparation) = &mut self.preparation {
                        preparation.restore(records, is_deep);
                    }
                }
                Ok(News::Recovered) => self.preparation = None,
                Ok(News::Nothing) => {}
                // The log was trimmed meanwhile, and is read from its beginning.
                Err(Broken::Missing) if self.ledger.status().sequence.0 > 0 => {
                    self.begin_anew();
                    break;
                }
                Err(broken) => {
                    return Err(Obstacle::Alarm(format!(
                        "its log is broken at entry {sequence}: {broken}"
                    )));
                }
            }
        }
        self.note_known();
        Ok(())
    }

    /// Stores the length of the log, if it is the known log or its replacement.
    fn note_known(&mut self) {
        let status = self.ledger.status();
        let Some((log, known)) = self.known.end() else {
            return;
        };
        if self.ledger.replaces(log) {
            let vhost = &self.task.vhost;
            if let Some(recovery) = self.ledger.recovery() {
                let (by, from) = (&recovery.by, &recovery.from);
                tracing::warn!("vhost '{vhost}': its log was recovered by node {by}, from {from}");
            }
            self.known.note(status.log, status.sequence.0);
        } else if status.log == log && status.sequence > known {
            self.known.note(log, status.sequence.0);
        }
    }

    /// Updates the ledger's part of the status. If memory is crowded, messages are left to the log.
    pub(super) fn note_ledger(&mut self) {
        let status = self.ledger.status();
        let end = self.others.owner().map_or(0, |owner| owner.sequence);
        let preparation = self.preparation.as_ref();
        let prepared = preparation.map_or_else(Held::default, Preparation::memory_bytes);
        let memory_bytes = self.ledger.memory_bytes() + prepared.records_bytes;
        // A vhost that is being built shares them with the ledger.
        let of_messages = (status.resident_bytes as usize).max(prepared.vhost_bytes);
        let pages = self.term.as_ref().map(|term| term.pages.reading_bytes);
        let held = memory_bytes + pages.unwrap_or_default() as usize;
        let is_crowded = self.task.holder.note_memory(held, of_messages);
        self.ledger.set_crowded(is_crowded);
        // Not in the time without an owner: dropping a vhost takes long.
        if self.ledger.is_deep()
            && let Some(preparation) = &mut self.preparation
        {
            preparation.note_deep();
        }
        self.note(|seen| {
            seen.epoch = status.epoch;
            seen.sequence = status.sequence.0;
            seen.end = end.max(status.sequence.0);
            seen.log_bytes = status.log_bytes;
            seen.live_bytes = status.live_bytes;
            seen.memory_bytes = memory_bytes as u64;
        });
    }
}

/// Whether NATS reports that no subscriber exists. Any other answer is ignored.
async fn is_nobody(question: &mut Option<Subscription>) -> bool {
    match question {
        Some(question) => match question.next().await {
            Some(answer) => answer.status() == Some(NO_RESPONDERS),
            None => false,
        },
        None => pending().await,
    }
}

/// The status of a request without subscribers.
const NO_RESPONDERS: u16 = 503;
