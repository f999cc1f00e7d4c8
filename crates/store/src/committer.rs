//! A thread that commits: group commit, retries, and who is told.

use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crosstie_queues::{Position, Record};

use crate::{Batch, Store, StoreError};

/// A store on a thread of its own. Dropping it commits what waits, as [`Committer::stop`] does.
pub struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

/// How a committer goes about it.
#[derive(Clone, Debug)]
pub struct CommitterConfig {
    /// How long after a commit that failed the next one is tried.
    pub retry_ms: u64,
    /// About as many octets go into one commit, so that nobody waits for a very long one.
    pub commit_bytes_max: usize,
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
    /// Octets that the thread has taken, and not committed.
    taken_bytes: usize,
    is_asleep: bool,
    is_failing: bool,
    is_stopping: bool,
}

impl Default for CommitterConfig {
    fn default() -> Self {
        Self {
            retry_ms: 1000,
            commit_bytes_max: 16 << 20,
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
        Self::start_with(store, CommitterConfig::default(), on_committed)
    }

    /// The same, by that configuration.
    pub fn start_with(
        store: Store,
        config: CommitterConfig,
        on_committed: impl Fn(&str, Position, Result<(), &StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || of_thread.run(store, &config, &on_committed))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Hands records over, up to and with `position`; returns the octets that wait, these
    /// included. Never waits for the disk. The records of a vhost have to come in its journal's
    /// order: submit under the vhost's lock. Nothing is refused, since a journal with a hole is
    /// none: who sees too much waiting stops reading publishers.
    pub fn submit(&self, vhost: &Arc<str>, records: Vec<Record>, position: Position) -> usize {
        let mut state = self.shared.lock();
        state.waiting.push(vhost, records, position);
        if mem::take(&mut state.is_asleep) {
            self.shared.wake.notify_one();
        }
        state.bytes()
    }

    /// Octets that were submitted and are not on the disk.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.lock().bytes()
    }

    /// The last commit failed, and is tried again.
    pub fn is_failing(&self) -> bool {
        self.shared.lock().is_failing
    }

    /// Commits what waits, and ends the thread. Records that could not be written are lost, and
    /// the error says why.
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
        // Who wants to know calls `stop`.
        let _ = self.end();
    }
}

/// The last commit failed.
struct Failed {
    at: Instant,
    /// The positions whose owners know.
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
    ) -> Result<(), StoreError> {
        let retry = Duration::from_millis(config.retry_ms);
        // Taken, and not on the disk.
        let mut kept = Batch::default();
        let mut failed: Option<Failed> = None;
        loop {
            if failed.is_some() || kept.bytes() < config.commit_bytes_max {
                let retry_at = failed.as_ref().map(|failed| failed.at + retry);
                let Some(taken) = self.take(kept.is_done(), retry_at) else {
                    return Ok(());
                };
                kept.append(taken);
            }
            let mut front = match failed {
                None => kept.take_front(config.commit_bytes_max),
                // Also what came later may undo what cannot be written.
                Some(_) => mem::take(&mut kept),
            };
            // Not before: a message that moves from one queue to another would leave the first in
            // this commit, for which its publisher is told, and enter the second in a later one.
            front.cancel();
            match store.commit(&front) {
                Ok(()) => {
                    failed = None;
                    self.settle(kept.bytes(), false);
                    for (vhost, position) in front.positions() {
                        on_committed(vhost, *position, Ok(()));
                    }
                }
                Err(error) => {
                    front.append(kept);
                    kept = front;
                    let is_last = self.settle(kept.bytes(), true);
                    let told = failed.map(|failed| failed.told).unwrap_or_default();
                    for (vhost, position) in kept.positions() {
                        if !told.contains(&(Arc::clone(vhost), *position)) {
                            on_committed(vhost, *position, Err(&error));
                        }
                    }
                    if is_last {
                        return Err(error);
                    }
                    failed = Some(Failed {
                        at: Instant::now(),
                        told: kept.positions().to_vec(),
                    });
                }
            }
        }
    }

    /// What waits: at once if there is something else to do, else once something does, after a
    /// failure when the next commit is to be tried. None at the end.
    fn take(&self, is_idle: bool, retry_at: Option<Instant>) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            let left = match retry_at {
                None if !is_idle || state.has_news() => return Some(state.take()),
                None if state.is_stopping => return None,
                None => {
                    state.is_asleep = true;
                    let woken = self.wake.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
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

    /// Notes how a commit went, and what has yet to be written; whether a failure was the last
    /// there will be.
    fn settle(&self, kept_bytes: usize, is_failing: bool) -> bool {
        let mut state = self.lock();
        state.is_failing = is_failing;
        state.taken_bytes = kept_bytes;
        state.is_stopping && !state.has_news()
    }
}
