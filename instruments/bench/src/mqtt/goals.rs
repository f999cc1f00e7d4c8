//! The project's goals for MQTT: ratios to brokers measured in the same rounds.

use super::case::Case;
use super::figures::{ACKNOWLEDGED, CLIENT_BYTES, CONNECTIONS, CPU, RATE};
use super::subjects::MqttPeer;
use crate::frame::{Bound, Goal};

/// Goals of a fan-out are for this many subscribers, ...
const FAN: usize = 500;
/// ... and of messages one to one for this many outstanding ones.
const OUTSTANDING: u64 = 64;

pub(super) fn goals(case: Case, fan: usize, outstanding: u64) -> Vec<Goal> {
    let (mosquitto, rabbitmq) = (MqttPeer::Mosquitto.name(), MqttPeer::RabbitMq.name());
    let over = |what: &str, peer, figure, bound| {
        Goal::over(format!("{what} ÷ {peer}"), peer, figure, bound)
    };
    let (most, least) = (Bound::AtMost, Bound::AtLeast);
    match case {
        Case::FanOut if fan == FAN => {
            vec![over("broker CPU per message", mosquitto, CPU, most(0.5))]
        }
        Case::FanOutPaced if fan == FAN => vec![Goal::over_floor(
            "broker CPU per message ÷ floor",
            CPU,
            most(1.2),
        )],
        Case::QoS1 if outstanding == OUTSTANDING => vec![
            over("messages per second", mosquitto, RATE, least(3.0)),
            over("broker CPU per message", mosquitto, CPU, most(1.0 / 3.0)),
        ],
        Case::Durable | Case::DurableKept => {
            let what = "acknowledged per second";
            vec![over(what, rabbitmq, ACKNOWLEDGED, least(5.0))]
        }
        Case::ConnectionsTls => {
            let what = "connections per second";
            vec![over(what, mosquitto, CONNECTIONS, least(1.0))]
        }
        Case::Idle => vec![
            Goal::median("KiB per idle client", CLIENT_BYTES, most(1.5)).in_units_of(1024.0),
            over("memory per idle client", mosquitto, CLIENT_BYTES, most(1.0)),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, Series};
    use crate::frame::{FLOOR, OWN, Section, judge};
    use crate::machine::Placement;

    #[test]
    fn a_case_is_held_against_its_peer() {
        #[track_caller]
        fn check(case: Case, fan: usize, expected: &[&str]) {
            let series = |name: &str, scale: f64| {
                let mut series = Series::new(name);
                let figures = Figures::new().with(CPU, scale).with(RATE, 1.0 / scale);
                let figures = figures.with(ACKNOWLEDGED, 1.0 / scale);
                series.push(Ok(figures.with(CLIENT_BYTES, 1024.0 * scale)));
                series
            };
            let mosquitto = series("mosquitto", 4.0);
            let others = [series(FLOOR, 1.0), mosquitto, series("rabbitmq", 4.0)];
            let section = Section {
                case,
                placement: Some(Placement::Split),
                server_cores: 1,
                series: [series(OWN, 1.0)].into_iter().chain(others).collect(),
                said: Vec::new(),
            };
            let goals = goals(case, fan, 64);
            let verdicts = goals
                .iter()
                .filter_map(|goal| judge(&section, goal, |_| false));
            let texts: Vec<String> = verdicts.map(|verdict| verdict.to_string()).collect();
            assert_eq!(texts, expected);
        }
        let cpu = "broker CPU per message ÷ mosquitto ≤ 0.50: 0.25, met";
        check(Case::FanOut, 500, &[cpu]);
        check(Case::FanOut, 50, &[]);
        let floor = "broker CPU per message ÷ floor ≤ 1.20: 1.00, met";
        check(Case::FanOutPaced, 500, &[floor]);
        let rate = "messages per second ÷ mosquitto ≥ 3.00: 4.00, met";
        let cpu = "broker CPU per message ÷ mosquitto ≤ 0.33: 0.25, met";
        check(Case::QoS1, 500, &[rate, cpu]);
        let rate = "acknowledged per second ÷ rabbitmq ≥ 5.00: 4.00, missed";
        check(Case::DurableKept, 500, &[rate]);
        let own = "KiB per idle client ≤ 1.50: 1.00, met";
        let over = "memory per idle client ÷ mosquitto ≤ 1.00: 0.25, met";
        check(Case::Idle, 500, &[own, over]);
        check(Case::QoS2, 500, &[]);
    }
}
