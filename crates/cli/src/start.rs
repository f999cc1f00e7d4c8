//! `crosstie start`: runs a node until it is stopped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use crosstie_config::{
    self as config, Allowed, CONSOLE, Config, EMBEDDED_AMQP, EMBEDDED_TCP, EMBEDDED_TOOLS,
    Endpoint, Files, Loaded, NamedFiles, Problem, TransportKind, Tree, Worker,
};
use crosstie_node::directory::{NodeDirectory, NodeKey, Occupied, RunDirectory, TakeError};
use crosstie_node::process::raise_descriptor_limit;
use crosstie_node::{
    Node, Options, Outcome, ReloadSource, Reloader, ServiceManager, Takeover, handed,
};
use tokio::net::UnixStream;
use tracing::{error, info, warn};

use crate::chain;
use crate::embedded::{SOCKET, management_socket};
use crate::exit_code::exit_code;
use crate::judgement::{judge_loaded, principals};
use crate::logging::{self, LogFormat, LogLevel};
use crate::signals::Signals;

/// Start a node: its routers, containers and guests.
///
/// Without options and without a node directory: realm `realm1` for all clients on this machine, at 127.0.0.1:8080 and
/// at the Unix socket `crosstie.sock`; and an AMQP broker for `guest` at 127.0.0.1:5672, with RabbitMQ's management API at
/// port 15672 and metrics at 15692. The console is at port 8090. If a default port is in use, the node picks a free one and
/// logs it.
#[derive(clap::Args)]
pub(crate) struct StartArguments {
    /// Node directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current one if it has a node's
    /// configuration.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Node configuration, JSON or YAML in Crossbar.io's version 2; by default `config.json`, `config.yaml` or
    /// `config.yml` in the node's directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the embedded default's TCP listener; by default 127.0.0.1:8080, or any free port if that is in use.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["config", "cbdir"])]
    listen: Option<SocketAddr>,
    /// Path of the embedded default's Unix socket.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["config", "cbdir"])]
    socket: Option<PathBuf>,
    /// Address of the embedded default's AMQP listener; by default 127.0.0.1:5672, or any free port if that is in use.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["config", "cbdir"])]
    amqp: Option<SocketAddr>,
    /// Threads of each router worker; by default one per core that the process may use.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Maximum share of one core, in per cent over 100 ms, for which a thread looks for input instead of sleeping, which
    /// it does only while that pays. 0 turns it off.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100), conflicts_with = "busy_poll")]
    spin_budget: Option<u8>,
    /// Time that one thread polls its sockets after each input before it sleeps, whether it pays or not.
    #[arg(long, value_name = "MICROSECONDS", num_args = 0..=1, default_missing_value = "50")]
    busy_poll: Option<u64>,
    /// Start without stored messages that are damaged or missing. Otherwise a missing one keeps the node from starting, and
    /// a damaged one stops its queue.
    #[arg(long)]
    accept_loss: bool,
    /// Minimum level of log lines on standard error. If that accepts no more lines, the node drops them and logs their
    /// number.
    #[arg(long, value_enum, default_value = "info")]
    loglevel: LogLevel,
    #[arg(long, value_enum, default_value = "standard")]
    logformat: LogFormat,
    /// Log also to `node.log` in this directory, relative to the node's. SIGHUP reopens the file after it was moved
    /// away, and reloads the configuration.
    #[arg(long, value_name = "DIRECTORY")]
    logdir: Option<PathBuf>,
    /// Log also to `node.log` in the node's directory.
    #[arg(long)]
    logtofile: bool,
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    shutdownafter: Option<f64>,
    /// Take over from the running node whose socket is standard input.
    #[arg(long, hide = true)]
    takes_over: bool,
    /// Taken for the sake of Crossbar.io's users; the log has no colours.
    #[arg(long, value_name = "WHETHER", hide = true)]
    color: Option<String>,
}

/// The parts of a node that has a directory, for as long as it runs.
struct Home {
    /// `None` if the directory is not writable.
    occupied: Option<Arc<Occupied>>,
    private: RunDirectory,
    key: NodeKey,
}

pub(crate) fn run(arguments: &StartArguments) -> anyhow::Result<ExitCode> {
    // Before anything is opened, so that a descriptor is one of the service manager's for certain.
    let mut takeover = None;
    if arguments.takes_over {
        let received = Takeover::receive().context("cannot take over from the running node")?;
        takeover = Some(received);
    } else {
        handed::receive(&|name| std::env::var_os(name))
            .context("cannot take over the sockets of the service manager")?;
    }
    let outcome = run_logged(arguments, &mut takeover);
    if let (Err(error), Some(takeover)) = (&outcome, &takeover) {
        takeover.fail(&chain(error));
    }
    outcome
}

