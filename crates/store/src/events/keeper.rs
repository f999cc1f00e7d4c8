//! The thread of a realm's events: its queue of work, and its reports.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crosstie_routing::{
    Acknowledgement, Recall, Recalled, Recorded, RetainedEvent, SessionKey, Unrecorded,
};

use super::recall::RecallTurns;
use super::retained::Changes;
use super::store::{Committed, EventStore};
use crate::StoreError;

/// An event store on a thread of its own. Dropping it writes all pending events, as [`EventKeeper::stop`] does.
pub struct EventKeeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<bool>>>,
}

/// Receives the reports of the thread; called from that thread, except [`EventOwner::hold`].
pub trait EventOwner: Send + Sync {
    /// Everything recorded before these is stored, or has failed and will be retried.
    fn stored(&self, acknowledgements: Vec<Acknowledgement>, outcome: Result<(), &StoreError>);

    /// A question is answered.
    fn recalled(&self, recalled: Recalled);

    /// The present number of events and bytes in the store, and the number evicted for want of room.
    fn counted(&self, counts: (u64, u64), evicted: u64);

    /// Nothing can be written, or can again.
    fn failed(&self, error: Option<&StoreError>);

    /// The present bytes that wait for the thread.
    fn hold(&self, bytes: usize);

    /// The thread ends, with that many events not stored.
    fn lost(&self, events: usize);
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    owner: Arc<dyn EventOwner>,
    bytes_max: usize,
}

#[derive(Default)]
struct State {
    events: Vec<(usize, Recorded)>,
    /// Of those, and of those that the thread has taken and not stored.
    bytes: usize,
    retained: Changes,
    /// Of changes that the thread has taken and not stored.
    retained_bytes: usize,
    acknowledgements: Vec<Acknowledgement>,
    recalls: Vec<Recall>,
    /// The sessions with open questions, once for each question.
    askers: Vec<SessionKey>,
    is_asleep: bool,
    is_stopping: bool,
}

/// Time for which events gather if no publisher waits, unless they reach a size.
const GATHERING: Duration = Duration::from_millis(100);
const GATHERED_BYTES: usize = 1 << 20;

const RETRY: Duration = Duration::from_secs(1);

/// How often events that are too old are looked for.
const TIDYING: Duration = Duration::from_secs(10);

/// Questions that wait, of all sessions and of one.
const RECALLS_MAX: usize = 1_024;
const SESSION_RECALLS_MAX: usize = 16;

/// Maximum number of publishers that are answered at once.
const TOLD_MAX: usize = 64;

/// The work that the thread has taken.
#[derive(Default)]
struct Work {
    events: Vec<(usize, Recorded)>,
    retained: Changes,
    acknowledgements: Vec<Acknowledgement>,
    recalls: VecDeque<RecallTurns>,
    failed: Option<Instant>,
    has_more: bool,
    tidied: Option<Instant>,
}

impl Work {
    fn is_done(&self) -> bool {
        self.events.is_empty() && self.retained.is_empty()
    }
}

impl EventKeeper {
    /// `bytes_max` bounds the events that wait for the thread.
    pub fn start(
        store: EventStore,
        bytes_max: usize,
        owner: Arc<dyn EventOwner>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            owner,
            bytes_max,
        });
        shared.owner.counted(store.counts(), 0);
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || of_thread.run(store))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Hands an event over. Never waits for the disk.
    pub fn record(&self, log: usize, event: Recorded) -> Result<(), Unrecorded> {
        let bytes = event.bytes();
        let mut state = self.shared.lock();
        if state.is_stopping || state.bytes + bytes > self.shared.bytes_max {
            return Err(Unrecorded);
        }
        state.bytes += bytes;
        self.shared.hold(&state);
        state.events.push((log, event));
        // The first begins to gather others; when they are enough the thread need not wait for more.
        if state.events.len() == 1 || state.bytes >= GATHERED_BYTES {
            self.shared.wake(&mut state);
        }
        Ok(())
    }

    /// Has a retained event kept. Nothing is refused: there are no more of them than the realm retains.
    pub fn retain(&self, event: RetainedEvent) {
        let mut state = self.shared.lock();
        state.retained.retain(event);
        self.shared.changed(&mut state);
    }

    /// Has a retained event forgotten.
    pub fn forget_retained(&self, number: u64) {
        let mut state = self.shared.lock();
        state.retained.forget(number);
        self.shared.changed(&mut state);
    }

    /// Has that publisher told when all is stored that was recorded before.
    pub fn acknowledge(&self, acknowledgement: Acknowledgement) {
        let mut state = self.shared.lock();
        state.acknowledgements.push(acknowledgement);
        self.shared.wake(&mut state);
    }

    /// Queues a question; the error says that too many wait.
    pub fn recall(&self, recall: Recall) -> Result<(), &'static str> {
        let mut state = self.shared.lock();
        if state.is_stopping {
            return Err("the realm is being stopped");
        }
        if state.askers.len() >= RECALLS_MAX {
            return Err("too many questions wait for the store");
        }
        let asker = recall.asker();
        let own = state.askers.iter().filter(|known| **known == asker);
        if own.count() >= SESSION_RECALLS_MAX {
            return Err("too many questions of this session wait for the store");
        }
        state.askers.push(asker);
        state.recalls.push(recall);
        self.shared.wake(&mut state);
        Ok(())
    }

    /// Writes all pending events, and ends the thread; returns whether all could be written.
    pub fn stop(&self) -> bool {
        {
            let mut state = self.shared.lock();
            state.is_stopping = true;
            self.shared.wake(&mut state);
        }
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        match thread.take() {
            // A panic has been reported already.
            Some(thread) if thread.thread().id() != thread::current().id() => {
                thread.join().unwrap_or(false)
            }
            _ => true,
        }
    }
}

