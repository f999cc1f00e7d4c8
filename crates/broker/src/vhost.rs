//! A vhost with its lock, its clock and its journal.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crosstie_front::timer::Timer;
use crosstie_metadata::LogPlace;
use crosstie_queues::{ConnectionKey, Position, QueueId, Record, StreamChange, Time, Vhost};
use crosstie_store::NotCommitted;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;

use super::backlog::Backlog;
use super::clock::Clock;
use super::commit_latency::CommitLatency;
use super::commits::Commits;
use super::flow::{FlowControl, Journaled, Published};
use super::octets::Octets;
use super::outbox::VhostOutbox;
use super::peer::Peer;
use super::phase::Phase;
use super::replicated::Journal;
use super::shared::Shared;
use super::stream_line::StreamLine;
use super::turn::Turn;
use super::unreadable::Unreadable;
use super::vhost_times::VhostTimes;

/// One vhost, which any thread may enter.
///
/// Frames are appended to the receivers' queues, and records submitted to the store, under the lock: this gives both
/// their order across threads. System calls happen outside the lock.
pub struct SharedVhost {
    pub name: Arc<str>,
    pub(super) vhost: Mutex<Vhost<Arc<Peer>>>,
    pub shared: Arc<Shared>,
    pub(super) keeper: Keeper,
    /// Bytes of its messages, as known to the flow control. Written under the lock.
    pub(super) memory_bytes: AtomicUsize,
    pub(super) backlog: Backlog,
    clock: Clock,
    stopped: AtomicBool,
    /// Messages are traced. Written under the lock.
    is_traced: AtomicBool,
    pub(super) phase: Phase,
    /// In the vhost's time.
    timer: Timer,
    /// The peers whose `basic.get` waits for a page.
    pub(super) waiting_for_pages: Mutex<Vec<Weak<Peer>>>,
    /// Queues whose next page cannot be read, with the reason.
    pub(super) unreadable: Mutex<Unreadable>,
    /// The way of its changes to the files of streams and to the store.
    pub(super) streams: StreamLine,
    pub(super) commits: Commits,
    /// Those of connections that have left it.
    pub(super) octets: Mutex<Octets>,
    latency: CommitLatency,
    /// From publications to their confirms.
    pub(super) confirm_latency: CommitLatency,
}

/// The keeper of a vhost's journal.
pub enum Keeper {
    /// The router's store.
    Local,
    /// A log shared by several nodes.
    Replicated {
        journal: Arc<Journal>,
        /// For this vhost's publishers alone.
        flow: Box<FlowControl>,
        /// The log has had settings of run time.
        has_settings: AtomicBool,
        /// Bytes of messages that its ledger has in memory.
        ledger_bytes: AtomicUsize,
        /// The beginning of this node's term.
        term: LogPlace,
    },
}

impl Keeper {
    pub(crate) fn replicated(
        journal: &Arc<Journal>,
        waiting_bytes_max: usize,
        has_settings: bool,
        term: LogPlace,
    ) -> Self {
        Self::Replicated {
            has_settings: AtomicBool::new(has_settings),
            journal: Arc::clone(journal),
            flow: Box::new(FlowControl::of_a_log(waiting_bytes_max)),
            ledger_bytes: AtomicUsize::new(0),
            term,
        }
    }
}

impl SharedVhost {
    pub fn new(
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
            is_traced: AtomicBool::new(false),
            phase: Phase::default(),
            timer: Timer::new(next),
            waiting_for_pages: Mutex::default(),
            unreadable: Mutex::default(),
            streams: StreamLine::default(),
            commits: Commits::default(),
            octets: Mutex::default(),
            latency: CommitLatency::default(),
            confirm_latency: CommitLatency::default(),
        }
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether messages are traced.
    pub fn is_traced(&self) -> bool {
        self.is_traced.load(Ordering::Relaxed)
    }

