//! How a serving thread waits for input: it blocks, or looks for input for a while before it does.
//!
//! A runtime with a task that yields asks the kernel for events without waiting. So a wait spins by such a task, and
//! inputs of all connections, wake-ups by other threads and new connections are seen at once as ever. The
//! [`controller`] decides, from what the runtime's hook before a wait and the first read after it tell. At most one
//! thread of the process spins: two that share a core are slower than none.

mod conditions;
mod controller;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::Connection;
use crate::balance::Thread;
use controller::{Controller, Plan};

/// How the serving threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Spins while that pays, for at most this share of one core, in per cent over 100 ms. 0 never spins.
    Adaptive(u8),
    /// The first thread spins for so long after each input, whether it pays or not.
    Always(Duration),
}

impl Waiting {
    /// Of a sequential call over two cores, four fifths are waits. A peer that times its messages to keep a thread
    /// spinning gets no more than this.
    pub const BUDGET_PERCENT: u8 = 90;

    fn policy(self) -> Option<Policy> {
        match self {
            Self::Adaptive(0) => None,
            Self::Adaptive(percent) => Some(Policy::Adaptive(Box::new(Controller::new(percent)))),
            Self::Always(limit) if limit.is_zero() => None,
            Self::Always(limit) => Some(Policy::Always(limit.as_nanos() as u64)),
        }
    }
}

/// The spins of all threads since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spins {
    /// Time spent.
    pub spun: Duration,
    /// Those that an input ended.
    pub hits: u64,
    /// Those after which the thread blocked.
    pub misses: u64,
}

impl Spins {
    /// The totals at this moment.
    pub fn total() -> Self {
        Self {
            spun: Duration::from_nanos(SPUN_NS.load(Ordering::Relaxed)),
            hits: HITS.load(Ordering::Relaxed),
            misses: MISSES.load(Ordering::Relaxed),
        }
    }
}

static SPUN_NS: AtomicU64 = AtomicU64::new(0);
static HITS: AtomicU64 = AtomicU64::new(0);
static MISSES: AtomicU64 = AtomicU64::new(0);

/// Whether some thread of the process spins.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    static WAITER: RefCell<Option<Waiter>> = const { RefCell::new(None) };
    /// The connection of the last input, if a wait has not begun since.
    static LAST: Cell<Option<i32>> = const { Cell::new(None) };
    /// Whether the next input ends a wait whose length counts.
    static IS_WAITING: Cell<bool> = const { Cell::new(false) };
}

struct Waiter {
    policy: Policy,
    thread: Arc<Thread>,
    started: Instant,
    spin: Option<Spin>,
    /// The waker of [`spin`].
    spinner: Option<Waker>,
    /// Waits that are not looked at: of a thread that may not spin, reading the clock would be a cost.
    unmeasured: u32,
}

enum Policy {
    Adaptive(Box<Controller>),
    Always(u64),
}

/// The waits of a thread that may not spin until it asks again whether it may.
const UNMEASURED: u32 = 64;

struct Spin {
    since: u64,
    until: u64,
    _token: Token,
}

/// The right of one thread to spin.
struct Token;

impl Token {
    fn take() -> Option<Self> {
        // Mostly free; a thread that finds it taken does not wait for it.
        let is_free = !IS_TAKEN.load(Ordering::Relaxed) && !IS_TAKEN.swap(true, Ordering::Acquire);
        is_free.then_some(Self)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        IS_TAKEN.store(false, Ordering::Release);
    }
}

/// Prepares the calling thread; returns the task that spins.
pub(crate) fn prepare(
    waiting: Waiting,
    thread: Arc<Thread>,
) -> Option<impl Future<Output = ()> + Send + 'static> {
    let policy = waiting.policy()?;
    WAITER.set(Some(Waiter {
        policy,
        thread,
        started: Instant::now(),
        spin: None,
        spinner: None,
        unmeasured: 0,
    }));
    Some(spin())
}

/// Records an input of this thread, before it is handled.
#[inline]
pub(crate) fn note_input(descriptor: i32) {
    LAST.set(Some(descriptor));
    if IS_WAITING.take() {
        WAITER.with_borrow_mut(|waiter| waiter.iter_mut().for_each(Waiter::note_input));
    }
}

/// Says that nothing soon follows the connection's present input: pings and pongs of idle sessions. If that was the thread's
/// last input, the wait behind it does not spin, and its length is not learned.
#[cold]
pub fn expect_none(connection: &Connection) {
    if let Ok(socket) = connection.socket() {
        expect_none_of(socket.as_raw_fd());
    }
}

fn expect_none_of(descriptor: i32) {
    if LAST.get() == Some(descriptor) {
        LAST.set(None);
    }
}

/// The hook of a runtime that has nothing to do. Only a wait behind an input may spin: a thread that was woken for
/// something else, or has just spun in vain, blocks.
pub(crate) fn before_wait() {
    if let Some(last) = LAST.take() {
        WAITER.with_borrow_mut(|waiter| waiter.iter_mut().for_each(|waiter| waiter.wait(last)));
    }
}

async fn spin() {
    loop {
        poll_fn(|context| {
            WAITER.with_borrow_mut(|waiter| match waiter {
                Some(waiter) if waiter.spin.is_none() => {
                    waiter.spinner = Some(context.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            })
        })
        .await;
        while WAITER.with_borrow_mut(|waiter| waiter.as_mut().is_some_and(Waiter::goes_on)) {
            tokio::task::yield_now().await;
        }
    }
}

impl Waiter {
    fn wait(&mut self, last: i32) {
        if let Some(left) = self.unmeasured.checked_sub(1) {
            self.unmeasured = left;
            return;
        }
        let now = self.now();
        let limit = match &mut self.policy {
            Policy::Always(limit) => *limit,
            Policy::Adaptive(controller) => {
                let connection = last.unsigned_abs() as usize;
                let mut plan = controller.plan(now, connection);
                if plan == Plan::Look {
                    controller.note_conditions(now, conditions::read(now));
                    plan = controller.plan(now, connection);
                }
                if controller.is_pausing(now) {
                    self.unmeasured = UNMEASURED;
                    return;
                }
                IS_WAITING.set(true);
                match plan {
                    Plan::Spin(limit) => limit,
                    Plan::Block | Plan::Look => return,
                }
            }
        };
        let (Some(token), Some(spinner)) = (Token::take(), &self.spinner) else {
            return;
        };
        if let Policy::Adaptive(controller) = &mut self.policy {
            controller.note_spinning();
        }
        IS_WAITING.set(true);
        self.spin = Some(Spin {
            since: now,
            until: now + limit,
            _token: token,
        });
        spinner.wake_by_ref();
    }

    fn note_input(&mut self) {
        let now = self.now();
        if let Policy::Adaptive(controller) = &mut self.policy {
            controller.note_input(now);
        }
        if let Some(spin) = self.spin.take() {
            self.note_spun(now, spin.since);
            HITS.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the spin goes on.
    fn goes_on(&mut self) -> bool {
        let now = self.now();
        let Some(spin) = &self.spin else { return false };
        if now < spin.until {
            return true;
        }
        let since = spin.since;
        self.spin = None;
        if let Policy::Adaptive(controller) = &mut self.policy {
            controller.note_missed(now);
        }
        self.note_spun(now, since);
        MISSES.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn note_spun(&self, now: u64, since: u64) {
        let spun = now.saturating_sub(since);
        SPUN_NS.fetch_add(spun, Ordering::Relaxed);
        self.thread.note_spun(spun);
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}
