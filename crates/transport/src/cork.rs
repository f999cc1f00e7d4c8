//! The cork: connections that were appended to while one input was handled.
//!
//! Everything that one read brought is routed first; then each touched connection is flushed
//! once. Flushing message by message costs 2.5 times the CPU per call. A large fan-out is
//! deferred: after [`FLUSH_MAX`] writes the thread looks for new input before it goes on, so
//! that several publications share one write per receiver, and nobody else waits for a fan-out
//! to end (3.8 times the events per second when saturated).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Connection;

/// Connections flushed before the thread looks for input again.
const FLUSH_MAX: usize = 64;

static NUMBER_LAST: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static TOUCHED: RefCell<VecDeque<Arc<Connection>>> = const { RefCell::new(VecDeque::new()) };
    static NUMBER: u32 = NUMBER_LAST.fetch_add(1, Ordering::Relaxed) + 1;
    static HAS_FLUSHER: Cell<bool> = const { Cell::new(false) };
}

/// A number of this thread's own, never 0.
pub(crate) fn thread_number() -> u32 {
    NUMBER.with(|number| *number)
}

/// Notes that `connection` has something to flush.
pub(crate) fn touch(connection: Arc<Connection>) {
    TOUCHED.with_borrow_mut(|touched| touched.push_back(connection));
}

/// Flushes what this thread touched, a large number of connections in portions. To be called
/// whenever an input (octets, a timer, a command) has been handled. Needs a tokio context.
pub fn uncork() {
    if flush_some() && !HAS_FLUSHER.replace(true) {
        tokio::spawn(async {
            loop {
                tokio::task::yield_now().await;
                if !flush_some() {
                    break;
                }
            }
            HAS_FLUSHER.set(false);
        });
    }
}

/// Whether there is more to flush.
fn flush_some() -> bool {
    for _ in 0..FLUSH_MAX {
        let Some(connection) = TOUCHED.with_borrow_mut(VecDeque::pop_front) else {
            return false;
        };
        connection.flush();
    }
    TOUCHED.with_borrow(|touched| !touched.is_empty())
}
