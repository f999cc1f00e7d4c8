//! What `bench oslo` prints: for the rates each case's subjects side by side, for the delays the
//! document, the peer, this and the limit side by side, and why.

use std::io::{self, Write};

use super::Bench;
use super::case::Case;
use super::document;
use super::goals::{verdicts, without_goal};
use super::section::Section;
use super::topology::Topology;
use crate::broker::subjects::{Brokers, FLOOR_NAME};
use crate::figures::Series;
use crate::link::units;
use crate::report::table::{UNKNOWN, known, number, spread, table, thousands};

pub(super) fn print_header(
    out: &mut impl Write,
    bench: &Bench,
    brokers: &Brokers,
) -> io::Result<()> {
    let options = &bench.options;
    writeln!(out, "Machine: {}", bench.machine.line())?;
    for note in brokers.notes() {
        writeln!(out, "{note}")?;
    }
    if let Some(python) = &bench.python {
        writeln!(out, "oslo.messaging {}", python.version)?;
    }
    writeln!(
        out,
        "Load: one operation after the other, from one client to one server; rates: {} round(s) of \
         {} s after {} s; delays: {} run(s) of {}; median, below it smallest–largest",
        options.runs, options.seconds, options.warm_up_seconds, options.runs, options.repeat,
    )
}

/// A case of rates.
pub(super) fn print_rates(out: &mut impl Write, section: &Section) -> io::Result<()> {
    writeln!(out, "\n{} · {}", section.case, section.placement)?;
    let mut rows = table(&[
        "subject",
        "operations",
        "per s",
        "p50 µs",
        "p99 µs",
        "broker CPU µs",
        "driver CPU µs",
        "broker busy",
        "÷ floor",
        "÷ rabbitmq",
    ]);
    for series in &section.measured {
        let median = |name| known(series.median(name), number);
        let over = |other| spread(section.over(series, other, "operations_per_s"), number);
        rows.add_row([
            series.subject.clone(),
            known(series.median("operations"), thousands),
            spread(series.spread("operations_per_s"), thousands),
            spread(series.spread("rtt_p50_us"), number),
            median("rtt_p99_us"),
            spread(series.spread("broker_cpu_us_per_operation"), number),
            median("driver_cpu_us_per_operation"),
            median("broker_busy_cores"),
            over(FLOOR_NAME),
            over("rabbitmq"),
        ]);
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    print_faults(out, section)?;
    print_crowd(out, &section.measured)?;
    print_goals(out, section, &[])
}

/// All delays of a case.
pub(super) fn print_delays(
    out: &mut impl Write,
    case: Case,
    sections: &[&Section],
    all: &[Section],
) -> io::Result<()> {
    let Some(first) = sections.first() else {
        return Ok(());
    };
    writeln!(out, "\n{case} per second, delayed · {}", first.placement)?;
    let subjects: Vec<&str> = first.measured.iter().map(|s| s.subject.as_str()).collect();
    let mut columns = vec![
        "topology".to_owned(),
        "delay".to_owned(),
        "document".to_owned(),
    ];
    // The peer first, as it stands between the document and this.
    let order = || subjects.iter().rev();
    columns.extend(order().map(|name| format!("{name}, its clock")));
    columns.extend(order().map(|name| format!("{name}, honest")));
    columns.extend(["limit".to_owned()]);
    columns.extend(order().map(|name| format!("{name} ÷ limit")));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut rows = table(&columns);
    for section in sections {
        let Some((topology, delay)) = section.way else {
            continue;
        };
        let document = section.document().map_or_else(
            || "not given".to_owned(),
            |figure| {
                format!(
                    "{} / {}",
                    number(figure.one_core),
                    number(figure.eight_cores)
                )
            },
        );
        let mut cells = vec![topology.to_string(), units::written(delay), document];
        let ordered = || section.measured.iter().rev();
        cells.extend(ordered().map(|series| least_and_median(series, "with_setup_per_s")));
        cells.extend(ordered().map(|series| least_and_median(series, "operations_per_s")));
        let limit = section.limit_per_s();
        cells.push(limit.map_or_else(|| "none".to_owned(), number));
        let ratio = |value: f64| format!("{value:.3}");
        cells.extend(ordered().map(|series| known(section.over_limit(series), ratio)));
        rows.add_row(cells);
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    writeln!(
        out,
        "  minimum / median. Its clock: the document's, from before the client connects; honest: \
         connecting apart.\n  document: {}; the least of five runs by its clock.\n  limit: one \
         round trip for each operation that has to wait for it, and nothing else.",
        document::HARDWARE
    )?;
    for topology in Topology::ALL {
        if sections
            .iter()
            .any(|section| section.way.is_some_and(|(of, _)| of == topology))
        {
            let why = topology.explanation(case.operation);
            writeln!(out, "  {}, {topology}: {why}.", case.operation)?;
        }
    }
    for section in sections {
        print_faults(out, section)?;
        print_goals(out, section, all)?;
    }
    Ok(())
}

fn least_and_median(series: &Series, name: &str) -> String {
    let spread = series.spread(name);
    spread.map_or_else(
        || UNKNOWN.to_owned(),
        |spread| format!("{} / {}", number(spread.min), number(spread.median)),
    )
}

fn print_faults(out: &mut impl Write, section: &Section) -> io::Result<()> {
    for series in &section.measured {
        let why = series.why();
        if !why.is_empty() {
            writeln!(
                out,
                "  not counted: {}, {}: {why}",
                section.name(),
                series.subject
            )?;
        }
    }
    Ok(())
}

fn print_crowd(out: &mut impl Write, measured: &[Series]) -> io::Result<()> {
    let crowd = measured
        .iter()
        .filter_map(|series| series.median("foreign_busy_cores"));
    let crowd = known(Some(crowd.fold(0.0, f64::max)), number);
    writeln!(out, "  the rest of the machine: at most {crowd} cores busy")
}

fn print_goals(out: &mut impl Write, section: &Section, all: &[Section]) -> io::Result<()> {
    if section.own().is_none_or(|own| own.subject != "crosstie") {
        return Ok(());
    }
    for verdict in verdicts(section, all) {
        writeln!(out, "  goal: {verdict}")?;
    }
    if let Some(line) = without_goal(section) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}
