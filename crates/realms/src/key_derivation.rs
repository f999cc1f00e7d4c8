//! Derives keys that cost a tenth of a second of processor time, on threads with low priority.
//!
//! ```text
//!   key ─► patient threads: idle time of a core ──────────────────────────► slot
//!     └──── not ready in time ─► urgent threads: a quarter of a core ────────┘
//! ```
//!
//! A busy core leaves a patient thread about a seventieth of its time. So that logins do not fail for that, an overdue
//! key is derived a second time, by a thread with a larger share.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::process::nice;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

use crate::elsewhere::{Outcome, Slot};

/// Threads for work that occupies a core.
pub(crate) struct Deriving {
    patient: Threads,
    urgent: Threads,
    /// Time after which a key is urgent.
    patience: Duration,
}

/// Threads of one niceness, as many as may use a core each.
struct Threads {
    /// `None` if the system provides no threads: the keeper's are used then.
    runtime: Option<Runtime>,
    /// Bounds the cores and the memory used by handshakes that wait for keys.
    turns: Arc<Semaphore>,
}

/// Makes a key; called twice if the first call is too slow.
type Work = Arc<dyn Fn() -> Outcome + Send + Sync>;

/// The niceness of threads that run when a core is otherwise idle; other threads have 0. With 5 they got a quarter of a
/// busy core, 4 ms at a time, and the 99th percentile of other sessions' joins grew four to eight times.
const PATIENT_NICENESS: i32 = 19;
const URGENT_NICENESS: i32 = 5;

/// Time for which an idle thread is kept.
const IDLE: Duration = Duration::from_secs(10);

impl Deriving {
    /// For handshakes with that timeout.
    pub(crate) fn new(handshake_timeout: Duration) -> Self {
        Self {
            patient: Threads::new("keys", PATIENT_NICENESS),
            urgent: Threads::new("keys-urgent", URGENT_NICENESS),
            patience: handshake_timeout / 4,
        }
    }

    /// Fills `slot` with the result of `work`; `keeper` has timers.
    pub(crate) fn fill_with(
        &self,
        keeper: &Handle,
        slot: &Arc<Slot>,
        work: impl Fn() -> Outcome + Send + Sync + 'static,
    ) {
        let work: Work = Arc::new(work);
        let slot = Arc::downgrade(slot);
        let [patient, urgent] = [&self.patient, &self.urgent]
            .map(|threads| threads.run(keeper, Weak::clone(&slot), Arc::clone(&work)));
        let patience = self.patience;
        keeper.spawn(async move {
            if tokio::time::timeout(patience, patient).await.is_err() {
                urgent.await;
            }
        });
    }
}

impl Threads {
    fn new(name: &str, niceness: i32) -> Self {
        let runtime = Builder::new_current_thread()
            .thread_name(name)
            .thread_keep_alive(IDLE)
            .max_blocking_threads(workers_max())
            .on_thread_start(move || {
                // If this fails, the threads have normal priority.
                let _ = nice(niceness);
            })
            .build();
        Self {
            runtime: runtime.ok(),
            turns: Arc::new(Semaphore::new(workers_max())),
        }
    }

    /// Fills a slot in turn. Work that has begun is completed, even if no client waits any more.
    fn run(
        &self,
        keeper: &Handle,
        slot: Weak<Slot>,
        work: Work,
    ) -> impl Future<Output = ()> + Send + use<> {
        let turns = Arc::clone(&self.turns);
        let threads = self.runtime.as_ref().map_or(keeper, Runtime::handle);
        let threads = threads.clone();
        async move {
            // The semaphore is never closed.
            let Ok(turn) = turns.acquire_owned().await else {
                return;
            };
            // The client may have gone meanwhile.
            if slot.strong_count() == 0 {
                return;
            }
            let done = threads.spawn_blocking(move || {
                let outcome = work();
                drop(turn);
                if let Some(slot) = slot.upgrade() {
                    slot.fill(outcome);
                }
            });
            // Fails if the threads end with the router.
            let _ = done.await;
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // No client waits for keys any more, and this thread may be one that must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Half of the cores, as the others serve.
fn workers_max() -> usize {
    let cores = std::thread::available_parallelism();
    cores.map_or(1, |cores| cores.get().div_ceil(2))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_key_that_takes_too_long_is_derived_once_more() {
        let keeper = Builder::new_current_thread().enable_time().build();
        let keeper = keeper.unwrap();
        let deriving = Deriving::new(Duration::from_millis(40));
        let slot = Slot::of_nobody();
        let (told, tells) = mpsc::channel();
        let (ends, end) = mpsc::channel::<()>();
        let end = std::sync::Mutex::new(end);
        deriving.fill_with(keeper.handle(), &slot, move || {
            let name = std::thread::current().name().unwrap().to_owned();
            told.send(name.clone()).unwrap();
            if name == "keys" {
                // The first call does not get any processor time.
                let _ = end.lock().unwrap().recv();
            }
            Outcome::Elapsed
        });
        keeper.block_on(async {
            while slot.take().is_none() {
                tokio::task::yield_now().await;
            }
        });
        // A busy machine may begin with the second.
        let mut names = [tells.recv().unwrap(), tells.recv().unwrap()];
        names.sort();
        assert_eq!(names, ["keys", "keys-urgent"]);
        drop(ends);
        // No key is derived for a client that has gone.
        let work: Work = Arc::new(|| panic!("it is derived"));
        let urgent = &deriving.urgent;
        keeper.block_on(urgent.run(keeper.handle(), Weak::new(), work));
    }
}
