//! The tables of `bench node`: nodes beside each other, their pairs, and a picture of each node's processes.

use serde_json::Value;

use super::{Case, documented_us};
use crate::figures::Series;
use crate::frame::{Column, FLOOR, Section};
use crate::report::document;
use crate::report::table::{bytes, known, number, spread, table, thousands};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::spread("accepts ms", "start_ms", number),
        Column::spread("first call ms", "first_call_ms", thousands),
        Column::median("all call ms", "all_calling_ms", thousands),
        Column::spread("calls/s", "all_calls_per_s", thousands),
        Column::median("node CPU %", "node_cpu_percent", number),
        Column::spread("CPU µs/call", "node_cpu_us_per_call", number),
        Column::spread("node memory", "node_pss_bytes", bytes),
        Column::median("end ms", "end_ms", thousands),
    ]
}

/// The lines below the table of nodes: `pairs` are the sections beside that of the nodes.
pub(super) fn below(seconds: f64, node: &Section<Case>, pairs: &[&Section<Case>]) -> Vec<String> {
    let mut lines: Vec<String> = node.series.iter().map(beside).collect();
    if node.case.is_documented() {
        lines.push(format!(
            "  document: node CPU {} % (router 62.5, controller 30.5), {} resident",
            number(document::NODE_CPU_PERCENT),
            bytes(document::NODE_RSS_BYTES),
        ));
    }
    if node.subject(FLOOR).is_some() {
        lines.push(
            "  floor: the native pairs as plain processes, around a router that is no node"
                .to_owned(),
        );
    }
    lines.push(format!("\n{}", pairs_table(node, pairs)));
    lines.push(format!(
        "  document: its batches' median after warm-up; by its own headline 0.6 and 1.2 ms ({})",
        document::HARDWARE
    ));
    lines.extend(
        node.series
            .iter()
            .filter_map(|series| picture(seconds, series)),
    );
    lines.push(
        "  from spawn, by way of a process that ends the node with the bench; the first call: a \
         caller's first line, less its calls × their average"
            .to_owned(),
    );
    lines
}

/// Hosted components cost too, and a machine without idle time shows in every figure.
fn beside(node: &Series) -> String {
    let median = |name: &str, form: fn(f64) -> String| known(node.median(name), form);
    format!(
        "  {}: what it hosts: {} processes, CPU {} %, {}; its own context switches: {} voluntary, {} \
         involuntary/s; the machine was idle {} % of the window, {} cores busy with others",
        node.subject,
        median("hosted_processes", thousands),
        median("hosted_cpu_percent", number),
        median("hosted_pss_bytes", bytes),
        median("node_voluntary_switches_per_s", thousands),
        median("node_involuntary_switches_per_s", thousands),
        median("idle_percent", number),
        median("foreign_busy_cores", number),
    )
}

fn pairs_table(node: &Section<Case>, pairs: &[&Section<Case>]) -> String {
    let others = || node.series.iter().skip(1).map(|series| &series.subject);
    let ratios: Vec<String> = others().map(|name| format!("÷ {name}")).collect();
    let mut columns = vec![
        "pair",
        "node",
        "average ms",
        "calls/s",
        "by its own clock",
        "batches",
    ];
    columns.extend(ratios.iter().map(String::as_str));
    columns.push("document ms");
    let mut rows = table(&columns);
    for section in pairs {
        for pair in &section.series {
            let mut cells = vec![
                section.case.pair().unwrap_or_default(),
                pair.subject.clone(),
                spread(pair.spread("rtt_avg_us"), milliseconds),
                spread(pair.spread("calls_per_s"), thousands),
                known(pair.median("own_clock_calls_per_s"), thousands),
                known(pair.median("batches"), thousands),
            ];
            let ratio = |other: &String| section.over(pair, other, "rtt_avg_us");
            cells.extend(others().map(|other| spread(ratio(other), number)));
            let title = section.case.title.as_deref();
            cells.push(known(title.and_then(documented_us), milliseconds));
            rows.add_row(cells);
        }
    }
    rows.trim_fmt()
}

/// The document's picture of the system's load, of the last round that counts.
fn picture(seconds: f64, series: &Series) -> Option<String> {
    let summary = series.summary().metrics();
    let mut processes = summary.get("processes")?.as_array()?.clone();
    let figure = |process: &Value, name| process.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let cpu = |process: &Value| figure(process, "cpu_percent");
    processes.sort_by(|a, b| cpu(b).total_cmp(&cpu(a)));
    let mut rows = table(&[
        "role",
        "CPU%",
        "PSS",
        "RES",
        "THR",
        "vol. sw/s",
        "invol. sw/s",
        "PID",
    ]);
    for process in &processes {
        let role = process.get("role").and_then(Value::as_str);
        rows.add_row([
            role.unwrap_or_default().to_owned(),
            format!("{:.1}", cpu(process)),
            bytes(figure(process, "pss_bytes")),
            bytes(figure(process, "rss_bytes")),
            format!("{:.0}", figure(process, "threads")),
            thousands(figure(process, "voluntary_switches_per_s")),
            thousands(figure(process, "involuntary_switches_per_s")),
            format!("{:.0}", figure(process, "pid")),
        ]);
    }
    let (subject, rows) = (&series.subject, rows.trim_fmt());
    Some(format!(
        "\nSystem load, {subject}, the last round's {seconds} s\n{rows}"
    ))
}

/// Microseconds, in the document's unit.
fn milliseconds(us: f64) -> String {
    match us / 1e3 {
        ms if ms < 0.995 => format!("{ms:.4}"),
        ms => format!("{ms:.3}"),
    }
}
