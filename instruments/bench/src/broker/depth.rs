//! The driver of `conformance/scripts/depth_figures.py`, which measures queues larger than memory. It publishes a number of
//! messages, or consumes them, and checks each by its number.
//!
//! A body begins with the message's number in its queue, the queue's number, and the moment at which it is due.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crosstie_amqp::method::{BasicAck, BasicPublish, BasicQos};
use crosstie_amqp::{BasicProperties, TableBuf, Value};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::confirms::Confirms;
use super::url::Broker;
use super::wire::{Event, Wire, properties};
use crate::load::monotonic_ns;
use crate::process::{Driver, WorkerError, say};

pub(crate) const ROLE: &str = "depth";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    broker: Broker,
    /// The names of the queues are this and their number.
    queue: String,
    queues: u64,
    /// Of all queues together.
    messages: u64,
    /// How long the broker may refuse connections, or send nothing.
    patience_s: u64,
    task: Task,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Task {
    /// Publish persistent messages to the queues in turn.
    Publish {
        exchange: String,
        body_bytes: usize,
        /// Number of the first message of each queue.
        first: u64,
        /// Maximum of unconfirmed messages; the next are sent once no more than `low` are left.
        window: u64,
        low: u64,
        delays: Option<Delays>,
    },
    /// Consume, and acknowledge many at once. Only messages of one queue have an order.
    Consume { prefetch: u16, is_ordered: bool },
}

/// Each message is due at a random moment of a span of time, which begins that long after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Delays {
    lead_ms: u64,
    span_ms: u64,
}

