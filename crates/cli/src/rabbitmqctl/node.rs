//! The node itself: its status, its start, its end.

use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::{Value as Json, json};

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::lists::encoded;
use super::output::{Output, cell, line};
use crate::stop::has_ended_within;

/// The version of RabbitMQ whose commands these are.
pub(super) const VERSION: &str = "3.10.8";

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 12] = [
    ctl("status", (0, 0), "", &[], status).both(),
    ctl("cluster_status", (0, 0), "", &[], cluster_status).both(),
    ctl("node_health_check", (0, 0), "", &[], health).both(),
    ctl("ping", (0, 0), "", &[], ping).both().also_stopped(),
    ctl("await_startup", (0, 0), "", &[], await_startup).also_stopped(),
    ctl("wait", (0, 1), "[<pidfile>] [--pid|-P <pid>]", &["pid"], wait).also_stopped(),
    ctl("version", (0, 0), "", &[], |_| Ok(Output::Text(VERSION.to_owned()))).both().also_stopped(),
    ctl("enable_feature_flag", (1, 1), "<all | feature_flag>", &[], enable_feature_flag),
    ctl("stop_app", (0, 0), "", &[], stop_app).also_stopped(),
    ctl("start_app", (0, 0), "", &[], start_app).also_stopped(),
    ctl("stop", (0, 0), "", &[], stop).also_stopped(),
    ctl("shutdown", (0, 0), "", &[], shutdown).also_stopped(),
];

/// The answers of the management API about the node.
pub(super) struct About {
    pub(super) overview: Json,
    pub(super) node: Json,
    alarms: Vec<Json>,
}

impl About {
    pub(super) fn read(run: &Run) -> Result<Self, Failure> {
        let mut overview = run.session.read_only("overview", &[200])?;
        let name = encoded(overview["node"].as_str().unwrap_or_default());
        let node = run.session.read_only(&format!("nodes/{name}"), &[200])?;
        let mut alarms = run.session.read_only("health/checks/alarms", &[200, 503])?;
        let alarms = match alarms["alarms"].take() {
            Json::Array(alarms) => alarms,
            _ => Vec::new(),
        };
        overview["vhosts"] = run.session.entries("vhost", None, None)?.len().into();
        Ok(Self {
            overview,
            node,
            alarms,
        })
    }

    /// The listeners as `status` has them.
    pub(super) fn listeners(&self) -> Vec<Json> {
        let listeners = self.overview["listeners"].as_array();
        let listeners = listeners.into_iter().flatten().map(|listener| {
            json!({
                "interface": listener["ip_address"],
                "node": listener["node"],
                "port": listener["port"],
                "protocol": listener["protocol"],
                "purpose": purpose(listener["protocol"].as_str().unwrap_or_default()),
            })
        });
        listeners.collect()
    }

    /// The alarms by name.
    pub(super) fn alarms(&self) -> Vec<String> {
        let alarms = self.alarms.iter();
        let names = alarms.map(|alarm| match alarm["resource"] == "memory" {
            true => "memory",
            false => "disk",
        });
        names.map(str::to_owned).collect()
    }

    /// The same in RabbitMQ's words.
    pub(super) fn alarm_lines(&self) -> Vec<String> {
        let node = cell(&self.node["name"]);
        let lines = self.alarms().into_iter().map(|alarm| {
            let what = match &*alarm {
                "memory" => "Memory",
                _ => "Free disk space",
            };
            format!("{what} alarm on node {node}")
        });
        lines.collect()
    }

