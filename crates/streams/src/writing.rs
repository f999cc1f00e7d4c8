//! The thread that writes: all that waits, as one group for each vhost.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crosstie_disk::Disk;
use crosstie_queues::{QueueId, StreamAppend};

use crate::directory::{self, Key};
use crate::files;
use crate::group::{self, Group, Unwritten};
use crate::log::{Log, empty};
use crate::orders::{Shared, Submission, Written, lock, now_ms};
use crate::writer::{Staged, Writer};

/// The thread's state.
pub(crate) struct Writing {
    shared: Arc<Shared>,
    writer: Writer,
    disk: Arc<dyn Disk>,
    /// When the oldest segment of a stream is too old.
    expiries: BTreeMap<(u64, Key), ()>,
    /// What is to be written.
    groups: Vec<(Arc<str>, Group)>,
}

/// How long after a failure a group is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What the thread calls.
pub(crate) struct Reports<W, F> {
    pub(crate) on_written: W,
    pub(crate) on_unwritten: F,
}

impl Writing {
    pub(crate) fn new(
        shared: Arc<Shared>,
        disk: Arc<dyn Disk>,
        logs: &HashMap<Key, Arc<Log>>,
    ) -> Self {
        let mut writing = Self {
            shared,
            writer: Writer::new(Arc::clone(&disk)),
            disk,
            expiries: BTreeMap::new(),
            groups: Vec::new(),
        };
        for (key, log) in logs {
            writing.note_expiry(key, log);
        }
        writing
    }

