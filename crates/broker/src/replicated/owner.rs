//! Owning the vhost: writes records to the log, confirms acknowledged ones, and ends when another node takes over.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_jetstream::{Append, Stream};
use crosstie_ledger::{Effect, Ledger, Role as LedgerRole, Sequence};
use crosstie_queues::{Position, Record, Time};

use super::copy::Copy;
use super::driver::{Driver, Saying};
use super::heartbeats::Beats;
use super::journal::Journal;
use super::log;
use super::preparation::{Built, PREPARING_BEAT_EVERY, Preparation};
use super::questions::Questions;
use super::seen::Role;
use super::spare::is_fresh;
use super::standby::BEAT_EVERY;
use super::task::{Beginning, Holder};
use super::term::{Done, Term};
use super::unread::Unread;

/// Publishers are blocked after the log has acknowledged nothing for this time.
const STALL_BEGINS: Duration = Duration::from_secs(2);

/// After this time the clients are closed as well: an election takes 4 to 9 s.
const STALL_MAX: Duration = Duration::from_secs(30);

/// A vhost that is opened within this time is announced afterwards: nodes that bring clients at once are let in.
const QUICKLY_OPENED: Duration = Duration::from_millis(50);

/// After this time clients are closed if no other node is heard either, over any server: the node is cut off, and its
/// clients shall not wait for it.
const ALONE_MAX: Duration = Duration::from_secs(3);

/// Minimum interval between answers to probes.
const ANSWER_EVERY: Duration = Duration::from_millis(100);

/// Approximate bytes per batch for the ledger.
const BATCH_BYTES: usize = 1 << 20;

impl Driver {
    /// Begins a term: builds the vhost from the log, unless that is done, and opens it. Building takes time in proportion
    /// to the contents, so that heartbeats announce the owner meanwhile.
    pub(super) async fn begin_term(&mut self, stream: &Stream) {
        let name = Arc::clone(&self.task.vhost);
        let status = self.ledger.status();
        self.known.note(status.log, status.sequence.0);
        self.forget_shown();
        self.others.settle();
        let ledger = std::mem::replace(&mut self.ledger, Ledger::new(self.task.config()));
        let journal = Arc::new(Journal::new());
        let preparation = self.preparation.take();
        let opening = Opening {
            built: preparation.and_then(Preparation::into_built),
            holder: Arc::clone(&self.task.holder),
            journal: Arc::clone(&journal),
            is_kept_locally: self.task.settings.is_kept_locally,
            directory: self.task.directory.clone(),
            vhost: Arc::clone(&name),
            waiting_bytes_max: self.task.waiting_bytes_max,
        };
        self.opening = Some(tokio::task::spawn_blocking(move || opening.open(ledger)));
        let mut patience = QUICKLY_OPENED;
        let opened = loop {
            let Some(opening) = &mut self.opening else {
                return;
            };
            tokio::select! {
                opened = opening => break opened,
                () = tokio::time::sleep(patience) => self.say(stream, &status, Saying::Owning),
            }
            patience = BEAT_EVERY;
        };
        self.opening = None;
        // The thread has panicked and logged that; no vhost is open, and another node may take over.
        let Ok((ledger, copy)) = opened else {
            return;
        };
        self.ledger = ledger;
        self.term = Some(Term::new(journal, copy));
        self.begin_filling();
        self.note(|seen| {
            seen.role = Role::Owner;
            seen.takeovers += 1;
            seen.alarm = None;
        });
        let epoch = status.epoch;
        tracing::info!("vhost '{name}': this node owns it, epoch {epoch}");
        self.end_handing("this node has taken it back");
    }

    /// Ends a vhost that was being opened when the connection ended.
    pub(super) async fn abandon_opening(&mut self) {
        if let Some(opening) = self.opening.take() {
            // A thread that panicked has logged that already.
            let _ = opening.await;
            self.task.holder.close("the node has lost NATS");
            self.begin_anew();
        }
    }

