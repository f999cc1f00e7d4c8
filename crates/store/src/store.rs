//! The store: a directory of segments, records in and out.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosstie_disk::{Room, room};
use crosstie_queues::{Page, Record, Want};

use crate::claim::Claim;
use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::names::Names;
use crate::page::{self, PageRead};
use crate::place::Lock;
use crate::segments::clean::Cleaning;
use crate::segments::contents::Contents;
use crate::segments::draft::Draft;
use crate::segments::entity::Entity;
use crate::segments::log::{Fault, Log, Purpose};
use crate::segments::record::QueueKey;
use crate::segments::recover::Recovered;
use crate::segments::state::State;
use crate::write::{self, Writer};
use crate::{Batch, Damaged, Setting};

/// The directory of a store, and its bounds.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    pub path: PathBuf,
    /// The size of all segments with records; a commit beyond it fails as on a full disk. Those that are kept as zeros come
    /// to it.
    pub bytes_max: Option<u64>,
    /// The size of a segment, unless the file system is small or one commit is larger. Two more are kept as zeros.
    pub segment_bytes: u64,
    /// Continue without confirmed data that is missing.
    pub accepts_loss: bool,
}

/// Bytes of a segment by default.
const SEGMENT_BYTES: u64 = 16 << 20;

/// A record that a store has kept, for [`crosstie_queues::Vhost::restore`].
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    pub vhost: Arc<str>,
    pub record: Record,
}

/// An open store. No other process can open it meanwhile.
pub struct Store {
    pub(crate) config: StoreConfig,
    pub(crate) form: Form,
    pub(crate) names: Names,
    pub(crate) damage: Vec<Damaged>,
    pub(crate) accepted: Vec<String>,
    pub(crate) settings: Vec<Setting>,
    pub(crate) clock: Clock,
    /// Why there can be none.
    pub(crate) obstacle: Option<StoreError>,
    pub(crate) cleaning: Option<Cleaning>,
    /// Time that a segment is half empty before it is copied.
    pub(crate) patience: Duration,
}

pub(crate) enum Form {
    /// There is no directory, or an empty one. Its name is reserved.
    Absent(Option<Claim>),
    /// It was read, and nothing is changed yet.
    Read(Box<Recovered>, Repair, Lock),
    /// Opening it for writing has failed. It is read again for the next attempt.
    Unread(Repair, Lock),
    Written(Box<Written>),
}

/// A store that is written.
pub(crate) struct Written {
    pub(crate) log: Log,
    pub(crate) contents: Contents,
    /// Committed before anything else.
    pub(crate) mending: Option<Mending>,
    /// Held until the store is closed.
    pub(crate) _lock: Lock,
}

/// The changes by which a store continues without data that is missing.
pub(crate) struct Mending {
    /// Segments and queues about which only missing segments had records.
    pub(crate) remains: Vec<(u32, QueueKey)>,
    /// Those missing segments.
    pub(crate) given_up: Vec<u32>,
    pub(crate) repair: Repair,
}

/// Steps of cleaning that one commit waits for on a full disk.
const STEPS_MAX: usize = 64;

/// The changes of what is left, once a loss is accepted.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    /// Places that are removed because their data is missing.
    pub(crate) places: Vec<(QueueKey, Vec<i64>)>,
    /// Declarations in place of those that are lost.
    pub(crate) anew: Vec<Entity>,
}

impl StoreConfig {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            bytes_max: None,
            segment_bytes: SEGMENT_BYTES,
            accepts_loss: false,
        }
    }
}

impl Store {
    /// Queues with data that cannot be read. Their messages before that are handed over page by page. With
    /// [`StoreConfig::accepts_loss`] the damage is removed once the store is written.
    pub fn damage(&self) -> &[Damaged] {
        &self.damage
    }

    /// Confirmed data that is missing, a clause each, and without which the store continues.
    pub fn accepted(&self) -> &[String] {
        &self.accepted
    }

