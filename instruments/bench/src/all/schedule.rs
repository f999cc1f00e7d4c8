//! The schedule: the benches, their options, and their approximate durations.

use std::path::Path;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Some minutes: checks that everything works, and gives approximate figures.
    Short,
    /// More than half an hour: for publication.
    Full,
}

/// Peers that some bench can start.
pub(super) const PEERS: [&str; 7] = [
    "crossbar",
    "autobahn",
    "netserver",
    "nginx",
    "mosquitto",
    "mochi",
    "rabbitmq",
];

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The name of the step and of its results file.
    pub name: &'static str,
    options: Vec<String>,
    /// Approximate duration.
    pub seconds: u64,
}

impl Step {
    pub(super) fn file(&self) -> String {
        format!("{}.json", self.name)
    }

    pub(super) fn arguments(&self, directory: &Path) -> Vec<String> {
        let mut arguments = vec!["bench".to_owned()];
        arguments.extend(self.options.iter().cloned());
        let file = directory.join(self.file()).display().to_string();
        arguments.extend(["--json".to_owned(), file]);
        arguments
    }

    /// As a user would type it.
    pub(super) fn command(&self, directory: &Path) -> String {
        format!("crosstie {}", self.arguments(directory).join(" "))
    }

    /// Far beyond its duration: a step that is not done by then hangs.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(120 + 5 * self.seconds)
    }
}

