//! Keys that take a tenth of a second of a core to be derived, on threads behind those that serve.
//!
//! ```text
//!   key ─► patient threads: what nobody else wants of a core ─────────────► slot
//!     └──── not there in time ─► urgent threads: a quarter of a core ────────┘
//! ```
//!
//! A core that serves has nothing to spare at times, and then a patient thread has a seventieth of it. So that nobody's
//! login fails for that, a key that was waited for too long is derived once more, by a thread with a larger share.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::process::nice;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

use crate::wamp::elsewhere::{Outcome, Slot};

/// Threads for what keeps a core busy.
pub(crate) struct Deriving {
    patient: Threads,
    urgent: Threads,
    /// How long a key may take before it is urgent.
    patience: Duration,
}

/// As many threads as may have a core, of one niceness.
struct Threads {
    /// None where the system gives none: the keeper's are used then.
    runtime: Option<Runtime>,
    /// So that handshakes that wait for keys take neither all cores nor memory without bound.
    turns: Arc<Semaphore>,
}

/// What makes a key; twice where once takes too long.
type Work = Arc<dyn Fn() -> Outcome + Send + Sync>;

/// What threads have that run when nothing else wants the core, or nearly so; 0 is what others have. With 5 they had a
/// quarter of a core that serves, 4 ms at a time, and others' joins a 99th percentile four to eight times as long.
const PATIENT_NICENESS: i32 = 19;
const URGENT_NICENESS: i32 = 5;

/// For so long a thread of those is kept for the next key.
const IDLE: Duration = Duration::from_secs(10);

impl Deriving {
    /// For handshakes that may take so long.
    pub(crate) fn new(handshake_timeout: Duration) -> Self {
        Self {
            patient: Threads::new("keys", PATIENT_NICENESS),
            urgent: Threads::new("keys-urgent", URGENT_NICENESS),
            patience: handshake_timeout / 4,
        }
    }

    /// Has `slot` filled with what `work` makes; `keeper` has timers.
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
                // Without it they are as others.
                let _ = nice(niceness);
            })
            .build();
        Self {
            runtime: runtime.ok(),
            turns: Arc::new(Semaphore::new(workers_max())),
        }
    }

    /// Has a slot filled when it is its turn. Once work has begun it is done, whether that is waited for or not.
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
            // It is never closed.
            let Ok(turn) = turns.acquire_owned().await else {
                return;
            };
            // Whose client has gone meanwhile is not worked for.
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
            // It fails where the threads are ended, with the router.
            let _ = done.await;
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Nobody waits for keys any more, and this may be a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Half of the cores, since the others serve.
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
                // As one that is given no time.
                let _ = end.lock().unwrap().recv();
            }
            Outcome::Elapsed
        });
        keeper.block_on(async {
            while slot.take().is_none() {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(tells.recv().unwrap(), "keys");
        assert_eq!(tells.recv().unwrap(), "keys-urgent");
        drop(ends);
        // Of somebody who has gone nothing is derived.
        let work: Work = Arc::new(|| panic!("it is derived"));
        let urgent = &deriving.urgent;
        keeper.block_on(urgent.run(keeper.handle(), Weak::new(), work));
    }
}
