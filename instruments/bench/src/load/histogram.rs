//! Round-trip times in an HDR histogram, and their form for another process.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Round-trip times in nanoseconds, three significant digits, up to a minute.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u64,
}

const HIGHEST_NS: u64 = 60_000_000_000;

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, 3)
            .expect("1 to 60e9 with three digits is within what the histogram takes");
        Self {
            histogram,
            sum_ns: 0,
        }
    }
}

impl Latencies {
    /// Records a time; more than a minute counts as a minute.
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        self.histogram.saturating_record(nanoseconds);
        self.sum_ns += nanoseconds;
    }

    /// Records one of a series with one every `interval_ns`. Operations that could not begin while it was pending are
    /// recorded as if they had begun.
    pub(crate) fn record_standstill(&mut self, nanoseconds: u64, interval_ns: u64) {
        let mut waited = nanoseconds;
        self.record(waited);
        while interval_ns > 0 && waited > interval_ns {
            waited -= interval_ns;
            self.record(waited);
        }
    }

    /// The times that another process has recorded.
    pub(crate) fn of(recorded: &Recorded) -> Self {
        let mut latencies = Self::default();
        latencies.add(recorded);
        latencies
    }

    pub(crate) fn add(&mut self, recorded: &Recorded) {
        for (value, count) in &recorded.counts {
            self.histogram.saturating_record_n(*value, *count);
        }
        self.sum_ns += recorded.sum_ns;
    }

    /// In the form for another process.
    pub(crate) fn recorded(&self) -> Recorded {
        let counts = self
            .histogram
            .iter_recorded()
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect();
        Recorded {
            counts,
            sum_ns: self.sum_ns,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// In microseconds.
    pub(crate) fn summary(&self) -> Rtt {
        let us = |quantile| self.histogram.value_at_quantile(quantile) as f64 / 1e3;
        let average = match self.count() {
            0 => 0.0,
            count => self.sum_ns as f64 / count as f64 / 1e3,
        };
        Rtt {
            avg: average,
            p50: us(0.5),
            p99: us(0.99),
            p99_9: us(0.999),
            max: self.histogram.max() as f64 / 1e3,
        }
    }
}

/// A histogram's values and counts, in transit between processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub counts: Vec<(u64, u64)>,
    pub sum_ns: u64,
}

/// A round's round-trip times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rtt {
    pub avg: f64,
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

impl Rtt {
    /// Each by its name.
    pub(crate) fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("avg", self.avg),
            ("p50", self.p50),
            ("p99", self.p99),
            ("p99_9", self.p99_9),
            ("max", self.max),
        ]
    }
}

/// Median, minimum and maximum of one figure over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_sees_the_same() {
        let mut latencies = Latencies::default();
        for nanoseconds in 1..=10_000 {
            latencies.record(nanoseconds * 100);
        }
        let text = serde_json::to_string(&latencies.recorded()).unwrap();
        let mut merged = Latencies::default();
        merged.add(&serde_json::from_str(&text).unwrap());
        assert_eq!(merged.count(), 10_000);
        assert_eq!(merged.summary(), latencies.summary());
        let rtt = merged.summary();
        assert!((rtt.avg - 500.05).abs() < 1e-6, "{rtt:?}");
        assert!((rtt.p50 - 500.0).abs() / 500.0 < 2e-3, "{rtt:?}");
        assert!((rtt.max - 1000.0).abs() / 1000.0 < 2e-3, "{rtt:?}");
    }

    #[test]
    fn spreads() {
        #[track_caller]
        fn check(values: &[f64], expected: Option<(f64, f64, f64)>) {
            let expected = expected.map(|(median, min, max)| Spread { median, min, max });
            assert_eq!(Spread::of(values.iter().copied()), expected);
        }
        check(&[], None);
        check(&[3.0], Some((3.0, 3.0, 3.0)));
        check(&[3.0, 1.0, 2.0], Some((2.0, 1.0, 3.0)));
        check(&[4.0, 1.0, 2.0, 3.0], Some((2.5, 1.0, 4.0)));
    }
}
