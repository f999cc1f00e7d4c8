//! The table of `bench accept`, and its rows in the JSON frame.

use std::io::{self, Write};
use std::net::Ipv4Addr;

use serde_json::json;

use super::Bench;
use super::run::Found;
use crate::figures::{Goal, verdict};
use crate::report::json::Row;
use crate::report::table::{bytes, known, number, table, thousands};

/// What the source document's client printed, on a notebook with Windows 7.
mod document {
    pub(super) const ELAPSED_MS: f64 = 47_545.0;
    pub(super) const HARDWARE: &str = "a notebook with Windows 7";
}

/// The goals that this project set itself.
mod goals {
    pub(super) const ELAPSED_S: f64 = 40.0;
    pub(super) const SERVER_BYTES: f64 = 2_048.0;
}

pub(super) fn print(out: &mut impl Write, bench: &Bench, all: &[Found]) -> io::Result<()> {
    writeln!(out, "\nMachine: {}", bench.machine.line())?;
    if let Some(network) = bench.network.description() {
        writeln!(out, "Network: {network}")?;
    }
    let mut rows = table(&[
        "subject",
        "established",
        "failed",
        "time ms",
        "per s",
        "connect p50 µs",
        "p99 µs",
        "max µs",
        "echoed",
        "server CPU µs",
        "client CPU µs",
        "memory each",
        "after echo",
        "kernel, both ends",
    ]);
    for found in all {
        rows.add_row([
            found.subject.clone(),
            thousands(found.established as f64),
            thousands(found.failed as f64),
            thousands(found.elapsed_ms),
            thousands(per_s(found)),
            number(found.connect_us.p50),
            number(found.connect_us.p99),
            number(found.connect_us.max),
            known(found.echoed.map(|echoed| echoed.right as f64), thousands),
            known(found.server_cpu_us, number),
            number(found.client_cpu_us),
            known(found.server_bytes, bytes),
            known(found.server_bytes_after_echo, bytes),
            bytes(found.kernel_bytes),
        ]);
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    writeln!(
        out,
        "  memory each: the server processes' PSS with all connections less that with none, \
         divided by them; the kernel's is of sockets on both sides, and whatever else it did"
    )?;
    for found in all {
        for fault in &found.faults {
            writeln!(out, "  not counted: {}: {fault}", found.subject)?;
        }
    }
    let Some(own) = all.first().filter(|_| bench.options.is_the_documents()) else {
        return Ok(());
    };
    writeln!(
        out,
        "  document: 60,000 established, 0 failed, {} ms ({}); 35,400 ms of it are delays",
        thousands(document::ELAPSED_MS),
        document::HARDWARE
    )?;
    if own.subject != "crosstie" {
        return Ok(());
    }
    let is_whole = own.faults.is_empty() && own.created == bench.options.connections;
    let unfit = (!is_whole).then_some("the run does not count");
    let elapsed_s = (own.failed == 0).then_some(own.elapsed_ms / 1e3);
    let goals = [
        ("failed", Goal::AtMost(0.0), Some(own.failed as f64)),
        ("time s", Goal::AtMost(goals::ELAPSED_S), elapsed_s),
        (
            "connections that echo",
            Goal::AtLeast(own.created as f64),
            own.echoed.map(|echoed| echoed.right as f64),
        ),
        (
            "memory each, bytes",
            Goal::AtMost(goals::SERVER_BYTES),
            own.server_bytes_after_echo.or(own.server_bytes),
        ),
    ];
    for (what, goal, reached) in goals {
        if let Some(verdict) = verdict(what, goal, reached, unfit) {
            writeln!(out, "  goal: {verdict}")?;
        }
    }
    Ok(())
}

pub(super) fn row(bench: &Bench, found: &Found) -> Row {
    let mut metrics = json!({
        "created": found.created,
        "established": found.established,
        "failed": found.failed,
        "lost": found.lost,
        "elapsed_ms": found.elapsed_ms,
        "established_per_s": per_s(found),
        "connect_us": found.connect_us,
        "server_bytes_per_connection": found.server_bytes,
        "server_bytes_per_connection_after_echo": found.server_bytes_after_echo,
        "kernel_bytes_per_connection": found.kernel_bytes,
        "server_cpu_us_per_connection": found.server_cpu_us,
        "client_cpu_us_per_connection": found.client_cpu_us,
    });
    if let Some(fields) = metrics.as_object_mut() {
        if let Some(echoed) = found.echoed {
            fields.insert("echoed".to_owned(), json!(echoed));
            fields.insert("echo_ms".to_owned(), json!(found.echo_ms));
        }
        if bench.options.is_the_documents() {
            fields.insert(
                "document_elapsed_ms".to_owned(),
                json!(document::ELAPSED_MS),
            );
        }
        fields.retain(|_, value| !value.is_null());
    }
    Row {
        case: "accept".to_owned(),
        subject: found.subject.clone(),
        placement: Some("free".to_owned()),
        round: None,
        metrics,
        valid: found.faults.is_empty(),
        why: found.faults.join("; "),
    }
}

fn per_s(found: &Found) -> f64 {
    match found.elapsed_ms > 0.0 {
        true => found.established as f64 / (found.elapsed_ms / 1e3),
        false => 0.0,
    }
}

/// Addresses in short: the first and the last.
pub(super) fn listed(addresses: &[Ipv4Addr]) -> String {
    match addresses {
        [] => String::new(),
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    }
}
