//! `bench echo`: echoed WebSocket messages per second, our testee's beside the smallest server's and peers', with every
//! echo checked.

mod driver;
mod message;
pub(crate) mod worker;

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::Figures;
use crate::frame::{Bound, Column, Common, Drive, Goal, Host, Stage, require, require_within};
use crate::handshake::ServersOptions;
use crate::handshake::contest::{self, Contest};
use crate::handshake::servers::Server;
use crate::handshake::usage::PATIENCE;
use crate::load::Latencies;
use crate::report::table::{number, thousands};
use crate::subject::Url;

use driver::{Findings, Load};
use message::Shape;
use worker::ROLE;

/// Our testee, the smallest possible server, and peers take turns; every echo is checked.
#[derive(Clone, Debug, clap::Args)]
pub struct EchoOptions {
    #[arg(skip)]
    common: Common,
    /// External server in place of the testee: ws://HOST:PORT.
    #[arg(value_name = "URL", conflicts_with = "url")]
    target: Option<Url>,
    #[arg(long, default_value_t = 32, value_name = "N")]
    connections: usize,
    /// Messages in flight on each connection.
    #[arg(long, default_value_t = 16, value_name = "N")]
    outstanding: usize,
    #[command(flatten)]
    shape: Shape,
    /// Seconds that a server may take for an answer.
    #[arg(long = "timeout", default_value_t = 5.0, value_name = "SECONDS")]
    timeout_s: f64,
    #[command(flatten)]
    servers: ServersOptions,
}

/// Maximum number of bytes in flight: both ends must be able to hold them.
const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;

const RATE: &str = "messages_per_s";
const SERVER_CPU: &str = "server_cpu_us_per_message";

/// Measures, prints, and writes the results file if requested.
pub fn echo(mut options: EchoOptions, host: Host) -> Result<bool, BenchError> {
    options.common = options.servers.common(host)?;
    let url = &mut options.servers.server.url;
    *url = url.take().or_else(|| options.target.take());
    options.common.is_foreign |= url.is_some();
    options.check()?;
    contest::compare(options)
}

impl EchoOptions {
    fn check(&self) -> Result<(), BenchError> {
        require_within("--connections", &self.connections, 1..=10_000)?;
        require_within("--outstanding", &self.outstanding, 1..=65_536)?;
        let in_flight = self.connections * self.outstanding;
        let bytes = in_flight.checked_mul(self.shape.payload_bytes.saturating_add(14));
        require(
            bytes.is_some_and(|bytes| bytes <= IN_FLIGHT_BYTES_MAX),
            "connections × outstanding × payload is at most 256 MiB",
        )?;
        require(
            (0.01..600.0).contains(&self.timeout_s),
            "--timeout is 0.01 to 600",
        )
    }
}

impl Contest for EchoOptions {
    const NAME: &'static str = "echo";
    const RATE: &'static str = RATE;
    const SERVER_CPU: &'static str = SERVER_CPU;

    fn common(&self) -> &Common {
        &self.common
    }

    fn servers(&self) -> &ServersOptions {
        &self.servers
    }

    fn load(&self) -> String {
        format!(
            "{} connections, {} messages of {} bytes ({}) in flight on each",
            thousands(self.connections as f64),
            self.outstanding,
            thousands(self.shape.payload_bytes as f64),
            if self.shape.is_text { "text" } else { "binary" },
        )
    }

    fn settings(&self) -> Value {
        json!({
            "connections": self.connections,
            "outstanding": self.outstanding,
            "payload_bytes": self.shape.payload_bytes,
            "text": self.shape.is_text,
            "timeout_s": self.timeout_s,
        })
    }

    fn columns() -> Vec<Column> {
        vec![
            Column::rate("messages/s", RATE, thousands),
            Column::spread("server CPU µs", SERVER_CPU, cpu),
            Column::median("driver CPU µs", "driver_cpu_us_per_message", cpu),
            Column::median("messages/read", "messages_per_read", number),
            Column::median("p50 µs", "rtt_p50_us", number),
            Column::median("p99 µs", "rtt_p99_us", number),
            Column::median("p99.9 µs", "rtt_p99_9_us", number),
            Column::median("max µs", "rtt_max_us", number),
            Column::over_floor("rate ÷ floor", RATE),
            Column::over_floor("CPU ÷ floor", SERVER_CPU),
        ]
    }

    fn goals() -> Vec<Goal> {
        vec![Goal::over_floor(
            "messages/s ÷ floor",
            RATE,
            Bound::AtLeast(0.6),
        )]
    }

    fn round(&self, stage: &Stage<'_>, server: &Server) -> Result<Figures, String> {
        let drive = Drive {
            stage,
            common: &self.common,
            role: ROLE,
            processes: &server.processes,
            patience: PATIENCE + Duration::from_secs_f64(self.timeout_s),
        };
        let load = Load {
            target: server.target.clone(),
            connections: self.connections,
            outstanding: self.outstanding,
            shape: self.shape,
            patience_ms: (self.timeout_s * 1e3) as u64,
        };
        let (findings, used) = drive.run(&load)?;
        figures(&findings, self.common.seconds, |rate| {
            Figures::new().with_usage("server", "message", &used, rate)
        })
    }
}

fn figures(
    findings: &Findings,
    seconds: f64,
    usage: impl FnOnce(f64) -> Figures,
) -> Result<Figures, String> {
    let rtt = Latencies::of(&findings.recorded);
    if let Some(fault) = findings.faults.describe() {
        return Err(fault);
    }
    if rtt.count() == 0 {
        return Err("no echo in time".to_owned());
    }
    let rate = rtt.count() as f64 / seconds;
    let figures = usage(rate)
        .with("messages", rtt.count() as f64)
        .with("messages_per_s", rate)
        .with("messages_per_read", findings.traffic.messages_per_read());
    Ok(figures.with_times("rtt", &rtt.summary()))
}

/// A message costs a fraction of a microsecond.
fn cpu(us: f64) -> String {
    format!("{us:.3}")
}
