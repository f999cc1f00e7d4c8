//! The committing thread: group commits, retries, and reports.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crosstie_queues::{Page, Position, Record, Want};

use crate::disk::{Disk, DiskLow, OnDiskLow};
use crate::store::Commit;
use crate::{Backup, Batch, Store, StoreError, StoreErrorKind};

/// A store on a thread of its own. Dropping it commits all submitted records, as [`Committer::stop`] does.
pub struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

/// Options of a committer.
#[derive(Clone, Debug)]
pub struct CommitterConfig {
    /// How long after a commit that failed the next one is tried.
    pub retry_ms: u64,
    /// Approximate maximum bytes of one commit, so that no client waits for a very long one.
    pub commit_bytes_max: usize,
    /// How long after a commit the next one is begun, for records that nobody waits for. 0: at once.
    pub pause_ms: u64,
    /// Approximate bytes that end a pause.
    pub pause_bytes_max: usize,
    /// Free bytes on the disk below which a warning is reported; an eighth of a small file system. 0: never.
    pub disk_free_bytes_min: u64,
}

/// A vhost's position, and how the commit of it went.
type OnCommitted = dyn Fn(&str, Position, Result<(), &StoreError>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Batch,
    /// Bytes that the thread has taken, and not committed.
    taken_bytes: usize,
    /// While the thread waits: the waiting bytes that wake it.
    wakes_with: Option<usize>,
    is_failing: bool,
    is_stopping: bool,
    backup: Option<Order>,
    pages: VecDeque<PageOrder>,
}

/// A page to be read.
struct PageOrder {
    vhost: Arc<str>,
    want: Want,
    bytes_max: usize,
    on_read: Box<OnRead>,
}

/// Receives a page.
type OnRead = dyn FnOnce(Result<Page, StoreError>) + Send;

impl Default for CommitterConfig {
    fn default() -> Self {
        Self {
            retry_ms: 1000,
            commit_bytes_max: 16 << 20,
            pause_ms: 0,
            pause_bytes_max: 0,
            disk_free_bytes_min: 0,
        }
    }
}

impl Committer {
    /// `on_committed` is called from the committer's thread, once per vhost and commit: with `Ok`
    /// everything that the vhost submitted up to the position is on the disk. With an error it
    /// is not: it is kept, and tried again each second, so that a position that failed may be
    /// told as committed later.
    pub fn start(
        store: Store,
        on_committed: impl Fn(&str, Position, Result<(), &StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_with(store, CommitterConfig::default(), on_committed, |_| {})
    }

    /// The same, by that configuration. `on_disk_low` is called from the same thread, once when
    /// less is free than there should be, and once when that is over; deletions make room.
    pub fn start_with(
        store: Store,
        config: CommitterConfig,
        on_committed: impl Fn(&str, Position, Result<(), &StoreError>) + Send + 'static,
        on_disk_low: impl Fn(DiskLow) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || of_thread.run(store, &config, &on_committed, &on_disk_low))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Submits records, up to and including `position`; returns the bytes that wait, these included. Never waits for
    /// the disk. The records of a vhost must arrive in its journal's order: submit under the vhost's lock. Records are
    /// never refused, since a journal must not have a hole: the caller stops reading publishers if too much waits.
    pub fn submit(&self, vhost: &Arc<str>, records: Vec<Record>, position: Position) -> usize {
        let mut state = self.shared.lock();
        state.waiting.push(vhost, records, position);
        let bytes = state.waiting.bytes();
        if state
            .wakes_with
            .take_if(|enough| *enough <= bytes)
            .is_some()
        {
            self.shared.wake.notify_one();
        }
        state.bytes()
    }

    /// Has the store copied between commits to a file that must not exist. `on_done` is called from the committer's
    /// thread. The copy has everything that was reported as committed before, and at its end the records of `last`,
    /// which is called from that thread, too. There is one backup at a time; a waiting one is cancelled for this.
    pub fn back_up(
        &self,
        path: PathBuf,
        last: impl FnOnce() -> Batch + Send + 'static,
        on_done: impl FnOnce(Result<Backup, StoreError>) + Send + 'static,
    ) {
        let order = Order {
            path,
            last: Box::new(last),
            on_done: Box::new(on_done),
        };
        let before = {
            let mut state = self.shared.lock();
            if state.wakes_with.take().is_some() {
                self.shared.wake.notify_one();
            }
            state.backup.replace(order)
        };
        if let Some(Order { path, on_done, .. }) = before {
            let why = "another backup was asked for";
            let error = StoreErrorKind::Abandoned { why };
            on_done(Err(StoreError::new(&path, error)));
        }
    }

    /// Reads a page of a deep queue, about `bytes_max` bytes, between two commits: it delays them. `on_read` is called
    /// from the committer's thread.
    pub fn read_page(
        &self,
        vhost: &Arc<str>,
        want: Want,
        bytes_max: usize,
        on_read: impl FnOnce(Result<Page, StoreError>) + Send + 'static,
    ) {
        let mut state = self.shared.lock();
        state.pages.push_back(PageOrder {
            vhost: Arc::clone(vhost),
            want,
            bytes_max,
            on_read: Box::new(on_read),
        });
        if state.wakes_with.take().is_some() {
            self.shared.wake.notify_one();
        }
    }

    /// Bytes that were submitted and are not on the disk.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.lock().bytes()
    }

