//! The loop of every caller, the router's and the floor's alike: it keeps a number of operations in flight, takes their
//! times, and stops when its window ends. With one loop for both, a ratio between them compares only the software
//! between the clients.
//!
//! A round trip lasts from just before the write with the operation to just after the read with its answer. Encoding
//! before and checking after are the client's own, and show in the rate.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::load::{Latencies, Recorded};
use crate::process::WorkerError;

/// The peer of a loop: it answers operations in order.
pub(crate) trait Exchange {
    /// Appends one operation to the next flush.
    fn push(&mut self) -> Result<(), WorkerError>;

    /// Sends the pushed operations, in one write.
    fn flush(&mut self) -> Result<(), WorkerError>;

    /// Reads once and adds the answers to `answers`, in order. The clock is read when the read returns, before the
    /// answers are examined. `None` at the end of the stream.
    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError>;

    /// Faults so far that do not belong to one operation.
    fn faults(&self) -> Faults {
        Faults::default()
    }

    /// Whether to stop before the window's end. A bench ends its windows by the clock alone.
    fn is_over(&self) -> bool {
        false
    }

    /// Reads and their messages, so far.
    fn traffic(&self) -> Traffic;
}

/// The outcome of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With the expected content.
    Right,
    Wrong,
    Failed,
}

/// The result of [`Exchange::receive`], with a read beyond its time limit as the end of the stream.
pub(crate) fn within_time(
    received: Result<Option<Instant>, WorkerError>,
) -> Result<Option<Instant>, WorkerError> {
    match received {
        Err(WorkerError::TimedOut) => Ok(None),
        received => received,
    }
}

impl Answer {
    pub(crate) fn checked(is_right: bool) -> Self {
        match is_right {
            true => Self::Right,
            false => Self::Wrong,
        }
    }
}

/// The faults of a round, counted separately and never in a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Faults {
    pub failed: u64,
    pub wrong: u64,
    /// Answered before an earlier one.
    pub reordered: u64,
    /// Answered twice, or never sent.
    pub doubled: u64,
    /// Never answered.
    pub lost: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, other: Self) {
        self.failed += other.failed;
        self.wrong += other.wrong;
        self.reordered += other.reordered;
        self.doubled += other.doubled;
        self.lost += other.lost;
    }

    /// Each by its name in the results file.
    pub(crate) fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("failed", self.failed),
            ("wrong", self.wrong),
            ("reordered", self.reordered),
            ("doubled", self.doubled),
            ("lost", self.lost),
        ]
    }

    /// The reason why a round with these does not count; `None` without any.
    pub(crate) fn describe(&self) -> Option<String> {
        let named = [
            (self.failed, "failed"),
            (self.wrong, "wrong"),
            (self.reordered, "out of order"),
            (self.doubled, "doubled"),
            (self.lost, "lost"),
        ];
        let present: Vec<String> = named
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        (!present.is_empty()).then(|| present.join(", "))
    }
}

/// The number of messages per read, which determines a message's cost: every figure is shown with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub reads: u64,
    pub messages: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.messages += other.messages;
    }

    fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            messages: self.messages.saturating_sub(before.messages),
        }
    }

    /// Zero without reads.
    pub(crate) fn messages_per_read(&self) -> f64 {
        if self.reads == 0 {
            0.0
        } else {
            self.messages as f64 / self.reads as f64
        }
    }
}

/// The time of measurement, on the machine's monotonic clock: the same for all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    /// Operations that end before this are warm-up.
    pub start_ns: u64,
    pub end_ns: u64,
}

