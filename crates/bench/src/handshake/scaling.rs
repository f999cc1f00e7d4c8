//! `bench handshake --scaling`: the source document's table of one, two and four cores, against
//! our own testee. Each number of workers is warmed up, then measured three times without being
//! started again.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::json;

use super::analysis::Analysis;
use super::options::HandshakeOptions;
use super::run::{RunOptions, run};
use super::servers::{Ground, Servers};
use crate::error::BenchError;
use crate::figures::{Figures, Series};
use crate::frame::Common;
use crate::machine::{Machine, allowed_cores, bind_this_thread};
use crate::network::Network;
use crate::process::directory;
use crate::report::json::{Frame, write};
use crate::report::table::{UNKNOWN, known, spread, table, thousands};

/// The load: in each run, with wsperf's threads and marks in the document.
struct Scaling<'a> {
    common: &'a Common,
    /// Numbers of workers, one row each.
    workers: &'a [usize],
    run: RunOptions,
    /// Connections before the first run.
    warm_up: u64,
    runs: usize,
}

/// The document's three runs on as many cores: handshakes/s, and the median in ms.
const DOCUMENT: [(usize, [(f64, f64); 3]); 3] = [
    (1, [(9046.0, 128.4), (8938.0, 129.7), (8973.0, 134.4)]),
    (2, [(13_334.0, 75.2), (13_526.0, 73.8), (13_438.0, 74.3)]),
    (4, [(14_073.0, 44.3), (13_588.0, 40.1), (14_035.0, 40.8)]),
];

/// What the document measured on.
const HARDWARE: &str = "Autobahn for Python on PyPy, a Core i7, driven by wsperf on the same cores";

const RATE: &str = "handshakes_per_s";
const MEDIAN_MS: &str = "open_median_ms";

struct Line {
    workers: usize,
    /// Why there are no figures.
    without: Option<String>,
    series: Series,
}

/// Measures and prints. Whether everything that was measured counts.
pub(super) fn scaling(options: &HandshakeOptions, common: &Common) -> Result<bool, BenchError> {
    let (threads, low, high) = (8, 1_000, 2_000);
    let options = &Scaling {
        common,
        workers: &options.scaling,
        run: RunOptions {
            threads,
            connections: options.scaling_connections,
            low,
            high,
            seconds_max: None,
            timeout_s: options.timeout_s,
        },
        warm_up: options.scaling_connections.div_ceil(4),
        runs: options.servers.usual.rounds.runs.unwrap_or(3),
    };
    options.run.check()?;
    let sensible = options.workers.iter().all(|w| (1..=256).contains(w));
    if !sensible || options.workers.is_empty() || options.runs == 0 {
        let rule = "--scaling takes numbers of workers, 1 to 256, and at least one run";
        return Err(BenchError::Options(rule.to_owned()));
    }
    let allowed = allowed_cores()?;
    let machine = Machine::now();
    let mut lines = Vec::new();
    // What was measured before something broke is printed and written all the same.
    let mut measured = Ok(());
    for workers in options.workers {
        let mut line = Line {
            workers: *workers,
            without: driver_bound(*workers, allowed.len()),
            series: Series::new("crosstie"),
        };
        if line.without.is_none() {
            measured = measure(options, &allowed, &mut line);
        }
        lines.push(line);
        if measured.is_err() || options.common.stop.is_wished() {
            break;
        }
    }
    bind_this_thread(&allowed)?;
    print(&mut io::stdout(), &machine, options, &lines)?;
    if let Some(path) = &options.common.json {
        let frame = Frame {
            bench: "handshake",
            version: &options.common.build.version,
            commit: &options.common.build.commit,
            machine: &machine,
            settings: json!({
                "scaling": options.workers,
                "connections": options.run.connections,
                "threads": options.run.threads,
                "low": options.run.low,
                "high": options.run.high,
                "warm_up_connections": options.warm_up,
                "runs": options.runs,
                "document_hardware": HARDWARE,
            }),
            results: lines.iter().flat_map(Line::rows).collect(),
            verdicts: Vec::new(),
        };
        write(path, &frame)?;
    }
    measured?;
    Ok(lines
        .iter()
        .all(|line| line.without.is_some() || line.series.is_valid()))
}

/// Workers that leave the driver no core of its own would only show what the driver leaves them.
fn driver_bound(workers: usize, cores: usize) -> Option<String> {
    (workers >= cores).then(|| {
        format!("driver-bound: {workers} workers and a driver need more than {cores} cores")
    })
}