/// Sets the log up, and runs the node. The hand-over is left to the caller until the node has it.
fn run_logged(
    arguments: &StartArguments,
    takeover: &mut Option<Takeover>,
) -> anyhow::Result<ExitCode> {
    let current = std::env::current_dir().context("no current directory")?;
    let found = find(arguments, &current)?;
    let directory = found
        .as_ref()
        .map_or(current.as_path(), |found| found.path.as_path());
    let log_directory = match &arguments.logdir {
        Some(path) => Some(directory.join(path)),
        None => arguments.logtofile.then(|| directory.to_owned()),
    };
    let shutdown_after = arguments.shutdownafter.map(seconds).transpose()?;
    logging::set_up(
        arguments.loglevel,
        arguments.logformat,
        log_directory.as_deref(),
        Some(crosstie_node::CHILD_LINES),
    )?;
    let outcome = run_node(
        arguments,
        found.as_ref(),
        directory,
        shutdown_after,
        takeover,
    );
    // A collector of logs should find there why the node did not start.
    let is_collected = log_directory.is_some() || arguments.logformat == LogFormat::Json;
    match outcome {
        Err(error) if is_collected && arguments.loglevel != LogLevel::None => {
            if let Some(takeover) = takeover {
                takeover.fail(&chain(&error));
            }
            for line in chain(&error).lines() {
                error!("{line}");
            }
            Ok(exit_code(&error))
        }
        outcome => outcome,
    }
}

