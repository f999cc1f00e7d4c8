//! `crosstie testee`: echo systems in worker processes that share a port.

mod periods;
mod process;

use std::future::{self, Future};
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use crosstie_bench::raise_descriptors;
use crosstie_testee::{Mode, Testee, WebSocketOptions};
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

use self::process::{Place, Sockets, WorkerProcess};
use crate::logging::{self, LogFormat, LogLevel};
use crate::signals::Signals;

/// Run echo systems for the instruments, each in a number of worker processes that share a port.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    testee: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Return WebSocket messages.
    Websocket(WebSocketArguments),
    /// Return, discard or generate bytes, without messages or a handshake.
    Stream(StreamArguments),
}

#[derive(clap::Args)]
struct WebSocketArguments {
    /// Address to listen at; port 0 is a free one.
    #[arg(
        long,
        alias = "wsuri",
        value_name = "URL",
        default_value = "ws://localhost:9000"
    )]
    url: String,
    /// Print no statistics.
    #[arg(long)]
    silence: bool,
    /// Seconds between the statistics of each worker.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    interval: Duration,
    /// Accept permessage-deflate if a client offers it.
    #[arg(long)]
    compress: bool,
    /// Maximum length of a message, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = WebSocketOptions::default().message_bytes_max)]
    message_bytes_max: usize,
    #[command(flatten)]
    workers: WorkerArguments,
}

#[derive(clap::Args)]
struct StreamArguments {
    /// Address to listen at: tcp://HOST:PORT, with port 0 for a free one, or unix://PATH.
    #[arg(long, value_name = "ADDRESS")]
    listen: String,
    /// Service: RFC 862, 863 or 864.
    #[arg(long, value_enum, default_value = "echo")]
    mode: StreamMode,
    #[command(flatten)]
    workers: WorkerArguments,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum StreamMode {
    Echo,
    Discard,
    Chargen,
}

#[derive(Clone, Copy, clap::Args)]
struct WorkerArguments {
    /// Worker processes, each of one thread.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: u16,
    /// Leave the workers' cores to the kernel; by default they are pinned in turn.
    #[arg(long)]
    no_affinity: bool,
    /// Marks a worker process: its listening socket is descriptor 0, and this is its parent.
    #[arg(long, hide = true, value_name = "INDEX:PARENT", value_parser = role)]
    role: Option<Role>,
}

/// The worker's index, and its parent.
#[derive(Clone, Copy)]
struct Role {
    index: usize,
    parent: Option<Pid>,
}

fn role(text: &str) -> Result<Role, String> {
    let parsed = text.split_once(':').and_then(|(index, parent)| {
        Some(Role {
            index: index.parse().ok()?,
            parent: Pid::from_raw(parent.parse().ok()?),
        })
    });
    parsed.ok_or_else(|| "expected INDEX:PARENT".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if interval >= Duration::from_millis(1) => Ok(interval),
        _ => Err("expected a number of seconds, at least 0.001".to_owned()),
    }
}

/// The work of each worker.
struct Work {
    testee: Testee,
    /// The interval of a worker's statistics.
    interval: Option<Duration>,
    workers: WorkerArguments,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    logging::set_up(LogLevel::Info, LogFormat::Standard, None, None)?;
    let (work, scheme, place) = match arguments.testee {
        Subject::Websocket(arguments) => {
            let options = WebSocketOptions {
                message_bytes_max: arguments.message_bytes_max,
                deflate: arguments.compress.then(Default::default),
                ..WebSocketOptions::default()
            };
            let work = Work {
                testee: Testee::WebSocket(options),
                interval: (!arguments.silence).then_some(arguments.interval),
                workers: arguments.workers,
            };
            (work, "ws", websocket_place(&arguments.url)?)
        }
        Subject::Stream(arguments) => {
            let mode = match arguments.mode {
                StreamMode::Echo => Mode::Echo,
                StreamMode::Discard => Mode::Discard,
                StreamMode::Chargen => Mode::Chargen,
            };
            let work = Work {
                testee: Testee::Stream(mode),
                interval: None,
                workers: arguments.workers,
            };
            let place = stream_place(&arguments.listen)?;
            let scheme = match place {
                Place::Tcp(_) => "tcp",
                Place::Unix(_) => "unix",
            };
            (work, scheme, place)
        }
    };
    if let Place::Unix(_) = place
        && work.workers.workers > 1
    {
        bail!("a Unix socket is served by one worker; --workers is for tcp://");
    }
    crate::wait_for(async {
        // From here on a signal waits until it is read.
        let signals = Signals::catch()?;
        match work.workers.role {
            Some(role) => {
                die_with(role.parent)?;
                let socket = std::io::stdin().as_fd().try_clone_to_owned();
                let socket = socket.context("no listening socket")?;
                work_on(work, role.index, socket, signals).await
            }
            None => lead(work, scheme, &place, signals).await,
        }
    })
}

fn websocket_place(url: &str) -> anyhow::Result<Place> {
    let Some(rest) = url.strip_prefix("ws://") else {
        bail!("--url: expected ws://HOST:PORT, got {url}");
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.ends_with(']'));
    let authority = match has_port {
        true => authority.to_owned(),
        false => format!("{authority}:80"),
    };
    Ok(Place::Tcp(
        resolve(&authority).with_context(|| format!("--url {url}"))?,
    ))
}

fn stream_place(address: &str) -> anyhow::Result<Place> {
    if let Some(path) = address.strip_prefix("unix://") {
        if path.is_empty() {
            bail!("--listen: expected unix://PATH, got {address}");
        }
        return Ok(Place::Unix(PathBuf::from(path)));
    }
    let Some(authority) = address.strip_prefix("tcp://") else {
        bail!("--listen: expected tcp://HOST:PORT or unix://PATH, got {address}");
    };
    Ok(Place::Tcp(
        resolve(authority.trim_end_matches('/')).with_context(|| format!("--listen {address}"))?,
    ))
}

/// A name's IPv4 address, if it has one: clients without an explicit address connect to that.
fn resolve(authority: &str) -> anyhow::Result<SocketAddr> {
    let addresses: Vec<_> = authority.to_socket_addrs()?.collect();
    let first = addresses.iter().find(|address| address.is_ipv4());
    first
        .or_else(|| addresses.first())
        .copied()
        .context("the name has no address")
}

/// Ends this process when its parent ends, in any way.
fn die_with(parent: Option<Pid>) -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot bind this process to its parent")?;
    if rustix::process::getppid() != parent {
        bail!("the parent process is gone");
    }
    Ok(())
}