    /// The node no longer owns the vhost: closes its clients.
    pub(super) fn end_term(&mut self, why: &str) {
        let Some(mut term) = self.term.take() else {
            return;
        };
        if let Some(handover) = self.handover.take() {
            handover.refuse(why);
        }
        let name = &self.task.vhost;
        tracing::warn!("vhost '{name}': this node no longer owns it: {why}");
        self.note(|seen| {
            seen.role = Role::Standby;
            seen.waiting_bytes = 0;
            seen.is_log_refusing = false;
            // An alarm about a refusing log ends with the term; the cause of the term's end stays.
            seen.alarm.take_if(|alarm| *alarm != why);
        });
        term.journal.end();
        self.task.holder.close(why);
        self.forget_shown();
        self.show_owner();
        drop(term.copy.take());
        self.known.write();
        let ledger = std::mem::replace(&mut self.ledger, Ledger::new(self.task.config()));
        // After a handover, a warm standby continues with what it has written; a cold one keeps nothing.
        match ledger.into_follower() {
            Some(follower) if self.task.settings.is_standby_warm => self.ledger = follower,
            rest => drop(tokio::task::spawn_blocking(move || drop(rest))),
        }
    }

    /// Serves the vhost until another node owns it, or the log fails. Returns the reason.
    pub(crate) async fn own(&mut self, stream: &Stream, beats: &mut Beats<'_>) -> String {
        self.note(|seen| seen.role = Role::Owner);
        let now = self.now();
        self.ledger.handle_connected(now);
        self.read_pages(stream);
        self.fill_on(stream);
        let mut told = Instant::now() - BEAT_EVERY;
        let subject = self.names.term(self.ledger.status().epoch);
        let mut questions = Questions::begin(&stream.connection, subject, &self.task.vhost);
        loop {
            if let Err(why) = self.act_and_advance(stream) {
                return why;
            }
            if let Err(why) = self.judge_stall() {
                return why;
            }
            // The target of a move reads along as closely as that.
            let every = match &self.handover {
                Some(_) => PREPARING_BEAT_EVERY,
                None => BEAT_EVERY,
            };
            if told.elapsed() >= every {
                told = Instant::now();
                self.tell(stream, questions.are_heard());
            }
            let due = self.ledger.next_timeout().map(|due| self.at(due));
            let beat_due = (told + every).into();
            let due = due.map_or(beat_due, |due| due.min(beat_due));
            let Some(term) = &mut self.term else {
                return "it has ended".to_owned();
            };
            let journal = Arc::clone(&term.journal);
            tokio::select! {
                () = journal.wake.notified() => {
                    self.hand_over();
                    self.read_pages(stream);
                }
                Some(done) = term.done.recv() => self.finish(stream, done),
                Some(order) = self.orders.recv() => self.obey_as_owner(stream, order),
                heard = beats.next() => self.handle_beat(stream, beats, heard).await,
                is_new = questions.next() => if is_new || told.elapsed() >= ANSWER_EVERY {
                    told -= BEAT_EVERY;
                },
                () = tokio::time::sleep_until(due) => {
                    let now = self.now();
                    self.ledger.handle_timeout(now);
                }
            }
        }
    }

    /// Executes the ledger's effects, and the steps of a move that are due. An error means the end of the term.
    fn act_and_advance(&mut self, stream: &Stream) -> Result<(), String> {
        loop {
            self.act(stream)?;
            if !self.advance(stream)? {
                return Ok(());
            }
        }
    }

    /// Publishes a heartbeat, and updates the status for operators.
    fn tell(&mut self, stream: &Stream, answers: bool) {
        if let Some(term) = &mut self.term {
            term.answers = answers;
        }
        self.adapt_to_readers();
        self.note_elders();
        self.beat(stream, Saying::Owning);
        self.note_ledger();
        self.note_term();
    }

    /// Waits until all submitted records are in the log.
    pub(super) async fn flush(&mut self, stream: &Stream) {
        self.hand_over();
        let mut told = Instant::now();
        while !self.ledger.is_settled() && self.act(stream).is_ok() {
            if told.elapsed() >= BEAT_EVERY {
                told = Instant::now();
                self.beat(stream, Saying::Owning);
            }
            let beat_due = (told + BEAT_EVERY).into();
            let due = self.ledger.next_timeout().map(|due| self.at(due));
            let due = due.map_or(beat_due, |due| due.min(beat_due));
            let Some(term) = &mut self.term else {
                return;
            };
            match tokio::time::timeout_at(due, term.done.recv()).await {
                Ok(Some(done)) => self.finish(stream, done),
                Ok(None) => return,
                Err(_) => {
                    let now = self.now();
                    self.ledger.handle_timeout(now);
                }
            }
            self.hand_over();
        }
        // Confirms the last acknowledged records.
        let _ = self.act(stream);
    }