    fn to_json(&self) -> Json {
        let (node, overview) = (&self.node, &self.overview);
        let used = &node["mem_used"];
        json!({
            "active_plugins": node["enabled_plugins"],
            "alarms": self.alarms(),
            "config_files": node["config_files"],
            "data_directory": node["db_dir"],
            "disk_free": node["disk_free"],
            "disk_free_limit": node["disk_free_limit"],
            "erlang_version": overview["erlang_version"],
            "file_descriptors": {
                "sockets_limit": node["sockets_total"],
                "sockets_used": node["sockets_used"],
                "total_limit": node["fd_total"],
                "total_used": node["fd_used"],
            },
            "is_under_maintenance": node["being_drained"],
            "listeners": self.listeners(),
            "log_files": node["log_files"],
            "memory": {
                "strategy": node["mem_calculation_strategy"],
                "total": {"allocated": used, "erlang": used, "rss": used},
            },
            "net_ticktime": node["net_ticktime"],
            "os": os(),
            "pid": node["os_pid"].as_str().and_then(|pid| pid.parse::<u32>().ok()),
            "processes": {"limit": node["proc_total"], "used": node["proc_used"]},
            "product_name": overview["product_name"],
            "product_version": overview["product_version"],
            "rabbitmq_version": overview["rabbitmq_version"],
            "release_series_support_status": overview["release_series_support_status"],
            "run_queue": node["run_queue"],
            "totals": self.totals(),
            "uptime": self.uptime_s(),
            "vm_memory_calculation_strategy": node["mem_calculation_strategy"],
            "vm_memory_high_watermark_limit": node["mem_limit"],
        })
    }

    fn totals(&self) -> Json {
        let totals = &self.overview["object_totals"];
        json!({
            "connection_count": totals["connections"],
            "queue_count": totals["queues"],
            "virtual_host_count": self.overview["vhosts"],
        })
    }

    fn uptime_s(&self) -> u64 {
        self.node["uptime"].as_u64().unwrap_or_default() / 1000
    }

    fn to_text(&self) -> String {
        let alarms = match self.alarm_lines() {
            alarms if alarms.is_empty() => vec!["(none)".to_owned()],
            alarms => alarms,
        };
        let listeners = self.listeners();
        let sections = [
            ("Runtime", self.runtime()),
            ("Resources", self.resources()),
            ("Totals", self.total_lines()),
            ("Alarms", alarms),
            ("Listeners", listeners.iter().map(listener_line).collect()),
        ];
        sections_text(&sections)
    }

    fn runtime(&self) -> Vec<String> {
        let (node, overview) = (&self.node, &self.overview);
        vec![
            format!("OS PID: {}", cell(&node["os_pid"])),
            format!("OS: {}", os()),
            format!("Uptime (seconds): {}", self.uptime_s()),
            format!("Is under maintenance?: {}", node["being_drained"]),
            format!("RabbitMQ version: {}", cell(&overview["rabbitmq_version"])),
            format!("Node name: {}", cell(&overview["node"])),
            format!("Implementation: {}", cell(&overview["erlang_version"])),
            format!("Node data directory: {}", cell(&node["db_dir"])),
        ]
    }

    fn resources(&self) -> Vec<String> {
        let node = &self.node;
        let of = |what: &str, used: &str, limit: &str| {
            format!(
                "{what}: {}, limit: {}",
                cell(&node[used]),
                cell(&node[limit])
            )
        };
        vec![
            of("Memory of messages (bytes)", "mem_used", "mem_limit"),
            of("Free disk space (bytes)", "disk_free", "disk_free_limit"),
            of("File descriptors", "fd_used", "fd_total"),
            of("Sockets", "sockets_used", "sockets_total"),
        ]
    }

    fn total_lines(&self) -> Vec<String> {
        let totals = self.totals();
        vec![
            format!("Connection count: {}", totals["connection_count"]),
            format!("Queue count: {}", totals["queue_count"]),
            format!("Virtual host count: {}", totals["virtual_host_count"]),
        ]
    }
}

/// A listener in words.
pub(super) fn listener_line(listener: &Json) -> String {
    format!(
        "Interface: {}, port: {}, protocol: {}, purpose: {}",
        cell(&listener["interface"]),
        listener["port"],
        cell(&listener["protocol"]),
        cell(&listener["purpose"]),
    )
}

/// Titles, each above its lines.
fn sections_text(sections: &[(&str, Vec<String>)]) -> String {
    let sections = sections
        .iter()
        .map(|(title, lines)| format!("{title}\n\n{}", lines.join("\n")));
    sections.collect::<Vec<_>>().join("\n\n")
}

fn os() -> String {
    let system = rustix::system::uname();
    format!(
        "{} {}",
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy()
    )
}