fn run_node(
    arguments: &StartArguments,
    found: Option<&NodeDirectory>,
    directory: &Path,
    shutdown_after: Option<Duration>,
    takeover: &mut Option<Takeover>,
) -> anyhow::Result<ExitCode> {
    // Before anything is opened: structures that are sized by the limit read it once.
    raise_descriptor_limit();
    // Before anything listens: an early signal must not kill the process outright.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let reloader = Arc::<OnceLock<Reloader>>::default();
    let mut signals = {
        let _context = runtime.enter();
        let reloader = Arc::clone(&reloader);
        Signals::catch_with_hangup(move || handle_hangup(reloader.get()))?
    };
    let loaded = found.map(|found| load(&found.config)).transpose()?;
    let home = found.map(|found| open(&found.path, takeover.as_mut()));
    let home = home.transpose()?;
    banner(home.as_ref(), directory);
    if let Some(takeover) = takeover {
        takeover.report();
    }
    report_unused(arguments);
    let (mut node_config, reload) = match (loaded, found) {
        (Some(loaded), Some(found)) => {
            report_loaded(&loaded, found);
            let reload = reload_source(arguments, found, loaded.tree);
            (loaded.config, Some(reload))
        }
        _ => (Config::embedded_default(), None),
    };
    adapt(&mut node_config, arguments)?;
    report_exposed(arguments);
    if let Some(title) = &node_config.controller.title {
        info!("{title}");
    }
    if let (Some(_), Some(reload)) = (&takeover, &reload) {
        // The running node goes on if any file that the configuration names is wrong.
        (reload.load)().map_err(anyhow::Error::msg)?;
    }
    let mut options = options(arguments, directory, home.as_ref(), reload, shutdown_after)?;
    options.takeover = takeover.take();
    let outcome = runtime.block_on(async {
        if let (Some(management), None) = (&options.management, &options.takeover) {
            check_alone(management).await?;
        }
        let node = Node::start(node_config, options).await?;
        // The only one that is set.
        let _ = reloader.set(node.reloader());
        anyhow::Ok(node.run(async || signals.next().await).await)
    })?;
    if outcome == Outcome::AtOnce {
        // Its destructors clean the directory up; remaining goodbyes are not awaited.
        drop(home);
        logging::finish();
        std::process::exit(1);
    }
    info!("Node ended");
    Ok(match outcome {
        Outcome::Orderly => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The parameters of the node beside its configuration.
fn options(
    arguments: &StartArguments,
    directory: &Path,
    home: Option<&Home>,
    reload: Option<ReloadSource>,
    shutdown_after: Option<Duration>,
) -> anyhow::Result<Options> {
    Ok(Options {
        directory: directory.to_owned(),
        private: home.map(|home| home.private.path().to_owned()),
        management: home
            .is_none()
            .then(|| embedded_socket(arguments, directory)),
        moving_transports: match home.is_some() {
            true => Vec::new(),
            false => moving(arguments),
        },
        executable: Some(std::env::current_exe().context("cannot find the path of this program")?),
        version: env!("CARGO_PKG_VERSION"),
        key: home.map(|home| home.key.clone()),
        loglevel: arguments.loglevel.name(),
        set_loglevel: Some(set_loglevel),
        read_log: Some(logging::recent),
        busy_poll: Duration::from_micros(arguments.busy_poll.unwrap_or(50)),
        accepts_loss: arguments.accept_loss,
        shutdown_after,
        manager: service_manager()?,
        occupied: home.and_then(|home| home.occupied.clone()),
        takeover: None,
        reload,
    })
}

/// Changes the level of the log by its name. Returns whether that is done.
fn set_loglevel(name: &str) -> bool {
    <LogLevel as clap::ValueEnum>::from_str(name, true).is_ok_and(logging::set_level)
}

/// The management realm's socket of the embedded default.
fn embedded_socket(arguments: &StartArguments, directory: &Path) -> PathBuf {
    let socket = arguments.socket.as_deref();
    management_socket(&directory.join(socket.unwrap_or_else(|| Path::new(SOCKET))))
}

fn service_manager() -> anyhow::Result<ServiceManager> {
    let manager = ServiceManager::from_environment(&|name| std::env::var_os(name));
    manager.context("cannot reach the service manager")
}

/// Handles SIGHUP: the log goes on in a new file if the old one was moved away, and the configuration is read anew.
fn handle_hangup(reloader: Option<&Reloader>) {
    // First, so that the line is where an operator looks for it.
    match logging::reopen() {
        Some(file) => info!("Received SIGHUP: the log goes on in '{}'", file.display()),
        None => info!("Received SIGHUP: the log is not kept in a file"),
    }
    match reloader {
        Some(reloader) => reloader.reload(),
        None => info!("The node has only just read its configuration, and does not read it anew"),
    }
}

/// Reads the node's file as the start did, and judges it with the files that it names.
fn reload_source(arguments: &StartArguments, found: &NodeDirectory, tree: Tree) -> ReloadSource {
    let (path, directory) = (found.config.clone(), found.path.clone());
    let load = move || {
        let loaded = load(&path).map_err(|error| error.to_string())?;
        let read = (loaded.config.clone(), loaded.tree.clone());
        let judged = judge_loaded(loaded, &directory, true, &mut |_| Ok(()));
        match judged.map_err(|error| error.to_string())? {
            Ok(_) => Ok(read),
            Err((problems, source)) => Err(match source {
                Some(source) => config::render(&problems, &source),
                None => problems
                    .into_iter()
                    .map(|problem| problem.message)
                    .collect(),
            }),
        }
    };
    let threads = ThreadArguments::of(arguments);
    ReloadSource {
        tree,
        load: Arc::new(load),
        adapt: Arc::new(move |config| threads.adapt(config)),
    }
}

/// The node's directory; `None` for the embedded default.
fn find(arguments: &StartArguments, current: &Path) -> anyhow::Result<Option<NodeDirectory>> {
    if arguments.listen.is_some() || arguments.socket.is_some() || arguments.amqp.is_some() {
        return Ok(None);
    }
    let variable = |name: &str| std::env::var_os(name);
    let (cbdir, config) = (arguments.cbdir.as_deref(), arguments.config.as_deref());
    Ok(NodeDirectory::find(cbdir, config, current, &variable)?)
}

fn seconds(seconds: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| anyhow!("--shutdownafter {seconds}: expected seconds: {error}"))
}

fn load(path: &Path) -> anyhow::Result<Loaded> {
    config::load(path, &|name| std::env::var(name).ok()).map_err(|e| anyhow!("{e}"))
}

/// Refuses to start if a node on its embedded default already runs here: its socket would be in the way, and clients
/// could not tell the two apart.
async fn check_alone(management: &Path) -> anyhow::Result<()> {
    let Ok(stream) = UnixStream::connect(management).await else {
        // Nothing listens, or it is the socket of a killed node.
        return Ok(());
    };
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let process = pid.map_or_else(String::new, |pid| format!(", process {pid}"));
    bail!(
        "a node on its embedded default runs here already{process}: `crosstie status` tells about \
         it, `crosstie stop` ends it; another one beside it needs a --socket of its own"
    )
}

/// Makes the directory this node's. A node runs also if its directory is not writable.
fn open(directory: &Path, takeover: Option<&mut Takeover>) -> anyhow::Result<Home> {
    let occupied = match takeover.and_then(Takeover::take_lock) {
        Some(lock) => Some(Occupied::inherit(directory, lock)?),
        None => occupy(directory)?,
    };
    let loaded = NodeKey::load_or_make(directory)?;
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
    let preferred = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    Ok(Home {
        occupied: occupied.map(Arc::new),
        private: RunDirectory::make(preferred.as_deref(), directory)?,
        key: loaded.key,
    })
}

fn occupy(directory: &Path) -> anyhow::Result<Option<Occupied>> {
    match Occupied::take(directory) {
        Ok(occupied) => Ok(Some(occupied)),
        Err(error @ TakeError::Running { .. }) => Err(error.into()),
        Err(error) => {
            warn!("{error}");
            Ok(None)
        }
    }
}

fn banner(home: Option<&Home>, directory: &Path) {
    info!("Crosstie Version: {}", env!("CARGO_PKG_VERSION"));
    if let Some(home) = home {
        info!("Node Public Key: {}", home.key.public_hexadecimal());
    }
    info!("Running from node directory '{}'", directory.display());
    info!("Controller process starting (tokio-epoll) ..");
}

/// Crossbar.io's options that have no effect here.
fn report_unused(arguments: &StartArguments) {
    if arguments.color.is_some() {
        warn!("--color is of no effect: the log has no colours");
    }
    if matches!(arguments.logformat, LogFormat::Syslogd | LogFormat::None) {
        warn!("--logformat syslogd and none are not known here: logging in the standard form");
    }
}

fn report_loaded(loaded: &Loaded, found: &NodeDirectory) {
    let file = found.config.strip_prefix(&found.path);
    let file = file.unwrap_or(&found.config).display();
    info!("Node configuration loaded from '{file}'");
    for problem in &loaded.warnings {
        warn!("{}", problem.line(&loaded.source));
    }
    for NamedFiles { span, files } in &loaded.files {
        let Files::Principals { methods, roles } = files else {
            continue;
        };
        // A file that cannot be read is an error of the transport, a moment later.
        let unknown = principals(methods, roles, &found.path).unwrap_or_default();
        for text in unknown {
            warn!("{}", Problem::warning(*span, text).line(&loaded.source));
        }
    }
}

/// The embedded default is for this machine: clients are anonymous, and may do everything.
fn report_exposed(arguments: &StartArguments) {
    if let Some(listen) = arguments.listen.filter(|listen| !listen.ip().is_loopback()) {
        warn!(
            "--listen {listen}: whoever reaches this machine may join realm 'realm1' and do everything \
             there, without saying who he is; listen at 127.0.0.1, or make a node with rights of its own \
             (`crosstie init`)"
        );
    }
}

/// Options of the command line override the configuration.
fn adapt(config: &mut Config, arguments: &StartArguments) -> anyhow::Result<()> {
    ThreadArguments::of(arguments).adapt(config);
    for worker in &mut config.workers {
        let Worker::Router(router) = worker else {
            continue;
        };
        for transport in &mut router.transports {
            let listen = match transport.kind {
                TransportKind::Amqp(_) => arguments.amqp,
                TransportKind::AmqpManagement(_) | TransportKind::AmqpPrometheus => None,
                _ => arguments.listen,
            };
            match (&mut transport.endpoint, listen, &arguments.socket) {
                (Endpoint::Tcp(tcp), Some(listen), _) => {
                    (tcp.interface, tcp.port, tcp.port_last) = (listen.ip(), listen.port(), None);
                    // Others reach it by any of its names; their pages still do not connect.
                    if !listen.ip().is_loopback() {
                        transport.allowed_hosts = Allowed::All;
                    }
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
    Ok(())
}

/// The options of the command line for the threads of every router.
#[derive(Clone, Copy)]
struct ThreadArguments {
    threads: Option<u16>,
    spin_budget: Option<u8>,
    polls: bool,
}

impl ThreadArguments {
    fn of(arguments: &StartArguments) -> Self {
        Self {
            threads: arguments.threads,
            spin_budget: arguments.spin_budget,
            polls: arguments.busy_poll.is_some(),
        }
    }

    fn adapt(self, config: &mut Config) {
        for worker in &mut config.workers {
            let Worker::Router(router) = worker else {
                continue;
            };
            router.threads = self.threads.map(usize::from).or(router.threads);
            router.busy_poll |= self.polls;
            if let Some(percent) = self.spin_budget {
                (router.spin_budget, router.busy_poll) = (usize::from(percent), false);
            }
        }
    }
}

/// The transports of the embedded default that may use other ports: a requested one is not replaced.
fn moving(arguments: &StartArguments) -> Vec<&'static str> {
    let tcp = arguments.listen.is_none().then_some(EMBEDDED_TCP);
    let amqp = arguments.amqp.is_none().then_some(EMBEDDED_AMQP);
    let tools = EMBEDDED_TOOLS.into_iter().chain([CONSOLE]);
    tcp.into_iter().chain(amqp).chain(tools).collect()
}
