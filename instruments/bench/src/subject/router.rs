//! The router under test, started as its own process like a user's, or a foreign one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::load::free_address;
use crate::machine::allowed_cores;
use crate::network::Network;
use crate::subject::{
    Case, Endpoint, NodeDirectory, ServerProcess, Socket, Target, guarded, own_program,
};

/// The realm of every router that the bench starts.
pub(crate) const REALM: &str = "realm1";

#[derive(Clone, Debug)]
pub(crate) struct RouterOptions {
    pub executable: PathBuf,
    /// `None` leaves the number to its default.
    pub threads: Option<usize>,
    pub waiting: Waiting,
    /// Its WebSockets accept permessage-deflate, which takes a node directory.
    pub compresses: bool,
}

/// How a router of ours waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// By its default.
    Usual,
    /// It polls in any case.
    Polling,
    /// It blocks at once.
    Blocking,
}

impl Waiting {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Polling => &["--busy-poll"],
            Self::Blocking => &["--spin-budget", "0"],
        }
    }
}

/// Time for a node to start in a directory of its own.
const START_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct Listening {
    pub socket: PathBuf,
    pub address: SocketAddr,
    pub resource: &'static str,
}

impl Listening {
    /// A Unix socket in `directory`, and an address with a free port.
    pub(crate) fn in_directory(directory: &Path, address: SocketAddr) -> Self {
        Self {
            socket: directory.join("router.sock"),
            address,
            resource: "/ws",
        }
    }

    /// The address and case for a worker.
    pub(crate) fn target(&self, case: Case) -> Target {
        let endpoint = match case.socket {
            Socket::Unix => Endpoint::Unix(self.socket.clone()),
            Socket::Tcp => Endpoint::Tcp(self.address),
        };
        Target::own(endpoint, case, self.resource)
    }

    /// A node with these endpoints, whose WebSockets have such options.
    pub(crate) fn node(&self, websocket: &Value) -> Value {
        let universal = |endpoint: Value| {
            json!({
                "type": "universal",
                "endpoint": endpoint,
                "rawsocket": {},
                "websocket": {
                    self.resource.trim_start_matches('/'): { "options": websocket }
                }
            })
        };
        let transports = json!([
            universal(json!({ "type": "unix", "path": self.socket })),
            universal(json!({
                "type": "tcp",
                "interface": self.address.ip(),
                "port": self.address.port()
            })),
        ]);
        node_configuration("anonymous", transports)
    }

    pub(crate) fn endpoints(&self) -> [Endpoint; 2] {
        [
            Endpoint::Unix(self.socket.clone()),
            Endpoint::Tcp(self.address),
        ]
    }
}

pub(crate) struct Router {
    pub process: ServerProcess,
    pub listening: Listening,
}

impl Router {
    /// Starts it on the servers' side of a network, so that it dies with the bench, and waits until both its sockets
    /// accept.
    pub(crate) fn start(
        options: &RouterOptions,
        directory: &Path,
        network: &Network,
    ) -> Result<Self, BenchError> {
        let listening = Listening::in_directory(directory, network.free_server_address()?);
        let place = network.server_place(&allowed_cores()?);
        let mut command = guarded(&options.executable, &place, &own_program()?);
        if options.compresses {
            return Self::spawn_compressing(command, options, listening, directory);
        }
        command.args(start_arguments(options, &listening));
        // Its store is in the directory in which it runs.
        command.current_dir(directory);
        Self::spawn(command, listening)
    }

    /// Starts it without a guard, to take the time: spawn until both sockets accept.
    pub(crate) fn start_timed(
        options: &RouterOptions,
        directory: &Path,
    ) -> Result<(Self, Duration), BenchError> {
        let listening = Listening::in_directory(directory, free_address()?);
        let mut command = Command::new(own_program()?);
        command.args(start_arguments(options, &listening));
        command.current_dir(directory);
        let begun = Instant::now();
        let router = Self::spawn(command, listening)?;
        Ok((router, begun.elapsed()))
    }

    fn spawn_compressing(
        command: Command,
        options: &RouterOptions,
        listening: Listening,
        directory: &Path,
    ) -> Result<Self, BenchError> {
        let threads = options.threads.map(|threads| threads.to_string());
        let mut start_options = vec!["--loglevel", "warn"];
        if let Some(threads) = &threads {
            start_options.extend(["--threads", threads]);
        }
        start_options.extend(options.waiting.arguments());
        let node = NodeDirectory {
            config: listening.node(&json!({ "compression": { "deflate": {} } })),
            directory: &directory.join("compressing"),
            options: &start_options,
            patience: START_PATIENCE,
        };
        let process = ServerProcess::start_node(command, "crosstie", &node, listening.endpoints())?;
        Ok(Self { process, listening })
    }

    fn spawn(command: Command, listening: Listening) -> Result<Self, BenchError> {
        let mut process = ServerProcess::spawn(command, "crosstie")?;
        for endpoint in listening.endpoints() {
            process.wait_until_it_accepts(&endpoint, Duration::from_secs(10))?;
        }
        Ok(Self { process, listening })
    }
}

/// A user's arguments after `crosstie`.
fn start_arguments(options: &RouterOptions, listening: &Listening) -> Vec<String> {
    let mut arguments = vec![
        "start".to_owned(),
        "--socket".to_owned(),
        listening.socket.display().to_string(),
        "--listen".to_owned(),
        listening.address.to_string(),
        // Any port: several routers may run, and no client will connect there.
        "--amqp".to_owned(),
        "127.0.0.1:0".to_owned(),
        "--loglevel".to_owned(),
        "warn".to_owned(),
    ];
    if let Some(threads) = options.threads {
        arguments.extend(["--threads".to_owned(), threads.to_string()]);
    }
    let waiting = options.waiting.arguments().iter();
    arguments.extend(waiting.map(|argument| (*argument).to_owned()));
    arguments
}

/// A node with one realm, with one role that may do everything.
pub(crate) fn node_configuration(role: &str, transports: Value) -> Value {
    json!({
        "version": 2,
        "workers": [{
            "type": "router",
            "realms": [{
                "name": REALM,
                "roles": [{
                    "name": role,
                    "permissions": [{
                        "uri": "",
                        "match": "prefix",
                        "allow": {
                            "call": true, "register": true, "publish": true, "subscribe": true
                        },
                        "disclose": { "caller": false, "publisher": false },
                        "cache": true
                    }]
                }]
            }],
            "transports": transports
        }]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_is_started_as_a_user_would() {
        #[track_caller]
        fn check(threads: Option<usize>, waiting: Waiting, expected: &str) {
            let options = RouterOptions {
                executable: "crosstie".into(),
                threads,
                waiting,
                compresses: false,
            };
            let listening = Listening {
                socket: "/tmp/x/router.sock".into(),
                address: "127.0.0.1:9000".parse().unwrap(),
                resource: "/ws",
            };
            assert_eq!(start_arguments(&options, &listening).join(" "), expected);
        }
        check(
            None,
            Waiting::Usual,
            "start --socket /tmp/x/router.sock --listen 127.0.0.1:9000 --amqp 127.0.0.1:0 --loglevel warn",
        );
        check(
            Some(2),
            Waiting::Polling,
            "start --socket /tmp/x/router.sock --listen 127.0.0.1:9000 --amqp 127.0.0.1:0 --loglevel \
             warn --threads 2 --busy-poll",
        );
    }
}
