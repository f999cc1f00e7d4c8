//! A vhost with its lock, its clock and its way to the store.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crosstie_queues::{ConnectionKey, Position, QueueId, Record, Time, Vhost};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;

use super::backlog::Backlog;
use super::flow::{FlowControl, Journaled, Published};
use super::outbox::VhostOutbox;
use super::peer::Peer;
use super::replicated::Journal;
use super::shared::Shared;
use super::turn::Turn;
use crate::timer::Timer;

/// One vhost, which any thread may enter.
///
/// The receivers' bytes are appended to their queues, and the records handed to the store, under
/// the lock: that gives both their order over all threads. System calls happen outside it.
pub(crate) struct SharedVhost {
    pub(super) name: Arc<str>,
    vhost: Mutex<Vhost<Arc<Peer>>>,
    pub(super) shared: Arc<Shared>,
    keeper: Keeper,
    /// Bytes of its messages, as the flow control knows them. Written under the lock.
    pub(super) memory_bytes: AtomicUsize,
    pub(super) backlog: Backlog,
    clock: Clock,
    stopped: AtomicBool,
    /// In the vhost's time.
    timer: Timer,
}

/// Who keeps a vhost's journal.
pub(crate) enum Keeper {
    /// The router's store.
    Local,
    /// A log that several nodes share.
    Replicated {
        journal: Arc<Journal>,
        /// Of this vhost's publishers alone.
        flow: FlowControl,
    },
}

impl Keeper {
    pub(super) fn replicated(journal: &Arc<Journal>, waiting_bytes_max: usize) -> Self {
        Self::Replicated {
            journal: Arc::clone(journal),
            flow: FlowControl::of_a_log(waiting_bytes_max),
        }
    }
}

/// The vhost's time: the wall clock's at the start, and goes on evenly from there.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    start_ms: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let start_ms = since.map_or(0, |since| since.as_millis() as u64);
        Self {
            start: Instant::now(),
            start_ms,
        }
    }

    pub(crate) fn time(&self, at: Instant) -> Time {
        let elapsed = at.saturating_duration_since(self.start);
        Time(self.start_ms + elapsed.as_millis() as u64)
    }

    fn instant(&self, Time(at_ms): Time) -> Instant {
        self.start + Duration::from_millis(at_ms.saturating_sub(self.start_ms))
    }
}

impl SharedVhost {
    pub(crate) fn new(
        name: Arc<str>,
        vhost: Vhost<Arc<Peer>>,
        clock: Clock,
        shared: Arc<Shared>,
        thread: Handle,
        keeper: Keeper,
    ) -> Self {
        let memory_bytes = vhost.memory_bytes();
        shared.flow.memory_changed(0, memory_bytes);
        shared.flow.judge_memory();
        let next = vhost.next_timeout().map_or(Timer::NEVER, |time| time.0);
        Self {
            name,
            vhost: Mutex::new(vhost),
            shared,
            keeper,
            memory_bytes: AtomicUsize::new(memory_bytes),
            backlog: Backlog::new(thread),
            clock,
            stopped: AtomicBool::new(false),
            timer: Timer::new(next),
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// A turn here, which its caller finishes.
    pub(crate) fn turn(self: &Arc<Self>, now: Instant) -> Turn<'_> {
        Turn::new(self, now, self.clock.time(now))
    }

    /// For [`Turn`], and for code that only looks: no more is done under it than a turn's worth.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vhost<Arc<Peer>>> {
        self.vhost.lock()
    }

    /// Hands to the store what happened before anybody was connected. Needs a tokio context.
    pub(crate) fn settle(self: &Arc<Self>) {
        let mut turn = self.turn(Instant::now());
        turn.enter();
        turn.finish();
    }

    /// Hands records over, up to and with `position`; under the lock. Returns the bytes that wait.
    pub(super) fn submit(&self, records: Vec<Record>, position: Position) -> usize {
        match &self.keeper {
            Keeper::Local => self.shared.submit(&self.name, records, position),
            Keeper::Replicated { journal, .. } => journal.submit(records, position),
        }
    }

    /// So many bytes wait to be kept: publishers are held back where that is too much.
    pub(super) fn judge_waiting(&self, waiting: usize) {
        match &self.keeper {
            Keeper::Local => {
                let shared = &self.shared;
                shared
                    .flow
                    .store_waits(waiting, || shared.store_waiting_bytes());
            }
            Keeper::Replicated { journal, flow } => {
                flow.store_waits(waiting, || journal.waiting_bytes());
            }
        }
    }

