//! `bench handshake` without a URL: our testee beside the smallest server and peers, in rounds.

use std::time::Duration;

use serde_json::{Value, json};

use super::contest::{self, Contest};
use super::options::HandshakeOptions;
use super::run::RunOptions;
use super::servers::{Server, ServersOptions};
use super::usage::PATIENCE;
use super::worker::{Order, ROLE, Ran};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::frame::{Bound, Column, Common, Goal, Stage};
use crate::load::Latencies;
use crate::machine::Usage;
use crate::process::{Driver, Workers};
use crate::report::table::{number, thousands};

/// Maximum number of connections of a round.
const CONNECTIONS_MAX: u64 = 1_000_000;

const RATE: &str = "handshakes_per_s";
const SERVER_CPU: &str = "server_cpu_us_per_handshake";

/// Measures, prints, and writes the results file if requested.
pub(super) fn compare(options: HandshakeOptions, common: Common) -> Result<bool, BenchError> {
    options.run(common.seconds, 1).check()?;
    contest::compare(Handshakes { options, common })
}

struct Handshakes {
    options: HandshakeOptions,
    common: Common,
}

impl HandshakeOptions {
    fn low(&self) -> usize {
        self.outstanding.div_ceil(2)
    }

    fn run(&self, seconds: f64, threads: usize) -> RunOptions {
        RunOptions {
            threads,
            connections: CONNECTIONS_MAX,
            low: self.low(),
            high: self.outstanding,
            seconds_max: Some(seconds),
            timeout_s: self.timeout_s,
        }
    }
}

impl Contest for Handshakes {
    const NAME: &'static str = "handshake";
    const RATE: &'static str = RATE;
    const SERVER_CPU: &'static str = SERVER_CPU;

    fn common(&self) -> &Common {
        &self.common
    }

    fn servers(&self) -> &ServersOptions {
        &self.options.servers
    }

    fn load(&self) -> String {
        let (low, high) = (self.options.low(), self.options.outstanding);
        format!(
            "TCP connect, opening handshake, closing handshake, TCP close; {low} to {high} \
             handshakes in flight"
        )
    }

    fn settings(&self) -> Value {
        json!({
            "low": self.options.low(),
            "high": self.options.outstanding,
            "timeout_s": self.options.timeout_s,
        })
    }

    fn columns() -> Vec<Column> {
        vec![
            Column::rate("handshakes/s", RATE, thousands),
            Column::spread("server CPU µs", SERVER_CPU, number),
            Column::median("driver CPU µs", "driver_cpu_us_per_handshake", number),
            Column::median("open p50 µs", "open_p50_us", number),
            Column::median("p99 µs", "open_p99_us", number),
            Column::median("max µs", "open_max_us", number),
            Column::over_floor("rate ÷ floor", RATE),
            Column::over_floor("CPU ÷ floor", SERVER_CPU),
        ]
    }

    fn goals() -> Vec<Goal> {
        let cpu = "server CPU per handshake ÷ floor";
        vec![
            Goal::over_floor(cpu, SERVER_CPU, Bound::AtMost(1.2)),
            Goal::over_floor("handshakes/s ÷ floor", RATE, Bound::AtLeast(0.95)),
        ]
    }

    fn round(&self, stage: &Stage<'_>, server: &Server) -> Result<Figures, String> {
        let seconds = self.common.seconds;
        let mut driver = Workers::<Driver<Ran>>::default();
        let order = Order {
            target: server.target.clone(),
        };
        driver
            .start(&stage.site.executable, ROLE, &stage.clients(), &order)
            .map_err(|error| format!("the driver: {error}"))?;
        driver.expect(PATIENCE, "the driver should be ready", Driver::ready)?;
        let mut run = |seconds: f64| {
            driver.tell(0, &self.options.run(seconds, stage.cores.clients.len()));
            let longest =
                Duration::from_secs_f64(seconds + 2.0 * self.options.timeout_s) + PATIENCE;
            driver.expect(longest, "the driver was at work", Driver::found)
        };
        if self.common.warm_up_seconds > 0.0 {
            run(self.common.warm_up_seconds)?;
        }
        let before = Usage::now(&server.processes, &[]);
        let ran = run(seconds)?;
        let used = Usage::now(&server.processes, &[]).since(&before);
        let used = used.with_drivers(ran.cpu_ns as f64);
        if let Some(fault) = ran.fault {
            return Err(fault);
        }
        if ran.succeeded == 0 || ran.duration_us <= 0 {
            return Err("no handshake in time".to_owned());
        }
        let rate = ran.succeeded as f64 * 1e6 / ran.duration_us as f64;
        // The readings include the last wait for a server to close, which the rate leaves out.
        let rate_used = ran.succeeded as f64 / used.seconds;
        Ok(figures(
            &ran,
            rate,
            Figures::new().with_usage("server", "handshake", &used, rate_used),
        ))
    }
}

fn figures(ran: &Ran, rate: f64, usage: Figures) -> Figures {
    let open = Latencies::of(&ran.open);
    let close = Latencies::of(&ran.close);
    let figures = usage
        .with("handshakes", ran.succeeded as f64)
        .with("handshakes_per_s", rate)
        .with("left_open", ran.left_open as f64);
    figures
        .with_times("open", &open.summary())
        .with_times("close", &close.summary())
}
