//! The tables at the end of `bench pubsub`.

use std::io::{self, Write};

use super::Bench;
use super::contest::{Contest, MAX_EVENTS_PER_S};
use super::goals::{goals, profile_goals};
use super::options::Work;
use super::profiles::HARDWARE;
use super::round::{BUSY, CPU_PER_EVENT, EVENTS_PER_S, FOREIGN_BUSY, P50, P99};
use super::stage::Rate;
use crate::figures::Series;
use crate::report::table::{UNKNOWN, bytes, known, number, spread, table, thousands};

pub(super) fn print(out: &mut impl Write, bench: &Bench, contests: &[Contest]) -> io::Result<()> {
    let options = &bench.options;
    writeln!(out, "\nMachine: {}", bench.machine.line())?;
    if let Some(network) = bench.network.description() {
        writeln!(out, "Network: {network}")?;
    }
    let latency = match options.work {
        Work::Saturate { .. } => "a latency is the publisher's own, from its write",
        _ => "a latency lasts from the instant at which its batch should have been published",
    };
    writeln!(
        out,
        "Router: {} thread{}; {latency} to the read that brought the event; {} round{}, medians",
        options.router_threads,
        if options.router_threads == 1 { "" } else { "s" },
        options.runs(),
        if options.runs() == 1 { "" } else { "s" },
    )?;
    match options.work {
        Work::Profiles(_) => print_profiles(out, bench, contests)?,
        _ => {
            for contest in contests {
                print_contest(out, contest)?;
            }
        }
    }
    Ok(())
}

const COLUMNS: [&str; 12] = [
    "subject",
    "events/s",
    "avg µs",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "max µs",
    "CPU/event µs",
    "busy cores",
    "events/read",
    "p50 ÷ floor",
    "p99 ÷ floor",
];

fn print_contest(out: &mut impl Write, contest: &Contest) -> io::Result<()> {
    let terms = &contest.terms;
    let load = match terms.load.rate {
        Rate::Hz(_) if contest.is_search() => {
            format!("batches of {} as often as holds", terms.load.batch)
        }
        Rate::Hz(hz) => format!("a batch of {} at {hz} Hz", terms.load.batch),
        Rate::Saturated { outstanding } => format!("{outstanding} publications under way"),
    };
    writeln!(
        out,
        "\n{} {}: {} clients, {load}, {}+ bytes payload, {} s",
        terms.case, terms.placement, terms.clients, terms.payload_bytes, terms.load.seconds
    )?;
    if contest.interrupted {
        writeln!(out, "  interrupted")?;
    }
    for search in &contest.searches {
        writeln!(out, "  {search}")?;
    }
    let mut rows = table(&COLUMNS);
    for series in &contest.series {
        rows.add_row(row(contest, series));
    }
    writeln!(out, "{rows}")?;
    for series in &contest.series {
        if !series.is_valid() {
            writeln!(out, "  not counted: {}: {}", series.subject, series.why())?;
        }
        if series.median(EVENTS_PER_S).is_some() {
            writeln!(out, "  {}", drivers(series))?;
        }
    }
    if let Some(router) = contest.series.first()
        && let Some(ratio) = contest.over_floor(router, MAX_EVENTS_PER_S)
    {
        writeln!(out, "  highest rate ÷ floor's: {}", number(ratio))?;
    }
    for goal in goals(contest) {
        writeln!(out, "  goal: {goal}")?;
    }
    Ok(())
}

fn row(contest: &Contest, series: &Series) -> Vec<String> {
    let median = |name| known(series.median(name), number);
    let mut rate = spread(series.spread(EVENTS_PER_S), thousands);
    if contest.driver_bound(series) {
        rate += "\ndriver-bound";
    }
    vec![
        series.subject.clone(),
        rate,
        median("latency_avg_us"),
        spread(series.spread(P50), number),
        spread(series.spread(P99), number),
        median("latency_p99_9_us"),
        known(
            series.spread("latency_max_us").map(|spread| spread.max),
            number,
        ),
        spread(series.spread(CPU_PER_EVENT), number),
        median(BUSY),
        median("events_per_read"),
        known(contest.over_floor(series, P50), number),
        known(contest.over_floor(series, P99), number),
    ]
}

