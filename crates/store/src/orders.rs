//! What waits for the committing thread: records, pages to be read, a backup.

use std::collections::VecDeque;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosstie_queues::{Page, Want};

use crate::{Backup, Batch, FreeMin, NewSetting, StoreError};

/// Between a committer and its thread.
#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) wake: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) waiting: Batch,
    /// Bytes that the thread has taken, and not committed.
    pub(crate) taken_bytes: usize,
    /// While the thread waits: the waiting bytes that wake it.
    pub(crate) wakes_with: Option<usize>,
    /// Other minima of free bytes on the disk. The last one counts.
    pub(crate) free_minima: Vec<FreeMinOrder>,
    pub(crate) is_failing: bool,
    pub(crate) is_stopping: bool,
    pub(crate) backup: Option<Order>,
    /// A backup is being made.
    pub(crate) is_backing_up: bool,
    pub(crate) pages: VecDeque<PageOrder>,
    pub(crate) settings: VecDeque<SettingsOrder>,
}

/// Another minimum of free bytes on the disk.
pub(crate) struct FreeMinOrder {
    pub(crate) free_min: FreeMin,
    /// Called once the disk is judged by it.
    pub(crate) on_looked: Box<dyn FnOnce() + Send>,
}

/// Settings to be written, with vhosts to be created.
pub(crate) struct SettingsOrder {
    pub(crate) vhosts: Vec<Arc<str>>,
    pub(crate) settings: Vec<NewSetting>,
    pub(crate) begun: Begun,
    pub(crate) on_written: Box<OnWritten>,
}

/// Whether the thread has begun with an order, or its owner has withdrawn it.
#[derive(Clone, Default)]
pub struct Begun(Arc<AtomicBool>);

impl Begun {
    /// Withdraws the order, unless the thread has begun with it. Returns whether it is withdrawn.
    pub fn withdraw(&self) -> bool {
        self.begin()
    }

    /// Returns whether nobody else has called this.
    pub(crate) fn begin(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

/// Receives the outcome of a commit of settings.
pub(crate) type OnWritten = dyn FnOnce(Result<(), StoreError>) + Send;

/// A page to be read.
pub(crate) struct PageOrder {
    pub(crate) vhost: Arc<str>,
    pub(crate) want: Want,
    pub(crate) bytes_max: usize,
    /// The segment of its first message, if that was looked for. It may have moved since.
    pub(crate) segment: Option<u32>,
    pub(crate) on_read: Box<OnRead>,
}

/// Maximum number of pages that are read together.
const PAGES_TOGETHER_MAX: usize = 64;

/// Receives a page.
pub(crate) type OnRead = dyn FnOnce(Result<Page, StoreError>) + Send;

/// A backup that was asked for.
pub(crate) struct Order {
    pub(crate) path: PathBuf,
    pub(crate) last: Box<Last>,
    pub(crate) on_done: Box<OnDone>,
}

/// Makes the records that only a copy has.
pub(crate) type Last = dyn FnOnce() -> Batch + Send;

/// How a backup went.
pub(crate) type OnDone = dyn FnOnce(Result<Backup, StoreError>) + Send;

impl State {
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.bytes() + self.taken_bytes
    }

    pub(crate) fn take(&mut self) -> Batch {
        self.taken_bytes += self.waiting.bytes();
        mem::take(&mut self.waiting)
    }

    /// Takes the pages to be read next, all of one vhost. Messages of many queues that were published at one time are in the
    /// same segments.
    pub(crate) fn take_pages(&mut self) -> Vec<PageOrder> {
        let mut taken: Vec<PageOrder> = Vec::new();
        while taken.len() < PAGES_TOGETHER_MAX
            && let Some(next) = self.pages.pop_front_if(|next| {
                let first = taken.first();
                first.is_none_or(|first| first.vhost == next.vhost)
            })
        {
            taken.push(next);
        }
        taken
    }

    /// Puts pages that were taken, and not read, before all others; each with its number among those that were taken.
    pub(crate) fn put_back(&mut self, mut left: Vec<(usize, PageOrder)>) {
        left.sort_unstable_by_key(|(nth, _)| *nth);
        for (_, order) in left.into_iter().rev() {
            self.pages.push_front(order);
        }
    }

    pub(crate) fn has_orders(&self) -> bool {
        self.is_awaited() || self.backup.is_some() && !self.is_backing_up
    }

    /// Whether there is work that does not wait for the next attempt of a commit that failed.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.pages.is_empty() || !self.settings.is_empty() || !self.free_minima.is_empty()
    }

    pub(crate) fn has_news(&self) -> bool {
        !self.waiting.is_done()
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The backup that was asked for, unless another one is being made.
    pub(crate) fn next_backup(&self) -> Option<Order> {
        let mut state = self.lock();
        match state.is_backing_up {
            true => None,
            false => {
                let order = state.backup.take();
                state.is_backing_up = order.is_some();
                order
            }
        }
    }

    /// Lets records gather until then, unless so many bytes wait or there is other work.
    pub(crate) fn pause(&self, until: Instant, bytes_max: usize) {
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
    pub(crate) fn take(
        &self,
        is_idle: bool,
        retry_at: Option<Instant>,
        look_at: Option<Instant>,
    ) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            let left = match retry_at {
                Some(_) if state.is_awaited() => Duration::ZERO,
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
    pub(crate) fn settle(&self, kept_bytes: usize, is_failing: bool) -> bool {
        let mut state = self.lock();
        state.is_failing = is_failing;
        state.taken_bytes = kept_bytes;
        state.is_stopping && !state.has_news()
    }
}