    /// The last commit failed, and is tried again.
    pub fn is_failing(&self) -> bool {
        self.shared.lock().is_failing
    }

    /// Commits all submitted records, and ends the thread. If some could not be written they are lost; the error says
    /// why.
    pub fn stop(mut self) -> Result<(), StoreError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), StoreError> {
        {
            let mut state = self.shared.lock();
            state.is_stopping = true;
            self.shared.wake.notify_one();
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // It has panicked, and said so.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // An owner that wants to know the outcome calls `stop`.
        let _ = self.end();
    }
}

/// A backup that was asked for.
struct Order {
    path: PathBuf,
    last: Box<Last>,
    on_done: Box<OnDone>,
}

/// Makes the records that only a copy has.
type Last = dyn FnOnce() -> Batch + Send;

/// How a backup went.
type OnDone = dyn FnOnce(Result<Backup, StoreError>) + Send;

/// The work of the thread, and its reports.
struct Work<'a> {
    config: &'a CommitterConfig,
    on_committed: &'a OnCommitted,
    /// Taken, and not on the disk.
    kept: Batch,
    failed: Option<Failed>,
    /// The end of the pause after a commit.
    pauses_until: Option<Instant>,
    /// When the disk is to be looked at again, whether there is anything to do or not.
    look_at: Option<Instant>,
}

/// The last commit failed.
struct Failed {
    at: Instant,
    /// The positions already reported.
    told: Vec<(Arc<str>, Position)>,
}

impl State {
    fn bytes(&self) -> usize {
        self.waiting.bytes() + self.taken_bytes
    }

    fn take(&mut self) -> Batch {
        self.taken_bytes += self.waiting.bytes();
        mem::take(&mut self.waiting)
    }

    fn has_orders(&self) -> bool {
        self.backup.is_some() || !self.pages.is_empty()
    }

