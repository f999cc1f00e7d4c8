//! Recovery of a log on an operator's order: examines it, then accepts or rewrites it.
//!
//! All writes follow the log's last entry, as an owner's would: if another node writes meanwhile, nothing happens. The
//! new log names the log that it replaces, so that nodes which knew that one accept it (`crosstie_ledger::Recovery`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crosstie_front::seed::seed;
use crosstie_jetstream::Stream;
use crosstie_jetstream::answer::StreamInfo;
use crosstie_ledger::{Ledger, Recovery, Remains, Salvage, Salvaged, Sequence};
use crosstie_metadata::BEGUN;
use crosstie_nats::escaped;
use crosstie_queues::{Position, Record};

use super::copy;
use super::driver::{Driver, Obstacle};
use super::log;
use super::orders::{Means, Recover, Recovered};

/// The findings about a log.
struct Survey {
    /// `None` if the servers have no such stream.
    info: Option<StreamInfo>,
    /// The contents of a log that could be read to its end; empty for any other.
    ledger: Ledger,
    found: Salvaged,
    /// Why the log is not opened.
    wrong: Option<String>,
    /// The log could be read to a valid end.
    is_followed: bool,
}

/// The plan of a recovery.
enum Plan {
    /// Accept the log as it is.
    Whole,
    /// Write these records, and discard everything else.
    Anew(Vec<Record>),
}

/// Maximum time without an acknowledgement from the log.
const WRITE_MAX: Duration = Duration::from_secs(30);

/// Approximate bytes per batch.
const BATCH_BYTES: usize = 1 << 20;

/// Number of requests, and their interval, for entries that a server should have.
const TRIES: u32 = 40;
const TRY_AGAIN: Duration = Duration::from_millis(50);

impl Driver {
    /// Executes a recovery. Returns whether the log has been replaced.
    pub(super) async fn recover(&mut self, stream: &Stream, order: Recover) -> bool {
        let Recover {
            means,
            is_meant,
            reply,
        } = order;
        let done = self.try_recover(stream, &means, is_meant).await;
        self.begin_anew();
        let is_done = done.as_ref().is_ok_and(|done| done.is_done);
        reply.answer(done);
        is_done
    }

    async fn try_recover(
        &mut self,
        stream: &Stream,
        means: &Means,
        is_meant: bool,
    ) -> Result<Recovered, String> {
        if let Some(owner) = self.others.owner() {
            return Err(format!(
                "node {} owns it: its log is whole, and in use",
                owner.node
            ));
        }
        // Earlier reads would interfere.
        self.begin_anew();
        let mut survey = self.survey(stream).await?;
        self.judge(&survey, means)?;
        let (from, plan) = self.plan(stream, &mut survey, means).await?;
        let mut recovered = Recovered {
            wrong: survey.wrong.clone(),
            known: self.known.sequence,
            found: survey
                .info
                .as_ref()
                .map_or((0, 0), |info| (info.first, info.last)),
            unreadable: survey.found.unreadable,
            from,
            ..Recovered::default()
        };
        match &plan {
            Plan::Whole => count(survey.ledger.records(), &mut recovered),
            Plan::Anew(records) => count(records.iter().cloned(), &mut recovered),
        }
        if !is_meant {
            return Ok(recovered);
        }
        self.write(stream, survey, plan, &recovered.from).await?;
        recovered.is_done = true;
        let (vhost, from) = (&self.task.vhost, &recovered.from);
        tracing::warn!("vhost '{vhost}': its log is recovered, from {from}");
        self.note(|seen| seen.alarm = None);
        Ok(recovered)
    }