fn measure(options: &Scaling<'_>, allowed: &[usize], line: &mut Line) -> Result<(), BenchError> {
    let (server_cores, driver_cores) = allowed.split_at(line.workers);
    let executable = std::env::current_exe()?;
    let directory = directory::create()?;
    let network = Network::set_up(&options.common.network, &executable, directory.path())?;
    let ground = Ground {
        executable: &executable,
        directory: directory.path(),
        network: &network,
        cores: server_cores,
    };
    let servers = Servers::testee(&ground, line.workers)?;
    let Some(server) = servers.servers.first() else {
        return Ok(());
    };
    // The drivers are threads of this process.
    bind_this_thread(driver_cores)?;
    let warm_up = RunOptions {
        connections: options.warm_up,
        ..options.run
    };
    let progress = match io::stderr().is_terminal() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    };
    progress.enable_steady_tick(Duration::from_millis(200));
    for at in 0..=options.runs {
        if options.common.stop.is_wished() {
            break;
        }
        let (load, what) = match at {
            0 => (&warm_up, "warm-up".to_owned()),
            at => (&options.run, format!("run {at}/{}", options.runs)),
        };
        let begun = Instant::now();
        let made = run(&server.target, load, &mut |done| {
            let seconds = begun.elapsed().as_secs();
            let workers = line.workers;
            progress.set_message(format!("{workers} workers, {what}: {done} in {seconds} s"));
        })?;
        if at == 0 {
            continue;
        }
        let analysis = Analysis::of(std::slice::from_ref(&made.log));
        progress.suspend(|| write!(io::stdout(), "{analysis}"))?;
        line.series.push(match made.fault() {
            Some(fault) => Err(fault),
            None => Ok(Figures::new()
                .with(RATE, analysis.handshakes_per_s())
                .with_known(MEDIAN_MS, analysis.median_ms())),
        });
    }
    progress.finish_and_clear();
    Ok(())
}

impl Line {
    fn rows(&self) -> Vec<crate::report::json::Row> {
        let mut rows = self.series.rows(&format!("workers-{}", self.workers), None);
        if let (Some(why), Some(row)) = (&self.without, rows.first_mut()) {
            row.valid = false;
            row.why.clone_from(why);
        }
        rows
    }
}

fn print(
    out: &mut impl Write,
    machine: &Machine,
    options: &Scaling<'_>,
    lines: &[Line],
) -> io::Result<()> {
    writeln!(out, "Machine: {}", machine.line())?;
    writeln!(
        out,
        "Load: {} runs of {} connections, {} threads, {} to {} handshakes in flight, after {} \
         connections of warm-up; median, below it smallest–largest",
        options.runs,
        thousands(options.run.connections as f64),
        options.run.threads,
        thousands(options.run.low as f64),
        thousands(options.run.high as f64),
        thousands(options.warm_up as f64),
    )?;
    let one = lines.iter().find(|line| line.workers == 1);
    let document_one = document(1).map(|(rate, _)| rate);
    let mut rows = table(&[
        "workers",
        "handshakes/s",
        "median ms",
        "÷ 1 worker",
        "document",
        "median ms",
        "÷ 1 worker",
    ]);
    for line in lines {
        let rate = match &line.without {
            Some(_) => "driver-bound".to_owned(),
            None => spread(line.series.spread(RATE), thousands),
        };
        let own = line.series.median(RATE);
        let over_one = own.zip(one.and_then(|one| one.series.median(RATE)));
        let ratio = |(rate, one): (f64, f64)| format!("{:.2}", rate / one);
        let document = document(line.workers);
        rows.add_row([
            line.workers.to_string(),
            rate,
            spread(line.series.spread(MEDIAN_MS), |ms| format!("{ms:.1}")),
            over_one.map_or_else(|| UNKNOWN.to_owned(), ratio),
            known(document.map(|(rate, _)| rate), thousands),
            known(document.map(|(_, ms)| ms), |ms| format!("{ms:.1}")),
            document
                .map(|(rate, _)| rate)
                .zip(document_one)
                .map_or_else(|| "not given".to_owned(), ratio),
        ]);
    }
    writeln!(out, "{}", rows.trim_fmt())?;
    for line in lines {
        if let Some(why) = &line.without {
            writeln!(out, "  {why}")?;
        }
        let why = line.series.why();
        if !why.is_empty() {
            writeln!(out, "  not counted: {} workers: {why}", line.workers)?;
        }
    }
    writeln!(out, "  document: means of its three runs; {HARDWARE}")
}

/// Means of the document's runs.
fn document(workers: usize) -> Option<(f64, f64)> {
    let (_, runs) = DOCUMENT.iter().find(|(on, _)| *on == workers)?;
    let mean =
        |figure: fn(&(f64, f64)) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    Some((mean(|run| run.0), mean(|run| run.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_figures() {
        #[track_caller]
        fn check(workers: usize, rate: f64, median_ms: f64) {
            let (found_rate, found_ms) = document(workers).unwrap();
            assert!((found_rate - rate).abs() < 1.0, "{found_rate}");
            assert!((found_ms - median_ms).abs() < 0.1, "{found_ms}");
        }
        check(1, 8986.0, 130.8);
        check(2, 13_433.0, 74.4);
        check(4, 13_899.0, 41.7);
        assert_eq!(document(3), None);
    }

    #[test]
    fn workers_leave_the_driver_a_core() {
        assert!(driver_bound(1, 2).is_none());
        assert!(driver_bound(2, 2).is_some_and(|why| why.starts_with("driver-bound")));
        assert!(driver_bound(4, 8).is_none());
        assert!(driver_bound(1, 1).is_some());
    }
}