impl Delays {
    /// The delay of a message that is sent so long after the start.
    fn choose(self, random: &mut Random, since_ns: u64) -> u64 {
        let due_ns = (self.lead_ms + random.below(self.span_ms)) * 1_000_000;
        due_ns.saturating_sub(since_ns).div_ceil(1_000_000).max(1)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Finding {
    seconds: f64,
    cpu_us_per_message: f64,
    /// Longest wait for the confirm of a window.
    worst_confirm_ms: f64,
    refused: u64,
    /// On the machine's monotonic clock.
    first_ns: u64,
    doubled: u64,
    reordered: u64,
    /// Longest time between the moment at which a message was due and its arrival, and the same for early ones.
    worst_late_ms: f64,
    worst_early_ms: f64,
    /// Delayed messages that arrived over [`LATE_MS`] after they were due: the number of each, and the time.
    late: Vec<(u64, f64)>,
    /// Delayed messages that the broker may have received late: the first and the last number of those that it confirmed
    /// over [`LATE_MS`] after they were sent.
    slow: Vec<(u64, u64)>,
}

const LATE_MS: f64 = 2.0;

/// Pause between two attempts to connect.
const RETRY: Duration = Duration::from_millis(5);
const WRITE_BYTES: usize = 64 * 1024;
const HEAD_BYTES: usize = 24;

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    let wire = connect(&order)?;
    let found = match order.task.clone() {
        Task::Publish { .. } => publish(&order, wire),
        Task::Consume { .. } => consume(&order, wire),
    };
    say(&Driver::Found(found?));
    Ok(())
}

fn connect(order: &Order) -> Result<Wire, WorkerError> {
    let patience = Duration::from_secs(order.patience_s);
    let begun = Instant::now();
    loop {
        match Wire::open_patiently(&order.broker, "crosstie depth", patience) {
            Err(_) if begun.elapsed() < patience => std::thread::sleep(RETRY),
            outcome => return outcome,
        }
    }
}

fn publish(order: &Order, mut wire: Wire) -> Result<Finding, WorkerError> {
    let Task::Publish {
        exchange,
        body_bytes,
        first,
        window,
        low,
        delays,
    } = &order.task
    else {
        return Err(WorkerError::Refused("a task to publish".to_owned()));
    };
    wire.select_confirms()?;
    say(&Driver::<Finding>::Ready);
    let names: Vec<String> = (0..order.queues).map(|at| order.name(at)).collect();
    let plain = persistent(None);
    let mut body = vec![b'.'; (*body_bytes).max(HEAD_BYTES)];
    let mut confirms = Confirms::default();
    let mut found = Finding::default();
    let mut random = Random(monotonic_ns());
    let mut sent_ns = VecDeque::new();
    let cost = Cost::begin();
    let begun_ns = monotonic_ns();
    let mut sent = 0;
    while confirms.all_up_to() < order.messages {
        let flushed = Instant::now();
        while sent < order.messages && sent - confirms.all_up_to() < *window {
            let queue = sent % order.queues;
            let mut due_ns = 0;
            let mut delayed = Vec::new();
            if let Some(delays) = delays {
                let now_ns = monotonic_ns();
                let delay_ms = delays.choose(&mut random, now_ns.saturating_sub(begun_ns));
                due_ns = now_ns + delay_ms * 1_000_000;
                delayed = delayed_by(delay_ms);
                sent_ns.push_back(now_ns);
            }
            write_head(&mut body, first + sent / order.queues, queue, due_ns);
            let publish = BasicPublish::to(exchange, &names[queue as usize]);
            let properties = if due_ns > 0 { &delayed } else { &plain };
            wire.push_message(&publish, properties, &body);
            sent += 1;
            if wire.pushed_bytes() >= WRITE_BYTES {
                wire.flush()?;
            }
        }
        wire.flush()?;
        let left = if sent == order.messages { 0 } else { *low };
        while sent - confirms.all_up_to() > left {
            wire.receive(|event| {
                confirms.take(&event);
                Ok(())
            })?;
            found.note_confirms(&mut sent_ns, sent, confirms.all_up_to());
        }
        let waited_ms = flushed.elapsed().as_secs_f64() * 1e3;
        found.worst_confirm_ms = found.worst_confirm_ms.max(waited_ms);
    }
    found.seconds = (monotonic_ns() - begun_ns) as f64 / 1e9;
    found.cpu_us_per_message = cost.us() / order.messages as f64;
    found.refused = confirms.refused();
    wire.close()?;
    Ok(found)
}

fn consume(order: &Order, mut wire: Wire) -> Result<Finding, WorkerError> {
    let Task::Consume {
        prefetch,
        is_ordered,
    } = order.task
    else {
        return Err(WorkerError::Refused("a task to consume".to_owned()));
    };
    let qos = BasicQos::of_each(prefetch);
    wire.ask(&qos, "basic.qos-ok")?;
    let mut arrivals = Arrivals::new(order, is_ordered);
    for at in 0..order.queues {
        // Deliveries of the first queues may precede the answer of a later one: they would be lost here.
        wire.push(&crosstie_amqp::method::BasicConsume {
            queue: &order.name(at),
            consumer_tag: &at.to_string(),
            no_wait: true,
            ..crosstie_amqp::method::BasicConsume::default()
        });
    }
    wire.flush()?;
    say(&Driver::<Finding>::Ready);
    let cost = Cost::begin();
    let every = u64::from(prefetch / 2).max(1);
    let mut acknowledged = 0;
    while arrivals.count < order.messages {
        let mut last = 0;
        wire.receive(|event| {
            if let Event::Delivery { tag, body } = event {
                last = tag;
                arrivals.take(body)?;
            }
            Ok(())
        })?;
        if arrivals.count - acknowledged >= every || arrivals.count >= order.messages {
            acknowledged = arrivals.count;
            wire.push(&BasicAck::up_to(last));
            wire.flush()?;
        }
    }
    let mut found = arrivals.found;
    found.seconds = (monotonic_ns() - found.first_ns) as f64 / 1e9;
    found.cpu_us_per_message = cost.us() / order.messages as f64;
    wire.close()?;
    Ok(found)
}

impl Finding {
    /// The broker has confirmed delayed messages up to a number. `sent_ns` has the moments at which the last ones of `sent`
    /// were sent.
    fn note_confirms(&mut self, sent_ns: &mut VecDeque<u64>, sent: u64, confirmed: u64) {
        let now_ns = monotonic_ns();
        while sent_ns.len() as u64 > sent - confirmed
            && let Some(at_ns) = sent_ns.pop_front()
        {
            let number = sent - sent_ns.len() as u64 - 1;
            let is_slow = (now_ns - at_ns) as f64 / 1e6 > LATE_MS;
            match self.slow.last_mut() {
                _ if !is_slow => {}
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => self.slow.push((number, number)),
            }
        }
    }
}

impl Order {
    fn name(&self, at: u64) -> String {
        format!("{}{at}", self.queue)
    }
}

/// Checks what arrives.
struct Arrivals {
    count: u64,
    queues: u64,
    is_ordered: bool,
    /// By queue and number, whether it has arrived.
    seen: Vec<bool>,
    /// The number after the last of each queue.
    next: Vec<u64>,
    found: Finding,
}

impl Arrivals {
    fn new(order: &Order, is_ordered: bool) -> Self {
        Self {
            count: 0,
            queues: order.queues,
            is_ordered,
            seen: vec![false; order.messages as usize],
            next: vec![0; order.queues as usize],
            found: Finding::default(),
        }
    }

