//! A vhost with its lock, its clock and its way to the store.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crosstie_queues::{ConnectionKey, Counts, Destination, Fault, Position, Record, Time, Vhost};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::arguments;
use super::flow::Journaled;
use super::outbox::VhostOutbox;
use super::peer::Peer;
use super::shared::Shared;
use super::status::{BindingStatus, ExchangeStatus, QueueStatus, VhostStatus};

/// One vhost, which any thread may enter.
///
/// The receivers' octets are appended to their queues, and the records handed to the store, under
/// the lock: that gives both their order over all threads. System calls happen outside it.
pub(crate) struct SharedVhost {
    name: Arc<str>,
    vhost: Mutex<Vhost<Arc<Peer>>>,
    shared: Arc<Shared>,
    /// Octets of its messages, as the flow control knows them. Written under the lock.
    memory_bytes: AtomicUsize,
    /// The same of what its channels have not committed.
    uncommitted_bytes: AtomicUsize,
    clock: Clock,
    stopped: AtomicBool,
    /// When the timer's task will look next, in the vhost's time; `u64::MAX` for never.
    timer_at: AtomicU64,
    timer_earlier: Notify,
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
    ) -> Self {
        let memory_bytes = vhost.memory_bytes();
        shared.flow.memory_changed(0, memory_bytes);
        let next = vhost.next_timeout().map_or(u64::MAX, |time| time.0);
        Self {
            name,
            vhost: Mutex::new(vhost),
            shared,
            memory_bytes: AtomicUsize::new(memory_bytes),
            uncommitted_bytes: AtomicUsize::new(0),
            clock,
            stopped: AtomicBool::new(false),
            timer_at: AtomicU64::new(next),
            timer_earlier: Notify::new(),
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What one input does here. The lock is taken when it is first needed, and kept until the
    /// turn is over.
    pub(crate) fn turn(&self, now: Instant) -> Turn<'_> {
        Turn {
            shared: self,
            now: self.clock.time(now),
            vhost: None,
            outbox: VhostOutbox::default(),
            journaled: Journaled::Nothing,
        }
    }

    /// Hands to the store what happened before anybody was connected. Needs a tokio context.
    pub(crate) fn settle(&self) {
        let mut turn = self.turn(Instant::now());
        turn.enter();
    }

    /// A peer's socket takes octets again.
    pub(crate) fn resume(&self, connection: ConnectionKey) {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        vhost.resume(now, connection, outbox);
    }

    /// The store has written everything up to `position`, or could not.
    pub(crate) fn handle_commit(&self, position: Position, is_committed: bool) {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        match is_committed {
            true => vhost.handle_committed(position, outbox),
            false => vhost.handle_not_committed(now, position, outbox),
        }
    }

    /// Does what is due, until the vhost is stopped. One task runs this.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        while !self.stopped.load(Ordering::Relaxed) {
            let at = self.timer_at.load(Ordering::Relaxed);
            if at == u64::MAX {
                self.timer_earlier.notified().await;
                continue;
            }
            let due = self.clock.instant(Time(at));
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {}
                () = self.timer_earlier.notified() => continue,
            }
            self.handle_timeout();
            crosstie_transport::uncork();
        }
    }

    /// Ends the timer's task.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.timer_earlier.notify_one();
    }

    fn handle_timeout(&self) {
        // A timer is early by up to a millisecond, by which nothing would be due.
        let mut turn = self.turn(Instant::now() + Duration::from_millis(1));
        let (vhost, now, outbox) = turn.enter();
        vhost.handle_timeout(now, outbox);
        let next = vhost.next_timeout().map_or(u64::MAX, |time| time.0);
        // Under the lock, so that what is due earlier from now on arms the timer after this.
        self.timer_at.store(next, Ordering::Relaxed);
    }

    /// Sees to it that the timer looks no later than `next`.
    fn arm(&self, next: Option<Time>) {
        let Some(Time(next)) = next else { return };
        if next < self.timer_at.load(Ordering::Relaxed) {
            self.timer_at.fetch_min(next, Ordering::Relaxed);
            self.timer_earlier.notify_one();
        }
    }
}

/// One input's work in a vhost. What it leads to beside octets is seen to when it is dropped,
/// which needs a tokio context.
pub(crate) struct Turn<'v> {
    shared: &'v SharedVhost,
    now: Time,
    vhost: Option<MutexGuard<'v, Vhost<Arc<Peer>>>>,
    outbox: VhostOutbox,
    journaled: Journaled,
}