    fn has_news(&self) -> bool {
        !self.waiting.is_done()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(
        &self,
        mut store: Store,
        config: &CommitterConfig,
        on_committed: &OnCommitted,
        on_disk_low: &OnDiskLow,
    ) -> Result<(), StoreError> {
        let mut work = Work {
            config,
            on_committed,
            kept: Batch::default(),
            failed: None,
            pauses_until: None,
            look_at: None,
        };
        let mut disk = Disk::default();
        loop {
            let ordered = self.lock().backup.take();
            if let Some(Order {
                path,
                last,
                on_done,
            }) = ordered
            {
                let made = self.back_up(&mut store, &path, last, &mut work);
                on_done(made);
            }
            self.read_pages(&store);
            work.look_at = disk.look(&mut store, config.disk_free_bytes_min, on_disk_low);
            let turn = self.turn(&mut work, &mut |batch| store.commit_or_make_room(batch));
            if let ControlFlow::Break(result) = turn {
                return result;
            }
        }
    }

    /// Reads the requested pages, one of each queue.
    fn read_pages(&self, store: &Store) {
        let pages = mem::take(&mut self.lock().pages);
        for PageOrder {
            vhost,
            want,
            bytes_max,
            on_read,
        } in pages
        {
            on_read(store.read_page(&vhost, &want, bytes_max));
        }
    }

    /// Waits for something to do, and does it; breaks at the end.
    fn turn(
        &self,
        work: &mut Work<'_>,
        commit: &mut Commit<'_>,
    ) -> ControlFlow<Result<(), StoreError>> {
        let Work {
            config,
            on_committed,
            kept,
            failed,
            pauses_until,
            look_at,
        } = work;
        if failed.is_some() || kept.bytes() < config.commit_bytes_max {
            let retry = Duration::from_millis(config.retry_ms);
            let retry_at = failed.as_ref().map(|failed| failed.at + retry);
            if failed.is_none()
                && kept.is_done()
                && let Some(until) = pauses_until.take()
            {
                self.pause(until, config.pause_bytes_max);
            }
            let Some(taken) = self.take(kept.is_done(), retry_at, *look_at) else {
                return ControlFlow::Break(Ok(()));
            };
            kept.append(taken);
        }
        let mut front = match failed {
            None => kept.take_front(config.commit_bytes_max),
            // Later records may also cancel those that cannot be written.
            Some(_) => mem::take(kept),
        };
        // Not before: a message that moves from one queue to another would leave the first in this commit, whose
        // publisher is told, and enter the second in a later one.
        front.cancel();
        match commit(&front) {
            Ok(()) => {
                *failed = None;
                if config.pause_ms > 0 {
                    *pauses_until = Some(Instant::now() + Duration::from_millis(config.pause_ms));
                }
                self.settle(kept.bytes(), false);
                for (vhost, position) in front.positions() {
                    on_committed(vhost, *position, Ok(()));
                }
            }
            Err(error) => {
                front.append(mem::take(kept));
                *kept = front;
                let is_last = self.settle(kept.bytes(), true);
                let told = failed.take().map(|failed| failed.told).unwrap_or_default();
                for (vhost, position) in kept.positions() {
                    if !told.contains(&(Arc::clone(vhost), *position)) {
                        on_committed(vhost, *position, Err(&error));
                    }
                }
                if is_last {
                    return ControlFlow::Break(Err(error));
                }
                *failed = Some(Failed {
                    at: Instant::now(),
                    told: kept.positions().to_vec(),
                });
            }
        }
        ControlFlow::Continue(())
    }

    /// Copies the store, and commits further records in between. A store that cannot write, or is to end, has other
    /// work.
    fn back_up(
        &self,
        store: &mut Store,
        path: &Path,
        last: Box<Last>,
        work: &mut Work<'_>,
    ) -> Result<Backup, StoreError> {
        let abandoned = |why| StoreError::new(path, StoreErrorKind::Abandoned { why });
        if work.failed.is_some() {
            return Err(abandoned("the store cannot be written at present"));
        }
        store.back_up(
            path,
            &mut |commit| {
                let has_news = {
                    let state = self.lock();
                    if state.is_stopping {
                        return Err(abandoned("the node is being stopped"));
                    }
                    state.has_news()
                };
                if has_news || !work.kept.is_done() {
                    let turn = self.turn(work, commit);
                    if turn.is_break() || work.failed.is_some() {
                        return Err(abandoned("the store could not be written meanwhile"));
                    }
                }
                Ok(())
            },
            last,
        )
    }

    /// Lets records gather until then, unless so many bytes wait or there is other work.
    fn pause(&self, until: Instant, bytes_max: usize) {
        let mut state = self.lock();
        while !state.is_stopping && !state.has_orders() && state.waiting.bytes() < bytes_max {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.wakes_with = Some(bytes_max);
            let woken = self.wake.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wakes_with = None;
    }

    /// Takes the submitted records: at once if there is other work, else as soon as there are some; after a failure
    /// when the next attempt is due; none when the disk is to be checked. `None` at the end.
    fn take(
        &self,
        is_idle: bool,
        retry_at: Option<Instant>,
        look_at: Option<Instant>,
    ) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            let left = match retry_at {
                Some(_) if !state.pages.is_empty() => Duration::ZERO,
                None if !is_idle || state.has_orders() || state.has_news() => {
                    return Some(state.take());
                }
                None if state.is_stopping => return None,
                None => {
                    state.wakes_with = Some(0);
                    let left = look_at.map(|at| at.saturating_duration_since(Instant::now()));
                    state = match left {
                        None => self
                            .wake
                            .wait(state)
                            .unwrap_or_else(PoisonError::into_inner),
                        Some(Duration::ZERO) => return Some(state.take()),
                        Some(left) => {
                            let woken = self.wake.wait_timeout(state, left);
                            woken.unwrap_or_else(PoisonError::into_inner).0
                        }
                    };
                    continue;
                }
                Some(retry_at) => retry_at.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() || state.is_stopping {
                return Some(state.take());
            }
            let woken = self.wake.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Notes the result of a commit, and the bytes left to write; returns whether that failure ends the thread.
    fn settle(&self, kept_bytes: usize, is_failing: bool) -> bool {
        let mut state = self.lock();
        state.is_failing = is_failing;
        state.taken_bytes = kept_bytes;
        state.is_stopping && !state.has_news()
    }
}
