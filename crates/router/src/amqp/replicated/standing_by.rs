//! While another node owns the vhost: its beats are listened to, its log is read along, and when it is silent the
//! vhost is to be claimed.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_jetstream::answer::StreamInfo;
use crosstie_jetstream::{Failed, Stream, Subscription};
use crosstie_ledger::{Broken, News, Sequence};

use super::driver::{Driver, Obstacle, Saying};
use super::log;
use super::others::SILENCE_MAX;
use super::task::Whose;

/// The node that owned the vhost last, and has begun anew, waits for another owner so long; so does who would make a log.
const BEGIN_WAIT: Duration = Duration::from_millis(1500);

/// Who did not read along lets others go first.
const COLD_DELAY: Duration = Duration::from_secs(2);

/// How often the others are told.
pub(super) const BEAT_EVERY: Duration = Duration::from_millis(500);

const TICK: Duration = Duration::from_millis(100);

/// How long it may take servers to know what their leader knows.
const BEHIND_MAX: u32 = 100;

/// Of an answer that nobody is there.
const ANSWER_BYTES_MAX: usize = 4096;

impl Driver {
    /// Returns when the vhost is to be claimed.
    pub(super) async fn stand_by(
        &mut self,
        stream: &Stream,
        beats: &mut Subscription,
    ) -> Result<(), Obstacle> {
        self.others.begin_anew();
        let is_warm = self.task.settings.is_standby_warm;
        let mut reads_to = 0;
        if is_warm {
            reads_to = self.examine(stream, beats).await?.last;
            self.read_to(stream, reads_to).await?;
            self.ask_for_owner(stream);
        }
        let mut told = Instant::now() - BEAT_EVERY;
        let mut question = None;
        loop {
            if is_warm {
                if let Some(owner) = self.others.owner() {
                    // As it says now: somebody else may have said more.
                    reads_to = owner.sequence;
                    let (read, log) = (self.ledger.status().log, owner.log);
                    // It was recovered meanwhile, and is read from its front.
                    if read != 0 && log != 0 && read != log {
                        self.begin_anew();
                        reads_to = self.examine(stream, beats).await?.last;
                    }
                }
                self.read_to(stream, reads_to).await?;
            }
            // To read may have taken longer than an owner may be silent.
            self.hear_waiting(beats);
            if told.elapsed() >= BEAT_EVERY {
                told = Instant::now();
                self.beat(stream, Saying::StandingBy);
            }
            if self.is_to_claim() {
                self.tell_ended();
                if !is_warm {
                    self.examine(stream, beats).await?;
                }
                return Ok(());
            }
            self.show_owner();
            self.note_ledger();
            if let Some(epoch) = self.others.next_question(stream.connection.tidings()) {
                let subject = self.names.term(epoch);
                let asked = stream
                    .connection
                    .ask_many(&subject, &[], b"", ANSWER_BYTES_MAX);
                question = asked.ok();
            }
            self.judge_handing();
            tokio::select! {
                heard = beats.next() => self.handle_beat(stream, beats, heard).await,
                Some(order) = self.orders.recv() => {
                    if self.obey(stream, beats, order).await && is_warm {
                        reads_to = self.examine(stream, beats).await?.last;
                    }
                }
                () = tokio::time::sleep(TICK) => {}
                is_nobody = is_nobody(&mut question) => {
                    question = None;
                    if is_nobody {
                        self.others.handle_nobody();
                    }
                }
            }
        }
    }

    /// Who the log names says at once that it is there; there may be nobody.
    fn ask_for_owner(&self, stream: &Stream) {
        let owner = self.names.term(self.ledger.status().epoch);
        let _ = stream.connection.publish(&owner, b"");
    }

    /// Says why the vhost is claimed, where that is not for an owner's silence.
    fn tell_ended(&self) {
        if let (Some(owner), true) = (self.others.silent(), self.others.has_ended()) {
            let (vhost, node) = (&self.task.vhost, &owner.node);
            tracing::info!(
                "vhost '{vhost}': its owner, node {node}, has no connection to NATS any more"
            );
        }
    }

    /// Whether nobody seems to own the vhost.
    fn is_to_claim(&self) -> bool {
        let others = &self.others;
        // It was handed to another node, which is given its time.
        if self.handing.is_some() || others.is_held_for_another() {
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
            // Who has not read the log does not know whose it was.
            () if is_own && is_warm && !others.has_heard_owner() => BEGIN_WAIT,
            () => SILENCE_MAX,
        };
        let behind_others = if is_warm { Duration::ZERO } else { COLD_DELAY };
        others.silence() >= wait + behind_others + others.delay
    }

    /// Says who owns the vhost, as far as is known.
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
        // Where another node owns it, what kept this one from it does not matter.
        if self.others.has_owner() {
            self.note(|seen| seen.alarm = None);
        }
    }

    /// What the stream is; it is made where there has never been one.
    pub(super) async fn examine(
        &mut self,
        stream: &Stream,
        beats: &mut Subscription,
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

    /// Others may know of a log: then it is lost, and not to begin, or has just been made.
    async fn await_others(
        &mut self,
        stream: &Stream,
        beats: &mut Subscription,
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
            // The server that was asked first may not have known of it yet.
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
        loop {
            let after = self.ledger.status().sequence.0;
            if after >= to {
                return Ok(());
            }
            let read = log::read_some(stream, after).await;
            let entries = read.map_err(Obstacle::Unanswered)?;
            if entries.is_empty() {
                behind += 1;
                // Nothing is there: whoever claims it looks into that.
                if behind > BEHIND_MAX || after == 0 {
                    return Ok(());
                }
                tokio::time::sleep(TICK / 2).await;
                continue;
            }
            for (sequence, entry) in entries {
                match self.ledger.handle_entry(Sequence(sequence), &entry) {
                    Ok(News::Handed(handed)) => self.others.note_handed(&handed.to),
                    Ok(News::Owned(_)) => {
                        let epoch = self.ledger.status().epoch;
                        self.others.note_taken(epoch);
                    }
                    Ok(_) => {}
                    // It was cleaned meanwhile, and is read from its front.
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
        }
    }

    /// Remembers how long the log is that was read, if it is the one that is known, or in its place.
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

    /// Notes what operators see of the ledger.
    pub(super) fn note_ledger(&self) {
        let status = self.ledger.status();
        let end = self.others.owner().map_or(0, |owner| owner.sequence);
        let memory_bytes = self.ledger.memory_bytes() as u64;
        // Who owns the vhost has its messages there.
        let of_messages = match self.term {
            Some(_) => 0,
            None => status.live_bytes,
        };
        self.task
            .holder
            .note_memory((memory_bytes + of_messages) as usize);
        self.note(|seen| {
            seen.epoch = status.epoch;
            seen.sequence = status.sequence.0;
            seen.end = end.max(status.sequence.0);
            seen.log_bytes = status.log_bytes;
            seen.live_bytes = status.live_bytes;
            seen.memory_bytes = memory_bytes;
        });
    }
}

/// Whether NATS says that nobody is there to answer; others than NATS do not say anything.
async fn is_nobody(question: &mut Option<Subscription>) -> bool {
    match question {
        Some(question) => match question.next().await {
            Some(answer) => answer.status() == Some(NO_RESPONDERS),
            None => false,
        },
        None => pending().await,
    }
}

/// The status of what nobody is there to answer.
const NO_RESPONDERS: u16 = 503;
