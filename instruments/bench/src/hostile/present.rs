//! The output of `bench hostile`: an attack per row, the witness alone first.

use std::io::{self, Write};

use super::Case;
use super::catalogue::ATTACKS;
use super::figures::KINDS;
use crate::frame::Section;
use crate::report::table::{UNKNOWN, known, number, thousands};

pub(super) fn list() -> io::Result<()> {
    let mut out = io::stdout();
    for attack in ATTACKS {
        writeln!(out, "{:<14} {}", attack.name, attack.what)?;
    }
    Ok(())
}

pub(super) fn attacks(sections: &[&Section<Case>]) -> Vec<Vec<String>> {
    let mut heads = vec!["attack"];
    heads.extend(KINDS);
    heads.extend(["CPU s", "MiB before", "at most", "after", "lost", "dropped"]);
    let heads = heads.into_iter().map(str::to_owned).collect();
    let rows = sections.iter().filter_map(|section| row(section));
    [heads].into_iter().chain(rows).collect()
}

fn row(section: &Section<Case>) -> Option<Vec<String>> {
    let own = section.own()?;
    let mut row = vec![section.case.to_string()];
    for kind in KINDS {
        let of = |which: &str| own.median(&format!("{kind}_{which}_ms"));
        row.push(match of("worst").zip(of("p99")) {
            Some((worst, p99)) => format!("{}\n{}", number(worst), number(p99)),
            None => UNKNOWN.to_owned(),
        });
    }
    let mib = |name| own.median(name).map(|bytes| bytes / f64::from(1 << 20));
    row.push(known(own.median("cpu_s"), number));
    row.push(known(mib("rss_before_bytes"), number));
    row.push(known(mib("rss_most_bytes"), number));
    row.push(known(mib("rss_after_bytes"), number));
    row.push(known(own.median("lost"), thousands));
    row.push(known(own.median("events_dropped"), thousands));
    Some(row)
}