/// Serves a listening socket until a signal.
async fn work_on(
    work: Work,
    index: usize,
    socket: OwnedFd,
    mut signals: Signals,
) -> anyhow::Result<ExitCode> {
    if !work.workers.no_affinity {
        pin(index)?;
    }
    let worker = WorkerProcess::start(work.testee, socket).context("cannot start a worker")?;
    let print = printer();
    let report = async {
        match work.interval {
            Some(interval) => worker.report(interval, print).await,
            None => future::pending().await,
        }
    };
    tokio::select! {
        _ = signals.next() => {}
        () = report => {}
    }
    worker.stop();
    Ok(ExitCode::SUCCESS)
}

/// Prints blocks from a thread of its own: without a reader a worker still handles signals.
fn printer() -> impl Fn(&str) {
    let (sender, blocks) = mpsc::sync_channel::<String>(BLOCKS_MAX);
    thread::spawn(move || {
        for block in blocks {
            let mut stdout = std::io::stdout().lock();
            // One write for a block, so that those of several workers do not mix. A closed reader of the statistics is
            // no reason to end.
            let _ = stdout
                .write_all(block.as_bytes())
                .and_then(|()| stdout.flush());
        }
    });
    move |block| {
        // A slow reader misses some.
        let _ = sender.try_send(block.to_owned());
    }
}

/// Maximum number of blocks that wait for a slow reader.
const BLOCKS_MAX: usize = 16;

/// Binds to one of the cores that the process may use; later threads inherit this.
fn pin(index: usize) -> anyhow::Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None).context("cannot tell the cores")?;
    let cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let cores: Vec<_> = cores.collect();
    let Some(core) = cores.get(index % cores.len().max(1)) else {
        return Ok(());
    };
    let mut only = rustix::thread::CpuSet::new();
    only.set(*core);
    rustix::thread::sched_setaffinity(None, &only)
        .with_context(|| format!("cannot stay on core {core}; --no-affinity does without"))
}

/// How long a worker may take to end after a stop request.
const ENDING_MAX: Duration = Duration::from_secs(5);

/// Binds, starts the workers, and ends with them.
async fn lead(
    work: Work,
    scheme: &str,
    place: &Place,
    mut signals: Signals,
) -> anyhow::Result<ExitCode> {
    // As many connections as this process may have: a descriptor each.
    raise_descriptors();
    let count = usize::from(work.workers.workers);
    let mut bound = Sockets::bind(place, count).context("cannot listen")?;
    let announce = |bound: &Sockets| {
        complain!("crosstie testee: listening on {scheme}://{}", bound.place);
    };
    let sockets = std::mem::take(&mut bound.sockets);
    if count == 1 {
        announce(&bound);
        let socket = sockets.into_iter().next().context("no socket was bound")?;
        return work_on(work, 0, socket, signals).await;
    }
    let mut workers = Vec::with_capacity(count);
    for (index, socket) in sockets.into_iter().enumerate() {
        workers.push(start(index, socket)?);
    }
    announce(&bound);
    let ended = tokio::select! {
        // In this order: a signal to the whole group ends the workers too.
        biased;
        _ = signals.next() => None,
        ended = first_ended(&mut workers) => Some(ended),
    };
    for worker in &workers {
        if let Some(process) = worker.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            let _ = rustix::process::kill_process(process, Signal::TERM);
        }
    }
    for worker in &mut workers {
        if tokio::time::timeout(ENDING_MAX, worker.wait())
            .await
            .is_err()
        {
            worker.kill().await.context("cannot end a worker")?;
        }
    }
    match ended {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => bail!("{why}; the others were ended too"),
    }
}

/// One more process of this program, with a role.
fn start(index: usize, socket: OwnedFd) -> anyhow::Result<Child> {
    let executable = std::env::current_exe().context("cannot find the path of this program")?;
    let parent = std::process::id();
    Command::new(executable)
        .args(std::env::args_os().skip(1))
        .arg(format!("--role={index}:{parent}"))
        .stdin(Stdio::from(socket))
        .kill_on_drop(true)
        .spawn()
        .context("cannot start a worker")
}

/// Waits until a worker ends without a request; returns how.
async fn first_ended(workers: &mut [Child]) -> String {
    let mut endings: Vec<_> = workers
        .iter_mut()
        .map(|worker| {
            let process = worker.id().unwrap_or_default();
            let ending = async move {
                match worker.wait().await {
                    Ok(status) => format!("worker {process} ended ({status})"),
                    Err(e) => format!("worker {process} cannot be watched ({e})"),
                }
            };
            Box::pin(ending)
        })
        .collect();
    future::poll_fn(|cx| {
        let mut polled = endings.iter_mut().map(|ending| ending.as_mut().poll(cx));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}