    /// Holds a peer back, if what its input brought is too much now.
    pub(super) fn judge(&self, peer: &Arc<Peer>, published: Published) {
        let flow = &self.shared.flow;
        match &self.keeper {
            Keeper::Local => flow.judge(peer, published),
            Keeper::Replicated { flow: own, .. } => {
                own.judge(peer, published);
                // The router's store has nothing of it.
                flow.judge(
                    peer,
                    Published {
                        journaled: Journaled::Nothing,
                        ..published
                    },
                );
            }
        }
    }

    /// The vhost's log has acknowledged something, and so many bytes wait.
    pub(super) fn log_goes_on(&self, waiting_bytes: usize) {
        if let Keeper::Replicated { flow, .. } = &self.keeper {
            flow.store_wrote(waiting_bytes);
        }
    }

    /// The vhost's log acknowledges nothing; whether it did before.
    pub(super) fn log_stalls(&self) -> bool {
        match &self.keeper {
            Keeper::Local => false,
            Keeper::Replicated { flow, .. } => flow.store_failed(),
        }
    }

    /// Nobody is held back for the log any more.
    pub(super) fn let_go(&self) {
        if let Keeper::Replicated { flow, .. } = &self.keeper {
            flow.let_go();
        }
    }

    /// A peer's socket takes bytes again.
    pub(crate) fn resume(self: &Arc<Self>, connection: ConnectionKey) {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        vhost.resume(now, connection, outbox);
        turn.finish();
    }

    /// The store has written everything up to `position`, or could not.
    pub(crate) fn handle_commit(self: &Arc<Self>, position: Position, is_committed: bool) {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        match is_committed {
            true => vhost.handle_committed(position, outbox),
            false => vhost.handle_not_committed(now, position, outbox),
        }
        turn.finish();
    }

    /// Does what is due, until the vhost is stopped. One task runs this.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        while !self.stopped.load(Ordering::Relaxed) {
            if !self.timer.wait(|at| self.clock.instant(Time(at))).await {
                continue;
            }
            self.handle_timeout();
            crosstie_transport::uncork();
            // Where more is due already, this thread's others come first.
            tokio::task::yield_now().await;
        }
    }

    /// Ends the timer's task.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.timer.wake();
    }

    fn handle_timeout(self: &Arc<Self>) {
        // A timer is early by up to a millisecond, by which nothing would be due.
        let at = Instant::now();
        let now = self.clock.time(at + Duration::from_millis(1));
        let mut turn = Turn::new(self, at, now);
        let (vhost, now, outbox) = turn.enter();
        vhost.handle_timeout(now, outbox);
        let next = vhost.next_timeout().map_or(Timer::NEVER, |time| time.0);
        self.timer.set(next);
        turn.spend();
        turn.finish();
    }

    /// Ends the vhost in good order, and hands over all that is to be kept. Returns the place in each queue
    /// from which on messages were never delivered.
    pub(super) fn rest(&self) -> Vec<(QueueId, i64)> {
        self.stop();
        let mut outbox = VhostOutbox::default();
        let mut rested = Vec::new();
        {
            let mut vhost = self.vhost.lock();
            vhost.rest(self.clock.time(Instant::now()), &mut outbox);
            let journal = vhost.journal();
            let mut records = mem::take(&mut journal.records);
            for record in &records {
                if let Record::Rested { queue, fresh_from } = record {
                    rested.push((*queue, *fresh_from));
                }
            }
            if let Keeper::Replicated { .. } = self.keeper {
                // The log's last entry says it.
                records.retain(|record| !matches!(record, Record::Rested { .. }));
            }
            self.submit(records, journal.position);
        }
        outbox.settle();
        rested
    }

    /// Sees to it that the timer looks no later than `next`.
    pub(super) fn arm(&self, next: Option<Time>) {
        if let Some(Time(next)) = next {
            self.timer.arm(next);
        }
    }
}

impl Drop for SharedVhost {
    fn drop(&mut self) {
        let memory_bytes = *self.memory_bytes.get_mut();
        self.shared.flow.memory_changed(memory_bytes, 0);
        self.shared.flow.judge_memory();
    }
}
