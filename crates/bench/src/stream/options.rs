//! What can be asked of `bench stream`, and what cannot be had together.

use std::path::PathBuf;

use super::address::{Address, socket};
use super::case::{Case, Mode, NamedTest, Test};
use crate::error::BenchError;
use crate::machine::placement::Placement;
use crate::network::NetworkOptions;
use crate::process::stop::Stop;
use crate::report::json::Build;
use crate::subject::case::Socket;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    pub build: Build,
    /// The `crosstie` to start as testee and workers; by default the one that runs.
    pub executable: Option<PathBuf>,
    /// By default the three of the document.
    pub tests: Vec<NamedTest>,
    /// For tests that do not name theirs; by default TCP.
    pub sockets: Vec<Socket>,
    /// What the server does; by default our own echoes and discards, and somebody else's echoes.
    pub modes: Vec<Mode>,
    /// By default `same-core`, and `split` where there are two cores.
    pub placements: Vec<Placement>,
    /// Measured time of each round.
    pub seconds: f64,
    /// Unmeasured time before it.
    pub warm_up_seconds: f64,
    pub request_bytes: usize,
    pub send_bytes: usize,
    pub runs: usize,
    /// Somebody else's server, in place of the testee.
    pub connect: Option<Address>,
    /// The processes of that server: without them its processor time stays unknown, and it runs
    /// where it will.
    pub server_pids: Vec<u32>,
    /// Measure a netserver beside it.
    pub netserver: bool,
    pub network: NetworkOptions,
    pub json: Option<PathBuf>,
    /// Ends the run after the round that it is in.
    pub stop: Stop,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            build: Build::default(),
            executable: None,
            tests: Vec::new(),
            sockets: Vec::new(),
            modes: Vec::new(),
            placements: Vec::new(),
            seconds: 1.0,
            warm_up_seconds: 0.3,
            request_bytes: 1,
            send_bytes: 32 * 1024,
            runs: 5,
            connect: None,
            server_pids: Vec::new(),
            netserver: false,
            network: NetworkOptions::default(),
            json: None,
            stop: Stop::default(),
        }
    }
}

