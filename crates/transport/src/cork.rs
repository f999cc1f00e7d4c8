//! The cork: the connections that were appended to during one input.
//!
//! All messages of one read are routed first; then each touched connection is flushed once. Flushing message by message
//! costs 2.5 times the CPU per call. A large fan-out is deferred: after [`FLUSH_MAX`] writes the thread looks for new
//! input before it continues. Several publications then share one write per receiver, and other inputs do not wait for
//! a fan-out to end (3.8 times the events per second when saturated). An input that touched only a few connections,
//! such as a call, does not wait in the line of a fan-out.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::LocalKey;
use std::time::{Duration, Instant};

use crosstie_collections::{Histogram, SharedHistogram};

use crate::{Connection, account};

/// Connections of a fan-out that are flushed before the thread looks for input again, unless their bytes exceed the
/// bound below: 64 times 1 MiB take 30 ms and more.
const FLUSH_MAX: usize = 64;
const FLUSH_BYTES_MAX: usize = 512 * 1024;

/// An input that touched no more connections than these is flushed at once.
const FEW_MAX: usize = 8;

/// Bytes that a thread may hold for its appends while a fan-out waits. Beyond it all are flushed before more input is
/// read, which holds the publisher back. Bytes for receivers that read are on no account, so this is their only bound.
/// Shared bytes count once.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that may wait in a thread's line of fan-outs. Beyond it a publisher waits for the line to be sent, too. The
/// line is sent 64 receivers at a time, with other connections' turns between.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A line that is not empty for so long is noted, and timed anew.
const LASTING: Duration = Duration::from_secs(1);

static NUMBER_LAST: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static NUMBER: u32 = NUMBER_LAST.fetch_add(1, Ordering::Relaxed) + 1;
    /// Connections touched by the current input.
    static TOUCHED: RefCell<VecDeque<Arc<Connection>>> = const { RefCell::new(VecDeque::new()) };
    /// The line of the fan-outs.
    static DEFERRED: RefCell<VecDeque<Arc<Connection>>> = const { RefCell::new(VecDeque::new()) };
    /// Bytes that this thread has appended since nothing was deferred, counted for each connection.
    static APPENDED_BYTES: Cell<usize> = const { Cell::new(0) };
    /// The same, with shared bytes counted once.
    static HELD_BYTES: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread has sent since it started.
    static SENT_BYTES: Cell<usize> = const { Cell::new(0) };
    /// Since when the line of the fan-outs is not empty.
    static DEFERRED_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    static HAS_FLUSHER: Cell<bool> = const { Cell::new(false) };
}

/// Microseconds from an input with output for more than [`FEW_MAX`] connections until its thread has no more of such
/// output.
static FAN_OUTS: SharedHistogram = SharedHistogram::new();

/// The times that fan-outs took, of all threads, in microseconds.
pub fn fan_outs() -> Histogram {
    FAN_OUTS.read()
}

/// Notes a line that does not become empty once a second: a thread that is busy for ever would tell nothing.
fn note_lasting(since: Instant) {
    let now = Instant::now();
    let lasted = now.saturating_duration_since(since);
    if lasted >= LASTING {
        FAN_OUTS.note(lasted.as_micros() as u64);
        DEFERRED_SINCE.set(Some(now));
    }
}

/// A number of this thread's own, never 0.
pub fn thread_number() -> u32 {
    NUMBER.with(|number| *number)
}

/// Whether a fan-out of this thread waits in line.
pub(crate) fn is_deferring() -> bool {
    HAS_FLUSHER.get()
}

/// Records that `connection` has something to flush.
pub(crate) fn touch(connection: Arc<Connection>) {
    TOUCHED.with_borrow_mut(|touched| {
        let last = touched.back();
        if !last.is_some_and(|last| Arc::ptr_eq(last, &connection)) {
            touched.push_back(connection);
        }
    });
}