/// What the drivers cost and how they kept their time: a figure of the router means little without.
fn drivers(series: &Series) -> String {
    let median = |name| known(series.median(name), number);
    format!(
        "{}: {} publications a run, 0 lost, doubled or out of order; {} Mbit/s, memory {}; drivers' \
         CPU/event {} µs, {} cores; the publisher was late by {} µs at p50, {} µs at p99; the rest \
         of the machine: {} cores busy",
        series.subject,
        known(series.median("publications"), thousands),
        median("mbit_per_s"),
        known(series.median("router_pss_bytes"), bytes),
        median("driver_cpu_us_per_event"),
        median("driver_busy_cores"),
        median("publisher_late_p50_us"),
        median("publisher_late_p99_us"),
        median(FOREIGN_BUSY),
    )
}

const PROFILE_COLUMNS: [&str; 13] = [
    "result",
    "heading\nevents/s",
    "load\nevents/s",
    "clients",
    "Hz",
    "batch",
    "bytes",
    "document\nlatency ms",
    "floor\np50 / p99 ms",
    "router\np50 / p99 ms",
    "p50 ÷ floor",
    "p99 ÷ floor",
    "document ÷ mean",
];

fn print_profiles(out: &mut impl Write, bench: &Bench, contests: &[Contest]) -> io::Result<()> {
    for placement in &bench.placements {
        for case in &bench.cases {
            let own: Vec<&Contest> = contests
                .iter()
                .filter(|one| one.terms.case == *case && one.terms.placement == *placement)
                .collect();
            if !own.is_empty() {
                print_profile_table(out, bench, &own)?;
            }
        }
    }
    Ok(())
}

fn print_profile_table(
    out: &mut impl Write,
    bench: &Bench,
    contests: &[&Contest],
) -> io::Result<()> {
    let terms = &contests[0].terms;
    writeln!(
        out,
        "\n{} {}; document: {HARDWARE}",
        terms.case, terms.placement
    )?;
    let peers: Vec<String> = bench
        .options
        .peers
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut columns: Vec<String> = PROFILE_COLUMNS.iter().map(ToString::to_string).collect();
    columns.extend(peers.iter().map(|peer| format!("{peer}\np50 / p99 ms")));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut rows = table(&columns);
    for contest in contests {
        rows.add_row(profile_row(contest, &peers));
    }
    writeln!(out, "{rows}")?;
    if contests.iter().any(|contest| contest.interrupted) {
        writeln!(out, "  interrupted")?;
    }
    for contest in contests {
        if let Some(profile) = contest.terms.profile.filter(|profile| !profile.adds_up()) {
            writeln!(
                out,
                "  result {}: its heading says {} events/s where clients × batch × rate is {}",
                profile.result,
                thousands(profile.heading_events_per_s),
                thousands(profile.events_per_s()),
            )?;
        }
        for series in contest.series.iter().filter(|series| !series.is_valid()) {
            let result = contest.terms.profile.map_or(0, |profile| profile.result);
            let (subject, why) = (&series.subject, series.why());
            writeln!(out, "  not counted: result {result}: {subject}: {why}")?;
        }
    }
    for goal in profile_goals(contests) {
        writeln!(out, "  goal: {goal}")?;
    }
    Ok(())
}

fn profile_row(contest: &Contest, peers: &[String]) -> Vec<String> {
    let Some(profile) = contest.terms.profile else {
        return Vec::new();
    };
    let both = |series: Option<&Series>| {
        let median = |name| {
            let series = series?;
            series.median(name).map(|us| us / 1e3)
        };
        match (median(P50), median(P99)) {
            (Some(p50), Some(p99)) => format!("{p50:.3} / {p99:.3}"),
            _ => UNKNOWN.to_owned(),
        }
    };
    let router = contest.series.first();
    let over = |name| router.and_then(|router| contest.over_floor(router, name));
    let document = match profile.latency_ms {
        Some(latency_ms) => number(latency_ms),
        None => "not given".to_owned(),
    };
    let mean_ms = router
        .and_then(|router| router.median("latency_avg_us"))
        .map(|us| us / 1e3);
    let document_over = profile
        .latency_ms
        .zip(mean_ms)
        .map(|(document, own)| document / own);
    let mut cells = vec![
        profile.result.to_string(),
        thousands(profile.heading_events_per_s),
        thousands(profile.events_per_s()),
        thousands(profile.clients as f64),
        profile.rate_hz.to_string(),
        profile.batch.to_string(),
        profile.payload_bytes.to_string(),
        document,
        both(contest.floor()),
        both(router),
        known(over(P50), number),
        known(over(P99), number),
        known(document_over, number),
    ];
    for peer in peers {
        let series = contest.series.iter().find(|series| series.subject == *peer);
        cells.push(both(series));
    }
    cells
}
