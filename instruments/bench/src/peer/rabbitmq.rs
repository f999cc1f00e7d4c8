//! RabbitMQ in Debian's package, started by hand: a node, or a cluster, with names, ports, a port mapper and
//! directories of their own, and nothing left when it ends. No plug-ins but that of MQTT if it is asked for, warnings logged only, its own defaults in
//! everything else.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crosstie_amqp::method::{QueueDeclare, QueueDelete};
use rustix::process::{Pid, Signal, kill_process};

use crate::broker::url::ACCOUNT;
use crate::broker::wire::Wire;
use crate::broker::{Broker, Queue};
use crate::error::BenchError;
use crate::machine::{allowed_cores, process_tree};
use crate::network::Network;
use crate::peer::crossbar::find_on_path;
use crate::process::Place;
use crate::subject::{Endpoint, ServerProcess, guarded, names};

/// A broker that the bench can start.
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
    /// The first node's.
    pub(crate) broker: Broker,
    /// The first node's address for MQTT, if it has its plug-in.
    pub(crate) mqtt: Option<SocketAddr>,
    pub(crate) version: String,
    // Fields are dropped in this order: the nodes before their port mapper.
    members: Vec<Member>,
    mapper: ServerProcess,
}

/// One node.
struct Member {
    broker: Broker,
    mqtt: Option<SocketAddr>,
    server: ServerProcess,
    /// Processes that the server left are ended after it.
    left: Left,
}

/// The parts common to a cluster's nodes.
struct Cluster<'a> {
    directory: PathBuf,
    executable: &'a Path,
    network: &'a Network,
    script: PathBuf,
    place: Place,
    mapped: u16,
    nodes: usize,
    has_mqtt: bool,
}

/// Debian's script, beside the one that changes the user, which only root could.
const SCRIPT: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// It starts in five seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// The queue that proves that the nodes are one cluster.
const PROBE: &str = "crosstie-bench-probe";

impl RabbitMq {
    /// Starts one node, or a cluster of so many, on the servers' side of a network, and waits until it accepts a
    /// client; `None` if it is not installed.
    pub(crate) fn start(
        directory: &Path,
        executable: &Path,
        network: &Network,
        nodes: usize,
    ) -> Result<Option<Self>, BenchError> {
        Self::start_with(directory, executable, network, (nodes, false))
    }

    /// One node with the plug-in of MQTT, which has to be installed with it.
    pub(crate) fn start_with_mqtt(
        directory: &Path,
        executable: &Path,
        network: &Network,
    ) -> Result<Option<Self>, BenchError> {
        Self::start_with(directory, executable, network, (1, true))
    }

    fn start_with(
        directory: &Path,
        executable: &Path,
        network: &Network,
        (nodes, has_mqtt): (usize, bool),
    ) -> Result<Option<Self>, BenchError> {
        let script = match Path::new(SCRIPT).is_file() {
            true => Some(PathBuf::from(SCRIPT)),
            false => find_on_path("rabbitmq-server"),
        };
        let (Some(script), Some(mapper)) = (script, find_on_path("epmd")) else {
            return Ok(None);
        };
        let cluster = Cluster {
            directory: directory.join("rabbitmq"),
            executable,
            network,
            script,
            place: network.server_place(&allowed_cores()?),
            mapped: network.free_server_address()?.port(),
            nodes,
            has_mqtt,
        };
        fs::create_dir_all(&cluster.directory)?;
        let mapper = cluster.start_mapper(&mapper)?;
        let mut members = Vec::new();
        let mut version = String::new();
        // One after the other: each joins the running ones.
        for at in 0..nodes {
            let mut member = cluster.start(at)?;
            version = member.wait()?;
            members.push(member);
        }
        check_cluster(&members)?;
        Ok(Some(Self {
            broker: members[0].broker.clone(),
            mqtt: members[0].mqtt,
            version,
            members,
            mapper,
        }))
    }

    /// All processes: the emulators, their helpers, the port mapper.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let of_members = self.members.iter().map(|member| member.server.id());
        let mut processes: Vec<u32> = of_members.flat_map(process_tree).collect();
        processes.push(self.mapper.id());
        processes
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.members
            .iter_mut()
            .all(|member| member.server.is_alive())
    }
}

