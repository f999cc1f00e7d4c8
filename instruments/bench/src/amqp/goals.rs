//! The project's goals for a broker's messages: ratios to a RabbitMQ measured in the same rounds.

use super::case::Case;
use super::{AmqpOptions, CPU, PEER, RATE};
use crate::frame::{Bound, Goal};

pub(super) fn goals(case: Case, options: &AmqpOptions) -> Vec<Goal> {
    match options.replicated {
        true => goals_of_three(case, options.rate),
        false => goals_of_one(case),
    }
}

fn over(what: &str, figure: &'static str, bound: Bound) -> Goal {
    Goal::over(format!("{what} ÷ {PEER}"), PEER, figure, bound)
}

/// With a copy of each message on each of three nodes.
fn goals_of_three(case: Case, rate: u64) -> Vec<Goal> {
    match case {
        Case::DurableKept => vec![
            over("messages per second", RATE, Bound::AtLeast(3.0)),
            Goal::median("messages per second", RATE, Bound::AtLeast(100_000.0)),
        ],
        Case::Durable => vec![over("messages per second", RATE, Bound::AtLeast(3.0))],
        Case::Paced if rate >= 50_000 => vec![Goal::median(
            "confirm, median µs",
            "confirm_p50_us",
            Bound::AtMost(5_000.0),
        )],
        Case::Paced => vec![over(
            "confirm, median",
            "confirm_p50_us",
            Bound::AtMost(1.0),
        )],
        Case::Transient | Case::Priorities | Case::Transactions => Vec::new(),
    }
}

fn goals_of_one(case: Case) -> Vec<Goal> {
    let cpu = over("broker CPU per message", CPU, Bound::AtMost(0.2));
    let rate = |least| over("messages per second", RATE, Bound::AtLeast(least));
    match case {
        Case::Transient => vec![cpu, rate(3.0)],
        Case::Priorities | Case::Transactions => vec![cpu, rate(5.0)],
        Case::Durable => vec![rate(2.0)],
        Case::Paced => vec![over(
            "confirm, median",
            "confirm_p50_us",
            Bound::AtMost(1.0),
        )],
        Case::DurableKept => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, Series};
    use crate::frame::{OWN, Section, judge};
    use crate::machine::Placement;

    #[test]
    fn a_case_is_held_against_its_peer() {
        #[track_caller]
        fn check(case: Case, per_s: f64, expected: &[&str]) {
            let series = |name: &str, per_s: f64, cpu_us: f64| {
                let mut series = Series::new(name);
                series.push(Ok(Figures::new().with(RATE, per_s).with(CPU, cpu_us)));
                series
            };
            let section = Section {
                case,
                placement: Some(Placement::Split),
                server_cores: 1,
                series: vec![series(OWN, per_s, 2.0), series(PEER, 100.0, 20.0)],
                said: Vec::new(),
            };
            let goals = goals_of_one(case);
            let verdicts = goals
                .iter()
                .filter_map(|goal| judge(&section, goal, |_| false));
            let texts: Vec<String> = verdicts.map(|verdict| verdict.to_string()).collect();
            assert_eq!(texts, expected);
        }
        let cpu = "broker CPU per message ÷ rabbitmq ≤ 0.20: 0.10, met";
        let rate = "messages per second ÷ rabbitmq ≥ 3.00: 2.50, missed";
        check(Case::Transient, 250.0, &[cpu, rate]);
        let rate = "messages per second ÷ rabbitmq ≥ 5.00: 5.50, met";
        check(Case::Priorities, 550.0, &[cpu, rate]);
        let rate = "messages per second ÷ rabbitmq ≥ 2.00: 2.50, met";
        check(Case::Durable, 250.0, &[rate]);
        check(Case::DurableKept, 250.0, &[]);
    }
}
