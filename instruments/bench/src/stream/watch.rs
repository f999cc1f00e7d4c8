//! Ends a driver whose server stopped answering. The measuring loops block without a limit, so that no system call is
//! there for the sake of errors; a second thread checks their progress.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::process::{LastWord, say};
use crate::report::table::thousands;

/// The longest time without progress.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

const LOOKS: u32 = 10;

/// The progress of a loop, seen from the thread that watches it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    progress: AtomicU64,
    armed: AtomicBool,
}

impl Watch {
    /// Begins to watch, once armed. `unit` is the unit of progress.
    pub(crate) fn start(unit: &'static str) -> Arc<Self> {
        let watch = Arc::new(Self::default());
        let watched = Arc::clone(&watch);
        thread::spawn(move || {
            watched.wait_for_standstill();
            let done = watched.progress.load(Ordering::Relaxed);
            let why = format!(
                "the server stopped answering: nothing for {} s after {} {unit}",
                PATIENCE.as_secs(),
                thousands(done as f64)
            );
            say(&LastWord::Failed { why });
            process::exit(1);
        });
        watch
    }

    /// From here on progress is required, or not required.
    pub(crate) fn arm(&self, armed: bool) {
        self.armed.store(armed, Ordering::Relaxed);
    }

    /// Cheap enough for every operation: one thread writes.
    pub(crate) fn add(&self, count: u64) {
        let before = self.progress.load(Ordering::Relaxed);
        self.progress.store(before + count, Ordering::Relaxed);
    }

    fn wait_for_standstill(&self) {
        let (mut seen, mut still) = (0, 0);
        while still < LOOKS {
            thread::sleep(PATIENCE / LOOKS);
            let now = self.progress.load(Ordering::Relaxed);
            let stands = self.armed.load(Ordering::Relaxed) && now == seen;
            still = if stands { still + 1 } else { 0 };
            seen = now;
        }
    }
}