    /// Examines the log, holding its contents at most once: to salvage a broken log, it is read again.
    async fn survey(&self, stream: &Stream) -> Result<Survey, String> {
        let info = stream.info().await.map_err(|failed| failed.to_string())?;
        let unfit = info
            .as_ref()
            .and_then(|info| log::unfit(info, self.task.settings.replicas));
        if let Some(why) = unfit {
            return Err(why);
        }
        let last = info.as_ref().map_or(0, |info| info.last);
        let mut ledger = Ledger::new(self.task.config());
        let mut broken = None;
        let follow = |sequence: u64, entry: &[u8]| {
            if broken.is_none() {
                let read = ledger.handle_entry(Sequence(sequence), entry);
                broken = read.err().map(|broken| (sequence, broken));
                if broken.is_some() {
                    ledger = Ledger::new(self.task.config());
                }
            }
        };
        let (found, _) = read_all(stream, info.as_ref(), Salvage::counting(), follow).await?;
        let wrong = match (&info, broken) {
            (None, _) if self.known.log == 0 => Some("there is none".to_owned()),
            (None, _) => Some("the servers have none".to_owned()),
            (_, Some((at, broken))) => Some(format!("it is broken at entry {at}: {broken}")),
            _ => {
                let checked = ledger.check_end(Sequence(last), self.known.end());
                checked.err().map(|broken| match broken {
                    crosstie_ledger::Broken::Shorter => "it is shorter than it was".to_owned(),
                    crosstie_ledger::Broken::Foreign => "it is another one than it was".to_owned(),
                    broken => format!("it is not whole: {broken}"),
                })
            }
        };
        let is_followed = broken.is_none() && ledger.check_end(Sequence(last), None).is_ok();
        if !is_followed {
            ledger = Ledger::new(self.task.config());
        }
        Ok(Survey {
            info,
            ledger,
            found,
            wrong,
            is_followed,
        })
    }

