//! Allowances of a rate: how many connections, messages or bytes a second.

use std::time::{Duration, Instant};

/// A quantity per second.
pub struct Allowance {
    per_second: f64,
    /// The remaining amount; negative for a debt.
    left: f64,
    filled: Instant,
}

/// Maximum pause; a larger debt is forgiven, since a message of many MiB could cost an hour of a small allowance.
pub const PAUSE_MAX: Duration = Duration::from_secs(10);

impl Allowance {
    pub fn new(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            left: per_second,
            filled: now,
        }
    }

    /// Takes one unit if available.
    pub(crate) fn try_take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let is_there = self.left >= 1.0;
        if is_there {
            self.left -= 1.0;
        }
        is_there
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.left = (self.left + passed * self.per_second).min(self.per_second);
    }

    /// Takes that amount; returns the pause until nothing is owed.
    pub fn take(&mut self, now: Instant, taken: f64) -> Duration {
        self.fill(now);
        let most_owed = -self.per_second * PAUSE_MAX.as_secs_f64();
        self.left = (self.left - taken).max(most_owed);
        match self.left < 0.0 {
            true => Duration::from_secs_f64(-self.left / self.per_second),
            false => Duration::ZERO,
        }
    }
}
