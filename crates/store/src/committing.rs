//! The committing thread: group commits, retries, and reports.

use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crosstie_queues::{Position, QueueId, Want};

use crate::backup::Job;
use crate::disk::{Disk, FreeMin, OnDiskLow};
use crate::orders::{Order, Shared};
use crate::segments::contents::TOGETHER_BYTES;
use crate::write;
use crate::{Batch, Store, StoreError};

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

/// A vhost's position, and how the commit of it went.
pub(crate) type OnCommitted = dyn Fn(&str, Position, Result<(), NotCommitted<'_>>);

/// Time after which no further page is read before the next commit.
const READING_MAX: Duration = Duration::from_millis(10);

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

/// A commit that failed. It is tried again, without the messages that their vhost removes meanwhile.
#[derive(Debug)]
pub struct NotCommitted<'a> {
    pub error: &'a StoreError,
    /// The queues and places of its messages.
    pub messages: Vec<(QueueId, i64)>,
}

/// The last commit failed.
struct Failed {
    at: Instant,
    /// The positions already reported.
    told: Vec<(Arc<str>, Position)>,
    /// Bytes on the disk of the largest one.
    bytes: u64,
}

impl Shared {
    pub(crate) fn run(
        self: &Arc<Self>,
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
        let mut free_min = FreeMin::or_an_eighth(config.disk_free_bytes_min);
        let mut copying = Vec::new();
        loop {
            if let Some(order) = self.next_backup() {
                copying.extend(self.back_up(&mut store, order));
            }
            self.write_settings(&mut store);
            self.read_pages(&mut store);
            let changed = mem::take(&mut self.lock().free_minima);
            if let Some(last) = changed.last() {
                free_min = last.free_min;
                disk.look_again();
            }
            let look_at = disk.look(&store, free_min, on_disk_low);
            for order in changed {
                (order.on_looked)();
            }
            let tidy_at = match work.failed {
                None => store.tidy(Instant::now()),
                Some(_) => None,
            };
            work.look_at = look_at.into_iter().chain(tidy_at).min();
            let turn = self.turn(&mut work, &mut store);
            if let ControlFlow::Break(result) = turn {
                for thread in copying {
                    // A thread that panicked has said so.
                    let _ = thread.join();
                }
                return result;
            }
        }
    }

    /// Writes the settings that were submitted, each in a commit of its own: one that fails is not tried again.
    fn write_settings(&self, store: &mut Store) {
        loop {
            // The lock is not held while they are written.
            let Some(order) = self.lock().settings.pop_front() else {
                return;
            };
            if order.begun.begin() {
                let written = store.create_vhosts(&order.vhosts, &order.settings);
                (order.on_written)(written);
            }
        }
    }

    /// Reads requested pages, for a moment: commits wait meanwhile. Those that begin in one segment are read together.
    fn read_pages(&self, store: &mut Store) {
        let begin = Instant::now();
        while begin.elapsed() < READING_MAX {
            // The lock is not held while they are read.
            let mut orders = self.lock().take_pages();
            for order in &mut orders {
                let find = || store.first_segment(&order.vhost, &order.want);
                order.segment = order.segment.or_else(find);
            }
            let Some(first) = orders.first() else {
                return;
            };
            let (vhost, segment) = (Arc::clone(&first.vhost), first.segment);
            let orders = orders.into_iter().enumerate();
            let (together, mut left): (Vec<_>, Vec<_>) =
                orders.partition(|(_, order)| order.segment == segment);
            let mut bytes_max = TOGETHER_BYTES / together.len().max(1);
            let mut wants: Vec<&Want> = Vec::new();
            for (_, order) in &together {
                bytes_max = bytes_max.min(order.bytes_max);
                wants.push(&order.want);
            }
            let pages = store.read_pages(&vhost, &wants, bytes_max);
            let mut together = together.into_iter();
            // In this order: a page that is not there takes no order.
            for (page, (_, order)) in pages.into_iter().zip(together.by_ref()) {
                (order.on_read)(page);
            }
            left.extend(together);
            self.lock().put_back(left);
        }
    }