    /// Writes a batch in one commit; when this returns it is on the disk. Of a batch that fails nothing is.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.commit_for(
            batch,
            if write::is_adding(batch) {
                Purpose::Adding
            } else {
                Purpose::Freeing
            },
        )
    }

    fn commit_for(&mut self, batch: &Batch, purpose: Purpose) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.check_numbers(batch)?;
        let bytes_max = write::bytes_max(batch) + self.deletions_bytes_max(batch);
        self.commit_with(bytes_max, purpose, |draft, state, names| {
            let mut writer = Writer::new(draft, state, names, batch);
            let mut last: Option<(&Arc<str>, u16)> = None;
            for (vhost, record) in batch.records() {
                if let Record::VhostDeleted = record {
                    writer.delete_vhost(vhost);
                    last = None;
                    continue;
                }
                let number = match last {
                    Some((name, number)) if Arc::ptr_eq(name, vhost) => number,
                    _ => writer.vhost(vhost),
                };
                last = Some((vhost, number));
                writer.write(number, record);
            }
        })
    }

    /// Refuses a batch in which more vhosts have their first records than numbers are left.
    pub(crate) fn check_numbers(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.written()?;
        let is_new = |vhost: &&Arc<str>| self.names.find_vhost(vhost).is_none();
        let new = batch.positions().iter().map(|(vhost, _)| vhost);
        let new = new.filter(is_new).count();
        let Form::Written(written) = &self.form else {
            return Ok(());
        };
        if new == 0 {
            return Ok(());
        }
        let left = self.names.numbers_left(&lock(written.log.state()));
        let adding = batch
            .records()
            .filter(|(_, record)| **record != Record::VhostDeleted);
        let new: HashSet<_> = adding.map(|(vhost, _)| vhost).filter(is_new).collect();
        if new.len() <= left {
            return Ok(());
        }
        let error = std::io::Error::other("a store has at most 65,535 vhosts");
        Err(StoreError::io(&self.config.path, "writing it", error))
    }

    /// At most the bytes that the deletions of vhosts take.
    fn deletions_bytes_max(&self, batch: &Batch) -> u64 {
        let records = batch.records();
        let deleted = records.filter(|(_, record)| matches!(record, Record::VhostDeleted));
        let numbers = deleted.filter_map(|(vhost, _)| self.names.find_vhost(vhost));
        let Form::Written(written) = &self.form else {
            return 0;
        };
        let bytes_of = |number: u16| {
            let state = lock(written.log.state());
            let queues = state.queues.keys().filter(|key| key.vhost == number);
            let records = queues.count() + batch.records().count() + 2 * state.segments.len();
            write::deletion_bytes_max(records, self.names.count_of(number) + 1)
        };
        numbers.map(bytes_of).sum()
    }

    pub(crate) fn commit_with(
        &mut self,
        bytes_max: u64,
        purpose: Purpose,
        write: impl FnOnce(&mut Draft, &State, &mut Names),
    ) -> Result<(), StoreError> {
        self.written()?;
        let Form::Written(written) = &mut self.form else {
            return Ok(());
        };
        let log = &mut written.log;
        let committed = (|| {
            let mut draft = log.begin(bytes_max, purpose)?;
            let state = Arc::clone(log.state());
            write(&mut draft, &lock(&state), &mut self.names);
            log.commit(draft, self.clock.now_ms())
        })();
        match committed {
            Ok(()) => self.names.keep(),
            Err(_) => self.names.undo(),
        }
        committed.map_err(|fault| StoreError::fault(&self.config.path, fault))
    }

    /// Whether a batch of that many bytes could be written.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.written()?;
        let Form::Written(written) = &mut self.form else {
            return Ok(());
        };
        let reserved = written.log.reserve(bytes);
        reserved.map_err(|fault| StoreError::fault(&self.config.path, fault))
    }

    /// The same. If there is no room, removals are written first, in space that is reserved for them: that makes room,
    /// in which the rest is tried.
    pub(crate) fn commit_or_make_room(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let failed = match self.commit(batch) {
            Err(error) if error.is_full() => error,
            other => return other,
        };
        let has_cleaned = self.clean_at_once();
        if batch.departures().next().is_none() {
            return match has_cleaned {
                true => self.commit(batch),
                false => Err(failed),
            };
        }
        let mut departures = Batch::default();
        for (vhost, record) in batch.departures() {
            let record = match record {
                // Its bindings are removed with the rest.
                Record::QueueDeleted { id } => Record::Purged { queue: *id },
                other => other.clone(),
            };
            departures.push(vhost, vec![record], Default::default());
        }
        self.commit_for(&departures, Purpose::Freeing)?;
        self.commit(batch)
    }

    /// Copies half-empty segments without patience, as far as that may take a moment; returns whether there were any.
    fn clean_at_once(&mut self) -> bool {
        let patience = std::mem::replace(&mut self.patience, Duration::ZERO);
        let now = Instant::now();
        let mut steps = 0;
        while steps < STEPS_MAX && self.tidy(now).is_some_and(|due| due <= now) {
            steps += 1;
        }
        self.patience = patience;
        steps > 0
    }

    /// Does a piece of the work that gives space back, between commits: about a millisecond. Returns when there is
    /// more: at once, later, or not before the next commit.
    pub(crate) fn tidy(&mut self, now: Instant) -> Option<Instant> {
        let Form::Written(written) = &mut self.form else {
            return None;
        };
        let log = &mut written.log;
        if self.cleaning.is_none() {
            self.cleaning = match Cleaning::choose(log, now, self.patience) {
                Ok(cleaning) => cleaning,
                Err(due) => return due,
            };
        }
        if let Some(cleaning) = &mut self.cleaning
            && !cleaning.step(log, self.clock.now_ms(), now)
        {
            self.cleaning = None;
        }
        Some(now)
    }

    /// The space on the file system, if it is reported.
    pub fn room(&self) -> Option<Room> {
        match &self.form {
            Form::Absent(_) => room(crate::file::folder(&self.config.path)),
            Form::Read(..) | Form::Unread(..) | Form::Written(_) => room(&self.config.path),
        }
    }

    /// Has the reserve made again, if it was given up; returns whether it is missing. Without it only removals are
    /// written: that is what it is for.
    pub(crate) fn restore_reserve(&self) -> bool {
        match &self.form {
            Form::Written(written) => !written.log.keeper().has_reserve(),
            Form::Absent(_) | Form::Read(..) | Form::Unread(..) => false,
        }
    }

    /// The time in milliseconds since 1970, which never goes back: not before that of the last commit, even if the
    /// machine's clock does.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The segment of the first message of a page.
    pub(crate) fn first_segment(&self, vhost: &str, want: &Want) -> Option<u32> {
        let number = self.names.find_vhost(vhost)?;
        match &self.form {
            Form::Written(written) => {
                let wanted = page::wanted(number, want, 0);
                written.contents.first_segment(wanted)
            }
            Form::Absent(_) | Form::Read(..) | Form::Unread(..) => None,
        }
    }

    /// Reads the first messages of pages, about that many bytes of each. The first page is always read, and others as far as
    /// they go in one read. A message that cannot be read ends its page before it.
    pub(crate) fn read_pages(
        &mut self,
        vhost: &str,
        wants: &[&Want],
        bytes_max: usize,
    ) -> Vec<Result<Page, StoreError>> {
        let number = self.names.find_vhost(vhost);
        let (Form::Written(written), Some(number)) = (&self.form, number) else {
            return wants.iter().map(|want| Ok(page::empty(want))).collect();
        };
        match page::read(&written.contents, number, wants, bytes_max) {
            Ok(read) => {
                let whole = read.into_iter().map(|read| self.without_damage(read));
                whole.collect()
            }
            // The first alone may be in other files than the one that fails.
            Err(_) if wants.len() > 1 => self.read_pages(vhost, &wants[..1], bytes_max),
            Err(fault) => vec![Err(StoreError::fault(&self.config.path, fault))],
        }
    }

    fn without_damage(&mut self, read: PageRead) -> Result<Page, StoreError> {
        if read.damaged.is_empty() || !self.config.accepts_loss {
            let kind = |messages| StoreErrorKind::Messages { messages };
            let whole = read.before_damage();
            return whole.map_err(|count| StoreError::new(&self.config.path, kind(count)));
        }
        let bytes_max = 128 * read.damaged.len() as u64;
        self.commit_with(bytes_max, Purpose::Freeing, |draft, state, _| {
            for (queue, place) in &read.damaged {
                draft.remove(state, *queue, *place);
            }
        })?;
        Ok(read.page)
    }

    /// The number of a vhost, if it has records.
    pub(crate) fn vhost_number(&self, name: &str) -> Option<u16> {
        self.names.find_vhost(name)
    }

    /// Why the missing directory could not be made when that was tried: records might not be stored.
    pub fn obstacle(&self) -> Option<&StoreError> {
        self.obstacle.as_ref()
    }

    /// Opens the log for writing, if there is a store.
    pub(crate) fn open_log(&mut self) -> Result<(), StoreError> {
        match self.form {
            Form::Absent(_) => Ok(()),
            Form::Read(..) | Form::Unread(..) | Form::Written(_) => self.written(),
        }
    }

    /// The log and what lives in it, for a backup; `None` if there is nothing.
    pub(crate) fn log(&self) -> Option<&Log> {
        match &self.form {
            Form::Written(written) => Some(&written.log),
            Form::Absent(_) | Form::Read(..) | Form::Unread(..) => None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.config.path
    }

    /// Sets the time that a segment is half empty before it is copied.
    #[doc(hidden)]
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The time of the end, for the clock of the next start.
        let now_ms = self.clock.now_ms();
        if let Form::Written(written) = &mut self.form {
            written.log.seal();
            written.log.note_time(now_ms);
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.config.path;
        f.debug_struct("Store")
            .field("path", path)
            .finish_non_exhaustive()
    }
}