impl StreamOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let require = |held: bool, rule: &str| match held {
            true => Ok(()),
            false => Err(BenchError::Options(rule.to_owned())),
        };
        let seconds = 0.001..3_600.0;
        require(
            seconds.contains(&self.seconds),
            "--seconds is 0.001 to 3,600",
        )?;
        require(
            (0.0..600.0).contains(&self.warm_up_seconds),
            "the warm-up is 0 to 600 s",
        )?;
        require(self.runs > 0, "--runs is at least 1")?;
        // Both ends hold a whole request before they answer, so it must fit what the kernel buffers.
        require(
            (1..=65_536).contains(&self.request_bytes),
            "--request-size is 1 to 65,536",
        )?;
        require(
            (1..=8 << 20).contains(&self.send_bytes),
            "--send-size is 1 to 8,388,608",
        )?;
        if self.connect.is_none() {
            require(
                self.server_pids.is_empty(),
                "--server-pid goes with --connect",
            )?;
        } else {
            require(
                self.modes.len() <= 1,
                "a server to connect to does one thing: one --mode",
            )?;
        }
        Ok(())
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        let own = self.connect.as_ref().map(|address| socket(&address.0));
        let sockets = match (own, self.sockets.is_empty()) {
            (Some(own), _) => vec![own],
            (None, true) => vec![Socket::Tcp],
            (None, false) => self.sockets.clone(),
        };
        let named = |test| NamedTest { test, socket: None };
        let tests = match (self.tests.is_empty(), self.modes.contains(&Mode::Chargen)) {
            (false, _) => self.tests.clone(),
            (true, false) => Test::OF_THE_DOCUMENT.map(named).to_vec(),
            (true, true) => [Test::OF_THE_DOCUMENT.as_slice(), &[Test::Maerts]]
                .concat()
                .into_iter()
                .map(named)
                .collect(),
        };
        let mut cases = Vec::new();
        for NamedTest { test, socket } in tests {
            let modes = self.modes_for(test)?;
            let sockets = socket.map_or_else(|| sockets.clone(), |socket| vec![socket]);
            for socket in sockets {
                if own.is_some_and(|own| own != socket) {
                    let name = Case {
                        test,
                        socket,
                        mode: Mode::Echo,
                    };
                    let text = format!("{name} is not for the kind of socket of --connect");
                    return Err(BenchError::Options(text));
                }
                cases.extend(modes.iter().map(|&mode| Case { test, socket, mode }));
            }
        }
        if cases.is_empty() {
            let text = "no test is left for this --mode".to_owned();
            return Err(BenchError::Options(text));
        }
        Ok(cases)
    }

    /// What servers a test is to have.
    fn modes_for(&self, test: Test) -> Result<Vec<Mode>, BenchError> {
        let offered: &[Mode] = match (self.modes.is_empty(), &self.connect) {
            (false, _) => &self.modes,
            (true, None) => &Mode::ALL,
            (true, Some(_)) => &[Mode::Echo],
        };
        let modes: Vec<Mode> = offered
            .iter()
            .copied()
            .filter(|mode| mode.serves(test))
            .collect();
        if modes.is_empty() && !self.tests.is_empty() {
            let needed = Mode::ALL.iter().find(|mode| mode.serves(test));
            return Err(BenchError::Options(format!(
                "{} needs a server of --mode {}",
                test.name(),
                needed.map_or("echo", |mode| mode.name())
            )));
        }
        Ok(modes)
    }

    /// The placements to measure in, on a machine that allows these cores.
    pub(super) fn definite_placements(&self, allowed: &[usize]) -> Vec<Placement> {
        match (self.placements.is_empty(), allowed.len()) {
            (false, _) => self.placements.clone(),
            (true, 0 | 1) => vec![Placement::SameCore],
            (true, _) => vec![Placement::SameCore, Placement::Split],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut StreamOptions), expected: Result<&str, &str>) {
            let mut options = StreamOptions::default();
            change(&mut options);
            let cases = options.check().and_then(|()| options.definite_cases());
            let cases = cases.map(|cases| {
                let cases: Vec<String> = cases.iter().map(ToString::to_string).collect();
                cases.join(", ")
            });
            match (cases, expected) {
                (Ok(cases), Ok(expected)) => assert_eq!(cases, expected),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
        fn tests(names: &[&str]) -> Vec<NamedTest> {
            names.iter().map(|name| name.parse().unwrap()).collect()
        }
        fn address(text: &str) -> Option<Address> {
            Some(text.parse().unwrap())
        }
        check(
            |_| (),
            Ok("TCP_RR, TCP_STREAM echo, TCP_STREAM discard, TCP_CRR"),
        );
        check(|o| o.modes = vec![Mode::Discard], Ok("TCP_STREAM discard"));
        check(|o| o.modes = vec![Mode::Chargen], Ok("TCP_MAERTS"));
        check(
            |o| o.sockets = vec![Socket::Unix],
            Ok("UDS_RR, UDS_STREAM echo, UDS_STREAM discard, UDS_CRR"),
        );
        check(|o| o.tests = tests(&["UDS_RR", "RR"]), Ok("UDS_RR, TCP_RR"));
        check(|o| o.tests = tests(&["TCP_MAERTS"]), Ok("TCP_MAERTS"));
        check(
            |o| o.connect = address("unix:///x"),
            Ok("UDS_RR, UDS_STREAM echo, UDS_CRR"),
        );
        check(
            |o| {
                o.connect = address("tcp://127.0.0.1:9");
                o.modes = vec![Mode::Discard];
            },
            Ok("TCP_STREAM discard"),
        );
        check(
            |o| {
                o.connect = address("tcp://127.0.0.1:9");
                o.tests = tests(&["UDS_RR"]);
            },
            Err("UDS_RR is not for the kind of socket"),
        );
        check(
            |o| {
                o.tests = tests(&["TCP_RR"]);
                o.modes = vec![Mode::Discard];
            },
            Err("RR needs a server of --mode echo"),
        );
        check(
            |o| {
                o.connect = address("tcp://127.0.0.1:9");
                o.modes = vec![Mode::Discard, Mode::Echo];
            },
            Err("one --mode"),
        );
        check(|o| o.server_pids = vec![1], Err("goes with --connect"));
        check(|o| o.runs = 0, Err("--runs"));
        check(|o| o.seconds = f64::NAN, Err("--seconds"));
        check(|o| o.request_bytes = 0, Err("--request-size"));
        check(|o| o.send_bytes = 1 << 30, Err("--send-size"));
    }
}