/// Records bytes that were appended to any connection.
pub(crate) fn note_appended(bytes: usize) {
    note_appended_shared(bytes);
    note_shared(bytes);
}

/// Records appended bytes that other connections send too.
pub(crate) fn note_appended_shared(bytes: usize) {
    APPENDED_BYTES.set(APPENDED_BYTES.get().saturating_add(bytes));
}

/// Records bytes that any number of connections will send.
pub(crate) fn note_shared(bytes: usize) {
    HELD_BYTES.set(HELD_BYTES.get().saturating_add(bytes));
}

/// Records bytes that a socket has taken.
pub(crate) fn note_sent(bytes: usize) {
    SENT_BYTES.set(SENT_BYTES.get().wrapping_add(bytes));
}

/// Flushes the connections that this thread touched, many of them in portions. Call it after each input (bytes, a
/// timer, a command). Needs a tokio context.
pub fn uncork() {
    let is_few = TOUCHED.with_borrow_mut(|touched| {
        let is_few = touched.len() <= FEW_MAX;
        if !is_few {
            DEFERRED.with_borrow_mut(|deferred| deferred.append(touched));
            if DEFERRED_SINCE.get().is_none() {
                DEFERRED_SINCE.set(Some(Instant::now()));
            }
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
        tokio::spawn(flush_on(Flusher::new(&HAS_FLUSHER)));
    }
    account::choose_if_crossed();
}

/// Flushes the touched connections if they are few, in the order in which they were touched. For a protocol whose own
/// replies may wait for what it sends to others. Needs a tokio context.
pub fn uncork_few() {
    if TOUCHED.with_borrow(VecDeque::len) <= FEW_MAX {
        flush_touched();
    }
}

/// Passes the touched connections to `taker` if they are few; returns whether they are.
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

/// Flushes all touched connections before it returns: for a thread without tasks of its own. Needs the context of some
/// runtime, which continues if a socket is full.
pub fn uncork_all() {
    flush_touched();
    flush_deferred(usize::MAX);
    account::choose_if_crossed();
}

/// Bytes that this thread holds for its appends; shared ones count once.
pub(crate) fn held_bytes() -> usize {
    HELD_BYTES.get()
}

/// Whether [`relieve`] would flush. A caller that holds a lock asks first.
pub fn is_much_appended() -> bool {
    HELD_BYTES.get() > HELD_BYTES_MAX
}

/// Bytes that this thread has appended since its line was last empty.
pub fn appended_bytes() -> usize {
    APPENDED_BYTES.get()
}

/// Whether this thread's line of fan-outs is so long that a publisher ends its turn, and gets its next one
/// ([`crate::Outcome::Yield`]) only after the line is sent.
pub fn is_line_long() -> bool {
    APPENDED_BYTES.get() > LINE_BYTES_MAX
}

/// Flushes everything if the current input has already appended much. Call it between the messages of an input. Needs a
/// tokio context, and no lock held.
pub fn relieve() {
    if is_much_appended() {
        uncork();
    }
}

/// Flushes so many of the deferred connections, or fewer with much to send; returns whether more are left.
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
    // The owners of mailboxes among them have appended to other connections.
    flush_touched();
    let is_more = DEFERRED.with_borrow(|deferred| !deferred.is_empty());
    if !is_more {
        APPENDED_BYTES.set(0);
        HELD_BYTES.set(0);
        if let Some(since) = DEFERRED_SINCE.take() {
            FAN_OUTS.note(since.elapsed().as_micros() as u64);
        }
    } else if let Some(since) = DEFERRED_SINCE.get() {
        note_lasting(since);
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

/// Marks that a task of this thread flushes; dropped with the task, also if its runtime drops it.
pub(crate) struct Flusher(&'static LocalKey<Cell<bool>>);

impl Flusher {
    pub(crate) fn new(has_flusher: &'static LocalKey<Cell<bool>>) -> Self {
        has_flusher.set(true);
        Self(has_flusher)
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
