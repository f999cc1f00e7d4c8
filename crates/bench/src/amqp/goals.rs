//! The figures that this project set itself for a broker's messages: ratios to a RabbitMQ that is
//! measured in the same rounds.

use super::case::Case;
use super::section::Section;
use crate::figures::{DRIVER_BOUND, Goal, unfit, verdict};
use crate::machine::placement::Placement;

const PEER: &str = "rabbitmq";

/// Lines about the goals of a case.
pub(super) fn verdicts(section: &Section) -> Vec<String> {
    let (Some(own), Some(peer)) = (section.measured.first(), section.subject(PEER)) else {
        return Vec::new();
    };
    // Where the scheduler places, a figure flips with the machine's load: no goal's basis.
    if section.placement == Placement::Free {
        return Vec::new();
    }
    let unfit = unfit([own, peer]);
    let goals: &[(&str, &str, Goal)] = match section.case {
        Case::Transient => &[
            (
                "broker CPU per message",
                "broker_cpu_us_per_message",
                Goal::AtMost(0.2),
            ),
            ("messages per second", "messages_per_s", Goal::AtLeast(3.0)),
        ],
        Case::Priorities => &[
            (
                "broker CPU per message",
                "broker_cpu_us_per_message",
                Goal::AtMost(0.2),
            ),
            ("messages per second", "messages_per_s", Goal::AtLeast(5.0)),
        ],
        Case::Durable => &[("messages per second", "messages_per_s", Goal::AtLeast(2.0))],
        Case::Transactions => &[
            (
                "broker CPU per message",
                "broker_cpu_us_per_message",
                Goal::AtMost(0.2),
            ),
            ("messages per second", "messages_per_s", Goal::AtLeast(5.0)),
        ],
        Case::Paced => &[("confirm, median", "confirm_p50_us", Goal::AtMost(1.0))],
        Case::DurableKept => &[],
    };
    let lines = goals.iter().filter_map(|(what, figure, goal)| {
        let reached = own.over(peer, figure)?.median;
        let is_rate = *figure == "messages_per_s";
        // A rate that is the driver's says nothing about the broker, unless it is enough all the same.
        let is_enough = matches!(goal, Goal::AtLeast(least) if reached >= *least);
        let is_bound = is_rate && !is_enough && section.is_driver_bound(own);
        let unfit = unfit.or_else(|| is_bound.then_some(DRIVER_BOUND));
        verdict(&format!("{what} ÷ {PEER}"), *goal, Some(reached), unfit)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, Series};

    #[test]
    fn a_rate_that_is_the_drivers_is_not_judged() {
        #[track_caller]
        fn check(case: Case, placement: Placement, per_s: f64, busy: f64, expected: &[&str]) {
            let series = |name: &str, per_s: f64, cpu_us: f64| {
                let mut series = Series::new(name);
                let figures = Figures::new()
                    .with("messages_per_s", per_s)
                    .with("broker_busy_cores", busy)
                    .with("broker_cpu_us_per_message", cpu_us);
                series.push(Ok(figures));
                series
            };
            let section = Section {
                case,
                placement,
                measured: vec![series("crosstie", per_s, 2.0), series(PEER, 100.0, 20.0)],
            };
            assert_eq!(verdicts(&section), expected);
        }
        use Placement::{Free, SameCore, Split};
        let cpu = "broker CPU per message ÷ rabbitmq ≤ 0.20: 0.10, met";
        let rate = "messages per second ÷ rabbitmq ≥ 3.00: 2.50, not judged: driver-bound";
        check(Case::Transient, Split, 250.0, 0.5, &[cpu, rate]);
        let rate = "messages per second ÷ rabbitmq ≥ 3.00: 2.50, missed";
        check(Case::Transient, SameCore, 250.0, 0.5, &[cpu, rate]);
        let rate = "messages per second ÷ rabbitmq ≥ 3.00: 3.50, met";
        check(Case::Transient, Split, 350.0, 0.5, &[cpu, rate]);
        let rate = "messages per second ÷ rabbitmq ≥ 2.00: 2.50, met";
        check(Case::Durable, Split, 250.0, 0.2, &[rate]);
        let rate = "messages per second ÷ rabbitmq ≥ 5.00: 4.00, missed";
        check(Case::Priorities, Split, 400.0, 0.95, &[cpu, rate]);
        let rate = "messages per second ÷ rabbitmq ≥ 5.00: 4.00, not judged: driver-bound";
        check(Case::Priorities, Split, 400.0, 0.5, &[cpu, rate]);
        check(Case::Durable, Free, 250.0, 0.2, &[]);
        check(Case::DurableKept, Split, 250.0, 0.2, &[]);
    }
}
