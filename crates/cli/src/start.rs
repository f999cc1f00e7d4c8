//! `crosstie start`: the router, until it is told to stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use crosstie_config::{self as config, Config, Endpoint, Worker};
use crosstie_node::{Node, NodeOptions, Started};
use tracing::{info, warn};

use crate::logging::{self, LogFormat, LogLevel};
use crate::signals::Signals;

/// Without options: realm `realm1` for everybody on this machine, at 127.0.0.1:8080 and at the
/// Unix socket `crosstie.sock`.
#[derive(clap::Args)]
pub(crate) struct StartArguments {
    /// Node configuration, Crossbar.io's version 2, JSON or YAML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the embedded default's TCP listener.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "config")]
    listen: Option<SocketAddr>,
    /// Path of the embedded default's Unix socket.
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    socket: Option<PathBuf>,
    /// Threads of each router worker; by default one per core that the process may use.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Let one thread poll its sockets for so long after each input before it sleeps: lower
    /// latency for a busy core.
    #[arg(long, value_name = "MICROSECONDS", num_args = 0..=1, default_missing_value = "50")]
    busy_poll: Option<u64>,
    #[arg(long, value_enum, default_value = "info")]
    loglevel: LogLevel,
    #[arg(long, value_enum, default_value = "standard")]
    logformat: LogFormat,
}

pub(crate) fn run(arguments: &StartArguments) -> anyhow::Result<ExitCode> {
    logging::set_up(arguments.loglevel, arguments.logformat);
    let (config, directory) = configuration(arguments)?;
    // Before anything listens: a signal that comes early must not kill the process outright.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let signals = {
        let _context = runtime.enter();
        Signals::catch()?
    };
    banner(&config, &directory);
    let busy_poll = Duration::from_micros(arguments.busy_poll.unwrap_or(50));
    let options = NodeOptions {
        directory,
        busy_poll,
    };
    let node = Node::start(&config, &options, report_started)?;
    info!(
        "Ready; to stop: SIGINT or SIGTERM to process {}",
        std::process::id()
    );
    let exit_code = runtime.block_on(async {
        let mut signals = signals;
        // Not inside the macro: what is not logged is not evaluated.
        let signal = signals.next().await;
        info!("Received {signal}: saying GOODBYE to every session");
        tokio::select! {
            _ = tokio::task::spawn_blocking(|| node.stop()) => {
                info!("Node ended");
                ExitCode::SUCCESS
            }
            Ok(signal) = second_signal() => {
                warn!("Received {signal} again: ending at once");
                // What still says goodbye is not waited for.
                std::process::exit(1)
            }
        }
    });
    Ok(exit_code)
}

/// A signal that is meant: one that reaches a whole group of processes may come several times.
async fn second_signal() -> anyhow::Result<&'static str> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(Signals::catch()?.next().await)
}

fn configuration(arguments: &StartArguments) -> anyhow::Result<(Config, PathBuf)> {
    let (mut config, directory) = match &arguments.config {
        Some(path) => {
            let path = std::path::absolute(path).context("no current directory")?;
            (
                load(&path)?,
                path.parent().map(Path::to_owned).unwrap_or_default(),
            )
        }
        None => (
            Config::embedded_default(),
            std::env::current_dir().context("no current directory")?,
        ),
    };
    for worker in &mut config.workers {
        let Worker::Router(router) = worker else {
            continue;
        };
        router.threads = arguments.threads.map(usize::from).or(router.threads);
        router.busy_poll |= arguments.busy_poll.is_some();
        for transport in &mut router.transports {
            match (&mut transport.endpoint, arguments.listen, &arguments.socket) {
                (Endpoint::Tcp(tcp), Some(listen), _) => {
                    (tcp.interface, tcp.port) = (listen.ip(), listen.port());
                }
                (Endpoint::Unix { path, .. }, _, Some(socket)) => {
                    socket
                        .to_str()
                        .context("the socket's path is not UTF-8")?
                        .clone_into(path);
                }
                _ => {}
            }
        }
    }
    Ok((config, directory))
}

fn load(path: &Path) -> anyhow::Result<Config> {
    let loaded =
        config::load(path, &|name| std::env::var(name).ok()).map_err(|e| anyhow!("{e}"))?;
    for problem in &loaded.warnings {
        warn!(
            "{}",
            config::render(std::slice::from_ref(problem), &loaded.source)
        );
    }
    Ok(loaded.config)
}

fn banner(config: &Config, directory: &Path) {
    info!("Crosstie Version: {}", env!("CARGO_PKG_VERSION"));
    if let Some(title) = &config.controller.title {
        info!("{title}");
    }
    info!("Running from node directory '{}'", directory.display());
    match &config.controller.id {
        Some(id) => info!("Node ID '{id}' set from configuration"),
        None => {
            let uname = rustix::system::uname();
            info!(
                "Node ID '{}' set from hostname",
                uname.nodename().to_string_lossy()
            );
        }
    }
    info!("Node process {} starting ..", std::process::id());
}

fn report_started(started: Started) {
    match started {
        Started::Realm { worker, realm } => info!("Router '{worker}': realm '{realm}' started"),
        Started::Transport {
            worker,
            transport,
            urls,
        } => {
            info!(
                "Router '{worker}': transport '{transport}' started at {}",
                urls.join(" ")
            );
        }
        Started::Admin { urls } => info!("Admin pages started at {}", urls.join(" ")),
        other => info!("{other:?}"),
    }
}
