//! The tables at the end of `bench rpc`.

use std::io::{self, Write};

use super::subjects::Subjects;
use super::{Bench, Section};
use crate::document;
use crate::goals::{Reached, Setting, verdicts};
use crate::histogram::Spread;
use crate::machine::Machine;
use crate::report::table::{number, octets, spread, table, thousands};
use crate::summary::Measured;

const COLUMNS: [&str; 13] = [
    "subject",
    "calls",
    "calls/s",
    "avg µs",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "max µs",
    "router CPU\nµs/call",
    "driver CPU\nµs/call",
    "messages\nper read",
    "router\nmemory",
    "p50 ÷\nfloor",
];

pub(super) fn print(
    out: &mut impl Write,
    bench: &Bench,
    machine: &Machine,
    subjects: &Subjects,
    sections: &[Section],
) -> io::Result<()> {
    let options = &bench.options;
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    writeln!(out, "\nMachine: {}", machine.line())?;
    writeln!(
        out,
        "Load: {} of {}, {} in flight each; {} of {} s after {} s; median over rounds, below it \
         smallest–largest",
        plural(options.pairs, "pair"),
        if options.payload_octets == 0 {
            "one number".to_owned()
        } else {
            format!("one number and {} octets of text", options.payload_octets)
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
    for section in sections {
        print_section(out, bench, subjects, section)?;
    }
    Ok(())
}

fn print_section(
    out: &mut impl Write,
    bench: &Bench,
    subjects: &Subjects,
    section: &Section,
) -> io::Result<()> {
    writeln!(out, "\n{} · {}", section.case, section.placement)?;
    let mut rows = table(&COLUMNS);
    for measured in &section.measured {
        rows.add_row(row(bench, section, measured));
    }
    for peer in subjects.absent() {
        let mut cells = vec![peer.name().to_owned(), "absent".to_owned()];
        cells.resize(COLUMNS.len(), "–".to_owned());
        rows.add_row(cells);
    }
    writeln!(out, "{rows}")?;
    writeln!(out, "  {}", section.floor)?;
    for measured in &section.measured {
        let why = measured.why();
        if !why.is_empty() {
            writeln!(out, "  {} does not count: {why}", measured.subject)?;
        }
    }
    print_comparisons(out, bench, section)
}

fn row(bench: &Bench, section: &Section, measured: &Measured) -> Vec<String> {
    let mut rate = spread(measured.spread(|m| m.calls_per_s), thousands);
    if measured.driver_bound(bench.in_flight()) {
        rate += "\ndriver-bound";
    }
    let per_read = |figure: Option<Spread>| figure.map_or("–".to_owned(), |s| format!("{:.1}", s.median));
    vec![
        measured.subject.clone(),
        thousands(measured.calls() as f64),
        rate,
        spread(measured.spread(|m| m.rtt_us.avg), number),
        spread(measured.spread(|m| m.rtt_us.p50), number),
        spread(measured.spread(|m| m.rtt_us.p99), number),
        spread(measured.spread(|m| m.rtt_us.p99_9), number),
        measured.rtt_max().map_or("–".to_owned(), number),
        spread(measured.spread_known(|m| m.router_cpu_us_per_call), number),
        spread(measured.spread(|m| m.driver_cpu_us_per_call), number),
        format!(
            "{}\n{}",
            per_read(measured.spread(|m| m.caller_messages_per_read)),
            per_read(measured.spread(|m| m.callee_messages_per_read)),
        ),
        measured
            .spread_known(|m| m.router_pss_bytes.map(|octets| octets as f64))
            .map_or("–".to_owned(), |pss| octets(pss.median)),
        spread(section.over_floor(measured), number),
    ]
}

fn print_comparisons(out: &mut impl Write, bench: &Bench, section: &Section) -> io::Result<()> {
    let Some(router) = section.measured.first() else { return Ok(()) };
    let foreign = router.spread(|m| m.foreign_busy_cores).map_or(0.0, |spread| spread.median);
    let busy = router.spread(|m| m.router_busy_cores).map_or(0.0, |spread| spread.median);
    writeln!(
        out,
        "  {} kept {busy:.2} cores busy; whatever else runs on this machine {foreign:.2}",
        router.subject
    )?;
    let p50_us = router.spread(|m| m.rtt_us.p50).map(|spread| spread.median);
    let document_us = document::rtt_us(&section.case);
    let document_over = match (document_us, p50_us) {
        // The document calls one after the other.
        (Some(document_us), Some(p50_us)) if bench.in_flight() == 1 => Some(document_us / p50_us),
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
    if router.subject != "crosstie" {
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
    for verdict in verdicts(&setting, &reached) {
        let outcome = if verdict.met { "met" } else { "missed" };
        writeln!(out, "  goal: {}, {outcome}", verdict.text)?;
    }
    Ok(())
}
