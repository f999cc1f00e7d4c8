//! Checks and reports of `rabbitmq-diagnostics`.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::lists::encoded;
use super::node::{About, listener_line};
use super::output::{Output, Table, cell};

const EXPIRATION: &[&str] = &["within", "unit"];

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 14] = [
    ctl("check_running", (0, 0), "", &[], is_running).diagnostics().also_stopped(),
    ctl("is_running", (0, 0), "", &[], is_running).diagnostics().also_stopped(),
    ctl("is_booting", (0, 0), "", &[], is_booting).diagnostics().also_stopped(),
    ctl("check_alarms", (0, 0), "", &[], check_alarms).diagnostics(),
    ctl("check_local_alarms", (0, 0), "", &[], check_local_alarms).diagnostics(),
    ctl("alarms", (0, 0), "", &[], alarms).diagnostics(),
    ctl("check_port_connectivity", (0, 0), "", &[], check_connectivity).diagnostics(),
    ctl("check_port_listener", (1, 1), "<port>", &[], check_port).diagnostics(),
    ctl("check_protocol_listener", (1, 1), "<protocol>", &[], check_protocol).diagnostics(),
    ctl("check_virtual_hosts", (0, 0), "", &[], check_vhosts).diagnostics(),
    ctl("check_certificate_expiration", (0, 0), "", EXPIRATION, check_expiration).diagnostics(),
    ctl("listeners", (0, 0), "", &[], listeners).diagnostics(),
    ctl("server_version", (0, 0), "", &[], server_version).diagnostics(),
    ctl("list_node_auth_attempt_stats", (0, 0), "", &[], attempts).diagnostics(),
];

fn ok(text: String) -> Result<Output, Failure> {
    Ok(Output::Value(text, json!({"result": "ok"})))
}

/// A check that fails.
fn failed(run: &Run, text: &str) -> Failure {
    match run.format.is_for_machines() {
        true => Failure::check(&json!({"result": "error", "message": text}).to_string()),
        false => Failure::check(&format!("Error:\n{text}")),
    }
}

fn is_running(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    let is_running = run.session.is_app_running()?;
    let text = match is_running {
        true => format!("RabbitMQ on node {node} is fully booted and running"),
        false => format!(
            "RabbitMQ on node {node} is not running or has not fully booted yet (check with is_booting)"
        ),
    };
    match run.command.grammar.name {
        "check_running" => {
            run.announce(&format!(
                "Checking if RabbitMQ is running on node {node} ..."
            ))?;
            match is_running {
                true => Ok(Output::Text(text)),
                false => Err(Failure::check(&format!("Error:\n{text}"))),
            }
        }
        _ => {
            run.announce(&format!("Asking node {node} for its status ..."))?;
            let value = json!({"message": text, "result": is_running});
            Ok(Output::Value(text, value))
        }
    }
}

/// A node has no socket before it is ready.
fn is_booting(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!("Asking node {node} for its boot status ..."))?;
    ok(format!(
        "RabbitMQ on node {node} is fully booted (check with is_running), stopped or has not started booting yet"
    ))
}

fn check_alarms(run: &Run) -> Result<Output, Failure> {
    alarms_or_none(run, "no alarms, local or clusterwide")
}

fn check_local_alarms(run: &Run) -> Result<Output, Failure> {
    alarms_or_none(run, "no local alarms")
}

fn alarms_or_none(run: &Run, none: &str) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!(
        "Asking node {node} to report any local resource alarms ..."
    ))?;
    match About::read(run)?.alarm_lines() {
        alarms if alarms.is_empty() => ok(format!("Node {node} reported {none}")),
        alarms => Err(failed(run, &alarms.join("\n"))),
    }
}

fn alarms(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!(
        "Asking node {node} to report any known resource alarms ..."
    ))?;
    let alarms = About::read(run)?.alarm_lines();
    Ok(match alarms.is_empty() {
        true => Output::Value(
            format!("Node {node} reported no alarms, local or clusterwide"),
            json!({"alarms": [], "node": node, "result": "ok"}),
        ),
        false => Output::Value(
            alarms.join("\n"),
            json!({
                "global": [],
                "local": alarms,
                "message": format!("Node {node} reported alarms"),
                "result": "ok",
            }),
        ),
    })
}

/// Maximum time for a connection to this machine.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

fn check_connectivity(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!(
        "Testing TCP connections to all active listeners on node {node} ..."
    ))?;
    let listeners = About::read(run)?.listeners();
    let (open, closed): (Vec<&Json>, Vec<&Json>) = listeners.iter().partition(|row| connects(row));
    match closed.is_empty() {
        true => ok(format!(
            "Successfully connected to ports {} on node {node}.",
            ports(&open)
        )),
        false => Err(failed(
            run,
            &format!(
                "Connection to ports of the following listeners on node {node} failed: {}",
                ports(&closed)
            ),
        )),
    }
}

fn ports(listeners: &[&Json]) -> String {
    let ports = listeners
        .iter()
        .map(|listener| listener["port"].to_string());
    ports.collect::<Vec<_>>().join(", ")
}

