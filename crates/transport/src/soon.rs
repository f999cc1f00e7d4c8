//! One flush for several tasks of a thread: what they say to the same connection is one write.
//!
//! A task that serves one request of many uncorks for each of them. Of the requests that a thread finds at once each was
//! a write to the same callee, a wake-up there, and another one back. Here what a task has touched is set aside until those that
//! are ready now have had their turns. Nobody else waits for that: whoever appends meanwhile flushes at once, as if the
//! connection were in no cork.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::{Connection, account, cork};

/// Set aside at once; whoever comes then finds them flushed.
const ASIDE_MAX: usize = 64;
/// What was appended by one task is worth waiting for others if it is no more.
const BYTES_MAX: usize = 64 * 1024;

thread_local! {
    static ASIDE: RefCell<Vec<Arc<Connection>>> = const { RefCell::new(Vec::new()) };
    static HAS_FLUSHER: Cell<bool> = const { Cell::new(false) };
}

/// Flushes what this thread touched, after the tasks that are ready have had their turns. Only for a thread whose
/// runtime has no other. Needs a tokio context.
pub fn uncork_soon() {
    if cork::held_bytes() > BYTES_MAX || !cork::take_few(set_aside) {
        return cork::uncork();
    }
    let count = ASIDE.with_borrow(Vec::len);
    if count >= ASIDE_MAX {
        flush();
    } else if count > 0 && !HAS_FLUSHER.get() {
        tokio::spawn(flush_on(Flusher::new()));
    }
}

fn set_aside(connection: Arc<Connection>) {
    // What waited in a mailbox was often taken by who asked for it.
    if !connection.leave_cork() {
        return;
    }
    ASIDE.with_borrow_mut(|aside| {
        if !aside.iter().any(|other| Arc::ptr_eq(other, &connection)) {
            aside.push(connection);
        }
    });
}

/// It is behind all tasks that were ready when it was made.
async fn flush_on(flusher: Flusher) {
    drop(flusher);
    flush();
}

fn flush() {
    for connection in ASIDE.take() {
        connection.flush();
    }
    account::choose_if_crossed();
}

/// That a task of this thread flushes; also a task that its runtime drops does so no more.
struct Flusher;

impl Flusher {
    fn new() -> Self {
        HAS_FLUSHER.set(true);
        Self
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        HAS_FLUSHER.set(false);
    }
}