fn purpose(protocol: &str) -> &'static str {
    match protocol {
        "amqp" => "AMQP 0-9-1 and AMQP 1.0",
        "amqp/ssl" => "AMQP 0-9-1 and AMQP 1.0 over TLS",
        "http" => "HTTP API",
        "https" => "HTTP API over TLS (HTTPS)",
        "http/prometheus" => "Prometheus exporter API over HTTP",
        _ => "",
    }
}

fn status(run: &Run) -> Result<Output, Failure> {
    run.announce(&format!("Status of node {} ...", run.session.name()?))?;
    let about = About::read(run)?;
    Ok(Output::Value(about.to_text(), about.to_json()))
}

fn cluster_status(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!("Cluster status of node {node} ..."))?;
    let about = About::read(run)?;
    let cluster = run.session.read("cluster-name")?.1["name"].take();
    let (_, flags) = run.session.read("feature-flags")?;
    let version = about.overview["rabbitmq_version"]
        .as_str()
        .unwrap_or_default();
    let crosstie = about.overview["erlang_version"]
        .as_str()
        .unwrap_or_default();
    let json = json!({
        "alarms": about.alarms(),
        "cluster_name": cluster,
        "disk_nodes": [node],
        "feature_flags": flags,
        "listeners": {node: about.listeners()},
        "maintenance_status": {node: "not under maintenance"},
        "partitions": {},
        "ram_nodes": [],
        "running_nodes": [node],
        "versions": {node: {
            "erlang_version": crosstie,
            "rabbitmq_name": "RabbitMQ",
            "rabbitmq_version": version,
        }},
    });
    let name = cluster.as_str().unwrap_or_default();
    let text = sections_text(&[
        ("Basics", vec![format!("Cluster name: {name}")]),
        ("Disk Nodes", vec![node.to_owned()]),
        ("Running Nodes", vec![node.to_owned()]),
        (
            "Versions",
            vec![format!("{node}: RabbitMQ {version} on {crosstie}")],
        ),
        ("Network Partitions", vec!["(none)".to_owned()]),
    ]);
    Ok(Output::Value(text, json))
}

/// Seconds that RabbitMQ waits for a node.
const PATIENCE_S: i64 = 60;

fn health(run: &Run) -> Result<Output, Failure> {
    let timeout_s = run.words.number("timeout").unwrap_or(70);
    let node = run.session.name()?;
    run.announce(&format!(
        "Timeout: {timeout_s}.0 seconds ...\nChecking health of node {node} ..."
    ))?;
    let (_, found) = run.session.read("healthchecks/node")?;
    match found["status"] == "ok" {
        true => Ok(Output::Text("Health check passed".to_owned())),
        false => Err(Failure::check(&format!(
            "Error: health check failed. Message: {}",
            found["reason"].as_str().unwrap_or_default()
        ))),
    }
}

fn ping(run: &Run) -> Result<Output, Failure> {
    let timeout_ms = run.words.number("timeout").unwrap_or(PATIENCE_S) * 1000;
    let node = run.session.name()?;
    run.announce(&format!(
        "Will ping {node}. This only checks if the OS process is running and registered with epmd. Timeout: \
         {timeout_ms} ms."
    ))?;
    Ok(Output::Text("Ping succeeded".to_owned()))
}

/// Seconds that `await_startup` waits by default.
const STARTUP_S: i64 = 300;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

fn await_startup(run: &Run) -> Result<Output, Failure> {
    await_node(run, STARTUP_S, || Ok(()))?;
    Ok(Output::Nothing)
}

