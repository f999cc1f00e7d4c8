//! The tables of `bench node`: nodes beside each other, their pairs, and a picture of each node's
//! processes.

use std::io::{self, Write};

use super::section::{Measured, PLACEMENT, Section, documented_us, short};
use super::{Bench, goals};
use crate::figures::Series;
use crate::report::document;
use crate::report::table::{bytes, known, number, spread, table, thousands};

pub(super) fn print_header(out: &mut impl Write, bench: &Bench) -> io::Result<()> {
    let options = &bench.options;
    writeln!(out, "Machine: {}", bench.machine.line())?;
    writeln!(
        out,
        "{} round(s), in each a window of {} s after {} s of warm-up; placement {PLACEMENT}: \
         neither a node nor its children are pinned",
        options.runs, options.seconds, options.warm_up_seconds,
    )?;
    for peer in &options.peers {
        match &bench.crossbar {
            Some(crossbar) => writeln!(out, "{peer}: {}", crossbar.version)?,
            None => writeln!(
                out,
                "{peer}: absent from PATH; to get it: {}",
                peer.installation()
            )?,
        }
    }
    Ok(())
}

pub(super) fn print_section(
    out: &mut impl Write,
    bench: &Bench,
    section: &Section,
) -> io::Result<()> {
    writeln!(out, "\n{} · {PLACEMENT}", section.name)?;
    print_nodes(out, section)?;
    print_pairs(out, section)?;
    for measured in &section.subjects {
        print_picture(out, bench, measured)?;
    }
    for measured in &section.subjects {
        let why = measured.node.why();
        if !why.is_empty() {
            writeln!(out, "  not counted: {}: {why}", measured.node.subject)?;
        }
    }
    writeln!(
        out,
        "  from spawn, by way of a process that ends the node with the bench; the first call: a \
         caller's first line, less its calls × their average"
    )?;
    for verdict in goals::verdicts(section) {
        writeln!(out, "  goal: {verdict}")?;
    }
    Ok(())
}

fn print_nodes(out: &mut impl Write, section: &Section) -> io::Result<()> {
    let mut rows = table(&[
        "node",
        "accepts ms",
        "first call ms",
        "all call ms",
        "calls/s",
        "node CPU %",
        "CPU µs/call",
        "node memory",
        "end ms",
    ]);
    for measured in &section.subjects {
        let node = &measured.node;
        let median = |name: &str, form: fn(f64) -> String| known(node.median(name), form);
        rows.add_row([
            node.subject.clone(),
            spread(node.spread("start_ms"), number),
            spread(node.spread("first_call_ms"), thousands),
            median("all_calling_ms", thousands),
            spread(node.spread("all_calls_per_s"), thousands),
            median("node_cpu_percent", number),
            spread(node.spread("node_cpu_us_per_call"), number),
            spread(node.spread("node_pss_bytes"), bytes),
            median("end_ms", thousands),
        ]);
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    for measured in &section.subjects {
        writeln!(out, "  {}", beside(&measured.node))?;
    }
    if section.is_documented() {
        writeln!(
            out,
            "  document: node CPU {} % (router 62.5, controller 30.5), {} resident",
            number(document::NODE_CPU_PERCENT),
            bytes(document::NODE_RSS_BYTES),
        )?;
    }
    if section.subject("floor").is_some() {
        writeln!(
            out,
            "  floor: the native pairs as plain processes, around a router that is no node"
        )?;
    }
    Ok(())
}

/// What it hosts costs too, and a machine without idle time shows in every figure.
fn beside(node: &Series) -> String {
    let median = |name: &str, form: fn(f64) -> String| known(node.median(name), form);
    format!(
        "{}: what it hosts: {} processes, CPU {} %, {}; its own context switches: {} voluntary, {} \
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

fn print_pairs(out: &mut impl Write, section: &Section) -> io::Result<()> {
    let mut others = section.subjects.iter().skip(1).map(|m| &m.node.subject);
    let others: Vec<&String> = others.by_ref().collect();
    let ratios: Vec<String> = others.iter().map(|name| format!("÷ {name}")).collect();
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
    for title in section.titles() {
        for measured in &section.subjects {
            let Some(pair) = measured.pairs.get(title) else {
                continue;
            };
            let mut cells = vec![
                short(title),
                pair.subject.clone(),
                spread(pair.spread("rtt_avg_us"), milliseconds),
                spread(pair.spread("calls_per_s"), thousands),
                known(pair.median("own_clock_calls_per_s"), thousands),
                known(pair.median("batches"), thousands),
            ];
            for other in &others {
                let other: Option<&Series> = section
                    .subject(other)
                    .and_then(|other| other.pairs.get(title))
                    .filter(|other| other.subject != pair.subject);
                let ratio = other.and_then(|other| pair.over(other, "rtt_avg_us"));
                cells.push(spread(ratio, number));
            }
            cells.push(known(documented_us(title), milliseconds));
            rows.add_row(cells);
        }
    }
    writeln!(out, "\n{}", rows.trim_fmt())?;
    writeln!(
        out,
        "  document: its batches' median after warm-up; by its own headline 0.6 and 1.2 ms ({})",
        document::HARDWARE
    )
}

/// The document's picture of the system's load, of one round.
fn print_picture(out: &mut impl Write, bench: &Bench, measured: &Measured) -> io::Result<()> {
    let Some(processes) = measured.picture() else {
        return Ok(());
    };
    let subject = &measured.node.subject;
    writeln!(
        out,
        "\nSystem load, {subject}, the last round's {} s",
        bench.options.seconds
    )?;
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
    let mut processes: Vec<_> = processes.iter().collect();
    processes.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    for used in processes {
        rows.add_row([
            used.role.name().to_owned(),
            format!("{:.1}", used.cpu_percent),
            bytes(used.pss_bytes as f64),
            bytes(used.rss_bytes as f64),
            used.threads.to_string(),
            thousands(used.voluntary_switches_per_s),
            thousands(used.involuntary_switches_per_s),
            used.pid.to_string(),
        ]);
    }
    writeln!(out, "{}", rows.trim_fmt())
}

/// Microseconds, in the document's unit.
fn milliseconds(us: f64) -> String {
    match us / 1e3 {
        ms if ms < 0.995 => format!("{ms:.4}"),
        ms => format!("{ms:.3}"),
    }
}
