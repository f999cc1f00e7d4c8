//! The tables at the end of `bench rpc`.

use std::io::{self, Write};

use super::Bench;
use super::goals::{Reached, Setting, verdicts};
use super::round::Metrics;
use super::section::Section;
use super::summary::Measured;
use crate::figures::{CROWDED, FOREIGN_BUSY_CORES_MAX};
use crate::report::document;
use crate::report::table::{UNKNOWN, bytes, known, number, spread, table, thousands};
use crate::subject::routers::Routers;

const COLUMNS: [&str; 11] = [
    "subject",
    "calls",
    "calls/s",
    "avg µs",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "max µs",
    "CPU/call µs",
    "memory",
    "p50 ÷ floor",
];

pub(super) fn print(
    out: &mut impl Write,
    bench: &Bench,
    subjects: &Routers,
    sections: &[Section],
) -> io::Result<()> {
    let options = &bench.options;
    let plural =
        |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    writeln!(out, "\nMachine: {}", bench.machine.line())?;
    writeln!(
        out,
        "Load: {} of {}, {} in flight each; {} of {} s after {} s; median over rounds, below it \
         smallest–largest",
        plural(options.pairs, "pair"),
        if options.payload_bytes == 0 {
            "one number".to_owned()
        } else {
            format!("one number and {} bytes of text", options.payload_bytes)
        },
        plural(options.outstanding, "call"),
        plural(options.runs, "round"),
        options.seconds,
        options.warm_up_seconds,
    )?;
    writeln!(
        out,
        "Router: {}{}; a round trip is timed from its write to its read",
        plural(options.router_threads, "thread"),
        if options.spin { ", busy-polling" } else { "" },
    )?;
    if let Some(network) = bench.network.description() {
        writeln!(
            out,
            "Network: {network}; caller and callee are both clients"
        )?;
    }
    for section in sections {
        print_section(out, bench, subjects, section)?;
    }
    Ok(())
}

fn print_section(
    out: &mut impl Write,
    bench: &Bench,
    subjects: &Routers,
    section: &Section,
) -> io::Result<()> {
    writeln!(out, "\n{} · {}", section.case, section.placement)?;
    let mut rows = table(&COLUMNS);
    for measured in &section.measured {
        rows.add_row(row(bench, section, measured));
    }
    for peer in subjects.absent() {
        let mut cells = vec![peer.name().to_owned(), "absent".to_owned()];
        cells.resize(COLUMNS.len(), UNKNOWN.to_owned());
        rows.add_row(cells);
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    for measured in &section.measured {
        writeln!(out, "  {}", drivers(measured))?;
    }
    writeln!(out, "  {}", section.floor)?;
    for measured in &section.measured {
        let why = measured.why();
        if !why.is_empty() {
            writeln!(out, "  not counted: {}: {why}", measured.subject)?;
        }
    }
    print_comparisons(out, bench, section)
}

fn row(bench: &Bench, section: &Section, measured: &Measured) -> Vec<String> {
    let mut rate = spread(measured.spread(|m| m.calls_per_s), thousands);
    if measured.driver_bound(bench.in_flight()) {
        rate += "\ndriver-bound";
    }
    // The spread where figures are compared; the tails' own are in the JSON, round by round.
    let median = |figure: fn(&Metrics) -> f64| {
        known(measured.spread(figure).map(|spread| spread.median), number)
    };
    let pss = measured.spread_known(|m| m.router_pss_bytes.map(|bytes| bytes as f64));
    vec![
        measured.subject.clone(),
        thousands(measured.calls() as f64),
        rate,
        median(|m| m.rtt_us.avg),
        spread(measured.spread(|m| m.rtt_us.p50), number),
        median(|m| m.rtt_us.p99),
        median(|m| m.rtt_us.p99_9),
        known(measured.rtt_max(), number),
        spread(measured.spread_known(|m| m.router_cpu_us_per_call), number),
        known(pss.map(|pss| pss.median), bytes),
        spread(section.over_floor(measured), number),
    ]
}

/// What the drivers cost and found: a figure of the router means little without.
fn drivers(measured: &Measured) -> String {
    let median = |figure: fn(&Metrics) -> f64| {
        known(measured.spread(figure).map(|spread| spread.median), number)
    };
    format!(
        "{}: {} cores busy, drivers' CPU/call {} µs; messages per read: caller {}, callee {}; the \
         rest of the machine: {} cores busy",
        measured.subject,
        median(|m| m.router_busy_cores),
        median(|m| m.driver_cpu_us_per_call),
        median(|m| m.caller_messages_per_read),
        median(|m| m.callee_messages_per_read),
        median(|m| m.foreign_busy_cores),
    )
}

fn print_comparisons(out: &mut impl Write, bench: &Bench, section: &Section) -> io::Result<()> {
    let Some(router) = section.measured.first() else {
        return Ok(());
    };
    let p50_us = router.spread(|m| m.rtt_us.p50).map(|spread| spread.median);
    let document_us = document::rtt_us(&section.case);
    let on_loopback = bench.network.description().is_none();
    let document_over = match (document_us, p50_us) {
        // The document calls one after the other, over the loopback.
        (Some(document_us), Some(p50_us)) if bench.in_flight() == 1 && on_loopback => {
            Some(document_us / p50_us)
        }
        _ => None,
    };
    match (document_us, document_over) {
        (Some(document_us), Some(ratio)) => writeln!(
            out,
            "  document: {} µs ({}), {} × this p50",
            number(document_us),
            document::HARDWARE,
            number(ratio)
        )?,
        (Some(document_us), None) => writeln!(
            out,
            "  document: {} µs, one call after the other ({})",
            number(document_us),
            document::HARDWARE
        )?,
        (None, _) => writeln!(out, "  document: not given")?,
    }
    // The goals are about the loopback.
    if router.subject != "crosstie" || !on_loopback {
        return Ok(());
    }
    let setting = Setting {
        case: section.case,
        placement: section.placement,
        outstanding: bench.options.outstanding,
        pairs: bench.options.pairs,
        spin: bench.options.spin,
    };
    let cpu = router.spread_known(|m| m.router_cpu_us_per_call);
    let reached = Reached {
        over_floor: section.over_floor(router).map(|spread| spread.median),
        document_over,
        router_cpu_us_per_call: cpu.map(|spread| spread.median),
    };
    let crowd = section
        .measured
        .iter()
        .filter_map(|m| m.spread(|m| m.foreign_busy_cores));
    let crowd = crowd.map(|spread| spread.median).fold(0.0, f64::max);
    let unfit = (crowd > FOREIGN_BUSY_CORES_MAX).then_some(CROWDED);
    for verdict in verdicts(&setting, &reached, unfit) {
        writeln!(out, "  goal: {verdict}")?;
    }
    Ok(())
}