impl StoreError {
    pub(crate) fn fault(path: &Path, fault: Fault) -> Self {
        Self::io(path, fault.doing, fault.error)
    }
}

pub(crate) fn lock(state: &std::sync::Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use crosstie_queues::Position;

    use super::*;

    #[test]
    fn more_new_vhosts_than_numbers_in_one_batch_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let opened = Store::open(StoreConfig::new(directory.path().join("store")));
        let (mut store, _) = opened.expect("a store");
        for number in 1..u16::MAX {
            let name = format!("vhost {number}").into();
            store.names.restore(&Entity::Vhost { number, name }, 1);
        }
        let batch = |vhosts: &[&str]| {
            let mut batch = Batch::default();
            for vhost in vhosts {
                let record = Record::ExchangeDeleted { name: "x".into() };
                batch.push(&(*vhost).into(), vec![record], Position(1));
            }
            batch
        };
        let refused = store.commit(&batch(&["vhost 7", "a", "b"]));
        let refused = refused.expect_err("there is one number").to_string();
        assert!(refused.contains("65,535"), "{refused}");
        let one = batch(&["vhost 7", "a"]);
        store.commit(&one).expect("there is one");
        store.commit(&batch(&["a"])).expect("it has one");
        store.commit(&batch(&["b"])).expect_err("there is none");
        let mut deleted = Batch::default();
        let record = Record::VhostDeleted;
        deleted.push(&"vhost 7".into(), vec![record], Position(2));
        store.commit(&deleted).expect("makes room");
        store.commit(&batch(&["b"])).expect("there is one again");
        assert_eq!(store.names.find_vhost("b"), Some(7));
    }
}
