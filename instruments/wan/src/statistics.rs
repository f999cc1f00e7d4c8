//! A line's counts, and its precision.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Counts since the start.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    pub connections: u64,
    /// New connections that a cut, or an unreachable server, refused.
    pub refused: u64,
    pub connections_max: usize,
    /// Bytes delivered to servers, and to clients.
    pub up_bytes: u64,
    pub down_bytes: u64,
    pub resets: u64,
    pub cuts: u64,
    /// How much later than due bytes were delivered, except those that waited for their receiver.
    pub lateness: Lateness,
}

/// The same in figures, as in a worker's report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub connections: u64,
    pub refused: u64,
    pub up_bytes: u64,
    pub down_bytes: u64,
    pub deliveries: u64,
    pub late_us: Late,
}

impl Statistics {
    pub fn summary(&self) -> Summary {
        Summary {
            connections: self.connections,
            refused: self.refused,
            up_bytes: self.up_bytes,
            down_bytes: self.down_bytes,
            deliveries: self.lateness.count(),
            late_us: self.lateness.summary(),
        }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.lateness.summary();
        write!(
            f,
            "{} connections ({} at once, {} refused, {} reset, {} cuts); {} bytes up, {} bytes \
             down; {} deliveries, late by p50 {:.1} µs, p99 {:.1} µs, max {:.1} µs",
            self.connections,
            self.connections_max,
            self.refused,
            self.resets,
            self.cuts,
            self.up_bytes,
            self.down_bytes,
            self.lateness.count(),
            late.p50,
            late.p99,
            late.max,
        )
    }
}

/// Times in nanoseconds, three significant digits, up to a minute.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

const HIGHEST_NS: u64 = 60_000_000_000;

impl Default for Lateness {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, 3)
            .expect("1 to 60e9 with three digits is within what the histogram takes");
        Self(histogram)
    }
}

impl Lateness {
    /// Records a time; more than a minute counts as a minute.
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    fn count(&self) -> u64 {
        self.0.len()
    }

    fn summary(&self) -> Late {
        let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        Late {
            p50: microseconds(self.0.value_at_quantile(0.5)),
            p99: microseconds(self.0.value_at_quantile(0.99)),
            max: microseconds(self.0.max()),
        }
    }
}

/// The lateness, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Late {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}