impl Cluster<'_> {
    fn start_mapper(&self, program: &Path) -> Result<ServerProcess, BenchError> {
        let mut command = guarded(self.executable, &self.place, program);
        command.args(["-address", "127.0.0.1", "-port", &self.mapped.to_string()]);
        command.stderr(fs::File::create(self.directory.join("epmd.log"))?);
        let mut mapper = ServerProcess::spawn(command, "epmd")?;
        let at = Endpoint::Tcp(([127, 0, 0, 1], self.mapped).into());
        if self.network.server_ip().is_loopback() {
            mapper.wait_until_it_accepts(&at, PATIENCE)?;
        }
        Ok(mapper)
    }

    fn start(&self, at: usize) -> Result<Member, BenchError> {
        let directory = self.directory.join(at.to_string());
        fs::create_dir_all(&directory)?;
        let address = self.network.free_server_address()?;
        let distribution = self.network.free_server_address()?.port();
        let mqtt = match self.has_mqtt {
            true => Some(self.network.free_server_address()?),
            false => None,
        };
        let text = configuration(address, self.nodes, mqtt);
        fs::write(directory.join("rabbitmq.conf"), text)?;
        let plugins = if self.has_mqtt { "rabbitmq_mqtt" } else { "" };
        fs::write(directory.join("enabled_plugins"), format!("[{plugins}].\n"))?;
        let mut command = guarded(self.executable, &self.place, &self.script);
        // The place of their cookie, which the first one makes.
        command.env("HOME", &self.directory);
        environment(&mut command, at, &directory, distribution, self.mapped);
        let log = directory.join("rabbitmq.log");
        Ok(Member {
            broker: Broker::own(address),
            mqtt,
            server: ServerProcess::spawn_logged(command, "rabbitmq", log)?,
            left: Left::default(),
        })
    }
}

impl Member {
    /// Waits until it accepts a client; returns its name for itself.
    fn wait(&mut self) -> Result<String, BenchError> {
        let endpoint = self.broker.endpoint.clone();
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

/// Before the fields are dropped: the server's descendants are known only while it lives.
impl Drop for Member {
    fn drop(&mut self) {
        self.left.0 = process_tree(self.server.id());
    }
}

/// Checks that a queue declared on one node exists on all of them: nodes that did not find each other would be measured
/// as so many brokers with one copy each.
fn check_cluster(members: &[Member]) -> Result<(), BenchError> {
    let Some((first, others)) = members.split_first() else {
        return Ok(());
    };
    if others.is_empty() {
        return Ok(());
    }
    let mut wire = Wire::open(&first.broker, "crosstie bench")?;
    wire.declare_queue(Queue {
        name: PROBE,
        is_durable: true,
        ..Queue::default()
    })?;
    let passive = QueueDeclare {
        queue: PROBE,
        passive: true,
        ..QueueDeclare::default()
    };
    for member in others {
        let mut other = Wire::open(&member.broker, "crosstie bench")?;
        other
            .ask(&passive, "queue.declare-ok")
            .map_err(|error| BenchError::Server {
                name: "rabbitmq".to_owned(),
                why: format!("its nodes are not one cluster: {error}"),
            })?;
        other.close()?;
    }
    let delete = QueueDelete {
        queue: PROBE,
        ..QueueDelete::default()
    };
    wire.ask(&delete, "queue.delete-ok")?;
    Ok(wire.close()?)
}

/// Processes that a server may have left behind. Dropping this ends them.
#[derive(Default)]
struct Left(Vec<u32>);

impl Drop for Left {
    fn drop(&mut self) {
        for process in self.0.iter().skip(1) {
            if let Some(process) = Pid::from_raw(process.cast_signed()) {
                // Most often it has ended already.
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }
}

fn configuration(address: SocketAddr, nodes: usize, mqtt: Option<SocketAddr>) -> String {
    let mut text = format!(
        "listeners.tcp.1 = {address}\n\
         default_user = {ACCOUNT}\n\
         default_pass = {ACCOUNT}\n\
         loopback_users = none\n\
         log.file = false\n\
         log.console = true\n\
         log.console.level = warning\n"
    );
    if let Some(mqtt) = mqtt {
        text += &format!("mqtt.listeners.tcp.1 = {mqtt}\n");
    }
    if nodes > 1 {
        text += "cluster_formation.peer_discovery_backend = classic_config\n";
        for at in 0..nodes {
            let name = node_name(at);
            text += &format!(
                "cluster_formation.classic_config.nodes.{} = {name}\n",
                at + 1
            );
        }
    }
    text
}

fn node_name(at: usize) -> String {
    format!("bench-{}-{at}@localhost", std::process::id())
}

fn environment(command: &mut Command, at: usize, directory: &Path, distribution: u16, mapped: u16) {
    command
        // So that the emulator replaces the script, which would outlive it.
        .env("RUNNING_UNDER_SYSTEMD", "1")
        .env_remove("NOTIFY_SOCKET")
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env("RABBITMQ_NODENAME", node_name(at))
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
    fn it_listens_on_ports_of_its_own() {
        let text = configuration(([127, 0, 0, 1], 9000).into(), 1, None);
        assert!(text.starts_with("listeners.tcp.1 = 127.0.0.1:9000\n"));
        assert!(!text.contains("cluster") && !text.contains("mqtt"));
        let text = configuration(([127, 0, 0, 1], 9000).into(), 3, None);
        assert_eq!(text.matches("classic_config.nodes").count(), 3);
        let mut command = Command::new("x");
        environment(&mut command, 0, Path::new("/d"), 9001, 9002);
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