    fn take(&mut self, body: &[u8]) -> Result<(), WorkerError> {
        let foreign = || WorkerError::Refused("a message of another publisher".to_owned());
        let [number, queue, due_ns] = read_head(body).ok_or_else(foreign)?;
        let now_ns = monotonic_ns();
        if self.count == 0 {
            self.found.first_ns = now_ns;
        }
        self.count += 1;
        let at = number.checked_mul(self.queues).map(|at| at + queue);
        let seen = at.and_then(|at| self.seen.get_mut(at as usize));
        let seen = seen.filter(|_| queue < self.queues).ok_or_else(foreign)?;
        self.found.doubled += u64::from(std::mem::replace(seen, true));
        let next = &mut self.next[queue as usize];
        self.found.reordered += u64::from(self.is_ordered && number < *next);
        *next = number + 1;
        if due_ns > 0 {
            let ms = |ns: u64| ns as f64 / 1e6;
            let late_ms = ms(now_ns.saturating_sub(due_ns));
            let early_ms = ms(due_ns.saturating_sub(now_ns));
            self.found.worst_late_ms = self.found.worst_late_ms.max(late_ms);
            self.found.worst_early_ms = self.found.worst_early_ms.max(early_ms);
            if late_ms > LATE_MS {
                self.found.late.push((number, late_ms));
            }
        }
        Ok(())
    }
}

fn write_head(body: &mut [u8], number: u64, queue: u64, due_ns: u64) {
    for (part, value) in body.chunks_exact_mut(8).zip([number, queue, due_ns]) {
        part.copy_from_slice(&value.to_be_bytes());
    }
}

fn read_head(body: &[u8]) -> Option<[u64; 3]> {
    let head: &[u8; HEAD_BYTES] = body.first_chunk()?;
    let mut values = [0; 3];
    for (value, part) in values.iter_mut().zip(head.chunks_exact(8)) {
        *value = u64::from_be_bytes(part.try_into().ok()?);
    }
    Some(values)
}

fn delayed_by(delay_ms: u64) -> Vec<u8> {
    let delay = i32::try_from(delay_ms).unwrap_or(i32::MAX);
    let headers = TableBuf::new().with("x-delay", Value::I32(delay));
    persistent(Some(&headers))
}

fn persistent(headers: Option<&TableBuf>) -> Vec<u8> {
    properties(&BasicProperties {
        delivery_mode: Some(2),
        headers: headers.map(TableBuf::as_table),
        ..BasicProperties::default()
    })
}

/// Processor time of this process.
struct Cost(Duration);

impl Cost {
    fn begin() -> Self {
        Self(Self::now())
    }

    fn us(&self) -> f64 {
        Self::now().saturating_sub(self.0).as_secs_f64() * 1e6
    }

    fn now() -> Duration {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    }
}

/// Splitmix64: the delays need no better one.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_checked() {
        #[track_caller]
        fn check(numbers: &[(u64, u64)], doubled: u64, reordered: u64) {
            let order = Order {
                broker: "rabbit://a:b@127.0.0.1:1".parse().unwrap(),
                queue: "q".to_owned(),
                queues: 2,
                messages: 6,
                patience_s: 1,
                task: Task::Consume {
                    prefetch: 1,
                    is_ordered: true,
                },
            };
            let mut arrivals = Arrivals::new(&order, true);
            let mut body = vec![0; 30];
            for (queue, number) in numbers {
                write_head(&mut body, *number, *queue, 0);
                arrivals.take(&body).unwrap();
            }
            let found = (arrivals.found.doubled, arrivals.found.reordered);
            assert_eq!(found, (doubled, reordered));
            write_head(&mut body, 3, 0, 0);
            assert!(arrivals.take(&body).is_err());
            write_head(&mut body, 0, 2, 0);
            assert!(arrivals.take(&body).is_err());
        }
        check(&[(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 2)], 0, 0);
        check(&[(0, 0), (0, 0)], 1, 1);
        check(&[(0, 1), (0, 0), (1, 0)], 0, 1);
    }
}
