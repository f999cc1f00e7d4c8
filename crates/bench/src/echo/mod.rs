//! `bench echo`: echoed WebSocket messages per second, our testee's beside the smallest server's
//! and peers', with every echo checked.

mod driver;
mod message;
pub(crate) mod worker;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Goal};
use crate::handshake::ComparisonOptions;
use crate::handshake::comparison::{Column, Instrument, PATIENCE, Stage, compare, with_times};
use crate::handshake::servers::Server;
use crate::handshake::usage;
use crate::load::drive::{Window, monotonic_ns};
use crate::load::histogram::Latencies;
use crate::machine::accounting::Usage;
use crate::process::crew::Crew;
use crate::report::table::{number, thousands};

use driver::{Findings, Load};
pub use message::Shape;
use worker::{ROLE, Report};

/// What can be asked of the bench.
#[derive(Clone, Debug)]
pub struct EchoOptions {
    pub comparison: ComparisonOptions,
    pub connections: usize,
    /// Messages in flight on each.
    pub outstanding: usize,
    pub shape: Shape,
    /// Measured time of each round.
    pub seconds: f64,
    /// Unmeasured time before it.
    pub warm_up_seconds: f64,
    pub timeout_s: f64,
}

/// All that may be on its way at once, in bytes: what both ends must be able to hold.
const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;

/// From the word to go until the warm-up begins.
const COUNTDOWN: Duration = Duration::from_millis(5);

/// Measures, prints, and says whether everything counts.
pub fn echo(options: &EchoOptions) -> Result<bool, BenchError> {
    options.check()?;
    compare(options, &options.comparison)
}

impl EchoOptions {
    fn check(&self) -> Result<(), BenchError> {
        let require = |held: bool, rule: &str| match held {
            true => Ok(()),
            false => Err(BenchError::Options(rule.to_owned())),
        };
        let connections = 1..=10_000;
        require(
            connections.contains(&self.connections),
            "--connections is 1 to 10,000",
        )?;
        let outstanding = 1..=65_536;
        require(
            outstanding.contains(&self.outstanding),
            "--outstanding is 1 to 65,536",
        )?;
        let in_flight = self.connections * self.outstanding;
        let bytes = in_flight.checked_mul(self.shape.payload_bytes.saturating_add(14));
        require(
            bytes.is_some_and(|bytes| bytes <= IN_FLIGHT_BYTES_MAX),
            "connections × outstanding × payload is at most 256 MiB",
        )?;
        let seconds = 0.01..600.0;
        require(seconds.contains(&self.seconds), "--seconds is 0.01 to 600")?;
        require(
            seconds.contains(&self.timeout_s),
            "the timeout is 0.01 to 600 s",
        )
    }
}

impl Instrument for EchoOptions {
    const NAME: &'static str = "echo";

