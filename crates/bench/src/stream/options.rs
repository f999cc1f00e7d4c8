//! What can be asked of `bench stream`, and what cannot be had together.

use super::address::{Address, socket};
use super::case::{Case, Mode, NamedTest, Test};
use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::subject::case::Socket;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    pub common: Common,
    /// By default the three of the document.
    pub tests: Vec<NamedTest>,
    /// For tests that do not name theirs; by default TCP.
    pub sockets: Vec<Socket>,
    /// What the server does; by default our own echoes and discards, and somebody else's echoes.
    pub modes: Vec<Mode>,
    pub request_bytes: usize,
    pub send_bytes: usize,
    /// Somebody else's server, in place of the testee.
    pub url: Option<Address>,
    /// Measure a netserver beside it.
    pub netserver: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            common: Common::default(),
            tests: Vec::new(),
            sockets: Vec::new(),
            modes: Vec::new(),
            request_bytes: 1,
            send_bytes: 32 * 1024,
            url: None,
            netserver: false,
        }
    }
}

impl StreamOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        // Both ends hold a whole request before they answer, so it must fit what the kernel buffers.
        require(
            (1..=65_536).contains(&self.request_bytes),
            "--request-size is 1 to 65,536",
        )?;
        require(
            (1..=8 << 20).contains(&self.send_bytes),
            "--send-size is 1 to 8,388,608",
        )?;
        require(
            self.url.is_none() || self.modes.len() <= 1,
            "a server at a --url does one thing: one --mode",
        )
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        let own = self.url.as_ref().map(|address| socket(&address.0));
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
                    let text = format!("{name} is not for the kind of socket of --url");
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
        let offered: &[Mode] = match (self.modes.is_empty(), &self.url) {
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
            |o| o.url = address("unix:///x"),
            Ok("UDS_RR, UDS_STREAM echo, UDS_CRR"),
        );
        check(
            |o| {
                o.url = address("tcp://127.0.0.1:9");
                o.modes = vec![Mode::Discard];
            },
            Ok("TCP_STREAM discard"),
        );
        check(
            |o| {
                o.url = address("tcp://127.0.0.1:9");
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
                o.url = address("tcp://127.0.0.1:9");
                o.modes = vec![Mode::Discard, Mode::Echo];
            },
            Err("one --mode"),
        );
        check(|o| o.request_bytes = 0, Err("--request-size"));
        check(|o| o.send_bytes = 1 << 30, Err("--send-size"));
    }
}
