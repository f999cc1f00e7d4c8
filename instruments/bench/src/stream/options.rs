//! The options of `bench stream`, and their valid combinations.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::address::{Address, socket};
use super::case::{Case, Mode, NamedTest, Test};
use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, ServerOptions, require, require_within};
use crate::network::NetworkOptions;
use crate::subject::Socket;

/// Start a testee and the floor's servers, and drivers as processes of their own.
#[derive(Clone, Debug, clap::Args)]
pub struct StreamOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// TCP_RR, TCP_STREAM, TCP_CRR (the default: these three), TCP_MAERTS, or the same with UDS_ for a Unix socket; may
    /// be repeated.
    #[arg(short, long = "test", value_name = "TEST")]
    tests: Vec<NamedTest>,
    /// Sockets for tests that do not name theirs; may be repeated [default: tcp].
    #[arg(long = "socket", value_name = "KIND", value_parser = socket_kind())]
    sockets: Vec<Socket>,
    /// Mode of the server: echo, discard or chargen; may be repeated for the testee [default: echo and discard; with
    /// --url echo].
    #[arg(long = "mode", value_name = "MODE")]
    modes: Vec<Mode>,
    /// Bytes of each request and of its response.
    #[arg(
        short,
        long = "request-size",
        default_value = "1",
        value_parser = request_size,
        value_name = "BYTES"
    )]
    pub(super) request_bytes: usize,
    /// Bytes of each send of a throughput.
    #[arg(
        short = 'm',
        long = "send-size",
        default_value_t = 32_768,
        value_name = "BYTES"
    )]
    pub(super) send_bytes: usize,
    #[command(flatten)]
    pub(super) server: ServerOptions<Address>,
    /// netserver: measure it too, by its own netperf, both found on PATH.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<StreamPeer>,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    usual: CommonOptions<AsUsual>,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum StreamPeer {
    Netserver,
}

fn socket_kind() -> impl TypedValueParser<Value = Socket> {
    let names = PossibleValuesParser::new(["tcp", "unix"]);
    names.map(|name| match name.as_str() {
        "unix" => Socket::Unix,
        _ => Socket::Tcp,
    })
}

/// netperf's `REQUEST,RESPONSE`, of which an echo can only serve equal ones.
fn request_size(text: &str) -> Result<usize, String> {
    let number = |text: &str| text.trim().parse::<usize>().map_err(|e| e.to_string());
    let Some((request, response)) = text.split_once(',') else {
        return number(text);
    };
    let (request, response) = (number(request)?, number(response)?);
    match request == response {
        true => Ok(request),
        false => Err("an echo answers as many bytes as it is sent: give one size".to_owned()),
    }
}

impl StreamOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self.usual.common(host, &self.server, &self.network)?;
        self.check()?;
        Ok(self)
    }

    /// Whether a netserver is measured beside the others.
    pub(super) fn has_netserver(&self) -> bool {
        self.peers.contains(&StreamPeer::Netserver)
    }

    /// Refuses invalid options, and loads that would overwhelm the machine.
    fn check(&self) -> Result<(), BenchError> {
        // Both ends hold a whole request before they answer, so it must fit the kernel's buffers.
        require_within("--request-size", &self.request_bytes, 1..=65_536)?;
        require_within("--send-size", &self.send_bytes, 1..=8 << 20)?;
        require(
            self.server.url.is_none() || self.modes.len() <= 1,
            "a server at a --url does one thing: one --mode",
        )
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        let own = self.server.url.as_ref().map(|address| socket(&address.0));
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

    /// The modes of a test's servers.
    fn modes_for(&self, test: Test) -> Result<Vec<Mode>, BenchError> {
        let offered: &[Mode] = match (self.modes.is_empty(), &self.server.url) {
            (false, _) => &self.modes,
            (true, None) => Mode::ALL,
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
    use crate::frame::{check_cases, usual};

    fn tests(names: &[&str]) -> Vec<NamedTest> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn address(text: &str) -> Option<Address> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn contradictory_options_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut StreamOptions), expected: Result<&str, &str>) {
            let mut options = usual::<StreamOptions>();
            change(&mut options);
            let cases = options.check().and_then(|()| options.definite_cases());
            check_cases(cases, expected);
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
            |o| o.server.url = address("unix:///x"),
            Ok("UDS_RR, UDS_STREAM echo, UDS_CRR"),
        );
        check(
            |o| {
                o.server.url = address("tcp://127.0.0.1:9");
                o.modes = vec![Mode::Discard];
            },
            Ok("TCP_STREAM discard"),
        );
        check(
            |o| {
                o.server.url = address("tcp://127.0.0.1:9");
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
                o.server.url = address("tcp://127.0.0.1:9");
                o.modes = vec![Mode::Discard, Mode::Echo];
            },
            Err("one --mode"),
        );
        check(|o| o.request_bytes = 0, Err("--request-size"));
        check(|o| o.send_bytes = 1 << 30, Err("--send-size"));
    }
}