    const COLUMNS: &'static [Column] = &[
        Column {
            head: "messages/s",
            figure: "messages_per_s",
            form: thousands,
            with_spread: true,
        },
        Column {
            head: "server CPU µs",
            figure: "server_cpu_us_per_message",
            form: cpu,
            with_spread: true,
        },
        Column {
            head: "driver CPU µs",
            figure: "driver_cpu_us_per_message",
            form: cpu,
            with_spread: false,
        },
        Column {
            head: "messages/read",
            figure: "messages_per_read",
            form: number,
            with_spread: false,
        },
        Column {
            head: "p50 µs",
            figure: "rtt_p50_us",
            form: number,
            with_spread: false,
        },
        Column {
            head: "p99 µs",
            figure: "rtt_p99_us",
            form: number,
            with_spread: false,
        },
        Column {
            head: "p99.9 µs",
            figure: "rtt_p99_9_us",
            form: number,
            with_spread: false,
        },
        Column {
            head: "max µs",
            figure: "rtt_max_us",
            form: number,
            with_spread: false,
        },
    ];

    const RATIOS: &'static [(&'static str, &'static str)] = &[
        ("rate ÷ floor", "messages_per_s"),
        ("CPU ÷ floor", "server_cpu_us_per_message"),
    ];

    const GOALS: &'static [(&'static str, &'static str, Goal)] =
        &[("messages/s ÷ floor", "messages_per_s", Goal::AtLeast(0.6))];

    fn load(&self) -> String {
        format!(
            "{} connections, {} messages of {} bytes ({}) in flight on each; {} s after {} s",
            thousands(self.connections as f64),
            self.outstanding,
            thousands(self.shape.payload_bytes as f64),
            if self.shape.is_text { "text" } else { "binary" },
            self.seconds,
            self.warm_up_seconds,
        )
    }

    fn settings(&self) -> Value {
        json!({
            "connections": self.connections,
            "outstanding": self.outstanding,
            "payload_bytes": self.shape.payload_bytes,
            "text": self.shape.is_text,
            "seconds": self.seconds,
            "warm_up_seconds": self.warm_up_seconds,
            "timeout_s": self.timeout_s,
        })
    }

    fn seconds_per_round(&self) -> f64 {
        self.seconds + self.warm_up_seconds + 0.1
    }

    fn round(&self, stage: &Stage<'_>, server: &Server) -> Result<Figures, String> {
        let mut crew = Crew::default();
        let load = Load {
            target: server.target.clone(),
            connections: self.connections,
            outstanding: self.outstanding,
            shape: self.shape,
            patience_ms: (self.timeout_s * 1e3) as u64,
        };
        crew.hire(stage.executable, ROLE, &stage.clients, &load)
            .map_err(|error| format!("the driver: {error}"))?;
        let patience = PATIENCE + Duration::from_secs_f64(self.timeout_s);
        match crew.next(Instant::now() + patience) {
            Some((_, Report::Ready)) => {}
            Some((_, Report::Failed { why })) => return Err(why),
            other => return Err(format!("{other:?} where the driver should be ready")),
        }
        let driver = crew.processes();
        let until_start = COUNTDOWN + Duration::from_secs_f64(self.warm_up_seconds);
        let measured = Duration::from_secs_f64(self.seconds);
        let start = Instant::now() + until_start;
        let start_ns = monotonic_ns() + until_start.as_nanos() as u64;
        let window = Window {
            start_ns,
            end_ns: start_ns + measured.as_nanos() as u64,
        };
        crew.tell(0, &window);
        if let Some(findings) = listen(&crew, start)? {
            return Err(early(&findings));
        }
        let before = Usage::now(&server.processes, &driver);
        // On a crowded machine the driver may be through before this process is woken.
        let early = listen(&crew, start + measured)?;
        let used = Usage::now(&server.processes, &driver).since(&before);
        let findings = match early {
            Some(findings) => findings,
            None => listen(&crew, Instant::now() + patience)?
                .ok_or_else(|| "the driver did not finish".to_owned())?,
        };
        figures(&findings, self.seconds, |rate| {
            usage::figures(&used, "message", rate)
        })
    }
}

/// What the driver says until then.
fn listen(crew: &Crew<Report>, until: Instant) -> Result<Option<Findings>, String> {
    match crew.next(until) {
        None => Ok(None),
        Some((_, Report::Drove(findings))) => Ok(Some(findings)),
        Some((_, Report::Failed { why })) => Err(why),
        Some((_, Report::Ready)) => Err("the driver was ready twice".to_owned()),
    }
}

/// A driver that is through before its window begins had nothing in flight any more.
fn early(findings: &Findings) -> String {
    let faults = findings.faults.describe();
    faults.unwrap_or_else(|| "the driver finished before its window".to_owned())
}

fn figures(
    findings: &Findings,
    seconds: f64,
    usage: impl FnOnce(f64) -> Figures,
) -> Result<Figures, String> {
    let mut rtt = Latencies::default();
    rtt.add(&findings.recorded);
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
    Ok(with_times(figures, "rtt", &rtt))
}

/// A message costs a fraction of a microsecond.
fn cpu(us: f64) -> String {
    format!("{us:.3}")
}
