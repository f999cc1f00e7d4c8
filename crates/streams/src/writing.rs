//! The thread that writes: all that waits, as one group for each vhost.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crosstie_queues::{Position, QueueId, Record, StreamAppend, StreamChange};

use crate::directory::Key;
use crate::disk::Disk;
use crate::files;
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
}

/// What is written for one vhost.
#[derive(Default)]
struct Group {
    records: Vec<Record>,
    position: Position,
    submissions: usize,
    appends: Vec<(QueueId, Vec<StreamAppend>)>,
    deleted: Vec<QueueId>,
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
        };
        for (key, log) in logs {
            writing.note_expiry(key, log);
        }
        writing
    }

    pub(crate) fn run(&mut self, on_written: &dyn Fn(&Arc<str>, Written)) {
        while let Some(taken) = self.take() {
            let bytes: usize = taken.iter().map(|submission| submission.bytes).sum();
            for (vhost, group) in groups(taken) {
                let written = self.write(&vhost, group);
                on_written(&vhost, written);
            }
            lock(&self.shared.waiting).bytes -= bytes;
            self.expire(on_written);
        }
    }

    /// Waits for submissions, or until a segment is too old. `None` at the end.
    fn take(&self) -> Option<Vec<Submission>> {
        let mut waiting = lock(&self.shared.waiting);
        loop {
            if !waiting.submissions.is_empty() {
                return Some(mem::take(&mut waiting.submissions));
            }
            if waiting.is_stopping {
                return None;
            }
            let due = self.expiries.first_key_value().map(|((due, _), ())| *due);
            let Some(due) = due else {
                let woken = self.shared.wake_writer.wait(waiting);
                waiting = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left_ms = due.saturating_sub(now_ms());
            if left_ms == 0 {
                return Some(Vec::new());
            }
            // The clock may be set meanwhile.
            let left = Duration::from_millis(left_ms.min(60_000));
            let woken = self.shared.wake_writer.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes all of a vhost's messages, or none.
    fn write(&mut self, vhost: &Arc<str>, group: Group) -> Written {
        let mut written = Written {
            records: group.records,
            position: Some(group.position),
            submissions: group.submissions,
            streams: Vec::new(),
            error: None,
            warning: None,
        };
        for id in group.deleted {
            if let Err(error) = self.delete(vhost, id) {
                let path = files::of_stream(vhost, id);
                let what = "the files of a deleted stream cannot be removed";
                written.warning = Some(format!("{what}: '{path}': {error}"));
            }
        }
        let mut staged: Vec<(QueueId, Staged)> = Vec::new();
        for (id, appends) in group.appends {
            let log = self.log(vhost, id, &appends);
            let done = self.writer.stage(&log, &appends).and_then(|one| {
                let synced = self.writer.sync(&one);
                staged.push((id, one));
                synced
            });
            if let Err(error) = done {
                for (_, staged) in &staged {
                    self.writer.take_back(staged);
                }
                let path = &log.directory;
                written.error = Some(format!("the streams' directory '{path}': {error}"));
                return written;
            }
        }
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
        written
    }

    /// The stream's log, which begins with its first message.
    fn log(&self, vhost: &Arc<str>, id: QueueId, appends: &[StreamAppend]) -> Arc<Log> {
        let mut logs = lock(&self.shared.logs);
        let log = logs.entry((Arc::clone(vhost), id)).or_insert_with(|| {
            let limits = appends.first().map(|append| append.limits);
            empty(files::of_stream(vhost, id), limits.unwrap_or_default())
        });
        Arc::clone(log)
    }

    fn delete(&mut self, vhost: &Arc<str>, id: QueueId) -> io::Result<()> {
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
        self.disk.sync_directory(&files::of_vhost(vhost))?;
        let mut reads = lock(&self.shared.reads);
        reads.removed.push(log.directory.clone());
        reads.removed.push(aside);
        self.shared.wake_reader.notify_one();
        Ok(())
    }

    /// Removes the segments of a stream that have to go.
    fn retire(&mut self, log: &Log) -> bool {
        let removed = self.writer.retire(log, now_ms());
        let is_any = !removed.is_empty();
        if is_any {
            lock(&self.shared.reads).removed.extend(removed);
            self.shared.wake_reader.notify_one();
        }
        is_any
    }

    fn note_expiry(&mut self, key: &Key, log: &Log) {
        let due = log.table().next_expiry_ms(&log.limits);
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
                    warning: None,
                };
                on_written(&key.0, written);
            }
            self.note_expiry(&key, &log);
        }
    }
}

/// Submissions by vhost, in their order. Messages of a stream that is deleted behind them are left out.
fn groups(taken: Vec<Submission>) -> Vec<(Arc<str>, Group)> {
    let mut groups: Vec<(Arc<str>, Group)> = Vec::new();
    let mut places: HashMap<Key, usize> = HashMap::new();
    for submission in taken {
        let Submission {
            vhost,
            changes,
            records,
            position,
            ..
        } = submission;
        let at = match groups.iter().position(|(known, _)| *known == vhost) {
            Some(at) => at,
            None => {
                groups.push((Arc::clone(&vhost), Group::default()));
                groups.len() - 1
            }
        };
        let group = &mut groups[at].1;
        group.records.extend(records);
        group.position = position;
        group.submissions += 1;
        for change in changes {
            match change {
                StreamChange::Appended { id, append } => {
                    let place = places.entry((Arc::clone(&vhost), id));
                    let place = *place.or_insert_with(|| {
                        group.appends.push((id, Vec::new()));
                        group.appends.len() - 1
                    });
                    group.appends[place].1.push(append);
                }
                StreamChange::Deleted { id } => {
                    if let Some(place) = places.get(&(Arc::clone(&vhost), id)) {
                        group.appends[*place].1.clear();
                    }
                    group.deleted.push(id);
                }
            }
        }
    }
    for (_, group) in &mut groups {
        group.appends.retain(|(_, appends)| !appends.is_empty());
    }
    groups
}
