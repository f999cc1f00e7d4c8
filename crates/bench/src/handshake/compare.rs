//! `bench handshake` without a URL: our testee beside the smallest server and peers, in rounds.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::comparison::{
    Column, ComparisonOptions, Instrument, PATIENCE, Stage, compare as run_comparison, with_times,
};
use super::run::RunOptions;
use super::servers::Server;
use super::usage;
use super::worker::{Order, ROLE, Ran, Report};
use crate::error::BenchError;
use crate::figures::{Figures, Goal};
use crate::load::histogram::Latencies;
use crate::machine::accounting::Usage;
use crate::process::crew::Crew;
use crate::report::table::{number, thousands};

/// What can be asked of the comparison.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    pub comparison: ComparisonOptions,
    /// Measured time of each round.
    pub seconds: f64,
    /// Unmeasured time before it.
    pub warm_up_seconds: f64,
    /// Handshakes in flight.
    pub low: usize,
    pub high: usize,
    pub timeout_s: f64,
}

/// A round never opens more.
const CONNECTIONS_MAX: u64 = 1_000_000;

/// Measures, prints, and says whether everything counts.
pub fn compare(options: &CompareOptions) -> Result<bool, BenchError> {
    options.run(options.seconds, 1).check()?;
    let seconds = 0.01..600.0;
    if !seconds.contains(&options.seconds) || !(0.0..600.0).contains(&options.warm_up_seconds) {
        let rule = "--seconds is 0.01 to 600, the warm-up up to 600";
        return Err(BenchError::Options(rule.to_owned()));
    }
    run_comparison(options, &options.comparison)
}

impl CompareOptions {
    fn run(&self, seconds: f64, threads: usize) -> RunOptions {
        RunOptions {
            threads,
            connections: CONNECTIONS_MAX,
            low: self.low,
            high: self.high,
            seconds_max: Some(seconds),
            timeout_s: self.timeout_s,
        }
    }
}

impl Instrument for CompareOptions {
    const NAME: &'static str = "handshake";

    const COLUMNS: &'static [Column] = &[
        Column {
            head: "handshakes/s",
            figure: "handshakes_per_s",
            form: thousands,
            with_spread: true,
        },
        Column {
            head: "server CPU µs",
            figure: "server_cpu_us_per_handshake",
            form: number,
            with_spread: true,
        },
        Column {
            head: "driver CPU µs",
            figure: "driver_cpu_us_per_handshake",
            form: number,
            with_spread: false,
        },
        Column {
            head: "open p50 µs",
            figure: "open_p50_us",
            form: number,
            with_spread: false,
        },
        Column {
            head: "p99 µs",
            figure: "open_p99_us",
            form: number,
            with_spread: false,
        },
        Column {
            head: "max µs",
            figure: "open_max_us",
            form: number,
            with_spread: false,
        },
    ];

    const RATIOS: &'static [(&'static str, &'static str)] = &[
        ("rate ÷ floor", "handshakes_per_s"),
        ("CPU ÷ floor", "server_cpu_us_per_handshake"),
    ];

    const GOALS: &'static [(&'static str, &'static str, Goal)] = &[
        (
            "server CPU per handshake ÷ floor",
            "server_cpu_us_per_handshake",
            Goal::AtMost(1.2),
        ),
        (
            "handshakes/s ÷ floor",
            "handshakes_per_s",
            Goal::AtLeast(0.95),
        ),
    ];

    fn load(&self) -> String {
        format!(
            "TCP connect, opening handshake, closing handshake, TCP close; {} to {} handshakes in \
             flight; {} s after {} s",
            self.low, self.high, self.seconds, self.warm_up_seconds
        )
    }

    fn settings(&self) -> Value {
        json!({
            "seconds": self.seconds,
            "warm_up_seconds": self.warm_up_seconds,
            "low": self.low,
            "high": self.high,
            "timeout_s": self.timeout_s,
        })
    }

    fn seconds_per_round(&self) -> f64 {
        self.seconds + self.warm_up_seconds + 0.1
    }

    fn round(&self, stage: &Stage<'_>, server: &Server) -> Result<Figures, String> {
        let mut crew = Crew::default();
        let order = Order {
            target: server.target.clone(),
        };
        crew.hire(stage.executable, ROLE, &stage.clients, &order)
            .map_err(|error| format!("the driver: {error}"))?;
        match crew.next(Instant::now() + PATIENCE) {
            Some((_, Report::Ready)) => {}
            other => return Err(format!("{other:?} where the driver should be ready")),
        }
        let mut run = |seconds: f64| {
            crew.tell(0, &self.run(seconds, stage.client_cores));
            let longest = Duration::from_secs_f64(seconds + 2.0 * self.timeout_s) + PATIENCE;
            match crew.next(Instant::now() + longest) {
                Some((_, Report::Ran(ran))) => Ok(ran),
                Some((_, Report::Failed { why })) => Err(why),
                other => Err(format!("{other:?} from a driver that was at work")),
            }
        };
        if self.warm_up_seconds > 0.0 {
            run(self.warm_up_seconds)?;
        }
        let before = Usage::now(&server.processes, &[]);
        let ran = run(self.seconds)?;
        let used = Usage::now(&server.processes, &[]).since(&before);
        let used = used.with_drivers(ran.cpu_ns as f64);
        if let Some(fault) = ran.fault {
            return Err(fault);
        }
        if ran.succeeded == 0 || ran.duration_us <= 0 {
            return Err("no handshake in time".to_owned());
        }
        let rate = ran.succeeded as f64 * 1e6 / ran.duration_us as f64;
        // The readings enclose the last wait for a server to close, which the rate leaves out.
        let rate_used = ran.succeeded as f64 / used.seconds;
        Ok(figures(
            &ran,
            rate,
            usage::figures(&used, "handshake", rate_used),
        ))
    }
}

fn figures(ran: &Ran, rate: f64, usage: Figures) -> Figures {
    let mut open = Latencies::default();
    open.add(&ran.open);
    let mut close = Latencies::default();
    close.add(&ran.close);
    let figures = usage
        .with("handshakes", ran.succeeded as f64)
        .with("handshakes_per_s", rate)
        .with("left_open", ran.left_open as f64);
    with_times(with_times(figures, "open", &open), "close", &close)
}
