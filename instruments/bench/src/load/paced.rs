//! A caller at a given rate.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use super::{Answer, Exchange, Faults, Traffic};
use crate::process::WorkerError;

/// The last part of each pause is not slept: a timer wakes a thread too late by less than this.
const AWAKE: Duration = Duration::from_micros(300);

/// Pushes each operation at its time. One that is late because the answer before it was does not wait, and those behind
/// it are sent at their own times.
pub(crate) struct Paced<'a, E> {
    exchange: &'a mut E,
    every: Duration,
    due: Instant,
}

impl<'a, E: Exchange> Paced<'a, E> {
    pub(crate) fn new(exchange: &'a mut E, every: Duration) -> Self {
        Self {
            exchange,
            every,
            due: Instant::now(),
        }
    }
}

impl<E: Exchange> Exchange for Paced<'_, E> {
    fn push(&mut self) -> Result<(), WorkerError> {
        let left = self.due.saturating_duration_since(Instant::now());
        thread::sleep(left.saturating_sub(AWAKE));
        while Instant::now() < self.due {
            hint::spin_loop();
        }
        self.due += self.every;
        self.exchange.push()
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.exchange.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        self.exchange.receive(answers)
    }

    fn faults(&self) -> Faults {
        self.exchange.faults()
    }

    fn is_over(&self) -> bool {
        self.exchange.is_over()
    }

    fn traffic(&self) -> Traffic {
        self.exchange.traffic()
    }
}
