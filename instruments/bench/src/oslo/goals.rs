//! The project's goals for oslo.messaging. All but those of the delays are ratios to a RabbitMQ measured in the same
//! rounds.

use super::case::{Driver, Operation, Placed};
use super::topology::Topology;
use super::{CPU, PEER, RATE};
use crate::figures::unfit;
use crate::frame::{Bound, Goal, Section};
use crate::machine::Placement;

/// The goals of one case; `all` has the same without a delay.
pub(super) fn goals(section: &Section<Placed>, all: &[Section<Placed>]) -> Vec<Goal> {
    match section.case.way {
        None => rates(section),
        Some(_) => delayed(section, all).into_iter().collect(),
    }
}

/// Interesting figures without a goal: the broker's processor time with the native client.
pub(super) fn without_goal(section: &Section<Placed>) -> Option<String> {
    if section.case.way.is_some() || section.case.of.driver != Driver::Native {
        return None;
    }
    let ratio = section.over(section.own()?, PEER, CPU)?.median;
    let operation = section.case.of.operation;
    Some(format!(
        "  broker CPU per {operation} ÷ {PEER}: {ratio:.2} (its goal is for the Python client)"
    ))
}

fn rates(section: &Section<Placed>) -> Vec<Goal> {
    let operation = section.case.of.operation;
    let mut goals = Vec::new();
    if let Some(least) = rate_min(section) {
        let what = format!("{operation}s per second ÷ {PEER}");
        goals.push(Goal::over(what, PEER, RATE, Bound::AtLeast(least)));
    }
    // The goal is about the library's own clients.
    if section.case.of.driver == Driver::Python {
        let what = format!("broker CPU per {operation} ÷ {PEER}");
        goals.push(Goal::over(what, PEER, CPU, Bound::AtMost(0.1)));
    }
    goals
}

fn rate_min(section: &Section<Placed>) -> Option<f64> {
    use Driver::{Native, Python};
    use Operation::{Call, Cast};
    use Placement::{Free, SameCore, Split};
    let of = section.case.of;
    match (of.driver, of.operation, section.placement?) {
        (_, _, Free) => None,
        (Native, Call, SameCore) => Some(5.0),
        (Native, Call, Split) => Some(2.0),
        (Native, Cast, SameCore) => Some(4.0),
        (Native, Cast, Split) => Some(1.5),
        (Python, Call, _) => Some(1.2),
        (Python, Cast, _) => Some(1.15),
    }
}

/// At 50 ms on one side: the share of the rate that the delay allows, or of the undelayed rate if it allows all.
fn delayed(section: &Section<Placed>, all: &[Section<Placed>]) -> Option<Goal> {
    let (case, own) = (&section.case, section.own()?);
    let (topology, delay) = case.way?;
    if delay.as_millis() != 50 || case.of.driver != Driver::Native {
        return None;
    }
    if let Some(reached) = case.over_limit(own) {
        // Two decimals would hide a miss by half a hundredth.
        let what = format!("{case}: % of the delay's limit");
        let goal = Goal::computed(what, Some(100.0 * reached), Bound::AtLeast(99.0));
        return Some(goal.unless(unfit([own])));
    }
    let is_undelayed = |other: &&Section<Placed>| {
        let way = other.case.way;
        other.case.of == case.of && way.is_some_and(|(of, delay)| of == topology && delay.is_zero())
    };
    let undelayed = all.iter().find(is_undelayed)?.own()?;
    if topology != Topology::RemoteServer {
        return None;
    }
    let reached = own.median(RATE)? / undelayed.median(RATE)?;
    let goal = Goal::computed(
        format!("{case} ÷ without delay"),
        Some(reached),
        Bound::AtLeast(0.9),
    );
    Some(goal.unless(unfit([own, undelayed])))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::figures::{Figures, Series};
    use crate::frame::{OWN, judge};
    use crate::oslo::case::Case;

    fn series(name: &str, per_s: f64, cpu_us: f64) -> Series {
        let mut series = Series::new(name);
        series.push(Ok(Figures::new().with(RATE, per_s).with(CPU, cpu_us)));
        series
    }

    fn section(
        way: Option<(Topology, u64)>,
        driver: Driver,
        placement: Placement,
        series: Vec<Series>,
    ) -> Section<Placed> {
        Section {
            case: Placed {
                of: Case {
                    operation: Operation::Cast,
                    driver,
                },
                way: way.map(|(topology, ms)| (topology, Duration::from_millis(ms))),
            },
            placement: Some(placement),
            server_cores: 1,
            series,
            said: Vec::new(),
        }
    }

    #[track_caller]
    fn check(section: &Section<Placed>, all: &[Section<Placed>], expected: &[&str]) {
        let goals = goals(section, all);
        let verdicts = goals
            .iter()
            .filter_map(|goal| judge(section, goal, |_| false));
        let texts: Vec<String> = verdicts.map(|verdict| verdict.to_string()).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn rates_are_held_against_the_peer() {
        let both = || vec![series(OWN, 40_000.0, 5.0), series(PEER, 9_000.0, 80.0)];
        let native = section(None, Driver::Native, Placement::SameCore, both());
        check(
            &native,
            &[],
            &["casts per second ÷ rabbitmq ≥ 4.00: 4.44, met"],
        );
        assert_eq!(
            without_goal(&native).as_deref(),
            Some("  broker CPU per cast ÷ rabbitmq: 0.06 (its goal is for the Python client)")
        );
        let python = section(None, Driver::Python, Placement::Split, both());
        let rate = "casts per second ÷ rabbitmq ≥ 1.15: 4.44, met";
        let cpu = "broker CPU per cast ÷ rabbitmq ≤ 0.10: 0.06, met";
        check(&python, &[], &[rate, cpu]);
        assert_eq!(without_goal(&python), None);
        check(
            &section(None, Driver::Native, Placement::Free, both()),
            &[],
            &[],
        );
        let alone = vec![series(OWN, 40_000.0, 5.0)];
        check(
            &section(None, Driver::Native, Placement::Split, alone),
            &[],
            &[],
        );
    }

    #[test]
    fn delays_are_held_against_their_limit() {
        let placed = |way, per_s| {
            let own = vec![series(OWN, per_s, 5.0)];
            section(Some(way), Driver::Native, Placement::Split, own)
        };
        let client = placed((Topology::RemoteClient, 50), 19.5);
        let limit =
            "cast, native, remote client, 50 ms: % of the delay's limit ≥ 99.0: 97.5, missed";
        check(&client, &[], &[limit]);
        let without = placed((Topology::RemoteServer, 0), 1000.0);
        let server = placed((Topology::RemoteServer, 50), 950.0);
        let over = "cast, native, remote server, 50 ms ÷ without delay ≥ 0.90: 0.95, met";
        check(&server, &[without], &[over]);
    }
}
