//! What `bench amqp` prints: each case's subjects side by side.

use std::io::{self, Write};

use super::Bench;
use super::case::Case;
use super::goals::verdicts;
use super::section::Section;
use super::worker::kept_max;
use crate::broker::subjects::{Brokers, FLOOR_NAME};
use crate::report::table::{known, number, spread, table, thousands};

pub(super) fn print_header(
    out: &mut impl Write,
    bench: &Bench,
    brokers: &Brokers,
) -> io::Result<()> {
    let options = &bench.options;
    writeln!(out, "Machine: {}", bench.machine.line())?;
    if let Some(network) = bench.network.description() {
        writeln!(out, "Network: {network}")?;
    }
    for note in brokers.notes() {
        writeln!(out, "{note}")?;
    }
    writeln!(
        out,
        "Load: {} producer(s), {} consumer(s) of one queue, bodies of {} bytes, at most {} under \
         way; {} round(s) of {} s after {} s; median over rounds, below it smallest–largest",
        options.producers,
        options.consumers,
        thousands(options.payload_bytes as f64),
        thousands(options.in_flight as f64),
        options.runs,
        options.seconds,
        options.warm_up_seconds,
    )
}

pub(super) fn print_section(
    out: &mut impl Write,
    bench: &Bench,
    section: &Section,
) -> io::Result<()> {
    let Section {
        case, placement, ..
    } = section;
    writeln!(out, "\n{case} · {placement}")?;
    let mut rows = table(&[
        "subject",
        "messages",
        "per s",
        "broker CPU µs",
        "driver CPU µs",
        "broker busy",
        "messages/read",
        "÷ floor",
        "÷ rabbitmq",
    ]);
    for series in &section.measured {
        let median = |name| known(series.median(name), number);
        let over = |other| spread(section.over(series, other, "messages_per_s"), number);
        let mut rate = spread(series.spread("messages_per_s"), thousands);
        if section.is_driver_bound(series) {
            rate += "\ndriver-bound";
        }
        rows.add_row([
            series.subject.clone(),
            known(series.median("messages"), thousands),
            rate,
            spread(series.spread("broker_cpu_us_per_message"), number),
            median("driver_cpu_us_per_message"),
            median("broker_busy_cores"),
            median("messages_per_read"),
            over(FLOOR_NAME),
            over("rabbitmq"),
        ]);
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    match case {
        Case::Transient => writeln!(
            out,
            "  floor: a broker that knows who consumes what, and no more\n  no confirms, automatic \
             acknowledgements; arrived in the window counts, each message checked by its number"
        )?,
        Case::Priorities => writeln!(
            out,
            "  a queue with {} priorities, messages of all of them in turn; no confirms, prefetch {}, \
             one acknowledgement for what a read brought\n  checked: before the round, that what waits \
             comes by its priority; in it, each message by its number, the order within each \
             priority\n  no floor: it knows no priorities",
            case.levels(),
            bench.options.prefetch
        )?,
        Case::Durable => writeln!(
            out,
            "  persistent messages in a durable queue, confirms waited for after each {}; prefetch \
             {}, one acknowledgement for what a read brought\n  a message that is acknowledged before \
             its commit never reaches the disk: durable-kept writes every one\n  no floor: it keeps \
             nothing on a disk",
            bench.options.window, bench.options.prefetch
        )?,
        Case::Transactions => writeln!(
            out,
            "  persistent messages in a durable queue, one transaction for each {}, its commit waited \
             for; prefetch {}, one acknowledgement (of no transaction) for what a read brought\n  no \
             floor: it keeps nothing on a disk",
            bench.options.window, bench.options.prefetch
        )?,
        Case::Paced => {
            for series in &section.measured {
                let of = |name| spread(series.spread(name), thousands);
                let (p50, p99) = (of("confirm_p50_us"), of("confirm_p99_us"));
                let flat = |text: String| text.replace('\n', " ");
                writeln!(
                    out,
                    "  confirm of {}: p50 {} µs, p99 {} µs",
                    series.subject,
                    flat(p50),
                    flat(p99)
                )?;
            }
            writeln!(
                out,
                "  persistent messages in a durable queue, {} a second, each published when it is due; \
                 consumed and acknowledged at once\n  no floor: it keeps nothing on a disk",
                bench.options.rate
            )?;
        }
        Case::DurableKept => writeln!(
            out,
            "  persistent messages in a durable queue without a consumer, confirms waited for after \
             each {}; what is confirmed in the window counts\n  every message is written before its \
             confirm; at {} the queue is purged, which takes its time of the window; what purges \
             remove is what was published\n  no floor: it keeps nothing on a disk",
            bench.options.window,
            thousands(kept_max(bench.options.payload_bytes) as f64),
        )?,
    }
    for series in &section.measured {
        let why = series.why();
        if !why.is_empty() {
            writeln!(out, "  not counted: {}: {why}", series.subject)?;
        }
    }
    let crowd = section.measured.iter();
    let crowd = crowd.filter_map(|series| series.median("foreign_busy_cores"));
    let crowd = known(Some(crowd.fold(0.0, f64::max)), number);
    writeln!(out, "  the rest of the machine: at most {crowd} cores busy")?;
    let own = section.measured.first();
    if own.is_some_and(|own| own.subject == "crosstie") && bench.network.description().is_none() {
        for verdict in verdicts(section) {
            writeln!(out, "  goal: {verdict}")?;
        }
    }
    Ok(())
}
