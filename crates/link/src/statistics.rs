//! What a link has done, and how well it kept its times.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::load::histogram::{Latencies, Rtt};

/// Counts of a whole life.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    pub connections: u64,
    /// Newcomers that a cut, or a server that could not be reached, turned away.
    pub refused: u64,
    pub connections_max: usize,
    /// Bytes delivered to servers, and to clients.
    pub up_bytes: u64,
    pub down_bytes: u64,
    pub resets: u64,
    pub cuts: u64,
    /// How much later than due bytes were delivered, where their receiver was not what they
    /// waited for.
    pub lateness: Latencies,
}

/// The same in figures, as it stands in a worker's report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub connections: u64,
    pub refused: u64,
    pub up_bytes: u64,
    pub down_bytes: u64,
    pub deliveries: u64,
    pub late_us: Rtt,
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
