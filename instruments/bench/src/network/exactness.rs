//! The precision of a delay line: stamped messages go one way, directly and through a delay line, and the receiver
//! reads the same clock.
//!
//! ```text
//!   sender ───────────────▶ receiver      the time of sockets and wake-up
//!   sender ───▶ line ─────▶ receiver      the same twice, the delay, and the line's own error
//! ```

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crosstie_wan::{Direction, Endpoint, Late, LinkOptions};
use serde_json::{Value, json};

use super::link::{LinkOrder, LinkReport, ROLE};
use crate::error::BenchError;
use crate::figures::{Figures, Round, Series, unfit};
use crate::frame::{
    self, Bound, Common, FLOOR, Goal, Host, Instrument, OWN, Section, Site, Stage, Subject, require,
};
use crate::load::{Latencies, Listener, Stream, monotonic_ns};
use crate::machine::{CpuTime, Placement};
use crate::process::Workers;
use crate::report::table::{known, number, spread};

/// The options of this bench.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// Its direction is ignored: the messages go in the delayed one.
    pub link: LinkOptions,
    /// Messages in each round.
    pub messages: u64,
    /// The mean interval of messages.
    pub interval: Duration,
    pub runs: usize,
    pub json: Option<PathBuf>,
}

const PATIENCE: Duration = Duration::from_secs(10);
const MESSAGE_BYTES: usize = 64;

/// Measures, prints to standard output, and writes the results file if requested.
pub fn measure(options: MeasureOptions, host: Host) -> Result<bool, BenchError> {
    require(
        options.messages > 0 && options.runs > 0 && !options.interval.is_zero(),
        "messages, interval and runs are more than nothing",
    )?;
    let common = Common {
        build: host.build,
        stop: host.stop,
        runs: options.runs,
        json: options.json.clone(),
        ..Common::default()
    };
    frame::run::run(Exactness { options, common })
}

struct Exactness {
    options: MeasureOptions,
    common: Common,
}

/// The way of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Through,
}

impl Subject for Way {
    fn name(&self) -> &str {
        match self {
            Self::Direct => FLOOR,
            Self::Through => OWN,
        }
    }
}

impl Instrument for Exactness {
    const NAME: &'static str = "link";
    const PLACEMENTS: &'static [Placement] = &[];
    const IS_PLACED: bool = false;
    const IS_TIMED: bool = false;

    type Case = &'static str;
    type Subject = Way;

    fn common(&self) -> &Common {
        &self.common
    }

    fn header(&self, _site: &Site) -> Vec<String> {
        let options = &self.options;
        vec![format!(
            "Link: {}; {} rounds of {} messages of {MESSAGE_BYTES} bytes, one each {} ms; one way, \
             without the delay; median over rounds, below it smallest–largest",
            options.link,
            options.runs,
            options.messages,
            number(options.interval.as_secs_f64() * 1e3),
        )]
    }

    fn settings(&self, _site: &Site) -> Value {
        json!({
            "link": self.options.link.to_string(),
            "messages": self.options.messages,
            "message_bytes": MESSAGE_BYTES,
            "interval_ms": self.options.interval.as_secs_f64() * 1e3,
        })
    }

    fn cases(&self) -> Result<Vec<&'static str>, BenchError> {
        Ok(vec!["one-way"])
    }

    fn subjects(&mut self, _: &Stage<'_>, _: &&'static str) -> Result<Vec<Way>, BenchError> {
        Ok(vec![Way::Through, Way::Direct])
    }

    fn round(&mut self, stage: &Stage<'_>, _: &&'static str, way: &mut Way) -> Round {
        let found = round(&self.options, stage, *way);
        Ok(found.map_err(|error| error.to_string())?)
    }

    fn table(&self, sections: &[&Section<&'static str>]) -> Option<Vec<Vec<String>>> {
        let mut rows = vec![["µs", "p50", "p99", "max"].map(str::to_owned).to_vec()];
        for (name, subject, figure) in [
            ("directly", FLOOR, "one_way"),
            ("through the link", OWN, "one_way"),
            ("within it, due to delivered", OWN, "due_to_delivered"),
        ] {
            let series = sections.first()?.subject(subject);
            let cell = |quantile: &str| {
                let figure = format!("{figure}_{quantile}_us");
                spread(series.and_then(|series| series.spread(&figure)), number)
            };
            rows.push(vec![name.to_owned(), cell("p50"), cell("p99"), cell("max")]);
        }
        Some(rows)
    }

    fn below(&self, _site: &Site, sections: &[&Section<&'static str>]) -> Vec<String> {
        let through = sections.first().and_then(|section| section.own());
        let median = |figure| through.and_then(|series: &Series| series.median(figure));
        let cpu = known(median("link_cpu_us_per_message"), number);
        let mut lines = vec![format!("  the link's processor time per message: {cpu} µs")];
        if median("link_is_realtime") == Some(0.0) {
            lines.push(
                "  without real-time priority (root, and `chrt` of util-linux) it waits its turn \
                 where others are busy"
                    .to_owned(),
            );
        }
        lines
    }

    fn goals(&self, section: &Section<&'static str>, _: &[Section<&'static str>]) -> Vec<Goal> {
        let floor = section.subject(FLOOR);
        let floor_us = floor.and_then(|floor| floor.median("one_way_p50_us"));
        let own_us = |figure| section.own().and_then(|own| own.median(figure));
        let goal = |figure, what: &str, most| {
            let error_us = own_us(figure).zip(floor_us).map(|(own, floor)| own - floor);
            let what = format!("error (beyond the direct p50), µs, {what}");
            Goal::computed(what, error_us, Bound::AtMost(most)).unless(unfit(&section.series))
        };
        vec![
            goal("one_way_p50_us", "p50", 100.0),
            goal("one_way_p99_us", "p99", 300.0),
        ]
    }
}

/// All messages of one round.
fn round(options: &MeasureOptions, stage: &Stage<'_>, way: Way) -> io::Result<Figures> {
    let any_port = Endpoint::Tcp((Ipv4Addr::LOCALHOST, 0).into());
    let (listener, receiver) = Listener::bind(&any_port)?;
    let mut link = Workers::default();
    let mut target = receiver.clone();
    let mut delay = Duration::ZERO;
    let mut is_realtime = false;
    if way == Way::Through {
        delay = options.link.delay;
        let order = LinkOrder {
            listen: any_port,
            server: receiver,
            options: LinkOptions {
                direction: Direction::Up,
                ..options.link.clone()
            },
        };
        link.start(&stage.site.executable, ROLE, &stage.servers(), &order)?;
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
    if way == Way::Through {
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

/// Messages at varying intervals, so that they do not synchronize with anything.
fn send(target: &Endpoint, options: &MeasureOptions) -> io::Result<()> {
    let stream = Stream::connect(target)?;
    // The first one only ensures that the connection exists; the receiver does not count it.
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

/// The times in transit, without the delay; an error if anything is lost, out of order or early.
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
            let why = format!("expected message {number}, got {came}");
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
