//! How exact a link is: stamped messages go one way, directly and through a link, and the
//! receiver looks at the same clock.
//!
//! ```text
//!   sender ───────────────▶ receiver      what the sockets and the wake-up take
//!   sender ───▶ link ─────▶ receiver      the same twice, the delay, and the link's own error
//! ```

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crosstie_link::{Direction, Endpoint, Late, LinkOptions};
use serde_json::json;

use super::link::{LinkOrder, LinkReport, ROLE};
use crate::error::BenchError;
use crate::figures::{Figures, Series};
use crate::load::{Latencies, Listener, Stream, monotonic_ns};
use crate::machine::{CpuTime, Machine, allowed_cores};
use crate::process::{Place, Workers};
use crate::report::json::{Build, Frame, write};
use crate::report::table::{known, number, spread, table};

/// What can be asked of it.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    pub build: Build,
    /// Its direction does not matter: the messages go the way that is delayed.
    pub link: LinkOptions,
    /// Messages in each round.
    pub messages: u64,
    /// Between two messages, on average.
    pub interval: Duration,
    pub runs: usize,
    pub json: Option<PathBuf>,
}

/// What a link's error is to stay below, in microseconds.
const ERROR_P50_US_MAX: f64 = 100.0;
const ERROR_P99_US_MAX: f64 = 300.0;

const PATIENCE: Duration = Duration::from_secs(10);
const MESSAGE_BYTES: usize = 64;

/// Measures and prints; whether the error is below its bounds.
pub fn measure(options: &MeasureOptions) -> Result<bool, BenchError> {
    if options.messages == 0 || options.runs == 0 || options.interval.is_zero() {
        let why = "messages, interval and runs are more than nothing";
        return Err(BenchError::Options(why.to_owned()));
    }
    let executable = std::env::current_exe()?;
    let machine = Machine::now();
    let mut direct = Series::new("floor");
    let mut through = Series::new("crosstie");
    for _ in 0..options.runs {
        direct.push(round(options, None));
        through.push(round(options, Some(&executable)));
    }
    let is_within = present(&mut io::stdout(), options, &machine, &direct, &through)?;
    if let Some(path) = &options.json {
        let case = "one-way";
        let frame = Frame {
            bench: "link",
            version: &options.build.version,
            commit: &options.build.commit,
            machine: &machine,
            settings: json!({
                "link": options.link.to_string(),
                "messages": options.messages,
                "message_bytes": MESSAGE_BYTES,
                "interval_ms": options.interval.as_secs_f64() * 1e3,
                "runs": options.runs,
            }),
            results: [through.rows(case, None), direct.rows(case, None)].concat(),
            verdicts: Vec::new(),
        };
        write(path, &frame)?;
    }
    Ok(is_within && direct.is_valid() && through.is_valid())
}

/// All messages of one round; through a link, if there is an executable to start it from.
fn round(options: &MeasureOptions, executable: Option<&Path>) -> Result<Figures, String> {
    try_round(options, executable).map_err(|error| error.to_string())
}

fn try_round(options: &MeasureOptions, executable: Option<&Path>) -> io::Result<Figures> {
    let any_port = Endpoint::Tcp((Ipv4Addr::LOCALHOST, 0).into());
    let (listener, receiver) = Listener::bind(&any_port)?;
    let mut link = Workers::default();
    let mut target = receiver.clone();
    let mut delay = Duration::ZERO;
    let mut is_realtime = false;
    if let Some(executable) = executable {
        delay = options.link.delay;
        let order = LinkOrder {
            listen: any_port,
            server: receiver,
            options: LinkOptions {
                direction: Direction::Up,
                ..options.link.clone()
            },
        };
        link.start(executable, ROLE, &Place::on(&allowed_cores()?), &order)?;
        let ready = |report| match report {
            LinkReport::Ready { endpoint, realtime } => Ok((endpoint, realtime)),
            other => Err(other),
        };
        let ready = link.expect(PATIENCE, "the link should listen", ready);
        (target, is_realtime) = ready.map_err(io::Error::other)?;
    }
    let messages = options.messages;
    let processes = link.processes();
    let before = CpuTime::of(&processes);
    let receiving = thread::spawn(move || receive(&listener, messages, delay));
    send(&target, options)?;
    let late = receiving
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the receiver ended")))?;
    let mut figures = with_late(Figures::new(), "one_way", late);
    if executable.is_some() {
        let cpu_ns = CpuTime::of(&processes).since(&before);
        let cpu_us = cpu_ns as f64 / 1e3 / messages as f64;
        figures = figures
            .with("link_cpu_us_per_message", cpu_us)
            .with("link_is_realtime", f64::from(u8::from(is_realtime)));
        link.finish(0);
        let carried = link.next(Instant::now() + PATIENCE);
        if let Ok(Some((_, LinkReport::Carried(summary)))) = carried {
            figures = with_late(figures, "due_to_delivered", summary.late_us);
        }
    }
    Ok(figures)
}

