//! All rounds of one subject in one case and placement, summed up.

use serde_json::{Value, json};

use super::round::{Metrics, Round};
use crate::load::histogram::{Rtt, Spread};

/// One subject's rounds, in the order in which they were run.
#[derive(Clone, Debug)]
pub struct Measured {
    pub subject: String,
    /// Processors that the subject could have kept busy.
    pub capacity_cores: f64,
    pub rounds: Vec<Round>,
    /// Why none of it counts, beyond what a round itself can tell.
    pub suspect: Option<String>,
}

/// Below this share of its processors a router was not what held the rate back.
const BUSY: f64 = 0.9;

impl Measured {
    pub fn new(subject: impl Into<String>, capacity_cores: f64) -> Self {
        Self {
            subject: subject.into(),
            capacity_cores,
            rounds: Vec::new(),
            suspect: None,
        }
    }

    fn valid(&self) -> impl Iterator<Item = &Metrics> {
        self.rounds
            .iter()
            .filter(|round| round.fault.is_none())
            .map(|round| &round.metrics)
    }

    /// Median, minimum and maximum of one figure over the rounds that count.
    pub fn spread(&self, figure: impl Fn(&Metrics) -> f64) -> Option<Spread> {
        Spread::of(self.valid().map(figure))
    }

    /// The same of a figure that may be unknown.
    pub fn spread_known(&self, figure: impl Fn(&Metrics) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.valid().filter_map(figure))
    }

    pub fn calls(&self) -> u64 {
        self.valid().map(|metrics| metrics.calls).sum()
    }

    /// The longest round trip of all.
    pub fn rtt_max(&self) -> Option<f64> {
        self.valid()
            .map(|metrics| metrics.rtt_us.max)
            .max_by(f64::total_cmp)
    }

    /// Round by round: its median round trip over that of another subject a moment apart.
    pub fn p50_over(&self, floor: &Self) -> Option<Spread> {
        let ratios = self
            .rounds
            .iter()
            .zip(&floor.rounds)
            .filter_map(|(own, floor)| {
                let counted = own.fault.is_none() && floor.fault.is_none();
                counted.then(|| own.metrics.rtt_us.p50 / floor.metrics.rtt_us.p50)
            });
        Spread::of(ratios)
    }

    /// With several calls in flight: whether something else than the subject limited the rate.
    pub fn driver_bound(&self, in_flight: usize) -> bool {
        let busy = self.spread(|metrics| metrics.router_busy_cores);
        in_flight > 1 && busy.is_some_and(|busy| busy.median < BUSY * self.capacity_cores)
    }

    /// Why these figures do not count, or the rounds that are not in them.
    pub fn why(&self) -> String {
        let faults: Vec<String> = self
            .rounds
            .iter()
            .enumerate()
            .filter_map(|(at, round)| Some(format!("round {}: {}", at + 1, round.fault.as_ref()?)))
            .chain(self.suspect.clone())
            .collect();
        faults.join("; ")
    }

    /// A failed round is a failed run: what was lost once cannot be averaged away.
    pub fn is_valid(&self) -> bool {
        !self.rounds.is_empty()
            && self.suspect.is_none()
            && self.rounds.iter().all(|round| round.fault.is_none())
    }

    /// Medians over the rounds, under the names of a round's own metrics.
    pub fn metrics(&self) -> Value {
        let median = |figure: fn(&Metrics) -> f64| self.spread(figure).map(|spread| spread.median);
        let known = |figure: fn(&Metrics) -> Option<f64>| {
            self.spread_known(figure).map(|spread| spread.median)
        };
        let rtt = Rtt {
            avg: median(|m| m.rtt_us.avg).unwrap_or(0.0),
            p50: median(|m| m.rtt_us.p50).unwrap_or(0.0),
            p99: median(|m| m.rtt_us.p99).unwrap_or(0.0),
            p99_9: median(|m| m.rtt_us.p99_9).unwrap_or(0.0),
            max: self.rtt_max().unwrap_or(0.0),
        };
        let mut metrics = json!({
            "calls": self.calls(),
            "calls_per_s": median(|m| m.calls_per_s),
            "rtt_us": rtt,
            "router_cpu_us_per_call": known(|m| m.router_cpu_us_per_call),
            "driver_cpu_us_per_call": median(|m| m.driver_cpu_us_per_call),
            "router_pss_bytes": known(|m| m.router_pss_bytes.map(|bytes| bytes as f64)),
            "router_busy_cores": median(|m| m.router_busy_cores),
            "foreign_busy_cores": median(|m| m.foreign_busy_cores),
            "caller_messages_per_read": median(|m| m.caller_messages_per_read),
            "callee_messages_per_read": median(|m| m.callee_messages_per_read),
        });
        if let Value::Object(fields) = &mut metrics {
            fields.retain(|_, value| !value.is_null());
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(p50s: &[f64], busy: f64, faults: &[usize]) -> Measured {
        let mut measured = Measured::new("x", 1.0);
        for (at, p50) in p50s.iter().enumerate() {
            let rtt_us = Rtt {
                p50: *p50,
                max: p50 * 2.0,
                ..Rtt::default()
            };
            let metrics = Metrics {
                calls: 10,
                rtt_us,
                router_busy_cores: busy,
                ..Metrics::default()
            };
            let fault = faults.contains(&at).then(|| "1 lost".to_owned());
            measured.rounds.push(Round { metrics, fault });
        }
        measured
    }

    #[test]
    fn rounds_that_failed_are_in_no_figure() {
        let own = measured(&[13.0, 900.0, 14.0], 1.0, &[1]);
        assert_eq!(own.calls(), 20);
        assert_eq!(own.rtt_max(), Some(28.0));
        assert!(!own.is_valid());
        assert_eq!(own.why(), "round 2: 1 lost");
        assert_eq!(own.metrics()["rtt_us"]["p50"], 13.5);
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let own = measured(&[12.0, 30.0, 22.0], 1.0, &[]);
        let floor = measured(&[10.0, 30.0, 20.0], 1.0, &[1]);
        let ratio = own.p50_over(&floor).unwrap();
        assert!((ratio.min - 1.1).abs() < 1e-9 && (ratio.max - 1.2).abs() < 1e-9);
    }

    #[test]
    fn a_router_that_idles_is_not_the_limit() {
        #[track_caller]
        fn check(busy: f64, in_flight: usize, expected: bool) {
            assert_eq!(
                measured(&[1.0], busy, &[]).driver_bound(in_flight),
                expected
            );
        }
        check(0.95, 64, false);
        check(0.80, 64, true);
        check(0.30, 1, false);
    }
}