impl Turn<'_> {
    /// The vhost, locked, with the time and the outbox.
    pub(crate) fn enter(&mut self) -> (&mut Vhost<Arc<Peer>>, Time, &mut VhostOutbox) {
        let shared = self.shared;
        let vhost = self.vhost.get_or_insert_with(|| shared.vhost.lock());
        (vhost, self.now, &mut self.outbox)
    }

    /// Leaves the vhost; what was handed to the store in this turn.
    pub(crate) fn leave(&mut self) -> Journaled {
        let Some(mut vhost) = self.vhost.take() else {
            return self.journaled;
        };
        let SharedVhost {
            name,
            shared,
            memory_bytes,
            uncommitted_bytes,
            ..
        } = self.shared;
        vhost.flush_confirms(&mut self.outbox);
        let journal = vhost.journal();
        let mut waiting = 0;
        if !journal.records.is_empty() {
            let position = journal.position;
            let records = mem::take(&mut journal.records);
            let departure = |record: &Record| matches!(record, Record::Dequeued { .. });
            let journaled = match records.iter().all(departure) {
                true => Journaled::Departures,
                false => Journaled::More,
            };
            self.journaled = self.journaled.max(journaled);
            waiting = shared.submit(name, records, position);
        }
        let memory_after = vhost.memory_bytes();
        let memory_before = memory_bytes.swap(memory_after, Ordering::Relaxed);
        let uncommitted_after = vhost.uncommitted_bytes();
        let uncommitted_before = uncommitted_bytes.swap(uncommitted_after, Ordering::Relaxed);
        let next = vhost.next_timeout();
        drop(vhost);
        self.shared.arm(next);
        if memory_after != memory_before {
            shared.flow.memory_changed(memory_before, memory_after);
        }
        if uncommitted_after != uncommitted_before {
            let flow = &shared.flow;
            flow.incomplete_changed(uncommitted_before, uncommitted_after);
        }
        if waiting > 0 {
            shared
                .flow
                .store_waits(waiting, || shared.store_waiting_bytes());
        }
        self.outbox.settle();
        self.journaled
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// For operators.
impl SharedVhost {
    pub(crate) fn counts(&self) -> Counts {
        self.vhost.lock().counts()
    }

    pub(crate) fn status(&self) -> VhostStatus {
        let counts = self.counts();
        VhostStatus {
            name: self.name.to_string(),
            queues: counts.queues,
            exchanges: counts.exchanges,
            bindings: counts.bindings,
            connections: counts.connections,
            channels: counts.channels,
            consumers: counts.consumers,
            messages_ready: counts.messages_ready as u64,
            messages_unacked: counts.messages_unacknowledged as u64,
            memory_bytes: counts.memory_bytes,
        }
    }

    pub(crate) fn queues(&self) -> Vec<QueueStatus> {
        // Turned into text outside the lock.
        let queues: Vec<_> = self.vhost.lock().queues().collect();
        let mut queues: Vec<_> = queues
            .into_iter()
            .map(|queue| QueueStatus {
                name: queue.name.to_string(),
                kind: queue.kind,
                durable: queue.durable,
                exclusive: queue.exclusive,
                auto_delete: queue.auto_delete,
                arguments: arguments::to_json(queue.arguments.as_table()),
                messages_ready: queue.messages_ready as u64,
                messages_unacked: queue.messages_unacknowledged as u64,
                consumers: queue.consumers,
                bytes: queue.message_bytes,
            })
            .collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        queues
    }

    pub(crate) fn exchanges(&self) -> Vec<ExchangeStatus> {
        let exchanges: Vec<_> = self.vhost.lock().exchanges().collect();
        let mut exchanges: Vec<_> = exchanges
            .into_iter()
            .map(|exchange| ExchangeStatus {
                name: exchange.name.to_string(),
                kind: exchange.kind.to_string(),
                durable: exchange.durable,
                auto_delete: exchange.auto_delete,
                internal: exchange.internal,
                arguments: arguments::to_json(exchange.arguments.as_table()),
            })
            .collect();
        exchanges.sort_by(|a, b| a.name.cmp(&b.name));
        exchanges
    }

    pub(crate) fn bindings(&self) -> Vec<BindingStatus> {
        let bindings: Vec<_> = self.vhost.lock().bindings().collect();
        let of_named = bindings.into_iter().filter(|b| !b.source.is_empty());
        let mut bindings: Vec<_> = of_named
            .map(|binding| {
                let (destination, is_to_exchange) = match &binding.destination {
                    Destination::Exchange(name) => (name, true),
                    Destination::Queue(name) => (name, false),
                };
                BindingStatus {
                    source: binding.source.to_string(),
                    destination: destination.to_string(),
                    is_to_exchange,
                    routing_key: binding.routing_key.to_string(),
                    arguments: arguments::to_json(binding.arguments.as_table()),
                }
            })
            .collect();
        let key = |b: &BindingStatus| {
            let names = (b.source.clone(), b.destination.clone());
            (names, b.routing_key.clone())
        };
        bindings.sort_by_cached_key(key);
        bindings
    }

    /// How many messages went; `None` if there is no such queue. Needs a tokio context.
    pub(crate) fn purge_queue(&self, queue: &str) -> Option<u64> {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        let purged = vhost.purge_queue(now, queue, outbox).ok()?;
        Some(purged as u64)
    }

    /// The same, with the queue.
    pub(crate) fn delete_queue(&self, queue: &str) -> Option<u64> {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        let deleted = vhost.delete_queue(now, queue, outbox).ok()?;
        Some(deleted as u64)
    }

    /// Deletes an exchange with its bindings. Needs a tokio context.
    pub(crate) fn delete_exchange(&self, exchange: &str) -> Result<(), Fault> {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, _) = turn.enter();
        vhost.delete_exchange(now, exchange)
    }
}