fn with_late(figures: Figures, name: &str, times: Late) -> Figures {
    figures
        .with(&format!("{name}_p50_us"), times.p50)
        .with(&format!("{name}_p99_us"), times.p99)
        .with(&format!("{name}_max_us"), times.max)
}

/// Messages at intervals that differ, so that they do not fall in step with anything.
fn send(target: &Endpoint, options: &MeasureOptions) -> io::Result<()> {
    let stream = Stream::connect(target)?;
    // The first goes when the connection is there for certain; the receiver does not count it.
    stream.write_all(&[0; MESSAGE_BYTES])?;
    thread::sleep(2 * options.link.delay);
    let mut random = monotonic_ns() | 1;
    for number in 1..=options.messages {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let share = 0.5 + (random >> 11) as f64 / (1_u64 << 53) as f64;
        thread::sleep(options.interval.mul_f64(share));
        let mut message = [0; MESSAGE_BYTES];
        message[..8].copy_from_slice(&number.to_be_bytes());
        message[8..16].copy_from_slice(&monotonic_ns().to_be_bytes());
        stream.write_all(&message)?;
    }
    Ok(())
}

/// The times under way, without the delay; an error if anything is lost, out of order or early.
fn receive(listener: &Listener, messages: u64, delay: Duration) -> io::Result<Late> {
    let stream = listener.accept()?;
    stream.limit_waiting(Some(PATIENCE + 3 * delay))?;
    let delay_ns = delay.as_nanos() as u64;
    let mut late = Latencies::default();
    let mut message = [0; MESSAGE_BYTES];
    stream.read_exact(&mut message)?;
    for number in 1..=messages {
        stream.read_exact(&mut message)?;
        let now_ns = monotonic_ns();
        let [came, sent_ns] = [0, 8].map(|at| {
            let bytes = message[at..].first_chunk().copied().unwrap_or_default();
            u64::from_be_bytes(bytes)
        });
        if came != number {
            let why = format!("message {came} came where {number} was expected");
            return Err(io::Error::other(why));
        }
        match (now_ns - sent_ns).checked_sub(delay_ns) {
            Some(late_ns) => late.record(late_ns),
            None => return Err(io::Error::other("a message came early")),
        }
    }
    let late = late.summary();
    Ok(Late {
        p50: late.p50,
        p99: late.p99,
        max: late.max,
    })
}

fn present(
    out: &mut impl Write,
    options: &MeasureOptions,
    machine: &Machine,
    direct: &Series,
    through: &Series,
) -> io::Result<bool> {
    writeln!(out, "Machine: {}", machine.line())?;
    writeln!(
        out,
        "Link: {}; {} rounds of {} messages of {MESSAGE_BYTES} bytes, one each {} ms; one way, \
         without the delay; median over rounds, below it smallest–largest\n",
        options.link,
        options.runs,
        options.messages,
        number(options.interval.as_secs_f64() * 1e3),
    )?;
    let mut rows = table(&["µs", "p50", "p99", "max"]);
    let mut row = |name: &str, series: &Series, figure: &str| {
        let cell =
            |quantile: &str| spread(series.spread(&format!("{figure}_{quantile}_us")), number);
        rows.add_row([name.to_owned(), cell("p50"), cell("p99"), cell("max")]);
    };
    row("directly", direct, "one_way");
    row("through the link", through, "one_way");
    row("within it, due to delivered", through, "due_to_delivered");
    writeln!(out, "{}", rows.trim_fmt())?;
    for series in [direct, through] {
        if !series.is_valid() {
            writeln!(out, "  not counted: {}: {}", series.subject, series.why())?;
        }
    }
    let (Some(own), Some(tail), Some(floor)) = (
        through.median("one_way_p50_us"),
        through.median("one_way_p99_us"),
        direct.median("one_way_p50_us"),
    ) else {
        return Ok(false);
    };
    let (error_p50, error_p99) = (own - floor, tail - floor);
    let is_within = error_p50 <= ERROR_P50_US_MAX && error_p99 <= ERROR_P99_US_MAX;
    writeln!(
        out,
        "  error (beyond the direct p50): p50 {} µs, p99 {} µs",
        number(error_p50),
        number(error_p99)
    )?;
    if through.median("link_is_realtime") == Some(0.0) {
        writeln!(
            out,
            "  without real-time priority (root, and `chrt` of util-linux) it waits its turn where \
             others are busy"
        )?;
    }
    writeln!(
        out,
        "  the link's processor time per message: {} µs",
        known(through.median("link_cpu_us_per_message"), number)
    )?;
    writeln!(
        out,
        "  goal: p50 ≤ {ERROR_P50_US_MAX} µs, p99 ≤ {ERROR_P99_US_MAX} µs, {}",
        if is_within { "met" } else { "missed" }
    )?;
    Ok(is_within)
}
