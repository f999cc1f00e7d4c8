//! The router under test, started as its own process the way a user would, or somebody else's.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::case::{Case, Socket};
use crate::error::BenchError;
use crate::socket::{Stream, free_address};
use crate::target::{Endpoint, Target};
use crate::worker::{GUARD, SUBCOMMAND};

/// The realm of every router that the bench starts.
pub const REALM: &str = "realm1";

/// How our own router is started.
#[derive(Clone, Debug)]
pub struct RouterOptions {
    pub executable: PathBuf,
    pub threads: usize,
    pub spin: bool,
}

/// Where a started router listens.
#[derive(Clone, Debug)]
pub struct Listening {
    pub socket: PathBuf,
    pub address: SocketAddr,
    pub resource: &'static str,
}

impl Listening {
    /// A Unix socket in `directory` and a free port on the loopback.
    pub fn in_directory(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            socket: directory.join("router.sock"),
            address: free_address()?,
            resource: "/ws",
        })
    }

    /// What a worker needs to speak to it.
    pub fn target(&self, case: Case) -> Target {
        let (endpoint, host) = match case.socket {
            Socket::Unix => (Endpoint::Unix(self.socket.clone()), "localhost".to_owned()),
            Socket::Tcp => (Endpoint::Tcp(self.address), self.address.to_string()),
        };
        Target {
            endpoint,
            transport: case.transport,
            serializer: case.serializer,
            host,
            resource: self.resource.to_owned(),
            realm: REALM.to_owned(),
        }
    }

    fn endpoints(&self) -> [Endpoint; 2] {
        [
            Endpoint::Unix(self.socket.clone()),
            Endpoint::Tcp(self.address),
        ]
    }
}

/// Our own router, running.
pub struct Router {
    pub process: RouterProcess,
    pub listening: Listening,
}

impl Router {
    /// Starts it, bound to die with the bench, and waits until both its sockets accept.
    pub fn start(options: &RouterOptions, directory: &Path) -> Result<Self, BenchError> {
        let listening = Listening::in_directory(directory)?;
        let mut command = Command::new(&options.executable);
        command.args([SUBCOMMAND, GUARD]).arg(&options.executable);
        command.args(start_arguments(options, &listening));
        Self::spawn(command, listening)
    }

    /// Starts it with nothing around it, to take the time: spawn until both sockets accept.
    pub fn start_timed(
        options: &RouterOptions,
        directory: &Path,
    ) -> Result<(Self, Duration), BenchError> {
        let listening = Listening::in_directory(directory)?;
        let mut command = Command::new(&options.executable);
        command.args(start_arguments(options, &listening));
        let begun = Instant::now();
        let router = Self::spawn(command, listening)?;
        Ok((router, begun.elapsed()))
    }

    fn spawn(command: Command, listening: Listening) -> Result<Self, BenchError> {
        let mut process = RouterProcess::spawn(command, "crosstie")?;
        for endpoint in listening.endpoints() {
            process.wait_until_it_accepts(&endpoint, Duration::from_secs(10))?;
        }
        Ok(Self { process, listening })
    }
}

/// What a user would type after `crosstie`.
fn start_arguments(options: &RouterOptions, listening: &Listening) -> Vec<String> {
    let mut arguments = vec![
        "start".to_owned(),
        "--socket".to_owned(),
        listening.socket.display().to_string(),
        "--listen".to_owned(),
        listening.address.to_string(),
        "--threads".to_owned(),
        options.threads.to_string(),
        "--loglevel".to_owned(),
        "warn".to_owned(),
    ];
    if options.spin {
        arguments.push("--busy-poll".to_owned());
    }
    arguments
}

/// A router's first process; ended when this is dropped.
pub struct RouterProcess {
    child: Child,
    name: &'static str,
}

impl RouterProcess {
    /// Where its standard error goes is the command's own affair.
    pub fn spawn(mut command: Command, name: &'static str) -> Result<Self, BenchError> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| BenchError::Router {
                name,
                why: error.to_string(),
            })?;
        Ok(Self { child, name })
    }

    /// Waits for a connection to succeed.
    pub fn wait_until_it_accepts(
        &mut self,
        endpoint: &Endpoint,
        patience: Duration,
    ) -> Result<(), BenchError> {
        let deadline = Instant::now() + patience;
        let fail = |name, why| Err(BenchError::Router { name, why });
        loop {
            let Err(error) = Stream::connect(endpoint) else {
                return Ok(());
            };
            if let Some(status) = self.child.try_wait()? {
                return fail(self.name, format!("it ended before it listened ({status})"));
            }
            if Instant::now() > deadline {
                let seconds = patience.as_secs();
                return fail(self.name, format!("{endpoint} for {seconds} s: {error}"));
            }
            // Short against the few milliseconds of a start, long against a connection's cost.
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for RouterProcess {
    fn drop(&mut self) {
        if let Some(process) = Pid::from_raw(self.child.id().cast_signed())
            && self.is_alive()
        {
            let _ = kill_process(process, Signal::TERM);
            let deadline = Instant::now() + Duration::from_secs(10);
            while self.is_alive() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_is_started_as_a_user_would() {
        #[track_caller]
        fn check(threads: usize, spin: bool, expected: &str) {
            let options = RouterOptions {
                executable: "crosstie".into(),
                threads,
                spin,
            };
            let listening = Listening {
                socket: "/tmp/x/router.sock".into(),
                address: "127.0.0.1:9000".parse().unwrap(),
                resource: "/ws",
            };
            assert_eq!(start_arguments(&options, &listening).join(" "), expected);
        }
        check(
            1,
            false,
            "start --socket /tmp/x/router.sock --listen 127.0.0.1:9000 --threads 1 --loglevel warn",
        );
        check(
            2,
            true,
            "start --socket /tmp/x/router.sock --listen 127.0.0.1:9000 --threads 2 --loglevel warn \
             --busy-poll",
        );
    }
}
