//! The cork: connections that were appended to while one input was handled.
//!
//! Everything that one read brought is routed first; then each touched connection is flushed
//! once. Flushing message by message costs 2.5 times the CPU per call. A large fan-out is
//! deferred: after [`FLUSH_MAX`] writes the thread looks for new input before it goes on, so
//! that several publications share one write per receiver, and nobody else waits for a fan-out
//! to end (3.8 times the events per second when saturated). An input that touched only a few,
//! as a call does, does not stand in the line of a fan-out.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Connection, account};

/// Connections of a fan-out flushed before the thread looks for input again, unless what they were sent
/// is more than the bytes below: 64 times 1 MiB are 30 ms and more.
const FLUSH_MAX: usize = 64;
const FLUSH_BYTES_MAX: usize = 512 * 1024;

/// An input that touched no more than these is flushed at once.
const FEW_MAX: usize = 8;

/// What a thread may hold for what it appends while a fan-out waits; then all of it is flushed before
/// more input is read, which holds the publisher back. What a receiver that reads is about to be sent is
/// on no account, so that this is the bound on it. What several are sent counts once.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that may wait in a thread's line of fan-outs. Beyond it a publisher waits, too, for the line to be
/// done: the line goes on 64 receivers at a time, and others have their turns between.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

static NUMBER_LAST: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static NUMBER: u32 = NUMBER_LAST.fetch_add(1, Ordering::Relaxed) + 1;
    /// Touched by the input that is being handled.
    static TOUCHED: RefCell<VecDeque<Arc<Connection>>> = const { RefCell::new(VecDeque::new()) };
    /// The line of the fan-outs.
    static DEFERRED: RefCell<VecDeque<Arc<Connection>>> = const { RefCell::new(VecDeque::new()) };
    /// Bytes appended by this thread since nothing was deferred, to each connection.
    static APPENDED_BYTES: Cell<usize> = const { Cell::new(0) };
    /// The same, but once where several are sent the same bytes.
    static HELD_BYTES: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread has sent since it began.
    static SENT_BYTES: Cell<usize> = const { Cell::new(0) };
    static HAS_FLUSHER: Cell<bool> = const { Cell::new(false) };
}

/// A number of this thread's own, never 0.
pub fn thread_number() -> u32 {
    NUMBER.with(|number| *number)
}

/// Whether a fan-out of this thread waits in line.
pub(crate) fn is_deferring() -> bool {
    HAS_FLUSHER.get()
}

/// Notes that `connection` has something to flush.
pub(crate) fn touch(connection: Arc<Connection>) {
    TOUCHED.with_borrow_mut(|touched| {
        let last = touched.back();
        if !last.is_some_and(|last| Arc::ptr_eq(last, &connection)) {
            touched.push_back(connection);
        }
    });
}

/// Notes bytes that were appended to any connection.
pub(crate) fn note_appended(bytes: usize) {
    note_appended_shared(bytes);
    note_shared(bytes);
}

/// The same of bytes that other connections are sent too.
pub(crate) fn note_appended_shared(bytes: usize) {
    APPENDED_BYTES.set(APPENDED_BYTES.get().saturating_add(bytes));
}

/// Notes bytes that any number of connections are going to be sent.
pub(crate) fn note_shared(bytes: usize) {
    HELD_BYTES.set(HELD_BYTES.get().saturating_add(bytes));
}

/// Notes bytes that a socket has taken.
pub(crate) fn note_sent(bytes: usize) {
    SENT_BYTES.set(SENT_BYTES.get().wrapping_add(bytes));
}

/// Flushes what this thread touched, a large number of connections in portions. To be called
/// whenever an input (bytes, a timer, a command) has been handled. Needs a tokio context.
pub fn uncork() {
    let is_few = TOUCHED.with_borrow_mut(|touched| {
        let is_few = touched.len() <= FEW_MAX;
        if !is_few {
            DEFERRED.with_borrow_mut(|deferred| deferred.append(touched));
        }
        is_few
    });
    if is_few {
        flush_touched();
    }
    if flush_deferred(if is_much_appended() {
        usize::MAX
    } else {
        FLUSH_MAX
    }) && !HAS_FLUSHER.get()
    {
        tokio::spawn(flush_on(Flusher::new()));
    }
    account::choose_if_crossed();
}

/// Flushes what this thread touched if that are few, in the order in which it touched them: for a
/// protocol whose own replies may wait for what it sends to others. Needs a tokio context.
pub fn uncork_few() {
    if TOUCHED.with_borrow(VecDeque::len) <= FEW_MAX {
        flush_touched();
    }
}

/// Hands over what this thread touched, if that are few; whether they are.
pub(crate) fn take_few(mut taker: impl FnMut(Arc<Connection>)) -> bool {
    let is_few = TOUCHED.with_borrow(VecDeque::len) <= FEW_MAX;
    while is_few && let Some(connection) = TOUCHED.with_borrow_mut(VecDeque::pop_front) {
        taker(connection);
    }
    is_few
}

fn flush_touched() {
    while let Some(connection) = TOUCHED.with_borrow_mut(VecDeque::pop_front) {
        connection.flush();
    }
}

/// Flushes all that this thread touched, before it returns: for a thread that has no tasks of its
/// own. Needs the context of some runtime, which sends on where a socket is full.
pub fn uncork_all() {
    flush_touched();
    flush_deferred(usize::MAX);
    account::choose_if_crossed();
}

/// Bytes that this thread holds for what it has appended; once where several are sent the same.
pub(crate) fn held_bytes() -> usize {
    HELD_BYTES.get()
}

/// Whether [`relieve`] would flush: a caller that holds a lock asks first.
pub fn is_much_appended() -> bool {
    HELD_BYTES.get() > HELD_BYTES_MAX
}

/// Bytes that this thread has appended since it last had nothing in line.
pub fn appended_bytes() -> usize {
    APPENDED_BYTES.get()
}

/// Whether so much waits in this thread's line of fan-outs that a publisher ends its turn, and
/// has no other one ([`crate::Outcome::Yield`]) before the line is done.
pub fn is_line_long() -> bool {
    APPENDED_BYTES.get() > LINE_BYTES_MAX
}

/// Flushes everything if what was appended while one input was handled is much already. To be
/// called between the messages of an input. Needs a tokio context, and no lock held.
pub fn relieve() {
    if is_much_appended() {
        uncork();
    }
}

/// Flushes so many of the deferred connections, or fewer with much to send; whether there are more.
fn flush_deferred(count_max: usize) -> bool {
    let sent_before = SENT_BYTES.get();
    let is_all = count_max == usize::MAX;
    for _ in 0..count_max {
        let sent = SENT_BYTES.get().wrapping_sub(sent_before);
        if sent >= FLUSH_BYTES_MAX && !is_all {
            break;
        }
        let Some(connection) = DEFERRED.with_borrow_mut(VecDeque::pop_front) else {
            break;
        };
        connection.flush();
    }
    let is_more = DEFERRED.with_borrow(|deferred| !deferred.is_empty());
    if !is_more {
        APPENDED_BYTES.set(0);
        HELD_BYTES.set(0);
    }
    is_more
}

async fn flush_on(_flusher: Flusher) {
    loop {
        tokio::task::yield_now().await;
        let is_more = flush_deferred(FLUSH_MAX);
        account::choose_if_crossed();
        if !is_more {
            return;
        }
    }
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
