//! The tables of `bench footprint`.

use std::io::{self, Write};

use super::{Bench, Figures};
use crate::load::histogram::Spread;
use crate::machine::Machine;
use crate::report::table::{bytes, known, number, spread, table, thousands};

/// The goals that this project set itself; one that is missed stays in the report as missed.
mod goals {
    use crate::subject::case::Case;

    pub(super) const START_MS: f64 = 10.0;
    pub(super) const IDLE_BYTES: f64 = 8.0 * 1_048_576.0;
    pub(super) const BINARY_BYTES: f64 = 15.0 * 1_048_576.0;

    pub(super) fn session_bytes(case: &Case) -> f64 {
        if case.transport.is_websocket() {
            3_072.0
        } else {
            2_048.0
        }
    }
}

pub(super) fn print(
    out: &mut impl Write,
    bench: &Bench,
    machine: &Machine,
    figures: &Figures,
) -> io::Result<()> {
    writeln!(out, "Machine: {}", machine.line())?;
    writeln!(
        out,
        "\nMemory of the router by idle sessions, each joined with one subscription ({})",
        match bench.options.shared_topic {
            true => "all of one topic",
            false => "each of its own topic",
        }
    )?;
    let mut steps = table(&["case", "sessions", "PSS", "RSS"]);
    for held in &figures.held {
        steps.add_row([
            held.case.to_string(),
            "0".to_owned(),
            bytes(held.idle.pss as f64),
            bytes(held.idle.rss as f64),
        ]);
        for step in &held.steps {
            steps.add_row([
                String::new(),
                thousands(step.sessions as f64),
                bytes(step.router_pss_bytes as f64),
                bytes(step.router_rss_bytes as f64),
            ]);
        }
    }
    writeln!(out, "{}", steps.trim_fmt())?;

    let mut rows = table(&["footprint", "measured", "goal", ""]);
    let mut add = |what: String, measured: Option<Spread>, goal: f64, form: fn(f64) -> String| {
        let verdict = match measured {
            Some(measured) if measured.median <= goal => "met",
            Some(_) => "missed",
            None => "not measured",
        };
        let goal = format!("≤ {}", form(goal));
        rows.add_row([what, spread(measured, form), goal, verdict.to_owned()]);
    };
    let starts = figures.start_ms.len();
    add(
        format!("start to first accept, ms, {starts} starts"),
        Spread::of(figures.start_ms.iter().copied()),
        goals::START_MS,
        number,
    );
    let threads = bench.options.router_threads;
    add(
        format!("memory at rest, PSS, {threads} router thread(s)"),
        Spread::of(figures.idle.map(|idle| idle.pss as f64)),
        goals::IDLE_BYTES,
        bytes,
    );
    for held in &figures.held {
        add(
            format!("router memory per idle session, {}", held.case),
            Spread::of(held.router_bytes_per_session()),
            goals::session_bytes(&held.case),
            bytes,
        );
    }
    add(
        "binary".to_owned(),
        Spread::of([figures.binary_bytes as f64]),
        goals::BINARY_BYTES,
        bytes,
    );
    writeln!(out, "\n{}", rows.trim_fmt())?;
    for held in &figures.held {
        let kernel = known(held.kernel_bytes_per_session(), bytes);
        writeln!(
            out,
            "  apart from that, kernel memory of the router's end, {}: {kernel}",
            held.case
        )?;
    }
    Ok(())
}