impl Drop for EventKeeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, state: &mut State) {
        if mem::take(&mut state.is_asleep) {
            self.wake.notify_one();
        }
    }

    /// Notes a change of the retained events.
    fn changed(&self, state: &mut State) {
        self.hold(state);
        if state.retained.len() == 1 {
            self.wake(state);
        }
    }

    fn hold(&self, state: &State) {
        let retained_bytes = state.retained.bytes() + state.retained_bytes;
        self.owner.hold(state.bytes + retained_bytes);
    }

    fn run(&self, mut store: EventStore) -> bool {
        let mut work = Work::default();
        loop {
            let is_stopping = self.take(&mut work, &store);
            self.commit(&mut work, &mut store);
            if let Some(recalling) = work.recalls.pop_front() {
                match recalling.step(&store) {
                    ControlFlow::Continue(recalling) => work.recalls.push_back(recalling),
                    ControlFlow::Break(recalled) => {
                        let asker = recalled.asker();
                        self.owner.recalled(recalled);
                        self.answered(asker);
                    }
                }
            }
            if is_stopping && work.recalls.is_empty() && self.has_ended(&work) {
                return work.is_done();
            }
        }
    }

    fn answered(&self, asker: SessionKey) {
        let askers = &mut self.lock().askers;
        if let Some(place) = askers.iter().position(|known| *known == asker) {
            askers.swap_remove(place);
        }
    }

    /// Whether nothing came meanwhile, and the last attempt was made.
    fn has_ended(&self, work: &Work) -> bool {
        let state = self.lock();
        let has_news = !(state.events.is_empty()
            && state.retained.is_empty()
            && state.acknowledgements.is_empty());
        if has_news || (work.has_more && work.failed.is_none()) {
            return false;
        }
        if !work.is_done() {
            self.owner.lost(work.events.len() + work.retained.len());
        }
        true
    }

    /// Waits for something to do, and takes it; whether it is the last.
    fn take(&self, work: &mut Work, store: &EventStore) -> bool {
        let mut state = self.lock();
        let mut gathering = None;
        loop {
            let now = Instant::now();
            let is_urgent = state.is_stopping
                || !work.recalls.is_empty()
                || !state.recalls.is_empty()
                || (work.has_more && work.failed.is_none())
                || (!state.acknowledgements.is_empty() && work.failed.is_none())
                || (state.bytes >= GATHERED_BYTES && work.failed.is_none());
            if is_urgent {
                break;
            }
            let retry = work.failed.map(|at| at + RETRY);
            if !(state.events.is_empty() && state.retained.is_empty()) {
                gathering = gathering.or(Some(now + GATHERING));
            }
            let tidied = work.tidied.filter(|_| store.has_ages());
            let tidying = tidied.map(|at| at + TIDYING);
            let due = [retry.or(gathering), tidying].into_iter().flatten().min();
            state.is_asleep = true;
            state = match due.map(|due| due.saturating_duration_since(now)) {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    let woken = self.wake.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = self.wake.wait(state);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        state.is_asleep = false;
        work.events.append(&mut state.events);
        work.retained.append(&mut state.retained);
        state.retained_bytes = work.retained.bytes();
        work.acknowledgements.append(&mut state.acknowledgements);
        let recalls = state.recalls.drain(..);
        work.recalls.extend(recalls.map(RecallTurns::new));
        state.is_stopping
    }

    fn commit(&self, work: &mut Work, store: &mut EventStore) {
        let now = Instant::now();
        let is_waiting = work.failed.is_some_and(|at| now < at + RETRY);
        let is_tidying = work.tidied.is_none_or(|at| now >= at + TIDYING);
        let has_work = !work.is_done() || work.has_more || is_tidying;
        if is_waiting && !self.lock().is_stopping {
            return;
        }
        let outcome = match has_work {
            true => store.commit(&work.events, &work.retained),
            false => Ok(Committed::default()),
        };
        work.tidied = Some(now);
        match outcome {
            Ok(Committed { evicted, has_more }) => {
                work.has_more = has_more;
                if work.failed.take().is_some() {
                    self.owner.failed(None);
                }
                if has_work {
                    let stored = work.events.iter().map(|(_, event)| event.bytes());
                    self.release(stored.sum());
                    work.events.clear();
                    work.retained = Changes::default();
                    self.owner.counted(store.counts(), evicted);
                }
                self.tell(work, Ok(()));
            }
            Err(error) => {
                if work.failed.replace(now).is_none() {
                    self.owner.failed(Some(&error));
                }
                self.tell(work, Err(&error));
            }
        }
    }

    fn release(&self, bytes: usize) {
        let mut state = self.lock();
        state.bytes -= bytes;
        state.retained_bytes = 0;
        self.hold(&state);
    }

    fn tell(&self, work: &mut Work, outcome: Result<(), &StoreError>) {
        while !work.acknowledgements.is_empty() {
            let rest = work.acknowledgements.len().min(TOLD_MAX);
            let rest = work.acknowledgements.split_off(rest);
            let told = mem::replace(&mut work.acknowledgements, rest);
            self.owner.stored(told, outcome);
        }
    }
}