    /// Whether the chosen means fits the state of the log.
    fn judge(&self, survey: &Survey, means: &Means) -> Result<(), String> {
        let Survey { found, ledger, .. } = survey;
        let is_whole = survey.wrong.is_none();
        let entries = found.entries;
        if found.is_of_later {
            return Err("a later version has written its log: start that one".to_owned());
        }
        match means {
            Means::Log if entries == 0 => Err(
                "nothing is left of its log: `--from store` writes what this node has kept of it into \
                 one, `--empty` begins with nothing"
                    .to_owned(),
            ),
            Means::Log if is_whole => Err(format!("its log is whole, with {entries} entries: nothing is missing")),
            Means::Store(_) | Means::Nothing if is_whole && ledger.records().any(|record| is_content(&record)) => Err(
                format!("its log is whole, with {entries} entries: it is not written over"),
            ),
            Means::Nothing
                if entries == 0
                    && self.known.log == 0
                    && self.task.held.is_none()
                    && self.others.knowing().is_none() =>
            {
                Err("it has no log yet, and begins one by itself".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The source of the new contents in words, and the plan.
    async fn plan(
        &self,
        stream: &Stream,
        survey: &mut Survey,
        means: &Means,
    ) -> Result<(String, Plan), String> {
        let path = match means {
            Means::Log => {
                let plan = match survey.is_followed {
                    true => Plan::Whole,
                    false => Plan::Anew(salvage(stream, survey).await?),
                };
                return Ok(("what is left of its log".to_owned(), plan));
            }
            // A node of an earlier version could not read it.
            Means::Nothing if self.others.elders().next().is_some() => {
                return Ok(("nothing".to_owned(), Plan::Anew(Vec::new())));
            }
            // Nor does it get the settings that a node's store has.
            Means::Nothing => {
                let begun = Record::Setting {
                    key: BEGUN.into(),
                    value: Some("{}".into()),
                };
                return Ok(("nothing".to_owned(), Plan::Anew(vec![begun])));
            }
            Means::Store(Some(path)) => path.clone(),
            Means::Store(None) => self.kept()?,
        };
        // The log is rewritten.
        survey.ledger = Ledger::new(self.task.config());
        let holder = Arc::clone(&self.task.holder);
        let vhost = Arc::clone(&self.task.vhost);
        let directory = self.task.directory.clone();
        let beside = directory.join(format!("{}.taken", escaped(&vhost)));
        let is_own = is_same(&path, &self.task.store);
        let store = path.clone();
        let read = move || {
            if !is_own {
                return copy::read(&store, &vhost);
            }
            // The worker has the store open, and copies it.
            let made = std::fs::create_dir_all(&directory).and_then(|()| copy::remove(&beside));
            made.map_err(|e| format!("{}: {e}", beside.display()))?;
            holder.back_up(&beside)?;
            let records = copy::read(&beside, &vhost);
            let _ = copy::remove(&beside);
            records
        };
        let read = tokio::task::spawn_blocking(read).await;
        let records = read.map_err(|e| e.to_string())??;
        self.check_readers(&path, &records)?;
        Ok((path.display().to_string(), Plan::Anew(records)))
    }

    /// Refuses a log with settings while a node could not read it.
    fn check_readers(&self, path: &Path, records: &[Record]) -> Result<(), String> {
        let mut records = records.iter();
        match self.others.elders().next() {
            Some(elder) if records.any(|record| matches!(record, Record::Setting { .. })) => {
                Err(format!(
                    "{} has settings, and node {elder} of an earlier version cannot read a log with settings: upgrade it \
                     first",
                    path.display()
                ))
            }
            _ => Ok(()),
        }
    }

    /// This node's store of the vhost: its copy, or the worker's store from before.
    fn kept(&self) -> Result<PathBuf, String> {
        let copies = copy::copies(&self.task.directory, &self.task.vhost);
        match &copies[..] {
            [only] if !copy::is_partial(only) => Ok(only.clone()),
            [] if self.task.held.is_some() => Ok(self.task.store.clone()),
            [] => Err(
                "this node has no copy of it: name a store by `--store`, or ask a node that has owned it"
                    .to_owned(),
            ),
            several => {
                let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
                Err(format!(
                    "the last copy here is not known to be whole: name one of {} by `--store`",
                    names.join(", ")
                ))
            }
        }
    }

    async fn write(
        &mut self,
        stream: &Stream,
        survey: Survey,
        plan: Plan,
        from: &str,
    ) -> Result<(), String> {
        let name = seed().max(1);
        let mut replaced: Vec<u64> = self.others.logs().collect();
        replaced.extend(survey.found.logs.iter().copied());
        replaced.push(self.known.log);
        let recovery = Recovery {
            by: self.task.node.as_str().into(),
            from: from.into(),
            replaced,
        };
        let now = self.now();
        let Plan::Anew(records) = plan else {
            self.ledger = survey.ledger;
            self.ledger.recover_whole(now, recovery, name);
            self.drive(stream).await?;
            return self.keep_known(name);
        };
        let last = match &survey.info {
            Some(info) => info.last,
            None => {
                let config = self.names.config(self.task.settings.replicas);
                let made = stream.create(&config).await;
                made.map_err(|failed| format!("its stream cannot be made: {failed}"))?
                    .last
            }
        };
        let remains = Remains {
            last: Sequence(last),
            epoch: survey.found.epoch.max(self.others.epoch()),
        };
        self.ledger = Ledger::recover_anew(self.task.config(), now, recovery, name, remains);
        self.drive(stream).await?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for record in records {
            bytes += match &record {
                Record::Enqueued { message, .. } => message.content.memory_bytes(),
                _ => 0,
            };
            batch.push(record);
            if bytes >= BATCH_BYTES || batch.len() >= 10_000 {
                let now = self.now();
                self.ledger
                    .submit(now, std::mem::take(&mut batch), Position(1));
                bytes = 0;
                self.drive(stream).await?;
            }
        }
        let now = self.now();
        self.ledger.submit(now, batch, Position(1));
        self.ledger.recover_end(now);
        self.drive(stream).await?;
        self.keep_known(name)?;
        if last > 0 {
            self.purge(stream, last).await?;
        }
        Ok(())
    }

    /// Writes the ledger's entries.
    async fn drive(&mut self, stream: &Stream) -> Result<(), String> {
        let driven = tokio::time::timeout(WRITE_MAX, self.drive_claim(stream)).await;
        match driven {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("another node has written to its log meanwhile".to_owned()),
            Ok(Err(Obstacle::Alarm(why))) => Err(why),
            Ok(Err(Obstacle::Unanswered(failed))) => Err(format!("its log: {failed}")),
            Err(_) => Err(format!(
                "its log takes nothing for {} s",
                WRITE_MAX.as_secs()
            )),
        }
    }

    /// Removes the entries in front of the recovery.
    async fn purge(&self, stream: &Stream, last: u64) -> Result<(), String> {
        let mut failed = String::new();
        for _ in 0..3 {
            match stream.purge(last).await {
                Ok(()) => return Ok(()),
                Err(why) => failed = why.to_string(),
            }
        }
        Err(format!(
            "it is written, and the earlier entries of the log could not be purged: {failed}; do it again"
        ))
    }

    /// Notes the new log as this node's known one.
    fn keep_known(&mut self, name: u64) -> Result<(), String> {
        self.known.note(name, self.ledger.status().sequence.0);
        self.known.write();
        match self.known.is_written() {
            true => Ok(()),
            false => Err("the log is recovered, and this node could not store its id".to_owned()),
        }
    }
}

/// The surviving records of an examined log.
async fn salvage(stream: &Stream, survey: &Survey) -> Result<Vec<Record>, String> {
    let read = read_all(stream, survey.info.as_ref(), Salvage::default(), |_, _| ()).await;
    match read? {
        (found, records) if found == survey.found => Ok(records),
        _ => Err("its log has changed while it was read: do it again".to_owned()),
    }
}

/// Reads a log to the found end, as far as the servers have it. Returns the findings and the records that `salvage`
/// keeps.
async fn read_all(
    stream: &Stream,
    info: Option<&StreamInfo>,
    mut salvage: Salvage,
    mut follow: impl FnMut(u64, &[u8]),
) -> Result<(Salvaged, Vec<Record>), String> {
    let last = info.map_or(0, |info| info.last);
    let is_empty = info.is_none_or(|info| info.messages == 0);
    let (mut after, mut tries) = (0, 0);
    'reading: while after < last && !is_empty && tries < TRIES {
        let read = log::read_some(stream, after).await;
        let entries = read.map_err(|failed| format!("its log: {failed}"))?;
        if entries.is_empty() {
            tries += 1;
            tokio::time::sleep(TRY_AGAIN).await;
        }
        for (sequence, entry) in entries {
            if sequence > last {
                break 'reading;
            }
            after = sequence;
            salvage.take(Sequence(sequence), &entry);
            follow(sequence, &entry);
        }
    }
    let (mut found, records) = salvage.finish();
    found.unreadable += last - after;
    Ok((found, records))
}

/// Whether a record is content of the vhost: settings alone are none.
pub(super) fn is_content(record: &Record) -> bool {
    !matches!(record, Record::Setting { .. })
}

fn count(records: impl Iterator<Item = Record>, recovered: &mut Recovered) {
    for record in records {
        match record {
            Record::ExchangeDeclared { .. } => recovered.exchanges += 1,
            Record::QueueDeclared { .. } => recovered.queues += 1,
            Record::Bound { .. } => recovered.bindings += 1,
            Record::Enqueued { .. } => recovered.messages += 1,
            Record::Setting { key, .. } if *key != *BEGUN => recovered.settings += 1,
            Record::Kept(kept) => recovered.messages += kept.messages as u64,
            _ => {}
        }
    }
}

fn is_same(path: &Path, other: &Path) -> bool {
    match (path.canonicalize(), other.canonicalize()) {
        (Ok(path), Ok(other)) => path == other,
        _ => path == other,
    }
}
