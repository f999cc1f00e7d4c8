//! The choice of the thread that serves a connection: the first one, until that is busy.
//!
//! A message between connections of two threads wakes both. Between connections of one thread it wakes that one, which
//! often finds the next input before it sleeps. On one core a sequential call costs 1.4 times the floor's if caller and
//! callee are on two threads, and 1.1 times if they share one. Few sessions therefore share a thread. When that becomes
//! busy, its active connections are shared with the idlest thread; when all threads together have little to do, the
//! first one takes the connections back.
//!
//! A thread does not know which of its connections are active. Each connection that has an input after the request
//! decides for itself; connections without input cost nothing wherever they are.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::clock;
use crate::schedstat::Schedstat;

/// The interval at which the threads' processor times are read.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// If all threads run for less than this, the next look is with the other work of an idle process, once a second.
const CALM: f64 = 0.01;

/// A thread that runs for more than this share of the time gives connections away.
const BUSY: f64 = 0.75;
/// A thread receives connections only if its share is lower by this much; otherwise it would give them back.
const APART: f64 = 0.4;
/// If all threads together run for less than this, one thread is enough. With all connections, that thread must not
/// look busy.
const LITTLE: f64 = 0.5;
/// A thread is busy after this many busy looks in a row.
const LOOKS_BUSY: u32 = 2;
const LOOKS_LITTLE: u32 = 8;
/// A request shows its effect only after this many looks.
const LOOKS_TO_SETTLE: u32 = 4;

/// The state of a set of serving threads.
#[derive(Debug)]
pub(crate) struct Threads {
    threads: Box<[Arc<Thread>]>,
}

/// One thread.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// The system's thread id; 0 before the thread runs.
    id: AtomicI32,
    /// Connections that were assigned to it and have not started.
    waiting: AtomicU32,
    /// Per cent of the recent time that it ran.
    share: AtomicU32,
    /// Nanoseconds for which it only looked for input.
    spun_ns: AtomicU64,
    /// The request to its connections: number, [`ALL`], [`WITHDRAWN`], and in the upper half the thread to move to.
    request: AtomicU32,
}

const ALL: u32 = 1 << 8;
const WITHDRAWN: u32 = 1 << 9;

/// A request to a thread's connections to move to another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    from: usize,
    to: usize,
    /// Every connection, or every other one.
    all: bool,
}

thread_local! {
    static HERE: RefCell<Option<Arc<Thread>>> = const { RefCell::new(None) };
    /// Whether the connection that decided last stayed.
    static STAYED: Cell<bool> = const { Cell::new(false) };
}

impl Threads {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            threads: (0..count).map(|_| Arc::default()).collect(),
        }
    }

    pub(crate) fn thread(&self, index: usize) -> Arc<Thread> {
        Arc::clone(&self.threads[index])
    }

    /// The thread for a new connection: the first one that is not busy, unless others wait there to start. Counts the
    /// connection as waiting there.
    pub(crate) fn deal(&self) -> usize {
        let rank = |index: &usize| {
            let thread = &self.threads[*index];
            let is_busy = f64::from(thread.share.load(Ordering::Relaxed)) >= BUSY * 100.0;
            (is_busy, thread.waiting.load(Ordering::Relaxed), *index)
        };
        let index = (0..self.threads.len()).min_by_key(rank).unwrap_or_default();
        self.threads[index].waiting.fetch_add(1, Ordering::Relaxed);
        index
    }

    /// Reads the threads' times forever, and asks busy threads to share their connections.
    pub(crate) async fn keep_balanced(self: Arc<Self>) {
        let mut files: Vec<_> = self.threads.iter().map(|_| None).collect();
        let mut looked_at = Instant::now();
        let mut before = self.processor_times(&mut files);
        let mut planner = Planner::default();
        let mut is_calm = false;
        loop {
            match is_calm {
                true => clock::next_second().await,
                false => clock::next(LOOK_EVERY).await,
            }
            let now = Instant::now();
            let passed = now.duration_since(looked_at);
            // A share of a short time behind a late look says little.
            if passed < LOOK_EVERY / 2 {
                continue;
            }
            let times = self.processor_times(&mut files);
            let shares: Vec<_> = times
                .iter()
                .zip(&before)
                .map(|(now, before)| now.saturating_sub(*before).div_duration_f64(passed))
                .collect();
            for (thread, share) in self.threads.iter().zip(&shares) {
                thread
                    .share
                    .store((share * 100.0) as u32, Ordering::Relaxed);
            }
            match planner.plan(&shares) {
                Some(request) => self.threads[request.from].ask(request),
                None if planner.is_settling() => {}
                None => self.threads.iter().for_each(|thread| thread.withdraw()),
            }
            is_calm = !planner.is_settling() && shares.iter().all(|share| *share < CALM);
            (looked_at, before) = (now, times);
        }
    }

    /// Asks every other active connection of a thread to move to another.
    #[cfg(test)]
    pub(crate) fn ask(&self, from: usize, to: usize) {
        let all = false;
        self.threads[from].ask(Request { from, to, all });
    }

    /// The processor time of each thread; zero if the system does not provide it.
    fn processor_times(&self, files: &mut [Option<Schedstat>]) -> Vec<Duration> {
        let threads = self.threads.iter().zip(files);
        let times = threads.map(|(thread, file)| thread.processor_time(file));
        times.map(Option::unwrap_or_default).collect()
    }
}