    /// Begins to trace messages, with the node's name in them, or ends that.
    pub(crate) fn set_traced(self: &Arc<Self>, node: Option<Arc<str>>) {
        let mut turn = self.turn(Instant::now());
        let (vhost, ..) = turn.enter();
        self.is_traced.store(node.is_some(), Ordering::Relaxed);
        vhost.set_traced(node);
        turn.finish();
    }

    /// The time from a record to its commit, as it was measured last.
    pub fn commit_latency(&self) -> Duration {
        self.latency.last()
    }

    /// Number of retained messages, and their bytes.
    pub fn retained_counts(&self) -> (usize, usize) {
        self.lock().retained_counts()
    }

    /// Times and sizes for the metrics.
    pub(super) fn times(&self) -> VhostTimes {
        let (queue_waits, (sizes, published)) = {
            let vhost = self.lock();
            (vhost.queue_waits(), vhost.body_sizes())
        };
        VhostTimes {
            name: Arc::clone(&self.name),
            commits: self.latency.results(),
            confirms: self.confirm_latency.results(),
            queue_waits,
            sizes,
            published,
        }
    }

    /// The beginning of this node's term in its log.
    pub(super) fn term(&self) -> LogPlace {
        match &self.keeper {
            Keeper::Local => LogPlace::default(),
            Keeper::Replicated { term, .. } => *term,
        }
    }

