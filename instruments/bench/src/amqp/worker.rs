//! The driver of `bench amqp`: one process, a thread for each producer and each consumer, each with a blocking
//! connection of its own. Shared bounds limit the messages in flight, and without a consumer the messages kept.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crosstie_amqp::method::{BasicAck, BasicPublish, BasicQos, QueueDelete, TxCommit, TxSelect};
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::ledger::{Ledger, Order as Arrivals};
use super::{levels, pace};
use crate::broker::confirms::Confirms;
use crate::broker::wire::{Event, Wire};
use crate::broker::{Broker, Queue};
use crate::load::{Body, Faults, Traffic, Window, monotonic_ns};
use crate::process::{Driver, WorkerError, instruction, say};

pub(crate) const ROLE: &str = "amqp";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(super) broker: Broker,
    pub(super) queue: String,
    pub(super) case: Case,
    /// Each node of a cluster has a copy of the queue.
    pub(super) is_quorum: bool,
    pub(super) payload_bytes: usize,
    pub(super) in_flight: u64,
    pub(super) window: u64,
    pub(super) prefetch: u16,
    /// Messages per second of all producers together, if they are paced.
    pub(super) rate: u64,
    pub(super) producers: usize,
    pub(super) consumers: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// Deliveries within the window, and the reads that brought them.
    pub(super) traffic: Traffic,
    /// Warm-up and tail included.
    pub(super) published: u64,
    /// Without a consumer.
    purged: u64,
    /// Latencies of confirms, if measured: median and 99th percentile.
    pub(super) confirm_us: Option<(u64, u64)>,
    pub(super) faults: Faults,
}

/// How long a read waits before it checks for the end.
const LOOK: Duration = Duration::from_millis(100);
/// How long the last messages may take.
const LATE_MAX: Duration = Duration::from_secs(10);
/// Bytes that are collected before a write.
const WRITE_BYTES: usize = 64 * 1024;
/// Maximum number of messages in a queue without a consumer, and of bytes of their bodies.
const KEPT_MAX: u64 = 200_000;
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Number of messages of this size that are kept before a purge.
pub(crate) fn kept_max(payload_bytes: usize) -> u64 {
    KEPT_MAX.min((KEPT_BYTES_MAX / payload_bytes.max(1)) as u64)
}

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    let mut control = Wire::open(&order.broker, "crosstie bench: control")?;
    control.declare_queue(Queue {
        name: &order.queue,
        is_durable: order.case.is_durable(),
        priority_max: order.case.levels() - 1,
        is_quorum: order.is_quorum,
        ..Queue::default()
    })?;
    let misplaced = misplaced(&order)?;
    let count = match order.case {
        Case::DurableKept => 0,
        _ => order.consumers,
    };
    let consumers = connect(count, || consumer(&order))?;
    let producers = connect(order.producers, || producer(&order))?;
    say(&Driver::<Finding>::Ready);
    let Some(window) = instruction::<Window>()? else {
        return Ok(());
    };
    let mut finding = drive(&order, window, producers, consumers)?;
    finding.faults.reordered += misplaced;
    if order.case == Case::DurableKept {
        let kept = finding.purged + control.purge(&order.queue)?;
        finding.faults.lost += finding.published.saturating_sub(kept);
        finding.faults.doubled += kept.saturating_sub(finding.published);
    }
    let delete = QueueDelete {
        queue: &order.queue,
        ..QueueDelete::default()
    };
    control.ask(&delete, "queue.delete-ok")?;
    control.close()?;
    say(&Driver::Found(finding));
    Ok(())
}

/// Number of messages that a queue with priorities delivers out of order, before there is any load.
fn misplaced(order: &Order) -> Result<u64, WorkerError> {
    let levels = order.case.levels();
    if levels == 1 {
        return Ok(0);
    }
    let mut wire = Wire::open(&order.broker, "crosstie bench: priorities")?;
    let misplaced = levels::misplaced(&mut wire, &order.queue, levels)?;
    wire.close()?;
    Ok(misplaced)
}

fn connect(
    count: usize,
    open: impl Fn() -> Result<Wire, WorkerError>,
) -> Result<Vec<Wire>, WorkerError> {
    (0..count).map(|_| open()).collect()
}

fn consumer(order: &Order) -> Result<Wire, WorkerError> {
    let mut wire = Wire::open(&order.broker, "crosstie bench: consumer")?;
    let acknowledges = order.case.is_acknowledged();
    if acknowledges {
        let qos = BasicQos::of_each(order.prefetch);
        wire.ask(&qos, "basic.qos-ok")?;
    }
    wire.consume(&order.queue, "1", !acknowledges)?;
    wire.limit_waiting(LOOK)?;
    Ok(wire)
}