    /// Waits for something to do, and does it; breaks at the end.
    fn turn(&self, work: &mut Work<'_>, store: &mut Store) -> ControlFlow<Result<(), StoreError>> {
        let Some(front) = self.next_front(work) else {
            return ControlFlow::Break(Ok(()));
        };
        let bytes = work.failed.as_ref().map_or(0, |failed| failed.bytes);
        let is_stopping = bytes > 0 && self.lock().is_stopping;
        let committed = match front.is_empty() && bytes > 0 && !is_stopping {
            false => store.commit_or_make_room(&front),
            // All that failed was taken back: the next batch shall not fail in the same way.
            true => store.reserve(bytes),
        };
        match committed {
            Ok(()) => {
                work.failed = None;
                if work.config.pause_ms > 0 {
                    let pause = Duration::from_millis(work.config.pause_ms);
                    work.pauses_until = Some(Instant::now() + pause);
                }
                self.settle(work.kept.bytes(), false);
                for (vhost, position) in front.positions() {
                    (work.on_committed)(vhost, *position, Ok(()));
                }
                ControlFlow::Continue(())
            }
            Err(error) => self.fail(work, front, error),
        }
    }

    /// Takes the records of the next commit, as soon as there is something to do. `None` at the end.
    fn next_front(&self, work: &mut Work<'_>) -> Option<Batch> {
        let config = work.config;
        let kept = &mut work.kept;
        if work.failed.is_some() || kept.bytes() < config.commit_bytes_max {
            let retry = Duration::from_millis(config.retry_ms);
            let retry_at = work.failed.as_ref().map(|failed| failed.at + retry);
            if work.failed.is_none()
                && kept.is_done()
                && let Some(until) = work.pauses_until.take()
            {
                self.pause(until, config.pause_bytes_max);
            }
            kept.append(self.take(kept.is_done(), retry_at, work.look_at)?);
        }
        let mut front = match work.failed {
            None => kept.take_front(config.commit_bytes_max),
            // Later records may also cancel those that cannot be written.
            Some(_) => mem::take(kept),
        };
        // Not before: a message that moves from one queue to another would leave the first in this commit, whose
        // publisher gets a confirm, and enter the second in a later one.
        front.cancel();
        Some(front)
    }

    /// Keeps what could not be written, and reports it.
    fn fail(
        &self,
        work: &mut Work<'_>,
        mut front: Batch,
        error: StoreError,
    ) -> ControlFlow<Result<(), StoreError>> {
        let kept = &mut work.kept;
        let bytes = write::bytes_max(&front);
        front.append(mem::take(kept));
        *kept = front;
        let is_last = self.settle(kept.bytes(), true);
        let (told, bytes_before) = match work.failed.take() {
            Some(failed) => (failed.told, failed.bytes),
            None => (Vec::new(), 0),
        };
        for (vhost, position) in kept.positions() {
            if !told.contains(&(Arc::clone(vhost), *position)) {
                let messages = kept.messages(vhost).collect();
                let error = &error;
                (work.on_committed)(vhost, *position, Err(NotCommitted { error, messages }));
            }
        }
        if is_last {
            return ControlFlow::Break(Err(error));
        }
        work.failed = Some(Failed {
            at: Instant::now(),
            told: kept.positions().to_vec(),
            bytes: bytes.max(bytes_before),
        });
        ControlFlow::Continue(())
    }

    /// Notes what the store has now, and has it copied by a thread of its own.
    fn back_up(self: &Arc<Self>, store: &mut Store, order: Order) -> Option<JoinHandle<()>> {
        let Order {
            path,
            last,
            on_done,
        } = order;
        let job = Job::of(store, &last());
        let shared = Arc::clone(self);
        let copy = move || {
            let is_over = &mut || shared.lock().is_stopping;
            let made = job.and_then(|job| job.run(&path, is_over));
            {
                let mut state = shared.lock();
                state.is_backing_up = false;
                if state.backup.is_some() && state.wakes_with.take().is_some() {
                    shared.wake.notify_one();
                }
            }
            on_done(made);
        };
        let named = thread::Builder::new().name("backup".to_owned());
        // Without a thread there is no call; the sender of the answer is dropped with the closure.
        let started = named.spawn(copy).ok();
        if started.is_none() {
            self.lock().is_backing_up = false;
        }
        started
    }
}
