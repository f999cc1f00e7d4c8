//! The figures that this project set itself for oslo.messaging. All but those of the delays are
//! ratios to a RabbitMQ that is measured in the same rounds.

use super::case::{Driver, Operation};
use super::section::Section;
use super::topology::Topology;
use crate::figures::{Goal, Series, unfit, verdict};
use crate::machine::placement::Placement;

const PEER: &str = "rabbitmq";

/// Lines about the goals of one case.
pub(super) fn verdicts(section: &Section, all: &[Section]) -> Vec<String> {
    match section.way {
        None => rates(section),
        Some(_) => delayed(section, all),
    }
}

/// What is of interest and has no goal: of the native client the broker's processor time.
pub(super) fn without_goal(section: &Section) -> Option<String> {
    if section.way.is_some() || section.case.driver != Driver::Native {
        return None;
    }
    let (own, peer) = (section.own()?, section.subject(PEER)?);
    let ratio = own.over(peer, "broker_cpu_us_per_operation")?.median;
    let operation = section.case.operation;
    Some(format!(
        "broker CPU per {operation} ÷ {PEER}: {ratio:.2} (its goal is for the Python client)"
    ))
}

fn rates(section: &Section) -> Vec<String> {
    let (Some(own), Some(peer)) = (section.own(), section.subject(PEER)) else {
        return Vec::new();
    };
    let unfit = unfit([own, peer]);
    let over = |figure| own.over(peer, figure).map(|ratio| ratio.median);
    let goals = [
        (
            format!("{}s per second ÷ {PEER}", section.case.operation),
            rate_goal(section).map(Goal::AtLeast),
            over("operations_per_s"),
        ),
        (
            format!("broker CPU per {} ÷ {PEER}", section.case.operation),
            // The goal is about the library's own clients. Where the scheduler places, a figure
            // flips with the machine's load.
            (section.case.driver == Driver::Python && section.placement != Placement::Free)
                .then_some(Goal::AtMost(0.1)),
            over("broker_cpu_us_per_operation"),
        ),
    ];
    let lines = goals
        .into_iter()
        .filter_map(|(what, goal, reached)| verdict(&what, goal?, reached, unfit));
    lines.collect()
}

fn rate_goal(section: &Section) -> Option<f64> {
    use Driver::{Native, Python};
    use Operation::{Call, Cast};
    use Placement::{Free, SameCore, Split};
    match (
        section.case.driver,
        section.case.operation,
        section.placement,
    ) {
        (_, _, Free) => None,
        (Native, Call, SameCore) => Some(5.0),
        (Native, Call, Split) => Some(2.0),
        (Native, Cast, SameCore) => Some(4.0),
        (Native, Cast, Split) => Some(1.5),
        (Python, Call, _) => Some(1.2),
        (Python, Cast, _) => Some(1.15),
    }
}

/// At 50 ms on one link, of what the delay allows, or of the undelayed rate where it allows all.
fn delayed(section: &Section, all: &[Section]) -> Vec<String> {
    let (Some((topology, delay)), Some(own)) = (section.way, section.own()) else {
        return Vec::new();
    };
    if delay.as_millis() != 50 || section.case.driver != Driver::Native {
        return Vec::new();
    }
    let name = section.name();
    if let Some(reached) = section.over_limit(own) {
        // Two digits behind the point would hide what is missed by half a hundredth.
        let what = format!("{name}: % of the delay's limit");
        let goal = Goal::AtLeast(99.0);
        return Vec::from_iter(verdict(&what, goal, Some(100.0 * reached), unfit([own])));
    }
    let undelayed = all.iter().find(|other| {
        other.case == section.case
            && other
                .way
                .is_some_and(|(of, delay)| of == topology && delay.is_zero())
    });
    let (Topology::RemoteServer, Some(undelayed)) = (topology, undelayed.and_then(Section::own))
    else {
        return Vec::new();
    };
    let median = |series: &Series| series.median("operations_per_s");
    let reached = median(own)
        .zip(median(undelayed))
        .map(|(own, other)| own / other);
    let what = format!("{name} ÷ without delay");
    Vec::from_iter(verdict(
        &what,
        Goal::AtLeast(0.9),
        reached,
        unfit([own, undelayed]),
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::figures::Figures;
    use crate::oslo::case::Case;

    fn series(name: &str, per_s: f64, cpu_us: f64) -> Series {
        let mut series = Series::new(name);
        let figures = Figures::new().with("operations_per_s", per_s);
        series.push(Ok(figures.with("broker_cpu_us_per_operation", cpu_us)));
        series
    }

    fn section(
        way: Option<(Topology, u64)>,
        placement: Placement,
        measured: Vec<Series>,
    ) -> Section {
        Section {
            case: Case {
                operation: Operation::Cast,
                driver: Driver::Native,
            },
            placement,
            way: way.map(|(topology, ms)| (topology, Duration::from_millis(ms))),
            measured,
        }
    }

    #[test]
    fn rates_are_held_against_the_peer() {
        let both = vec![
            series("crosstie", 40_000.0, 5.0),
            series(PEER, 9_000.0, 80.0),
        ];
        let found = verdicts(&section(None, Placement::SameCore, both.clone()), &[]);
        assert_eq!(found, ["casts per second ÷ rabbitmq ≥ 4.00: 4.44, met"]);
        let native = section(None, Placement::SameCore, both.clone());
        assert_eq!(
            without_goal(&native).as_deref(),
            Some("broker CPU per cast ÷ rabbitmq: 0.06 (its goal is for the Python client)")
        );
        let mut python = section(None, Placement::Split, both.clone());
        python.case.driver = Driver::Python;
        assert_eq!(
            verdicts(&python, &[]),
            [
                "casts per second ÷ rabbitmq ≥ 1.15: 4.44, met",
                "broker CPU per cast ÷ rabbitmq ≤ 0.10: 0.06, met"
            ]
        );
        assert_eq!(without_goal(&python), None);
        assert!(verdicts(&section(None, Placement::Free, both), &[]).is_empty());
        let alone = vec![series("crosstie", 40_000.0, 5.0)];
        assert!(verdicts(&section(None, Placement::Split, alone), &[]).is_empty());
    }

    #[test]
    fn delays_are_held_against_their_limit() {
        let placed = |way, per_s| {
            let own = vec![series("crosstie", per_s, 5.0)];
            section(Some(way), Placement::Split, own)
        };
        let client = placed((Topology::RemoteClient, 50), 19.5);
        let found = verdicts(&client, &[]);
        let expected =
            "cast, native, remote client, 50 ms: % of the delay's limit ≥ 99.0: 97.5, missed";
        assert_eq!(found, [expected]);
        let without = placed((Topology::RemoteServer, 0), 1000.0);
        let server = placed((Topology::RemoteServer, 50), 950.0);
        let expected = "cast, native, remote server, 50 ms ÷ without delay ≥ 0.90: 0.95, met";
        assert_eq!(verdicts(&server, &[without]), [expected]);
    }
}