impl Thread {
    /// Marks the calling thread as this one.
    pub(crate) fn enter(self: Arc<Self>) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.id.store(id, Ordering::Relaxed);
        HERE.set(Some(self));
    }

    /// Records that an assigned connection has started.
    pub(crate) fn note_begun(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records time for which it only looked for input.
    pub(crate) fn note_spun(&self, nanoseconds: u64) {
        self.spun_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The time for which it worked, from the system's file, which is opened once.
    fn processor_time(&self, file: &mut Option<Schedstat>) -> Option<Duration> {
        if file.is_none() {
            *file = Schedstat::of_thread(self.id.load(Ordering::Relaxed));
        }
        let nanoseconds = file.as_ref()?.read()?.ran_ns;
        let spun = self.spun_ns.load(Ordering::Relaxed);
        Some(Duration::from_nanos(nanoseconds.saturating_sub(spun)))
    }

    /// Withdraws the request: connections that have not answered stay.
    fn withdraw(&self) {
        self.request.fetch_or(WITHDRAWN, Ordering::Relaxed);
    }

    fn ask(&self, request: Request) {
        let number = (self.request.load(Ordering::Relaxed) as u8).wrapping_add(1);
        let number = if number == 0 { 1 } else { number };
        let all = if request.all { ALL } else { 0 };
        let packed = u32::from(number) | all | (request.to as u32 & 0xffff) << 16;
        self.request.store(packed, Ordering::Relaxed);
    }
}

/// The number of the last request to this thread's connections; a new connection does not answer it.
#[inline]
pub(crate) fn request_number() -> u8 {
    request() as u8
}

#[inline]
fn request() -> u32 {
    HERE.with_borrow(|here| match here {
        Some(thread) => thread.request.load(Ordering::Relaxed),
        None => 0,
    })
}

/// Answers for one connection: the number of the request, and the thread to move to, if any.
#[cold]
pub(crate) fn answer() -> (u8, Option<usize>) {
    let request = request();
    if request & WITHDRAWN != 0 {
        return (request as u8, None);
    }
    let (all, to) = (request & ALL != 0, (request >> 16) as usize);
    // The first one stays: a single connection that keeps a thread busy would do the same to the next.
    let stays = !all && !STAYED.get();
    STAYED.set(stays);
    (request as u8, (!stays).then_some(to))
}

/// Decides from the threads' shares of the time, look by look.
#[derive(Debug, Default)]
struct Planner {
    busy_looks: u32,
    little_looks: u32,
    settling_looks: u32,
}

impl Planner {
    fn plan(&mut self, shares: &[f64]) -> Option<Request> {
        let by_share = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
        let indexed = || shares.iter().copied().enumerate();
        let (from, most) = indexed().max_by(by_share)?;
        let (to, least) = indexed().min_by(by_share)?;
        let is_busy = most >= BUSY && most - least >= APART;
        let sum: f64 = shares.iter().sum();
        self.busy_looks = if is_busy { self.busy_looks + 1 } else { 0 };
        self.little_looks = if sum < LITTLE {
            self.little_looks + 1
        } else {
            0
        };
        self.settling_looks = self.settling_looks.saturating_sub(1);
        if self.settling_looks > 0 {
            return None;
        }
        if self.busy_looks >= LOOKS_BUSY {
            *self = Self::settling();
            return Some(Request {
                from,
                to,
                all: false,
            });
        }
        let others = indexed().skip(1);
        let (from, share) = others.max_by(by_share)?;
        if self.little_looks >= LOOKS_LITTLE && share > 0.0 {
            // One thread at a time, but the next without waiting.
            self.settling_looks = LOOKS_TO_SETTLE;
            return Some(Request {
                from,
                to: 0,
                all: true,
            });
        }
        None
    }

    fn is_settling(&self) -> bool {
        self.settling_looks > 0
    }

    fn settling() -> Self {
        Self {
            settling_looks: LOOKS_TO_SETTLE,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plans with the same shares for so many looks; returns the requests by look.
    fn planned(looks: &[(usize, &[f64])]) -> Vec<(usize, Request)> {
        let mut planner = Planner::default();
        let looks = looks
            .iter()
            .flat_map(|(count, shares)| vec![shares; *count]);
        looks
            .enumerate()
            .filter_map(|(at, shares)| planner.plan(shares).map(|request| (at, request)))
            .collect()
    }

    const fn half(from: usize, to: usize) -> Request {
        Request {
            from,
            to,
            all: false,
        }
    }

    const fn all(from: usize) -> Request {
        Request {
            from,
            to: 0,
            all: true,
        }
    }

    #[test]
    fn a_busy_thread_shares_with_the_idlest() {
        let busy: &[f64] = &[0.98, 0.3, 0.1];
        assert_eq!(planned(&[(4, busy)]), [(1, half(0, 2))]);
        // Not before the request shows its effect, and again if it did not help.
        assert_eq!(planned(&[(6, busy)]), [(1, half(0, 2)), (5, half(0, 2))]);
        // One busy look is not enough.
        assert_eq!(planned(&[(1, busy), (1, &[0.2, 0.3, 0.1]), (1, busy)]), []);
    }

    #[test]
    fn busy_threads_alone_keep_their_connections() {
        assert_eq!(planned(&[(20, &[0.9, 0.8])]), []);
        assert_eq!(planned(&[(20, &[0.7, 0.0])]), []);
    }

    #[test]
    fn the_first_thread_takes_back_little_work() {
        assert_eq!(planned(&[(9, &[0.1, 0.2, 0.1])]), [(7, all(1))]);
        assert_eq!(planned(&[(20, &[0.2, 0.0])]), []);
        assert_eq!(planned(&[(20, &[0.0, 0.0])]), []);
    }

    #[test]
    fn a_single_thread_never_shares() {
        assert_eq!(planned(&[(20, &[1.0])]), []);
        assert_eq!(planned(&[(20, &[0.1])]), []);
    }

    #[test]
    fn every_other_connection_moves_and_the_first_stays() {
        let thread = Threads::new(3).thread(1);
        Arc::clone(&thread).enter();
        assert_eq!(request_number(), 0);
        thread.ask(half(1, 2));
        assert_eq!(request_number(), 1);
        let answers: Vec<_> = (0..4).map(|_| answer()).collect();
        assert_eq!(answers, [(1, None), (1, Some(2)), (1, None), (1, Some(2))]);
        thread.ask(all(1));
        assert_eq!(answer(), (2, Some(0)));
        assert_eq!(answer(), (2, Some(0)));
        thread.withdraw();
        assert_eq!(answer(), (2, None));
    }

    #[test]
    fn connections_go_to_the_first_thread_until_it_is_busy() {
        let threads = Threads::new(2);
        assert_eq!(threads.deal(), 0);
        // One connection waits there, so a burst is shared.
        assert_eq!(threads.deal(), 1);
        threads.thread(0).note_begun();
        assert_eq!(threads.deal(), 0);
        threads.thread(0).note_begun();
        threads.thread(0).share.store(90, Ordering::Relaxed);
        assert_eq!(threads.deal(), 1);
    }
}
