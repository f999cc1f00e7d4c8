//! `crosstie oslo rpc-client`: calls and casts in sequence, and their rate.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use crosstie_oslo::{Call, CallError, RequestText, RpcClient, SendOptions, python_repr};
use serde_json::{Map, Value};

use super::{Place, or_none};
use crate::signals::end_in_good_order;

/// Call a method of a server, or of all servers.
///
/// The output is that of the original Python program. With --stats it also has the rate by that program's clock, which
/// starts before connecting, and then the rate without that. Failed requests are in neither; a thread ends at its first
/// failure, and the exit code is 1.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Method: echo, sink, sleep or fail of the included server.
    method: String,
    /// Arguments of the method, as name=value; a name alone is null.
    arguments: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Call this server only.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Cast to every server.
    #[arg(long)]
    fanout: bool,
    /// Do not wait for a reply.
    #[arg(long)]
    cast: bool,
    /// Seconds to wait for a reply.
    #[arg(long, default_value_t = 60.0, value_parser = seconds)]
    timeout: f64,
    /// Requests of each thread; 0 continues until a signal.
    #[arg(long, default_value_t = 1, value_name = "N")]
    repeat: u64,
    /// Concurrent callers, each with connections of its own.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// File whose text is sent as the argument "payload".
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Print the rate of requests.
    #[arg(long)]
    stats: bool,
    /// Print only the output of --stats, and errors.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut args = keyword_arguments(&arguments.arguments);
    if !arguments.quiet {
        announce(&arguments, &args)?;
    }
    if let Some(path) = &arguments.payload {
        if !arguments.quiet {
            say!("Loading payload file {}", path.display())?;
        }
        let payload = fs::read_to_string(path)
            .with_context(|| format!("cannot read the payload {}", path.display()))?;
        args.insert("payload".to_owned(), payload.into());
    }
    let request = request(&arguments, args);
    let is_over = Arc::new(AtomicBool::new(false));
    let heard = is_over.clone();
    end_in_good_order(move |_| heard.store(true, Ordering::Relaxed))?;

    let start = Instant::now();
    let all_connected = Barrier::new(arguments.threads.into());
    let counts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads)
            .map(|_| scope.spawn(|| caller(&arguments, &request, &all_connected, &is_over)))
            .collect();
        let ends = threads.into_iter().map(|thread| {
            let lost = Counts::default();
            thread.join().unwrap_or(lost)
        });
        ends.collect()
    });
    let took = start.elapsed();

    let sum = |count: fn(&Counts) -> u64| counts.iter().map(count).sum::<u64>();
    let (done, failed) = (sum(|counts| counts.done), sum(|counts| counts.failed));
    if arguments.stats {
        let rate = done as f64 / took.as_secs_f64();
        say!("Messages per second: {rate:6.4}")?;
        let connected = counts.iter().filter_map(|counts| counts.connected).max();
        say!(
            "{}",
            honest(
                &arguments,
                done,
                failed,
                connected.map(|connected| (connected - start, took))
            )
        )?;
    }
    if !arguments.quiet {
        say!("RPC complete!  Cleaning up transport...")?;
    }
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

/// The results of one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    done: u64,
    failed: u64,
    /// When it, and all others, could begin.
    connected: Option<Instant>,
}

/// One thread: connects, waits for the others, and sends one request after the other.
fn caller(
    arguments: &Arguments,
    request: &RequestText,
    all_connected: &Barrier,
    is_over: &AtomicBool,
) -> Counts {
    let mut counts = Counts::default();
    let is_cast = arguments.cast || arguments.fanout;
    let client = connect(arguments, is_cast);
    all_connected.wait();
    let mut client = match client {
        Ok(client) => client,
        Err(error) => {
            complain!("crosstie: {error}");
            counts.failed = 1;
            return counts;
        }
    };
    counts.connected = Some(Instant::now());
    let is_forever = arguments.repeat == 0;
    while (is_forever || counts.done < arguments.repeat) && !is_over.load(Ordering::Relaxed) {
        let outcome = match is_cast {
            true => client.cast(request).map(|()| None),
            false => client.call(request).map(Some),
        };
        match outcome {
            Ok(result) => {
                counts.done += 1;
                if let Some(result) = result.filter(|_| !arguments.quiet) {
                    let shown = match result {
                        // Like Python's str, which adds no quotes to a single text.
                        Value::String(text) => text,
                        other => python_repr(&other).to_string(),
                    };
                    let printed = say!("RPC return value={shown}");
                    if !matches!(printed, Ok(true)) {
                        break;
                    }
                }
            }
            Err(error) => {
                complain!("crosstie: {error}");
                counts.failed = 1;
                break;
            }
        }
    }
    // All its work is done.
    let _ = client.close();
    counts
}

fn connect(arguments: &Arguments, is_cast: bool) -> Result<RpcClient, CallError> {
    let target = arguments
        .place
        .target(arguments.server.clone(), arguments.fanout);
    let name = "crosstie oslo rpc-client".to_owned();
    let options = arguments.place.connection_options(name);
    let send = SendOptions {
        timeout: Duration::from_secs_f64(arguments.timeout),
    };
    let mut client = RpcClient::open(&arguments.place.url, target, options, &send)?;
    if !is_cast {
        client.prepare()?;
    }
    Ok(client)
}

/// The rate without the connecting, and the failures.
fn honest(
    arguments: &Arguments,
    done: u64,
    failed: u64,
    clock: Option<(Duration, Duration)>,
) -> String {
    let what = match arguments.cast || arguments.fanout {
        true => "casts",
        false => "calls",
    };
    let Some((connecting, took)) = clock else {
        return format!("Connected: none; {failed} failed");
    };
    let seconds = took.saturating_sub(connecting).as_secs_f64();
    let rate = match done {
        0 => 0.0,
        done => done as f64 / seconds,
    };
    let connecting = connecting.as_secs_f64();
    format!(
        "Connected: {rate:.4} {what} per second ({done} in {seconds:.4} s, after {connecting:.4} s of connecting); {failed} failed"
    )
}

fn announce(arguments: &Arguments, args: &Map<String, Value>) -> anyhow::Result<()> {
    let Arguments {
        method,
        place,
        server,
        fanout,
        cast,
        ..
    } = arguments;
    let args = Value::from(args.clone());
    let boolean = |value: bool| python_repr(&Value::Bool(value)).to_string();
    say!(
        "Calling {method} ({}) on server={} exchange={} topic={} namespace={} fanout={} cast={}",
        python_repr(&args),
        or_none(server.as_deref()),
        place.exchange,
        place.topic,
        or_none(place.namespace.as_deref()),
        boolean(*fanout),
        boolean(*cast),
    )?;
    Ok(())
}

/// The call, with the context that the original sends along.
fn request(arguments: &Arguments, args: Map<String, Value>) -> RequestText {
    let now = chrono::Local::now().format("%a %b %e %H:%M:%S %Y");
    let context = [
        ("application", "rpc-client".to_owned()),
        ("time", now.to_string()),
    ];
    RequestText::new(&Call {
        method: arguments.method.clone(),
        args,
        context: context
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect(),
        namespace: arguments.place.namespace.clone(),
        version: arguments.place.target_version.clone(),
    })
}

/// `a=1` as text, `a` as null.
fn keyword_arguments(arguments: &[String]) -> Map<String, Value> {
    let pairs = arguments
        .iter()
        .map(|argument| match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Value::from(value)),
            None => (argument.clone(), Value::Null),
        });
    pairs.collect()
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("expected seconds, more than 0".to_owned()),
    }
}
