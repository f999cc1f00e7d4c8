//! A leave request, from a signal to any activity of an end: waiting for its router, waiting for messages, or calling.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Shared between the receiver of the request and the end that leaves.
#[derive(Clone, Default)]
pub struct Leave(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Read once per call, so it is not behind a lock.
    wished: AtomicBool,
    farewell: Mutex<Option<Farewell>>,
    changed: Condvar,
}

/// How long a router may take to answer a GOODBYE, or a last call.
const PATIENCE: Duration = Duration::from_secs(1);

/// Calls `end` if the process has not ended within a second.
pub(super) fn later(end: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        thread::sleep(PATIENCE);
        end();
    });
}

/// Sends GOODBYE for an end that waits for messages.
type Farewell = Box<dyn FnOnce() + Send>;

impl Leave {
    /// Requests it: waits end, and a prepared GOODBYE is sent.
    pub fn wish(&self) {
        let farewell = {
            let mut farewell = self.farewell();
            self.0.wished.store(true, Ordering::Relaxed);
            self.0.changed.notify_all();
            farewell.take()
        };
        if let Some(farewell) = farewell {
            farewell();
        }
    }

    pub fn is_wished(&self) -> bool {
        self.0.wished.load(Ordering::Relaxed)
    }

    /// Sets the action for a leave request; called at once if the request was made already.
    pub(super) fn prepare(&self, farewell: impl FnOnce() + Send + 'static) {
        let mut waiting = self.farewell();
        if self.is_wished() {
            drop(waiting);
            farewell();
        } else {
            *waiting = Some(Box::new(farewell));
        }
    }

    /// Waits so long, or until a leave request; returns whether there is one.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let guard = self.farewell();
        let unwished = |_: &mut Option<Farewell>| !self.is_wished();
        let waited = self
            .0
            .changed
            .wait_timeout_while(guard, longest, unwished)
            .unwrap_or_else(PoisonError::into_inner);
        drop(waited);
        self.is_wished()
    }

    /// No operation under this lock can be left half done.
    fn farewell(&self) -> MutexGuard<'_, Option<Farewell>> {
        self.0
            .farewell
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leave").field(&self.is_wished()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_ends_a_wait_and_says_the_farewell_once() {
        let leave = Leave::default();
        assert!(!leave.wait(Duration::ZERO));
        let said = Arc::new(Mutex::new(0));
        let count = Arc::clone(&said);
        leave.prepare(move || *count.lock().unwrap() += 1);
        let wisher = {
            let leave = leave.clone();
            thread::spawn(move || leave.wish())
        };
        assert!(leave.wait(Duration::from_secs(3600)));
        wisher.join().unwrap();
        leave.wish();
        assert_eq!(*said.lock().unwrap(), 1);
    }

    #[test]
    fn a_late_farewell_is_sent_at_once() {
        let leave = Leave::default();
        leave.wish();
        let said = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&said);
        leave.prepare(move || heard.store(true, Ordering::Relaxed));
        assert!(said.load(Ordering::Relaxed));
    }
}
