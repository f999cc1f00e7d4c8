//! `crosstie link`.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use crosstie_bench::{MeasureOptions, measure_link, raise_descriptors};
use crosstie_wan::units::{duration, rate};
use crosstie_wan::{Cut, Direction, Endpoint, Link, LinkOptions, address, written};

use crate::bench::measured;
use crate::signals::Signals;

/// Relay a stream with a delay, like a longer line.
///
/// A client connects to --listen and reaches the server at --connect as through a long line. Bytes arrive in order,
/// with the delay; ends, resets and a receiver that does not read pass through. By default the way up, from client to
/// server, is delayed, so that a round trip takes as much longer. A client's connect returns at once, because its
/// kernel accepts. Its bytes are read a round trip and a way later.
///
/// On SIGINT or SIGTERM it prints the number of bytes and their lateness.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Address for clients: tcp://HOST:PORT, HOST:PORT (0 selects a free port) or unix://PATH.
    #[arg(long, value_name = "ADDRESS", value_parser = address, required_unless_present = "measure")]
    listen: Option<Endpoint>,
    /// Address of the server, in the form of --listen.
    #[arg(long, value_name = "ADDRESS", value_parser = address, required_unless_present = "measure")]
    connect: Option<Endpoint>,
    /// Delay of bytes, as in 50ms, 250us or 1.5s.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0")]
    delay: Duration,
    /// Uniform variation of the delay, shorter and longer; the order is kept.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0")]
    jitter: Duration,
    /// Delayed direction: up (client to server), down or both.
    #[arg(long, default_value = "up")]
    direction: Direction,
    /// Rate of each direction, as in 10mbit, shared by all connections.
    #[arg(long, value_parser = rate)]
    rate: Option<u64>,
    /// Fault to inject: after=TIME, every=TIME or bytes=N, then for=TIME, reset or silence, as in every=5s,for=1s; may
    /// be repeated.
    #[arg(long = "cut", value_name = "CUT")]
    cuts: Vec<Cut>,
    /// Measure the precision of a link with these options on this machine, in place of relaying.
    #[arg(long, conflicts_with_all = ["listen", "connect", "cuts"])]
    measure: bool,
    /// Messages in each round of a measurement.
    #[arg(long, default_value_t = 2000, value_name = "N", requires = "measure")]
    messages: u64,
    /// Pause between two messages of a measurement.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1ms", requires = "measure")]
    interval: Duration,
    /// Rounds of a measurement.
    #[arg(long, default_value_t = 5, requires = "measure")]
    runs: usize,
    /// Write the measurement to this file.
    #[arg(long, value_name = "FILE", requires = "measure")]
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let options = LinkOptions {
        delay: arguments.delay,
        jitter: arguments.jitter,
        direction: arguments.direction,
        rate: arguments.rate,
        cuts: arguments.cuts,
    };
    if let Err(why) = options.check() {
        bail!("{why}");
    }
    let (Some(listen), Some(connect)) = (arguments.listen, arguments.connect) else {
        let options = MeasureOptions {
            link: options,
            messages: arguments.messages,
            interval: arguments.interval,
            runs: arguments.runs,
            json: arguments.json,
        };
        return measured(options, measure_link);
    };
    raise_descriptors();
    let link = Link::bind(&listen, &connect, &options)
        .with_context(|| format!("cannot listen at {}", written(&listen)))?;
    let stop = at_a_signal()?;
    complain!(
        "crosstie link: {} → {}, {options}",
        written(link.endpoint()),
        written(&connect)
    );
    let statistics = link.run(stop, &mut |notice| complain!("crosstie link: {notice}"))?;
    complain!("crosstie link: {statistics}");
    Ok(ExitCode::SUCCESS)
}

/// A socket whose other side is closed on a signal. The delay line's own thread has no runtime.
fn at_a_signal() -> anyhow::Result<UnixStream> {
    let (stop, other) = UnixStream::pair()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let mut signals = {
        let _context = runtime.enter();
        Signals::catch()?
    };
    thread::spawn(move || {
        runtime.block_on(signals.next());
        drop(other);
    });
    Ok(stop)
}