    /// Begins a turn, which its caller must finish.
    pub(crate) fn turn(self: &Arc<Self>, now: Instant) -> Turn<'_> {
        Turn::new(self, now, self.clock.time(now))
    }

    /// For [`Turn`], and for readers that hold the lock no longer than a turn.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vhost<Arc<Peer>>> {
        self.vhost.lock()
    }

    /// Submits records from before the first connection to the store. Needs a tokio context.
    pub(crate) fn settle(self: &Arc<Self>) {
        let mut turn = self.turn(Instant::now());
        turn.enter();
        turn.finish();
    }

    /// Submits records up to and including `position`, under the lock. Returns the bytes that wait.
    pub(super) fn submit(
        &self,
        records: Vec<Record>,
        changes: Vec<StreamChange>,
        position: Position,
    ) -> usize {
        self.latency.begin(position, Instant::now);
        match &self.keeper {
            Keeper::Local => self.submit_here(records, changes, position),
            // Its vhost has no streams.
            Keeper::Replicated { journal, .. } => journal.submit(records, position),
        }
    }

    /// Blocks publishers if too many bytes wait to be stored.
    pub(super) fn judge_waiting(&self, waiting: usize) {
        match &self.keeper {
            Keeper::Local => {
                let shared = &self.shared;
                shared
                    .flow
                    .store_waits(waiting, || shared.store_waiting_bytes());
            }
            Keeper::Replicated { journal, flow, .. } => {
                flow.store_waits(waiting, || journal.waiting_bytes());
            }
        }
    }

    /// Blocks a peer if the effects of its input exceed a bound.
    pub(super) fn judge(&self, peer: &Arc<Peer>, published: Published) {
        let flow = &self.shared.flow;
        match &self.keeper {
            Keeper::Local => flow.judge(peer, published),
            Keeper::Replicated { flow: own, .. } => {
                own.judge(peer, published);
                // The router's store holds none of it.
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

    /// The vhost's log has acknowledged entries, and that many bytes still wait.
    pub(super) fn log_goes_on(&self, waiting_bytes: usize) {
        if let Keeper::Replicated { flow, .. } = &self.keeper {
            flow.store_wrote(waiting_bytes);
        }
    }

    /// The vhost's log sends no acknowledgements. Returns whether it did before.
    pub(super) fn log_stalls(&self) -> bool {
        match &self.keeper {
            Keeper::Local => false,
            Keeper::Replicated { flow, .. } => flow.store_failed(),
        }
    }

    /// Unblocks all publishers that wait for the log.
    pub(super) fn let_go(&self) {
        if let Keeper::Replicated { flow, .. } = &self.keeper {
            flow.let_go();
        }
    }

    /// Resumes a peer with room in its output queue.
    pub(crate) fn resume(self: &Arc<Self>, connection: ConnectionKey) {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        vhost.resume(now, connection, outbox);
        turn.finish();
    }

    /// Handles the store's report that everything up to `position` is written, or could not be written.
    pub(crate) fn handle_commit(
        self: &Arc<Self>,
        position: Position,
        result: Result<(), NotCommitted<'_>>,
    ) {
        self.latency.end(position);
        let is_committed = result.is_ok();
        if is_committed {
            self.streams.note_committed(position);
        }
        let failed = result.as_ref().err().map(|failed| failed.error.to_string());
        self.commits.note(position, failed.as_deref());
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        match result {
            Ok(()) => vhost.handle_committed(position, outbox),
            Err(NotCommitted { messages, .. }) => {
                vhost.withdraw(&messages);
                vhost.handle_not_committed(now, position, outbox);
            }
        }
        turn.finish();
        match is_committed {
            true => self.confirm_latency.end(position),
            false => self.confirm_latency.give_up(position),
        }
    }

    /// Has the vhost's messages leave memory if that is crowded. The ledger of a log follows the same rule.
    #[inline]
    pub(super) fn heed_crowding(&self, vhost: &mut Vhost<Arc<Peer>>) {
        let is_crowded = self.shared.flow.is_crowded();
        if vhost.is_crowded() != is_crowded {
            vhost.set_crowded(is_crowded);
        }
    }

    /// The work of each second, for a vhost that may be at rest. Needs a tokio context.
    pub(super) fn look_after(self: &Arc<Self>) {
        self.read_again();
        let is_crowded = self.lock().is_crowded();
        if is_crowded != self.shared.flow.is_crowded() {
            self.settle();
        }
    }

    /// Runs the vhost's timers until it is stopped. Exactly one task runs this.
    pub async fn keep_time(self: Arc<Self>) {
        while !self.stopped.load(Ordering::Relaxed) {
            if !self.timer.wait(|at| self.clock.wake_at(Time(at))).await {
                continue;
            }
            self.handle_timeout();
            crosstie_transport::uncork();
            // Other tasks of this thread run before the next due work.
            tokio::task::yield_now().await;
        }
    }

    /// Whether the node has lost the vhost.
    pub(crate) fn is_over(&self) -> bool {
        let is_journal_over = match &self.keeper {
            Keeper::Local => false,
            Keeper::Replicated { journal, .. } => journal.is_over(),
        };
        is_journal_over || self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the timer's task.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.timer.wake();
    }

    fn handle_timeout(self: &Arc<Self>) {
        let at = Instant::now();
        let mut turn = Turn::new(self, at, self.clock.due_by(at));
        let (vhost, now, outbox) = turn.enter();
        vhost.handle_timeout(now, outbox);
        let next = vhost.next_timeout().map_or(Timer::NEVER, |time| time.0);
        self.timer.set(next);
        turn.spend();
        turn.finish();
    }

    /// Stops the vhost in order and submits all records. Returns for each queue the position from which on messages
    /// were never delivered.
    pub fn rest(&self) -> Vec<(QueueId, i64)> {
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
                // The log's last entry records this.
                records.retain(|record| !matches!(record, Record::Rested { .. }));
            }
            let changes = mem::take(&mut journal.streams);
            self.submit(records, changes, journal.position);
        }
        outbox.settle();
        rested
    }

    /// Sets the timer to fire no later than `next`.
    pub(super) fn arm(&self, next: Option<Time>) {
        if let Some(Time(next)) = next {
            self.timer.arm(next);
        }
    }
}

impl Drop for SharedVhost {
    fn drop(&mut self) {
        let memory_bytes = *self.memory_bytes.get_mut();
        self.free();
        self.shared.flow.memory_changed(memory_bytes, 0);
        self.shared.flow.judge_memory();
        let counts = self.vhost.get_mut().totals();
        self.shared.gone.lock().add_counters(&counts);
    }
}