/// A command and its duration in seconds.
type Timed = (&'static str, u64);

/// The schedule: the short command and the full one of each step.
#[rustfmt::skip]
const STEPS: &[(&str, Timed, Timed)] = &[
    ("rpc", ("rpc --seconds 0.5", 36), ("rpc --seconds 2 --runs 9", 180)),
    ("rpc-in-flight", ("rpc --outstanding 64 --seconds 0.5 --runs 3", 22), ("rpc --outstanding 64 --seconds 2", 100)),
    (
        "rpc-quiet",
        ("rpc --rate 200 --placement split --seconds 0.5 --runs 2", 10),
        ("rpc --rate 200 --placement split --seconds 2", 60),
    ),
    (
        "rpc-busy-polling",
        ("rpc --spin --placement split --seconds 0.5 --runs 3", 12),
        ("rpc --spin --placement split --seconds 2", 50),
    ),
    ("handshake", ("handshake --seconds 0.5 --runs 3", 12), ("handshake --seconds 2", 50)),
    (
        "handshake-scaling",
        ("handshake --scaling 1,2,4 --scaling-connections 20000", 10),
        ("handshake --scaling 1,2,4", 90),
    ),
    ("echo", ("echo --seconds 0.5 --runs 3", 12), ("echo --seconds 2", 50)),
    ("stream", ("stream --seconds 0.3 --runs 3", 45), ("stream --seconds 2", 290)),
    ("stream-unix", ("stream --socket unix --seconds 0.2 --runs 2", 22), ("stream --socket unix --seconds 1", 170)),
    ("accept", ("accept --connections 6000 --at-once 500 --delay 50ms --floor", 8), ("accept --floor", 100)),
    (
        "pubsub-profiles",
        ("pubsub --profile 1,7,10,17,22 --seconds 1 --runs 3", 50),
        ("pubsub --profile all --runs 3", 900),
    ),
    (
        "pubsub-load",
        (concat!("pubsub --clients 500 --rate 10 --seconds 1 --runs 3 ",
                 "--case uds-rawsocket-msgpack --case tcp-websocket-json"), 20),
        (concat!("pubsub --clients 500 --rate 10 --seconds 2 --runs 5 ",
                 "--case uds-rawsocket-msgpack --case tcp-websocket-json"), 60),
    ),
    (
        "pubsub-compressed",
        (concat!("pubsub --clients 500 --rate 10 --payload 1000 --seconds 1 --runs 3 ",
                 "--case tcp-websocket-json --case tcp-websocket-json-deflated ",
                 "--case tcp-websocket-json-deflated-apart"), 30),
        (concat!("pubsub --clients 500 --rate 10 --payload 1000 --seconds 2 --runs 5 ",
                 "--case tcp-websocket-json --case tcp-websocket-json-deflated ",
                 "--case tcp-websocket-json-deflated-apart"), 90),
    ),
    (
        "footprint-compressed",
        (concat!("footprint --sessions 200,1000 --starts 2 ",
                 "--case tcp-websocket-json --case tcp-websocket-json-deflated"), 6),
        (concat!("footprint --case tcp-websocket-json ",
                 "--case tcp-websocket-json-deflated"), 30),
    ),
    (
        "pubsub-saturated",
        (concat!("pubsub --saturate --clients 500 --seconds 1 --runs 3 ",
                 "--case uds-rawsocket-msgpack --case tcp-websocket-json"), 20),
        (concat!("pubsub --saturate --clients 500 --seconds 2 --runs 5 ",
                 "--case uds-rawsocket-msgpack --case tcp-websocket-json"), 60),
    ),
    (
        "pubsub-max",
        (concat!("pubsub --max --clients 500 --seconds 0.5 --runs 1 ",
                 "--case uds-rawsocket-msgpack --case tcp-websocket-json"), 45),
        (concat!("pubsub --max --clients 500 --seconds 1 --runs 3 ",
                 "--case uds-rawsocket-msgpack --case tcp-websocket-json"), 240),
    ),
    ("node", ("node --native --seconds 1 --warm-up 0.5 --runs 3", 15), ("node", 200)),
    ("oslo", ("oslo --only rates --seconds 0.5 --runs 3", 25), ("oslo --only rates --seconds 2", 110)),
    (
        "oslo-delays",
        ("oslo --only delays --delays 0ms,10ms,50ms --repeat 20 --runs 1", 10),
        ("oslo --only delays", 300),
    ),
    ("amqp", ("amqp --seconds 0.5 --runs 3", 30), ("amqp --seconds 2", 120)),
    (
        "mqtt",
        ("mqtt --seconds 0.2 --runs 1 --clients 2000 --settle 0 --placement split", 13),
        ("mqtt --seconds 1 --runs 3 --settle 5 --placement split", 150),
    ),
    (
        "hostile",
        (concat!("hostile --attack unacked --attack batch --attack deaf ",
                 "--scale 0.1 --limit 5 --after 1"), 15),
        ("hostile", 300),
    ),
    ("join", ("join --seconds 0.5 --runs 2 --placement split", 10), ("join", 70)),
    ("http", ("http --seconds 0.2 --runs 2 --placement split", 5), ("http --seconds 1 --placement split", 25)),
    ("footprint", ("footprint --sessions 200,1000 --starts 5", 6), ("footprint", 30)),
];

/// Approximate time to start and stop a peer.
const PEER_START_SECONDS: u64 = 8;

/// The benches that can start each peer, and the approximate factor of a step's own time that its rounds add:
/// Crossbar.io takes 500 subscribers for each of them.
const BENCHES: [(&str, &[&str], u64); 8] = [
    (
        "crossbar",
        &["rpc", "pubsub", "node", "hostile", "join", "http"],
        3,
    ),
    ("autobahn", &["handshake", "echo"], 1),
    ("netserver", &["stream"], 1),
    ("nginx", &["http"], 1),
    ("mosquitto", &["mqtt"], 1),
    ("mochi", &["mqtt"], 1),
    ("rabbitmq", &["mqtt"], 1),
    ("rabbitmq", &["oslo", "amqp", "hostile"], 2),
];

/// All steps of a schedule, with the requested peers in each that can start them.
pub(super) fn steps(length: Length, peers: &[String]) -> Vec<Step> {
    let step = |(name, short, full): &(&'static str, Timed, Timed)| {
        let (command, seconds) = match length {
            Length::Short => short,
            Length::Full => full,
        };
        let mut options: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let bench = options[0].clone();
        let known = BENCHES
            .iter()
            .filter(|(_, benches, _)| benches.contains(&bench.as_str()));
        let asked = known.filter(|(known, ..)| peers.iter().any(|peer| peer == known));
        let mut with_peers = *seconds;
        for (peer, _, factor) in asked {
            // A table of growing workers concerns only our own testee.
            if !command.contains("--scaling") {
                options.extend(["--peer".to_owned(), (*peer).to_owned()]);
                with_peers += PEER_START_SECONDS + seconds * factor;
            }
        }
        Step {
            name,
            options,
            seconds: with_peers,
        }
    };
    STEPS.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_take_as_long_as_they_say() {
        let of = |length, peers: &[String]| {
            let steps = steps(length, peers);
            steps.iter().map(|step| step.seconds).sum::<u64>()
        };
        let total = |length| of(length, &[]);
        // Measured: 24 minutes.
        let peers = ["crossbar", "rabbitmq"].map(str::to_owned);
        let with_peers = of(Length::Short, &peers);
        assert!((1_300..=1_700).contains(&with_peers), "{with_peers}");
        assert!(
            (150..=490).contains(&total(Length::Short)),
            "{}",
            total(Length::Short)
        );
        assert!(
            (1_700..=3_900).contains(&total(Length::Full)),
            "{}",
            total(Length::Full)
        );
    }

    #[test]
    fn names_are_files_of_their_own() {
        let mut names: Vec<&str> = STEPS.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }
}
