//! What `bench hostile` prints: an attack a row, below it what came of it; the witness alone first.

use std::io::{self, Write};

use super::catalogue::ATTACKS;
use super::figures::KINDS;
use super::round::Outcome;
use super::{Bench, Measured};
use crate::report::table::{UNKNOWN, known, number, table, thousands};

/// The attacks that there are.
pub(super) fn print_list(out: &mut impl Write) -> io::Result<()> {
    for attack in ATTACKS {
        writeln!(out, "{:<14} {}", attack.name, attack.what)?;
    }
    Ok(())
}

pub(super) fn print_header(out: &mut impl Write, bench: &Bench) -> io::Result<()> {
    let options = &bench.options;
    writeln!(out, "Machine: {}", bench.machine.line())?;
    writeln!(
        out,
        "Witness: one operation at a time of each kind, beside each attack and {} s after it; waits in \
         ms, the worst and below it the 99th percentile; sizes × {}, at most {} s an attack",
        options.after_seconds, options.scale, options.limit_seconds,
    )
}

pub(super) fn print_subject(out: &mut impl Write, measured: &Measured) -> io::Result<()> {
    writeln!(out, "\n{}", measured.subject)?;
    let mut columns = vec!["attack"];
    columns.extend(KINDS);
    columns.extend(["CPU s", "MiB before", "at most", "after", "lost", "dropped"]);
    let mut rows = table(&columns);
    for (name, outcome) in &measured.outcomes {
        if let Ok(outcome) = outcome {
            rows.add_row(row(name, outcome));
        }
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    for (name, outcome) in &measured.outcomes {
        let words = match outcome {
            Ok(outcome) => outcome.words(),
            Err(why) => format!("left out: {why}"),
        };
        if !words.is_empty() {
            writeln!(out, "{name}: {words}")?;
        }
    }
    let without = measured.outcomes.iter().find_map(|(_, outcome)| {
        let outcome = outcome.as_ref().ok()?;
        (!outcome.without.is_empty()).then(|| outcome.without.join("; "))
    });
    if let Some(without) = without {
        writeln!(out, "The witness went without {without}")?;
    }
    Ok(())
}

fn row(name: &str, outcome: &Outcome) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for kind in KINDS {
        row.push(match outcome.waits(kind) {
            Some(waits) => format!("{}\n{}", number(waits.worst_ms), number(waits.p99_ms)),
            None => UNKNOWN.to_owned(),
        });
    }
    row.push(known(outcome.cpu_s, number));
    let memory = outcome.memory;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    row.push(known(memory.map(|m| mib(m.before)), number));
    row.push(known(memory.map(|m| mib(m.most)), number));
    row.push(known(memory.map(|m| mib(m.after)), number));
    row.push(thousands(outcome.lost() as f64));
    row.push(known(outcome.dropped, thousands));
    row
}