fn producer(order: &Order) -> Result<Wire, WorkerError> {
    let mut wire = Wire::open(&order.broker, "crosstie bench: producer")?;
    match order.case {
        Case::Transient | Case::Priorities => {}
        Case::Transactions => wire.ask(&TxSelect {}, "tx.select-ok")?,
        Case::Durable | Case::Paced | Case::DurableKept => wire.select_confirms()?,
    }
    Ok(wire)
}

pub(super) struct Shared<'a> {
    pub(super) order: &'a Order,
    window: Window,
    ledger: Mutex<Ledger>,
    published: AtomicU64,
    consumed: AtomicU64,
    /// Messages since the queue was purged, without a consumer.
    kept: AtomicU64,
    /// Producers that wait for room, and their wake-up.
    waiting: AtomicU64,
    room: Condvar,
    gate: Mutex<()>,
    is_over: AtomicBool,
}

fn drive(
    order: &Order,
    window: Window,
    producers: Vec<Wire>,
    consumers: Vec<Wire>,
) -> Result<Finding, WorkerError> {
    let shared = Shared {
        order,
        window,
        ledger: Mutex::new(Ledger::new(order.producers, order.case.levels())),
        published: AtomicU64::new(0),
        consumed: AtomicU64::new(0),
        kept: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
        room: Condvar::new(),
        gate: Mutex::new(()),
        is_over: AtomicBool::new(false),
    };
    let shared = &shared;
    thread::scope(|scope| {
        let consuming: Vec<_> = consumers
            .into_iter()
            .map(|wire| scope.spawn(move || consume(shared, wire)))
            .collect();
        let producing: Vec<_> = producers
            .into_iter()
            .enumerate()
            .map(|(at, wire)| {
                scope.spawn(move || match order.case {
                    Case::Paced => pace::produce(shared, at, wire),
                    _ => produce(shared, at, wire),
                })
            })
            .collect();
        let mut finding = Finding::default();
        let mut published = Vec::new();
        let mut confirms_us = Vec::new();
        let mut outcome = Ok(());
        for thread in producing {
            match joined(thread) {
                Ok(produced) => {
                    published.push(produced.published);
                    finding.purged += produced.purged;
                    confirms_us.extend(produced.confirms_us);
                    finding.traffic.add(produced.traffic);
                    finding.faults.add(produced.faults);
                }
                Err(error) => outcome = Err(error),
            }
        }
        finding.published = published.iter().sum();
        finding.confirm_us = pace::quantiles(confirms_us);
        shared.await_the_late(finding.published);
        shared.is_over.store(true, SeqCst);
        for thread in consuming {
            match joined(thread) {
                Ok(traffic) => finding.traffic.add(traffic),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome?;
        if order.case != Case::DurableKept {
            let faults = locked(&shared.ledger).faults(&published);
            finding.faults.add(faults);
        }
        Ok(finding)
    })
}

fn joined<T>(
    thread: thread::ScopedJoinHandle<'_, Result<T, WorkerError>>,
) -> Result<T, WorkerError> {
    match thread.join() {
        Ok(outcome) => outcome,
        Err(_) => Err(WorkerError::Encode(
            "a thread of the driver panicked".to_owned(),
        )),
    }
}

/// No operation under these locks can be left half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared<'_> {
    pub(super) fn is_time_over(&self) -> bool {
        self.is_over.load(SeqCst) || monotonic_ns() >= self.window.end_ns
    }

    fn is_in_window(&self) -> bool {
        self.is_within(monotonic_ns())
    }

    pub(super) fn is_within(&self, at_ns: u64) -> bool {
        (self.window.start_ns..self.window.end_ns).contains(&at_ns)
    }

    /// Counts messages that were published without waiting for room.
    pub(super) fn note_published(&self, count: u64) {
        self.published.fetch_add(count, SeqCst);
    }

    /// Counts messages in the queue, and purges it if it is full; returns how many were purged.
    fn keep(&self, wire: &mut Wire, count: u64) -> Result<u64, WorkerError> {
        let kept = self.kept.fetch_add(count, SeqCst) + count;
        if kept < kept_max(self.order.payload_bytes) {
            return Ok(0);
        }
        // Messages that others publish meanwhile may be purged too, and are counted again: the bound errs on the safe
        // side.
        self.kept.store(0, SeqCst);
        wire.purge(&self.order.queue)
    }

    /// Waits until a quarter of the messages in flight is free, and takes up to `most` of it; 0 when the time is over.
    /// In smaller steps every producer would pay a wake-up for each few messages.
    fn take_room(&self, most: u64) -> Option<u64> {
        loop {
            if self.is_time_over() {
                return None;
            }
            let published = self.published.load(SeqCst);
            let free = self.free(published);
            if free >= self.enough() {
                let taken = free.min(most);
                let after = published + taken;
                let outcome = self
                    .published
                    .compare_exchange(published, after, SeqCst, SeqCst);
                match outcome {
                    Ok(_) => return Some(taken),
                    // Another producer was faster.
                    Err(_) => continue,
                }
            }
            let gate = locked(&self.gate);
            self.waiting.fetch_add(1, SeqCst);
            if self.free(self.published.load(SeqCst)) < self.enough() {
                drop(self.room.wait_timeout(gate, LOOK));
            } else {
                drop(gate);
            }
            self.waiting.fetch_sub(1, SeqCst);
        }
    }

    fn enough(&self) -> u64 {
        (self.order.in_flight / 4).max(1)
    }

    fn free(&self, published: u64) -> u64 {
        let under_way = published.saturating_sub(self.consumed.load(SeqCst));
        self.order.in_flight.saturating_sub(under_way)
    }

    fn consumed(&self, count: u64) {
        self.consumed.fetch_add(count, SeqCst);
        if self.waiting.load(SeqCst) > 0 && self.free(self.published.load(SeqCst)) >= self.enough()
        {
            // So that no thread is between its check and its wait.
            drop(locked(&self.gate));
            self.room.notify_all();
        }
    }

    /// The last messages are still on their way when the last one is published.
    fn await_the_late(&self, published: u64) {
        let mut last = (self.consumed.load(SeqCst), Instant::now());
        while last.0 < published && last.1.elapsed() < LATE_MAX {
            thread::sleep(Duration::from_millis(1));
            let now = self.consumed.load(SeqCst);
            if now > last.0 {
                last = (now, Instant::now());
            }
        }
    }
}

/// A producer's results, warm-up and tail included except in the traffic.
#[derive(Default)]
pub(super) struct Produced {
    pub(super) published: u64,
    purged: u64,
    /// Without a consumer: confirms within the window.
    traffic: Traffic,
    /// Latencies of confirms, if measured.
    pub(super) confirms_us: Vec<u64>,
    pub(super) faults: Faults,
}

/// Publishes until the window ends.
fn produce(shared: &Shared<'_>, at: usize, mut wire: Wire) -> Result<Produced, WorkerError> {
    let order = shared.order;
    let is_durable = order.case.is_durable();
    let levels = order.case.levels();
    let properties = levels::properties_of(levels, is_durable.then_some(2));
    let publish = BasicPublish::to("", &order.queue);
    let mut body = Body::new(at, order.payload_bytes);
    let mut produced = Produced::default();
    let mut confirms = Confirms::default();
    let most = match is_durable {
        true => order.window,
        false => order.in_flight,
    };
    while let Some(count) = shared.take_room(most) {
        for _ in 0..count {
            let level = (produced.published % u64::from(levels)) as usize;
            let body = body.numbered(produced.published);
            wire.push_message(&publish, &properties[level], body);
            produced.published += 1;
            if wire.pushed_bytes() >= WRITE_BYTES {
                wire.flush()?;
            }
        }
        wire.flush()?;
        let mut reads = 0;
        if order.case == Case::Transactions {
            wire.ask(&TxCommit {}, "tx.commit-ok")?;
            continue;
        }
        while is_durable && confirms.all_up_to() < produced.published {
            wire.receive(|event| {
                confirms.take(&event);
                Ok(())
            })?;
            reads += 1;
        }
        if order.case == Case::DurableKept {
            if shared.is_in_window() {
                produced.traffic.reads += reads;
                produced.traffic.messages += count;
            }
            produced.purged += shared.keep(&mut wire, count)?;
            shared.consumed(count);
        }
    }
    wire.close()?;
    produced.faults.failed = confirms.refused();
    Ok(produced)
}

/// Consumes until the end; returns the traffic within the window.
fn consume(shared: &Shared<'_>, mut wire: Wire) -> Result<Traffic, WorkerError> {
    let order = shared.order;
    let acknowledges = order.case.is_acknowledged();
    let model = Body::new(0, order.payload_bytes);
    let mut arrivals = Arrivals::of(order.producers, order.case.levels());
    let mut traffic = Traffic::default();
    loop {
        let mut count = 0;
        let mut last = 0;
        let mut ledger = None;
        let received = wire.receive(|event| {
            if let Event::Delivery { tag, body } = event {
                let ledger = ledger.get_or_insert_with(|| locked(&shared.ledger));
                ledger.arrived(body, &model, &mut arrivals);
                count += 1;
                last = tag;
            }
            Ok(())
        });
        drop(ledger);
        match received {
            Ok(_) => {}
            Err(WorkerError::TimedOut) if shared.is_over.load(SeqCst) => break,
            Err(WorkerError::TimedOut) => continue,
            Err(error) => return Err(error),
        }
        if shared.is_in_window() {
            traffic.reads += 1;
            traffic.messages += count;
        }
        if acknowledges && count > 0 {
            wire.push(&BasicAck::up_to(last));
            wire.flush()?;
        }
        shared.consumed(count);
    }
    wire.close()?;
    Ok(traffic)
}