/// Waits for the node, as long as `check` finds nothing wrong.
fn await_node(
    run: &Run,
    patience_s: i64,
    check: impl Fn() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let patience_s = run.words.number("timeout").unwrap_or(patience_s);
    let patience = Duration::from_secs(u64::try_from(patience_s).unwrap_or(0));
    let began = Instant::now();
    loop {
        let failure = match run.session.is_app_running_now() {
            Ok(true) => return Ok(()),
            Ok(false) => Failure::refused("rabbit_is_not_running"),
            Err(failure) => failure,
        };
        check()?;
        if began.elapsed() >= patience {
            return Err(failure);
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}

/// Seconds that `wait` waits by default.
const WAIT_S: i64 = 10;

fn wait(run: &Run) -> Result<Output, Failure> {
    let pid = match (run.words.number("pid"), run.words.arguments.first()) {
        (Some(pid), None) => pid,
        (None, Some(file)) => {
            run.announce(&format!("Waiting for pid file '{file}' to appear"))?;
            pid_in(run, file)?
        }
        _ => return Err(run.bad_argument("expected either a pidfile or --pid")),
    };
    run.announce(&format!("pid is {pid}"))?;
    await_node(run, WAIT_S, || match runs(pid) {
        true => Ok(()),
        false => Err(Failure::check(&format!(
            "Error: process {pid} is not running"
        ))),
    })?;
    if !runs(pid) {
        return Err(Failure::check(&format!(
            "Error: process {pid} is not running"
        )));
    }
    let node = run.session.name()?;
    run.announce(&format!(
        "Applications 'rabbit_and_plugins' are running on node '{node}'"
    ))?;
    Ok(Output::Nothing)
}

fn pid_in(run: &Run, file: &str) -> Result<i64, Failure> {
    let patience_s = run.words.number("timeout").unwrap_or(WAIT_S);
    let patience = Duration::from_secs(u64::try_from(patience_s).unwrap_or(0));
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            return Ok(pid);
        }
        if began.elapsed() >= patience {
            return Err(Failure::data(&format!("could not read a pid from {file}")));
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}

fn runs(pid: i64) -> bool {
    std::path::Path::new("/proc").join(pid.to_string()).exists()
}

fn enable_feature_flag(run: &Run) -> Result<Output, Failure> {
    let flag = run.argument(0);
    match flag {
        "all" => run.announce("Enabling all feature flags ...")?,
        flag => run.announce(&format!("Enabling feature flag \"{flag}\" ..."))?,
    }
    let (_, flags) = run.session.read("feature-flags")?;
    let mut flags = flags.as_array().into_iter().flatten();
    match flag == "all" || flags.any(|known| known["name"] == flag) {
        true => Ok(Output::Nothing),
        false => Err(Failure::usage(&format!(
            "Error:\nThis feature flag is not supported by node {}",
            run.session.name()?
        ))),
    }
}

fn stop_app(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!("Stopping rabbit application on node {node} ..."))?;
    run.session.app_call("stop_amqp")?;
    Ok(Output::Nothing)
}

fn start_app(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!("Starting node {node} ..."))?;
    run.session.app_call("start_amqp")?;
    Ok(Output::Nothing)
}

fn stop(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!("Stopping and halting node {node} ..."))?;
    end(run)?;
    Ok(Output::Nothing)
}

fn shutdown(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?.to_owned();
    let pid = end(run)?;
    line(&format!(
        "RabbitMQ node {node} running at PID {pid} successfully shut down"
    ))?;
    Ok(Output::Nothing)
}

/// Ends the node. Returns its process.
fn end(run: &Run) -> Result<i32, Failure> {
    let status = run.session.node_call("crossbar.get_status")?;
    let pid = status["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::software("the node does not say which process it is"))?;
    let number = pid.as_raw_nonzero().get();
    if !runs(number.into()) {
        return Err(Failure::refused(&format!(
            "the node calls itself process {number}, which does not run here: it is in a container"
        )));
    }
    // The answer may be lost with the connection: then the process counts.
    match run.session.node_call("crossbar.shutdown") {
        Err(failure) if !failure.is_lost => return Err(failure),
        _ => {}
    }
    let timeout_s = run.words.number("timeout").unwrap_or(PATIENCE_S);
    let ended = has_ended_within(pid, u32::try_from(timeout_s).unwrap_or(0));
    let ended = ended.map_err(|error| Failure::software(&crate::chain(&error)))?;
    match ended {
        true => Ok(number),
        false => Err(Failure::timed_out(&format!(
            "Error: the node was asked to end and still runs after {timeout_s} s"
        ))),
    }
}