/// The machine's monotonic clock, which all its processes share.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The moment on this process's own clock.
fn instant_at(nanoseconds: u64) -> Instant {
    let (now, now_ns) = (Instant::now(), monotonic_ns());
    match nanoseconds.checked_sub(now_ns) {
        Some(ahead) => now + Duration::from_nanos(ahead),
        None => now
            .checked_sub(Duration::from_nanos(now_ns - nanoseconds))
            .unwrap_or(now),
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub outstanding: usize,
    /// Operations between two lines in the document's form.
    pub batch: u64,
    pub window: Window,
    /// Stop after this many, for a run that is bound by count.
    pub operations_max: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Driven {
    /// Correct answers within the window, and their times.
    pub recorded: Recorded,
    /// Correct answers, warm-up and tail included.
    pub right: u64,
    pub faults: Faults,
    pub traffic: Traffic,
}

/// Runs the loop; `report` gets the average of every batch in milliseconds.
pub(crate) fn drive(
    exchange: &mut impl Exchange,
    load: &Load,
    report: &mut dyn FnMut(f64),
) -> Result<Driven, WorkerError> {
    let (start, end) = (
        instant_at(load.window.start_ns),
        instant_at(load.window.end_ns),
    );
    let mut latencies = Latencies::default();
    let mut batches = Batches::new(load, start);
    let mut driven = Driven::default();
    let mut in_flight: VecDeque<Instant> = VecDeque::with_capacity(load.outstanding);
    let mut answers: Vec<Answer> = Vec::with_capacity(load.outstanding);
    let mut to_push = load.outstanding as u64;
    let mut pushed = 0;
    let mut traffic_before = Traffic::default();
    let mut traffic_after = Traffic::default();
    loop {
        if to_push > 0 {
            for _ in 0..to_push {
                exchange.push()?;
            }
            pushed += to_push;
            let now = Instant::now();
            in_flight.extend((0..to_push).map(|_| now));
            exchange.flush()?;
        }
        if in_flight.is_empty() {
            break;
        }
        answers.clear();
        let Some(now) = exchange.receive(&mut answers)? else {
            break;
        };
        let measuring = start <= now && now < end;
        if now < start {
            traffic_before = exchange.traffic();
        } else if measuring {
            traffic_after = exchange.traffic();
        }
        for answer in &answers {
            let Some(sent) = in_flight.pop_front() else {
                break;
            };
            match answer {
                Answer::Failed => driven.faults.failed += 1,
                Answer::Wrong => driven.faults.wrong += 1,
                Answer::Right => {
                    driven.right += 1;
                    if measuring {
                        let nanoseconds = now.duration_since(sent).as_nanos() as u64;
                        latencies.record(nanoseconds);
                        batches.count(nanoseconds, now, report);
                    }
                }
            }
        }
        to_push = match now < end && !exchange.is_over() {
            true => (answers.len() as u64).min(load.operations_max.saturating_sub(pushed)),
            false => 0,
        };
    }
    driven.faults.lost += in_flight.len() as u64;
    driven.faults.add(exchange.faults());
    driven.recorded = latencies.recorded();
    driven.traffic = traffic_after.since(traffic_before);
    Ok(driven)
}

/// The averages of the document's lines. The document divides the time of a batch of sequential calls by their number.
/// Concurrent calls have no such time: for them it is the mean of their times.
struct Batches {
    size: u64,
    sequential: bool,
    begun: Instant,
    counted: u64,
    sum_ns: u64,
}

impl Batches {
    fn new(load: &Load, start: Instant) -> Self {
        Self {
            size: load.batch,
            sequential: load.outstanding == 1,
            begun: start,
            counted: 0,
            sum_ns: 0,
        }
    }

    fn count(&mut self, nanoseconds: u64, now: Instant, report: &mut dyn FnMut(f64)) {
        self.counted += 1;
        self.sum_ns += nanoseconds;
        if self.counted < self.size {
            return;
        }
        let total_ns = match self.sequential {
            true => now.duration_since(self.begun).as_nanos() as f64,
            false => self.sum_ns as f64,
        };
        report(total_ns / self.counted as f64 / 1e6);
        (self.counted, self.sum_ns) = (0, 0);
        // The report is not part of the next batch.
        self.begun = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers everything at once, by a script.
    struct Script {
        waiting: usize,
        answered: usize,
        answer_at: fn(usize) -> Option<Answer>,
    }

    impl Exchange for Script {
        fn push(&mut self) -> Result<(), WorkerError> {
            self.waiting += 1;
            Ok(())
        }

        fn flush(&mut self) -> Result<(), WorkerError> {
            Ok(())
        }

        fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
            let before = answers.len();
            for _ in 0..std::mem::take(&mut self.waiting) {
                answers.extend((self.answer_at)(self.answered));
                self.answered += 1;
            }
            Ok((answers.len() > before).then(Instant::now))
        }

        fn traffic(&self) -> Traffic {
            Traffic {
                reads: 1,
                messages: self.answered as u64,
            }
        }
    }

    #[track_caller]
    fn check(
        outstanding: usize,
        answer_at: fn(usize) -> Option<Answer>,
        expected_right: u64,
        expected_faults: Option<&str>,
        expected_batches: usize,
    ) {
        let mut script = Script {
            waiting: 0,
            answered: 0,
            answer_at,
        };
        let load = Load {
            outstanding,
            batch: 10,
            window: Window {
                start_ns: 0,
                end_ns: u64::MAX / 2,
            },
            operations_max: 100,
        };
        let mut batches = 0;
        let driven = drive(&mut script, &load, &mut |_| batches += 1).unwrap();
        assert_eq!(driven.right, expected_right);
        assert_eq!(driven.faults.describe().as_deref(), expected_faults);
        assert_eq!(batches, expected_batches);
    }

    #[test]
    fn every_answer_is_counted_once() {
        check(1, |_| Some(Answer::Right), 100, None, 10);
        check(7, |_| Some(Answer::Right), 100, None, 10);
        check(
            1,
            |n| {
                Some(if n % 50 == 0 {
                    Answer::Failed
                } else {
                    Answer::Right
                })
            },
            98,
            Some("2 failed"),
            9,
        );
        check(
            4,
            |n| Some(if n == 3 { Answer::Wrong } else { Answer::Right }),
            99,
            Some("1 wrong"),
            9,
        );
        check(
            4,
            |n| (n < 50).then_some(Answer::Right),
            50,
            Some("4 lost"),
            5,
        );
    }
}