    pub(crate) fn run(
        &mut self,
        reports: &Reports<impl Fn(&Arc<str>, Written), impl Fn(&Arc<str>, Unwritten<'_>)>,
    ) {
        while let Some((taken, is_last)) = self.take() {
            group::add(&mut self.groups, taken);
            let mut groups = VecDeque::from(mem::take(&mut self.groups));
            while let Some((vhost, group)) = groups.pop_front() {
                let mut others = self.groups.iter().chain(&groups);
                let has_rest = others.any(|(of, group)| *of == vhost && group.retry_at.is_some());
                self.try_group(vhost, group, (has_rest, is_last), reports);
            }
            let mut waiting = lock(&self.shared.waiting);
            waiting.taken_bytes = self.groups.iter().map(|(_, group)| group.bytes).sum();
            if is_last && waiting.submissions.is_empty() {
                waiting.is_given_up = !self.groups.is_empty();
                return;
            }
            drop(waiting);
            self.expire(&reports.on_written);
        }
    }

    /// Writes a group if it is due. What cannot be written and cannot be refused is kept for another attempt. `has_rest`:
    /// the vhost has another group that waits for one.
    fn try_group(
        &mut self,
        vhost: Arc<str>,
        mut group: Group,
        (has_rest, is_last): (bool, bool),
        reports: &Reports<impl Fn(&Arc<str>, Written), impl Fn(&Arc<str>, Unwritten<'_>)>,
    ) {
        let due = group.retry_at.filter(|_| group.submissions == 0);
        if due.is_some_and(|at| at > Instant::now()) && !is_last {
            return self.groups.push((vhost, group));
        }
        let Err(error) = self.write(&vhost, &mut group, has_rest, &reports.on_written) else {
            return;
        };
        (reports.on_unwritten)(&vhost, Unwritten::new(&mut group, &error, is_last));
        let retry_at = Some(Instant::now() + RETRY);
        if group.is_vhost_gone {
            group.retry_at = retry_at;
            return self.groups.push((vhost, group));
        }
        let rest = group.split_rest();
        if group.submissions > 0 {
            (reports.on_written)(&vhost, written_of(group, Some(error)));
        }
        if let Some(mut rest) = rest {
            rest.retry_at = retry_at;
            self.groups.push((vhost, rest));
        }
    }

    /// Waits for submissions, for another attempt, or until a segment is too old. Also returns whether the keeper ends.
    /// `None` at the end.
    fn take(&self) -> Option<(Vec<Submission>, bool)> {
        let retry = self.groups.iter().filter_map(|(_, group)| group.retry_at);
        let retry = retry.min();
        let mut waiting = lock(&self.shared.waiting);
        loop {
            if waiting.is_stopping || !waiting.submissions.is_empty() {
                let is_over = waiting.submissions.is_empty() && self.groups.is_empty();
                return (!is_over).then(|| (waiting.take(), waiting.is_stopping));
            }
            let retry = retry.map(|at| at.saturating_duration_since(Instant::now()));
            let due = self.expiries.first_key_value().map(|((due, _), ())| *due);
            // The clock may be set meanwhile.
            let due = due.map(|due| due.saturating_sub(now_ms()).min(60_000));
            let due = due.map(Duration::from_millis);
            let Some(left) = retry.into_iter().chain(due).min() else {
                let woken = self.shared.wake_writer.wait(waiting);
                waiting = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if left.is_zero() {
                return Some((Vec::new(), false));
            }
            let woken = self.shared.wake_writer.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes all of a vhost's messages, or none. An error says why.
    fn write(
        &mut self,
        vhost: &Arc<str>,
        group: &mut Group,
        has_rest: bool,
        on_written: &dyn Fn(&Arc<str>, Written),
    ) -> Result<(), String> {
        if group.is_vhost_gone {
            let removed = self.remove_vhost(vhost);
            let fault =
                |error| format!("the files of a deleted vhost cannot be set aside: {error}");
            removed.map_err(fault)?;
            group.is_vhost_gone = false;
        }
        if let Err(error) = self.delete(vhost, mem::take(&mut group.deleted)) {
            let what = "the files of a deleted stream cannot be removed";
            group.warning = Some(format!("{what}: {error}"));
        }
        let mut bounded = Vec::new();
        for (id, limits) in mem::take(&mut group.bounded) {
            let key = (Arc::clone(vhost), id);
            // A stream without messages takes them from the first.
            let log = lock(&self.shared.logs).get(&key).cloned();
            if let Some(log) = log {
                log.set_limits(limits);
                self.retire(&log);
                self.note_expiry(&key, &log);
                bounded.push((id, log));
            }
        }
        let mut staged: Vec<(QueueId, Staged)> = Vec::new();
        if let Err(error) = self.stage_and_sync(vhost, group, &mut staged) {
            for (_, staged) in &staged {
                self.writer.take_back(staged);
            }
            return Err(error);
        }
        // A deleted stream takes along what could not be written.
        let is_tried_again = group.retry_at.is_some();
        let mut written = written_of(mem::take(group), None);
        written.is_going_on = !has_rest && (is_tried_again || !staged.is_empty());
        let extents = bounded.into_iter();
        let extents = extents.map(|(id, log)| (id, log.table().extent(), None));
        written.streams.extend(extents);
        for (id, staged) in staged {
            let (page, is_begun) = self.writer.publish(staged);
            let key = (Arc::clone(vhost), id);
            let log = lock(&self.shared.logs).get(&key).cloned();
            let Some(log) = log else {
                continue;
            };
            if is_begun {
                self.retire(&log);
                self.note_expiry(&key, &log);
            }
            let extent = log.table().extent();
            written.streams.push((id, extent, page.map(Arc::new)));
        }
        on_written(vhost, written);
        Ok(())
    }

    /// Writes the messages of all streams, and makes them last. After an error those in `staged` are to be taken back.
    fn stage_and_sync(
        &mut self,
        vhost: &Arc<str>,
        group: &Group,
        staged: &mut Vec<(QueueId, Staged)>,
    ) -> Result<(), String> {
        let fault = |path: &str, error| format!("the streams' directory '{path}': {error}");
        for (id, appends) in &group.appends {
            if appends.is_empty() {
                continue;
            }
            let log = self.log(vhost, *id, appends);
            let done = self.writer.stage(&log, appends).and_then(|one| {
                let synced = self.writer.sync(&one);
                staged.push((*id, one));
                synced
            });
            done.map_err(|error| fault(&log.directory, error))?;
        }
        let names = self.writer.sync_names(staged.iter().map(|(_, one)| one));
        names.map_err(|error| fault(&files::of_vhost(vhost), error))
    }

    /// The stream's log, which begins with its first message.
    fn log(&self, vhost: &Arc<str>, id: QueueId, appends: &[StreamAppend]) -> Arc<Log> {
        let mut logs = lock(&self.shared.logs);
        let log = logs.entry((Arc::clone(vhost), id)).or_insert_with(|| {
            let first = appends.first();
            let limits = first.map(|append| append.limits).unwrap_or_default();
            let name = first.map_or("", |append| &append.name);
            empty(files::of_stream(vhost, id, name), limits)
        });
        Arc::clone(log)
    }

    /// Sets the files of streams aside, with one sync for all, and has them removed.
    fn delete(&mut self, vhost: &Arc<str>, ids: Vec<QueueId>) -> io::Result<()> {
        let mut removed = Vec::new();
        let mut outcome = Ok(());
        for id in ids {
            let set_aside = self.set_aside(vhost, id, &mut removed);
            outcome = outcome.and(set_aside);
        }
        if removed.is_empty() {
            return outcome;
        }
        // Before they are removed: a start must not take what is left of them for a damaged stream.
        self.disk.sync(&files::of_vhost(vhost))?;
        let mut reads = lock(&self.shared.reads);
        for (directory, aside) in removed {
            reads.forget_directory(&directory);
            reads.remove_tree(aside);
        }
        drop(reads);
        self.shared.wake_reader.notify_one();
        outcome
    }

    /// Sets the files of all streams of a vhost aside, and has them removed.
    fn remove_vhost(&mut self, vhost: &Arc<str>) -> io::Result<()> {
        lock(&self.shared.logs).retain(|(of, _), log| {
            let is_gone = of == vhost;
            if is_gone {
                self.writer.forget(&log.directory);
                *log.table() = Default::default();
            }
            !is_gone
        });
        let directory = files::of_vhost(vhost);
        let aside = directory::set_aside(&*self.disk, &directory, files::DELETED)?;
        let mut reads = lock(&self.shared.reads);
        reads.forget_directory(&directory);
        if let Some(aside) = aside {
            reads.remove_tree(aside);
        }
        drop(reads);
        self.shared.wake_reader.notify_one();
        Ok(())
    }

    /// Gives a deleted stream's directory another name. Adds both names.
    fn set_aside(
        &mut self,
        vhost: &Arc<str>,
        id: QueueId,
        removed: &mut Vec<(String, String)>,
    ) -> io::Result<()> {
        let log = lock(&self.shared.logs).remove(&(Arc::clone(vhost), id));
        let Some(log) = log else {
            return Ok(());
        };
        self.writer.forget(&log.directory);
        *log.table() = Default::default();
        let aside = format!("{}{}", log.directory, files::DELETED);
        match self.disk.rename(&log.directory, &aside) {
            // Nothing was ever written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        removed.push((log.directory.clone(), aside));
        Ok(())
    }

    /// Removes the segments of a stream that have to go.
    fn retire(&mut self, log: &Log) -> bool {
        let removed = self.writer.retire(log, now_ms());
        let is_any = !removed.is_empty();
        if is_any {
            let mut reads = lock(&self.shared.reads);
            removed.into_iter().for_each(|path| reads.remove_file(path));
            drop(reads);
            self.shared.wake_reader.notify_one();
        }
        is_any
    }

    fn note_expiry(&mut self, key: &Key, log: &Log) {
        let due = log.table().next_expiry_ms(&log.limits());
        if let Some(due) = due {
            self.expiries.insert((due, key.clone()), ());
        }
    }

    /// Removes segments that are too old by now.
    fn expire(&mut self, on_written: &dyn Fn(&Arc<str>, Written)) {
        let now_ms = now_ms();
        while let Some(entry) = self.expiries.first_entry()
            && entry.key().0 <= now_ms
        {
            let ((_, key), ()) = entry.remove_entry();
            let log = lock(&self.shared.logs).get(&key).cloned();
            let Some(log) = log else {
                continue;
            };
            if self.retire(&log) {
                let extent = log.table().extent();
                let written = Written {
                    records: Vec::new(),
                    position: None,
                    submissions: 0,
                    streams: vec![(key.1, extent, None)],
                    error: None,
                    is_going_on: false,
                    warning: None,
                };
                on_written(&key.0, written);
            }
            self.note_expiry(&key, &log);
        }
    }
}

/// The report of a group that was written, or of which nothing is left to be written.
fn written_of(mut group: Group, error: Option<String>) -> Written {
    Written {
        records: group.take_records(),
        position: Some(group.position).filter(|_| group.submissions > 0),
        submissions: group.submissions,
        streams: Vec::new(),
        error,
        is_going_on: false,
        warning: group.warning,
    }
}
