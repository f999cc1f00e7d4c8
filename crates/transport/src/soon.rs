//! One flush for several tasks of a thread: their bytes for the same connection share one write.
//!
//! A task that serves one of many requests uncorks for each of them. Each request that a thread found at once used to
//! be a write to the same callee, a wake-up there, and another one back. Here the connections that a task has touched
//! are set aside until the ready tasks have had their turns. Other senders do not wait for that: an append meanwhile
//! flushes at once, as if the connection were in no cork.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::cork::Flusher;
use crate::{Connection, account, cork};

/// Maximum number of connections set aside at once; a further one flushes all.
const ASIDE_MAX: usize = 64;
/// Appends of one task up to this size are worth waiting for others.
const BYTES_MAX: usize = 64 * 1024;

thread_local! {
    static ASIDE: RefCell<Vec<Arc<Connection>>> = const { RefCell::new(Vec::new()) };
    static HAS_FLUSHER: Cell<bool> = const { Cell::new(false) };
}

/// Flushes the connections that this thread touched, after the ready tasks have had their turns. Only for a thread
/// whose runtime is the only one. Needs a tokio context.
pub fn uncork_soon() {
    if cork::held_bytes() > BYTES_MAX || !cork::take_few(set_aside) {
        return cork::uncork();
    }
    let count = ASIDE.with_borrow(Vec::len);
    if count >= ASIDE_MAX {
        flush();
    } else if count > 0 && !HAS_FLUSHER.get() {
        tokio::spawn(flush_on(Flusher::new(&HAS_FLUSHER)));
    }
}

fn set_aside(connection: Arc<Connection>) {
    // Bytes in a mailbox are often taken by the request that caused them.
    if !connection.leave_cork() {
        return;
    }
    ASIDE.with_borrow_mut(|aside| {
        if !aside.iter().any(|other| Arc::ptr_eq(other, &connection)) {
            aside.push(connection);
        }
    });
}

/// Its task is behind all tasks that were ready when it was spawned.
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
