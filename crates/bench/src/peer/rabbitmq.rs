//! RabbitMQ as Debian has it, started by hand: a node with a name, ports, a port mapper and
//! directories of its own, and nothing of it left when it ends. No plug-ins, no log but warnings,
//! its own defaults in everything else.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::broker::Broker;
use crate::broker::url::ACCOUNT;
use crate::broker::wire::Wire;
use crate::error::BenchError;
use crate::machine::{allowed_cores, process_tree};
use crate::network::Network;
use crate::peer::crossbar::find_on_path;
use crate::subject::{Endpoint, ServerProcess, guarded, names};

/// A broker that the bench knows how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokerPeer {
    RabbitMq,
}

impl BrokerPeer {
    pub(crate) fn installation(self) -> &'static str {
        "apt-get install rabbitmq-server"
    }
}

names! {
    BrokerPeer { RabbitMq = "rabbitmq" }
    "the peer that can be started is rabbitmq"
}

pub(crate) struct RabbitMq {
    pub(crate) broker: Broker,
    pub(crate) version: String,
    server: ServerProcess,
    // Fields go in this order: what the server left behind is ended before its port mapper.
    left: Left,
    mapper: ServerProcess,
}

/// Debian's script beside the one that changes the user, which only root could.
const SCRIPT: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// It starts in five seconds where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(90);

impl RabbitMq {
    /// Starts it on the servers' side of a network and waits until it lets a client in; `None`
    /// where it is not installed.
    pub(crate) fn start(
        directory: &Path,
        executable: &Path,
        network: &Network,
    ) -> Result<Option<Self>, BenchError> {
        let script = match Path::new(SCRIPT).is_file() {
            true => Some(PathBuf::from(SCRIPT)),
            false => find_on_path("rabbitmq-server"),
        };
        let (Some(script), Some(mapper)) = (script, find_on_path("epmd")) else {
            return Ok(None);
        };
        let directory = directory.join("rabbitmq");
        fs::create_dir_all(&directory)?;
        let place = network.server_place(&allowed_cores()?);
        let address = network.free_server_address()?;
        let distribution = network.free_server_address()?.port();
        let mapped = network.free_server_address()?.port();
        fs::write(directory.join("rabbitmq.conf"), configuration(address))?;
        fs::write(directory.join("enabled_plugins"), "[].\n")?;

        let mut command = guarded(executable, &place, &mapper);
        command.args(["-address", "127.0.0.1", "-port", &mapped.to_string()]);
        command.stderr(fs::File::create(directory.join("epmd.log"))?);
        let mut mapper = ServerProcess::spawn(command, "epmd")?;
        let at = Endpoint::Tcp(([127, 0, 0, 1], mapped).into());
        if network.server_ip().is_loopback() {
            mapper.wait_until_it_accepts(&at, Duration::from_secs(10))?;
        }

        let mut command = guarded(executable, &place, &script);
        let log = directory.join("rabbitmq.log");
        environment(&mut command, &directory, distribution, mapped);
        let server = ServerProcess::spawn_logged(command, "rabbitmq", log)?;
        let mut started = Self {
            broker: Broker::own(address),
            version: String::new(),
            server,
            left: Left::default(),
            mapper,
        };
        started.version = started.wait(address)?;
        Ok(Some(started))
    }

    /// All processes: the emulator, its helpers, the port mapper.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut processes = process_tree(self.server.id());
        processes.push(self.mapper.id());
        processes
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.server.is_alive()
    }

    fn wait(&mut self, address: SocketAddr) -> Result<String, BenchError> {
        let endpoint = Endpoint::Tcp(address);
        self.server.wait_until_it_accepts(&endpoint, PATIENCE)?;
        let broker = &self.broker;
        self.server.wait_until(PATIENCE, || {
            let wire = Wire::open(broker, "crosstie bench").map_err(|error| error.to_string())?;
            let version = wire.server().to_owned();
            let _ = wire.close();
            Ok(version)
        })
    }
}

/// Before the fields go: who belongs to the server is known as long as it lives.
impl Drop for RabbitMq {
    fn drop(&mut self) {
        self.left.0 = process_tree(self.server.id());
    }
}

/// Processes that a server may have left behind. Dropping this ends them.
#[derive(Default)]
struct Left(Vec<u32>);

impl Drop for Left {
    fn drop(&mut self) {
        for process in self.0.iter().skip(1) {
            if let Some(process) = Pid::from_raw(process.cast_signed()) {
                // Most often it is gone already.
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }
}

fn configuration(address: SocketAddr) -> String {
    format!(
        "listeners.tcp.1 = {address}\n\
         default_user = {ACCOUNT}\n\
         default_pass = {ACCOUNT}\n\
         loopback_users = none\n\
         log.file = false\n\
         log.console = true\n\
         log.console.level = warning\n"
    )
}

fn environment(command: &mut Command, directory: &Path, distribution: u16, mapped: u16) {
    let process = std::process::id();
    command
        // So that the emulator takes the place of the script, which would outlive it.
        .env("RUNNING_UNDER_SYSTEMD", "1")
        .env_remove("NOTIFY_SOCKET")
        // Where its cookie goes.
        .env("HOME", directory)
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env("RABBITMQ_NODENAME", format!("bench-{process}@localhost"))
        .env("RABBITMQ_CONFIG_FILE", directory.join("rabbitmq.conf"))
        .env(
            "RABBITMQ_ENABLED_PLUGINS_FILE",
            directory.join("enabled_plugins"),
        )
        .env("RABBITMQ_MNESIA_BASE", directory.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", directory.join("log"))
        .env("RABBITMQ_GENERATED_CONFIG_DIR", directory.join("generated"))
        .env("RABBITMQ_PID_FILE", directory.join("pid"))
        .env("RABBITMQ_DIST_PORT", distribution.to_string())
        .env("ERL_EPMD_PORT", mapped.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_CRASH_DUMP_SECONDS", "0");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_where_nobody_else_does() {
        let text = configuration(([127, 0, 0, 1], 9000).into());
        assert!(text.starts_with("listeners.tcp.1 = 127.0.0.1:9000\n"));
        let mut command = Command::new("x");
        environment(&mut command, Path::new("/d"), 9001, 9002);
        let value = |name: &str| {
            let found = command.get_envs().find(|(key, _)| *key == name);
            found
                .and_then(|(_, value)| value)
                .map(|v| v.to_string_lossy().into_owned())
        };
        assert_eq!(value("RABBITMQ_DIST_PORT").as_deref(), Some("9001"));
        assert_eq!(value("ERL_EPMD_PORT").as_deref(), Some("9002"));
        assert_eq!(value("RABBITMQ_MNESIA_BASE").as_deref(), Some("/d/mnesia"));
        assert_eq!(value("NOTIFY_SOCKET"), None);
    }
}
