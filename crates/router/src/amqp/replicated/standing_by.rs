//! While another node owns the vhost: its beats are listened to, its log is read along, and when it is silent the
//! vhost is to be claimed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_jetstream::answer::StreamInfo;
use crosstie_jetstream::{Failed, Stream, Subscription};
use crosstie_ledger::{Broken, Sequence};

use super::beat::Beat;
use super::driver::{Driver, Obstacle};
use super::log;
use super::task::Whose;

/// What is known of other nodes, by their beats.
pub(super) struct Others {
    owner: Option<(Beat, Instant)>,
    /// Who knows a log, and which.
    knowing: Option<(Beat, Instant)>,
    /// Since when an owner would have been heard.
    listening: Instant,
    has_left: bool,
    /// As the log says.
    epoch: u64,
    /// So that not all nodes claim at once.
    delay: Duration,
}

/// An owner that has been silent for so long is one no more, as far as others know.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The node that owned the vhost last, and has begun anew, waits for another owner so long; so does who would make a log.
const BEGIN_WAIT: Duration = Duration::from_millis(1500);

/// Who did not read along lets others go first.
const COLD_DELAY: Duration = Duration::from_secs(2);

/// How often the others are told.
pub(super) const BEAT_EVERY: Duration = Duration::from_millis(500);

const TICK: Duration = Duration::from_millis(100);

/// How long it may take servers to know what their leader knows.
const BEHIND_MAX: u32 = 100;

impl Others {
    pub(super) fn new(incarnation: u64) -> Self {
        Self {
            owner: None,
            knowing: None,
            listening: Instant::now(),
            has_left: false,
            epoch: 0,
            delay: Duration::from_millis(incarnation % 500),
        }
    }

    /// A connection begins: what was not heard before it says nothing.
    pub(super) fn attached(&mut self) {
        self.listening = Instant::now();
    }

    pub(super) fn hear(&mut self, beat: Beat) {
        let now = Instant::now();
        // What one that is silent said of its epoch may not have been so.
        let epoch = self.owner().map_or(0, |owner| owner.epoch);
        if beat.log != 0 {
            self.knowing = Some((beat.clone(), now));
        }
        if beat.is_owner && beat.epoch >= epoch {
            self.has_left = beat.is_leaving;
            self.owner = Some((beat, now));
        }
    }

    /// The owner, if it has been heard of late.
    pub(super) fn owner(&self) -> Option<&Beat> {
        let (beat, at) = self.owner.as_ref()?;
        let is_there = !beat.is_leaving && at.elapsed() < SILENCE_MAX;
        is_there.then_some(beat)
    }

    /// Of the owner that was heard of last.
    pub(super) fn epoch(&self) -> u64 {
        let heard = self.owner.as_ref().map_or(0, |(owner, _)| owner.epoch);
        heard.max(self.epoch)
    }

    /// The log names an owner that has not been heard.
    pub(super) fn note_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    pub(super) fn has_owner(&self) -> bool {
        self.owner().is_some()
    }

    /// Who was the owner, and is silent.
    fn silent(&self) -> Option<&Beat> {
        self.owner.as_ref().map(|(beat, _)| beat)
    }

    /// Since when no owner has been heard.
    fn silence(&self) -> Duration {
        let heard = self.owner.as_ref().map(|(_, at)| *at);
        heard
            .map_or(self.listening, |at| at.max(self.listening))
            .elapsed()
    }

    /// Another node that knows of a log.
    fn knowing(&self) -> Option<&Beat> {
        let (beat, at) = self.knowing.as_ref()?;
        (at.elapsed() < SILENCE_MAX).then_some(beat)
    }
}

impl Driver {
    /// Returns when the vhost is to be claimed.
    pub(super) async fn stand_by(
        &mut self,
        stream: &Stream,
        beats: &mut Subscription,
    ) -> Result<(), Obstacle> {
        self.others.attached();
        let is_warm = self.task.settings.is_standby_warm;
        let mut reads_to = match is_warm {
            true => self.examine(stream, beats).await?.last,
            false => 0,
        };
        let mut told = Instant::now() - BEAT_EVERY;
        loop {
            if is_warm {
                if let Some(owner) = self.others.owner() {
                    reads_to = reads_to.max(owner.sequence);
                }
                self.read_to(stream, reads_to).await?;
            }
            if told.elapsed() >= BEAT_EVERY {
                told = Instant::now();
                self.beat(stream, false);
            }
            if self.is_to_claim() {
                if !is_warm {
                    self.examine(stream, beats).await?;
                }
                return Ok(());
            }
            self.show_owner();
            self.note_ledger();
            match tokio::time::timeout(TICK, beats.next()).await {
                Ok(Some(message)) => self.hear(&message.payload),
                Ok(None) => return Err(Obstacle::Unanswered(Failed::Full)),
                Err(_) => {}
            }
        }
    }

    /// Whether nobody seems to own the vhost.
    fn is_to_claim(&self) -> bool {
        let others = &self.others;
        let last = self.ledger.status().owner;
        let is_own = last.is_none_or(|owner| *owner.node == *self.task.node);
        let is_warm = self.task.settings.is_standby_warm;
        let wait = match () {
            () if others.has_left => Duration::ZERO,
            // Who has not read the log does not know whose it was.
            () if is_own && is_warm && others.owner.is_none() => BEGIN_WAIT,
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
                let why = format!("its owner, node {}, is silent", silent.node);
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
            return match log::unfit(&info, replicas) {
                Some(why) => Err(Obstacle::Alarm(why)),
                None => Ok(info),
            };
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
        // Others may know of one: that is lost, and not to begin.
        let begun = Instant::now();
        while begun.elapsed() < BEGIN_WAIT + self.others.delay {
            match tokio::time::timeout(TICK, beats.next()).await {
                Ok(Some(message)) => self.hear(&message.payload),
                Ok(None) => return Err(Obstacle::Unanswered(Failed::Full)),
                Err(_) => {}
            }
            if let Some(knowing) = self.others.knowing() {
                return Err(missing(&format!("node {}", knowing.node), knowing.sequence));
            }
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
            let status = self.ledger.status();
            if let Some((log, known)) = self.known.end()
                && status.log == log
                && status.sequence > known
            {
                self.known.note(log, status.sequence.0);
            }
        }
    }

    /// Notes what operators see of the ledger.
    pub(super) fn note_ledger(&self) {
        let status = self.ledger.status();
        let end = self.others.owner().map_or(0, |owner| owner.sequence);
        let memory_bytes = self.ledger.memory_bytes() as u64;
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