/// Whether the listener's port accepts a connection. One on all addresses does so on this machine's.
fn connects(listener: &Json) -> bool {
    let host = match listener["interface"].as_str() {
        Some("0.0.0.0") => "127.0.0.1",
        Some("::") | None => "::1",
        Some(host) => host,
    };
    let port = listener["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok());
    let addresses = (host, port.unwrap_or(0)).to_socket_addrs();
    let mut addresses = addresses.into_iter().flatten();
    addresses.any(|address| TcpStream::connect_timeout(&address, CONNECT_WITHIN).is_ok())
}

fn check_port(run: &Run) -> Result<Output, Failure> {
    let port = run.argument(0);
    let Ok(port) = port.parse::<u16>() else {
        return Err(run.bad_argument("Argument must be a positive integer"));
    };
    let node = run.session.name()?;
    run.announce(&format!(
        "Asking node {node} if there's an active listener on port {port} ..."
    ))?;
    let listeners = About::read(run)?.listeners();
    match listeners.iter().any(|listener| listener["port"] == port) {
        true => ok(format!(
            "A listener for port {port} is running on node {node}."
        )),
        false => {
            let all: Vec<&Json> = listeners.iter().collect();
            let text = format!(
                "No listener for port {port} is active on node {node}. Found listeners that use the following \
                 ports: {}",
                ports(&all)
            );
            let failure = failed(run, &text);
            // RabbitMQ begins this text without a line of its own.
            Err(Failure::check(failure.text.trim_start_matches("Error:\n")))
        }
    }
}

fn check_protocol(run: &Run) -> Result<Output, Failure> {
    let protocol = run.argument(0);
    let node = run.session.name()?;
    run.announce(&format!(
        "Asking node {node} if there's an active listener for protocol {protocol} ..."
    ))?;
    let path = format!("health/checks/protocol-listener/{}", encoded(protocol));
    let (status, found) = run.session.read(&path)?;
    match status {
        200 => ok(format!(
            "A listener for protocol {} is running on node {node}.",
            if protocol == "amqp091" {
                "amqp"
            } else {
                protocol
            }
        )),
        _ => {
            let protocols = found["protocols"].as_array().into_iter().flatten();
            let protocols: Vec<String> = protocols.map(cell).collect();
            Err(failed(
                run,
                &format!(
                    "No listener for protocol {protocol} is active on node {node}. Found listeners for the following \
                     protocols: {}",
                    protocols.join(", ")
                ),
            ))
        }
    }
}

fn check_vhosts(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!(
        "Checking if all vhosts are running on node {node} ..."
    ))?;
    let (status, found) = run.session.read("health/checks/virtual-hosts")?;
    match status {
        200 => ok(format!("Node {node} reported all vhosts as running")),
        _ => {
            let down = found["virtual-hosts"].as_array().into_iter().flatten();
            let down: Vec<String> = down.map(cell).collect();
            Err(failed(
                run,
                &format!(
                    "Some virtual hosts on node {node} are down:\n{}",
                    down.join("\n")
                ),
            ))
        }
    }
}

fn check_expiration(run: &Run) -> Result<Output, Failure> {
    let unit = run.words.option("unit").unwrap_or("weeks");
    let within = run.words.number("within").unwrap_or(4);
    if !["days", "weeks", "months", "years"].contains(&unit) {
        return Err(run.bad_words(&format!(
            "\"unit '{unit}' is not supported. Please use one of: days, weeks, months, years\""
        )));
    }
    let node = run.session.name()?;
    run.announce(&format!(
        "Checking certificate expiration on node {node} ..."
    ))?;
    let path = format!("health/checks/certificate-expiration/{within}/{unit}");
    let (status, found) = run.session.read(&path)?;
    match status {
        200 => ok(format!(
            "No certificates are expiring within {within} {}.",
            if within == 1 {
                &unit[..unit.len() - 1]
            } else {
                unit
            }
        )),
        _ => {
            let expired = found["expired"].as_array().into_iter().flatten();
            let expired: Vec<String> = expired.map(|row| cell(&row["protocol"])).collect();
            Err(failed(
                run,
                &format!(
                    "Certificates expire within {within} {unit}: {}",
                    expired.join(", ")
                ),
            ))
        }
    }
}

fn listeners(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!(
        "Asking node {node} to report its protocol listeners ..."
    ))?;
    let listeners = About::read(run)?.listeners();
    let lines = listeners.iter().map(listener_line);
    let text = lines.collect::<Vec<_>>().join("\n");
    let value = json!({"listeners": listeners, "node": node, "result": "ok"});
    Ok(Output::Value(text, value))
}

fn server_version(run: &Run) -> Result<Output, Failure> {
    let node = run.session.name()?;
    run.announce(&format!("Asking node {node} for its RabbitMQ version..."))?;
    let (_, overview) = run.session.read("overview?columns=rabbitmq_version")?;
    Ok(Output::Text(cell(&overview["rabbitmq_version"])))
}

fn attempts(run: &Run) -> Result<Output, Failure> {
    run.announce("Listing authentication attempts ...")?;
    let path = format!("auth/attempts/{}", encoded(run.session.name()?));
    let rows = run.session.list(&path)?.unwrap_or_default();
    let columns = [
        "protocol",
        "auth_attempts",
        "auth_attempts_failed",
        "auth_attempts_succeeded",
    ];
    Ok(Output::Table(Table::of(&columns, &rows)))
}