    /// Passes submitted records to the ledger as one batch: an append of one record costs as much as one of a thousand.
    pub(super) fn hand_over(&mut self) {
        self.note_progress();
        let now = self.now();
        let Some(term) = &mut self.term else {
            return;
        };
        let mut records: Vec<Record> = Vec::new();
        let mut bytes = 0;
        let mut reached = None;
        for submitted in term.journal.take() {
            records.extend(submitted.records);
            bytes += submitted.bytes;
            reached = Some(submitted.position);
            if bytes >= BATCH_BYTES {
                let records = std::mem::take(&mut records);
                hand(
                    &mut self.ledger,
                    term,
                    now,
                    (records, bytes, submitted.position),
                );
                (bytes, reached) = (0, None);
            }
        }
        if let Some(position) = reached {
            hand(&mut self.ledger, term, now, (records, bytes, position));
        }
    }

    /// Executes the ledger's effects. An error means the end of the term.
    pub(super) fn act(&mut self, stream: &Stream) -> Result<(), String> {
        while let Some(effect) = self.ledger.next_effect() {
            let Some(term) = &mut self.term else {
                return Ok(());
            };
            let doing = term.doing.clone();
            let stream = stream.clone();
            match effect {
                Effect::Append { after, entry } => {
                    let begun = Instant::now();
                    let appended = stream.append(self.names.subject(&entry), after.0, &entry);
                    tokio::spawn(async move {
                        let result = appended.await;
                        let taken_us = begun.elapsed().as_micros() as u64;
                        let _ = doing.send(Done::Append {
                            after,
                            taken_us,
                            result,
                        });
                    });
                }
                Effect::Read { after } => {
                    tokio::spawn(async move {
                        let result = log::read_end(&stream, after.0).await;
                        let _ = doing.send(Done::End { after, result });
                    });
                }
                Effect::Purge { to } => {
                    tokio::spawn(async move {
                        let result = stream.purge(to.0).await;
                        let _ = doing.send(Done::Purge { to, result });
                    });
                }
                Effect::Fetch { first, last } => {
                    tokio::spawn(async move {
                        let result = log::read_between(&stream, (first, last)).await;
                        let _ = doing.send(Done::Fetch { result });
                    });
                }
                Effect::Committed(position) => self.commit(position),
                Effect::Owning => {}
                Effect::Released => term.is_handed = true,
                Effect::Deposed => return Err("another node owns it".to_owned()),
                Effect::Broken(Sequence(at), broken) => {
                    let why = format!("its log is broken at entry {at}: {broken}");
                    self.note(|seen| seen.alarm = Some(why.clone()));
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    /// The next owner will find everything up to `position`: sends the confirms.
    fn commit(&mut self, position: Position) {
        let Some(term) = &mut self.term else {
            return;
        };
        term.settle(position);
        let waiting_bytes = match term.is_held {
            // Keeps publishers blocked, however few bytes wait.
            true => usize::MAX,
            false => term.journal.waiting_bytes(),
        };
        let of_messages = self.ledger.resident_bytes() as usize;
        self.task
            .holder
            .commit(position, waiting_bytes, of_messages);
    }

    /// Handles the outcome of a request.
    fn finish(&mut self, stream: &Stream, done: Done) {
        let now = self.now();
        match done {
            Done::Append {
                after,
                taken_us,
                result,
            } => match result {
                Ok(Append::Appended(sequence)) if sequence == after.0 + 1 => {
                    self.ledger.handle_appended(now, Sequence(sequence));
                    if let Some(term) = &mut self.term {
                        term.refusal = None;
                    }
                    self.known.note(self.known.log, sequence);
                    self.note(|seen| {
                        seen.appends += 1;
                        seen.append_us += taken_us;
                    });
                }
                // An entry elsewhere than expected is no answer to this: the log decides.
                Ok(Append::Refused | Append::Appended(_)) => {
                    self.ledger.handle_refused(now, after);
                }
                // The ledger checks later whether the entry is in the log.
                Err(failed) => {
                    if let Some(term) = &mut self.term {
                        term.refusal = Some(format!("its log takes nothing: {failed}"));
                    }
                    let vhost = &self.task.vhost;
                    tracing::debug!("vhost '{vhost}': an append was not answered: {failed}");
                }
            },
            Done::End { after, result } => match result {
                Ok(end) if end.last >= after.0 => {
                    let reached = (after, Sequence(end.last));
                    self.ledger.handle_end(now, reached, end.entries());
                }
                // A server that no longer leads knows less: asked again.
                _ => self.ledger.handle_unread(now),
            },
            Done::Purge { to, result: Ok(()) } => self.ledger.handle_purged(now, to),
            Done::Purge { .. } => self.ledger.handle_not_purged(),
            Done::Fetch { result } => self.handle_fetched(result),
            Done::PagesRead(reading) => self.end_pages(stream, &reading),
            Done::PagesWanted(again) => self.want_again(stream, again),
            Done::Fill { extent, result } => self.fill(stream, extent, result),
            Done::FillOn => self.try_to_fill(stream),
        }
    }

    /// Whether there are other servers, and this node reaches none of them.
    fn has_no_second(&self) -> bool {
        self.dialler.servers.len() > 1 && !is_fresh(&self.second)
    }

    /// Blocks publishers while the log acknowledges nothing, and finally gives up.
    fn judge_stall(&mut self) -> Result<(), String> {
        self.note_progress();
        let is_idle = self.is_idle();
        let has_no_second = self.has_no_second();
        let Some(term) = &mut self.term else {
            return Ok(());
        };
        if is_idle {
            term.refusal = None;
            return Ok(());
        }
        let stalled = term.progress.stalled(Instant::now());
        let is_alone = has_no_second && self.others.have_fallen_silent();
        if stalled >= ALONE_MAX && is_alone {
            return Err("it reaches neither another node nor another server".to_owned());
        }
        if stalled >= STALL_MAX {
            let s = stalled.as_secs();
            return Err(format!("its log has acknowledged nothing for {s} s"));
        }
        if stalled >= STALL_BEGINS {
            self.task.holder.stall();
        }
        Ok(())
    }

    /// Notes how far the log has acknowledged what it is to take.
    fn note_progress(&mut self) {
        let (acknowledged, is_idle) = (self.ledger.acknowledged(), self.is_idle());
        if let Some(term) = &mut self.term {
            term.progress.note(Instant::now(), acknowledged, is_idle);
        }
    }

    fn is_idle(&self) -> bool {
        self.ledger.is_settled() && self.ledger.role() == LedgerRole::Owning
    }

    fn note_term(&self) {
        let Some(term) = &self.term else {
            return;
        };
        let status = self.ledger.status();
        let waiting_bytes = term.journal.waiting_bytes() as u64;
        let copy = term.copy.as_ref();
        let no_copy = copy.and_then(Copy::failure);
        let unread = term.unread.as_ref().and_then(Unread::alarm);
        self.note(|seen| {
            seen.waiting_bytes = waiting_bytes;
            seen.resynchronizations = status.resynchronizations;
            seen.is_log_refusing = term.refusal.is_some();
            seen.alarm = term.refusal.clone().or(unread).or(no_copy);
        });
    }
}

/// The parts for opening a vhost on a separate thread.
struct Opening {
    /// A vhost that was built before.
    built: Option<Built>,
    holder: Arc<dyn Holder>,
    journal: Arc<Journal>,
    is_kept_locally: bool,
    directory: PathBuf,
    vhost: Arc<str>,
    waiting_bytes_max: usize,
}

impl Opening {
    fn open(self, ledger: Ledger) -> (Ledger, Option<Copy>) {
        // What was built before a queue was deep has messages in memory that are to be in the log alone.
        let built = self.built.filter(|_| !ledger.is_deep());
        let built = built.unwrap_or_else(|| {
            let holder = Arc::clone(&self.holder);
            Built::new(holder, ledger.records().collect(), self.is_kept_locally)
        });
        let (vhost, records) = built.into_parts();
        // From now on the vhost counts its messages. Counted twice, they might crowd the memory.
        self.holder.note_memory(ledger.memory_bytes(), 0);
        vhost.open(Beginning::of(&ledger), &self.journal);
        let copy = records.map(|records| {
            let term = (&self.vhost, ledger.status().epoch);
            let records = (records, !ledger.is_deep());
            Copy::begin(&self.directory, term, records, self.waiting_bytes_max)
        });
        (ledger, copy)
    }
}

/// Passes a batch's records to the ledger and to the copy.
fn hand(
    ledger: &mut Ledger,
    term: &mut Term,
    now: Time,
    (records, bytes, position): (Vec<Record>, usize, Position),
) {
    if let Some(copy) = &term.copy
        && !copy.submit(records.clone())
    {
        tracing::error!("abandoned the local copy of a vhost: its disk is too slow");
    }
    term.handed.push_back((position, bytes));
    ledger.submit(now, records, position);
}
