//! The start of a node: from its configuration to running workers.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crosstie_config::{CONSOLE, Config, ShutdownTrigger, Worker as Definition};
use crosstie_router::{Audit, ReadyExporter, RouterOptions, Traces};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::directory::{NodeKey, Occupied};
use crate::event::Event;
use crate::log_level::{LogControl, ReadLog};
use crate::management;
use crate::node::Node;
use crate::place::Place;
use crate::process::Children;
use crate::programs::Starter;
use crate::reload::{ReloadSource, Reloads};
use crate::report;
use crate::service_manager::ServiceManager;
use crate::triggers;
use crate::upgrade::Takeover;

/// The parameters of a node beside its configuration.
pub struct Options {
    /// The base of the configuration's relative paths.
    pub directory: PathBuf,
    /// A directory of mode 0700 for sockets. With it the node has a management realm; without it no containers.
    pub private: Option<PathBuf>,
    /// The path of the management realm's socket without such a directory. A node that cannot create the socket there
    /// runs without the realm.
    pub management: Option<PathBuf>,
    /// The ids of transports that use any free port if their own is in use.
    pub moving_transports: Vec<&'static str>,
    /// The node's own program, with the hidden commands through which children start. Without it the node starts no
    /// process.
    pub executable: Option<PathBuf>,
    pub version: &'static str,
    /// The node's key, if any.
    pub key: Option<NodeKey>,
    /// The level of the log and of Python children, as a command line word.
    pub loglevel: &'static str,
    /// Changes the level of the process's log; `None` if an operator may not.
    pub set_loglevel: Option<fn(&str) -> bool>,
    /// Reads the last lines of the process's log: at most so many after the line of that number.
    pub read_log: Option<ReadLog>,
    /// Time for which the first thread of a router polls before it sleeps, if configured.
    pub busy_poll: Duration,
    /// A store that lacks confirmed data is opened without them.
    pub accepts_loss: bool,
    /// The time after which the node ends by itself.
    pub shutdown_after: Option<Duration>,
    /// The service manager that started the process, if any.
    pub manager: ServiceManager,
    /// The node's directory, if it is writable. The node announces itself there.
    pub occupied: Option<Arc<Occupied>>,
    /// The hand-over by a former process of the node.
    pub takeover: Option<Takeover>,
    /// The configuration's file; `None` for the embedded default.
    pub reload: Option<ReloadSource>,
}

/// Why a node did not start; nothing of it runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("cannot start the management realm: {0}")]
    Management(String),
    #[error("cannot start worker '{worker}': {text}")]
    Worker { worker: String, text: String },
    #[error("{0}")]
    Admin(String),
    #[error("cannot start the console: {0}")]
    Console(String),
    #[error("cannot open the audit log {path}: {error}")]
    AuditLog { path: String, error: io::Error },
    #[error("cannot take over from the running node: {0}")]
    Takeover(String),
    #[error("cannot start the exporter of spans: {0}")]
    Otlp(io::Error),
    #[error("cannot start the thread that feeds the service manager's watchdog: {0}")]
    Watchdog(io::Error),
}

fn open_audit(config: &Config, options: &Options) -> Result<Option<Arc<Audit>>, StartError> {
    let Some(log) = &config.audit_log else {
        return Ok(None);
    };
    let path = options.directory.join(&log.file);
    let opened = Audit::open(&path, log.file_bytes_max).map(Arc::new);
    let opened = opened.map_err(|error| StartError::AuditLog {
        path: path.display().to_string(),
        error,
    });
    if let (Err(error), Some(takeover)) = (&opened, &options.takeover) {
        takeover.fail(&error.to_string());
    }
    opened.map(Some)
}

impl Node {
    /// Starts routers, then everything else, in the order of the file. When this returns, routers are running, and
    /// processes have been started.
    pub async fn start(config: Config, options: Options) -> Result<Self, StartError> {
        let (events, incoming) = mpsc::unbounded_channel();
        let audit = open_audit(&config, &options)?;
        let place = Place {
            directory: options.directory.clone(),
            private: options.private,
            management: options.management,
            executable: options.executable.clone().unwrap_or_default(),
            loglevel: options.loglevel.to_owned(),
            secrets: Arc::new(config.secret_variables.clone()),
        };
        let id = node_id(config.controller.id.as_deref());
        let is_own_program = options.executable.is_some();
        let starting = events.clone();
        let programs = Starter {
            place: place.clone(),
            send: Box::new(move |order| drop(starting.send(Event::StartProgram(order)))),
        };
        let mut node = Self {
            log: LogControl::new(options.set_loglevel, options.read_log, options.loglevel),
            id: id.clone(),
            title: config.controller.title.clone(),
            triggers: config.controller.shutdown.clone(),
            limits: config.limits.clone(),
            version: options.version,
            public_key: options.key.as_ref().map(NodeKey::public_hexadecimal),
            router_options: RouterOptions {
                node: id,
                is_private: false,
                directory: options.directory,
                busy_poll: options.busy_poll,
                accepts_loss: options.accepts_loss,
                overview: Arc::default(),
                audit,
                key: options.key.as_ref().map(NodeKey::signing_key),
                programs: is_own_program.then(|| Arc::new(programs) as _),
            },
            moving_transports: options.moving_transports,
            since: SystemTime::now(),
            children: Children::new(options.executable.unwrap_or_default()),
            workers: Vec::new(),
            management: None,
            events,
            incoming,
            ending: None,
            unsettled: BTreeSet::new(),
            is_ready: false,
            drain: None,
            drains: 0,
            reloads: Reloads::new(&config, options.reload),
            exporter: None,
            admin: None,
            admin_urls: Vec::new(),
            console_urls: Vec::new(),
            place,
            manager: options.manager,
            occupied: options.occupied,
            upgrade: None,
            upgrade_waiting: None,
            traces: Traces::default(),
            upgrades: 0,
            succeeded: None,
            awaits_former: false,
        };
        node.begin(&config, options.takeover).await?;
        if let Some(after) = options.shutdown_after {
            node.send_after(after, Event::TimeIsUp);
        }
        Ok(node)
    }

    /// Starts everything, or takes it over.
    async fn begin(
        &mut self,
        config: &Config,
        takeover: Option<Takeover>,
    ) -> Result<(), StartError> {
        self.report_triggers();
        self.start_exporter(config, takeover.as_ref())?;
        if let Some(takeover) = takeover {
            return self.take_over(takeover, config).await;
        }
        self.start_management().await?;
        self.report_call_timeouts(config);
        report::descriptors();
        self.start_workers(config)?;
        self.announce();
        self.manager.ready().map_err(StartError::Watchdog)
    }

    /// Writes the address of its management realm into the node's directory.
    pub(crate) fn announce(&self) {
        let written = self.occupied.as_ref().map(|occupied| {
            let management = self.management_url();
            occupied.write(management.as_deref())
        });
        if let Some(Err(error)) = written {
            warn!("Cannot write the node's process id file: {error}");
        }
    }

    pub(crate) async fn start_management(&mut self) -> Result<(), StartError> {
        let Some(socket) = self.place.management_socket() else {
            return Ok(());
        };
        let audit = self.router_options.audit.clone();
        match management::start(&self.id, &socket, audit, self.events.clone()).await {
            Ok(management) => {
                self.manager.watch(management.threads());
                self.management = Some(management);
                info!("Joined realm 'crossbar' on node management router");
                Ok(())
            }
            Err(error) if self.place.private.is_none() => {
                warn!("There is no management realm: {error}");
                Ok(())
            }
            Err(error) => Err(StartError::Management(error)),
        }
    }

    fn start_workers(&mut self, config: &Config) -> Result<(), StartError> {
        // Routers first: they start in milliseconds, and everything else connects to them. Errors that stop the node
        // thus appear before any process exists.
        let is_thread = |worker: &&Definition| {
            matches!(
                worker,
                Definition::Router(_) | Definition::WebSocketTestee(_)
            )
        };
        let (threads, others): (Vec<_>, Vec<_>) = config.workers.iter().partition(is_thread);
        self.start_each(&threads)?;
        self.start_admin(config)?;
        self.start_console(config)?;
        self.start_each(&others)
    }

    pub(crate) fn start_each(&mut self, definitions: &[&Definition]) -> Result<(), StartError> {
        for definition in definitions {
            let started = self.start_worker((*definition).clone());
            started.map_err(|error| StartError::Worker {
                worker: definition.id().to_owned(),
                text: error.text,
            })?;
            self.need_components(definition.id());
        }
        Ok(())
    }

    pub(crate) fn start_admin(&mut self, config: &Config) -> Result<(), StartError> {
        let Some(admin) = &config.admin else {
            return Ok(());
        };
        let routers = self.routers();
        if routers.is_empty() {
            warn!("There is no router worker for the admin listener to tell of: it is not started");
            return Ok(());
        }
        let (admin, urls) = crosstie_router::start_admin(admin, &routers, &self.router_options)
            .map_err(|error| StartError::Admin(error.to_string()))?;
        info!("Admin pages started at {}", urls.join(" "));
        self.admin = Some(admin);
        self.admin_urls = urls;
        Ok(())
    }

    /// The exporter of spans that the configuration wants, if any, ready to start.
    pub(crate) fn ready_exporter(&self, config: &Config) -> io::Result<Option<ReadyExporter>> {
        let node = (&*self.id, self.version);
        let ready = |otlp| ReadyExporter::new(otlp, &self.place.directory, node);
        config.otlp.as_ref().map(ready).transpose()
    }

    /// Starts the exporter of spans. A former process that hands over is told why it cannot start.
    fn start_exporter(
        &mut self,
        config: &Config,
        takeover: Option<&Takeover>,
    ) -> Result<(), StartError> {
        let ready = self.ready_exporter(config).map_err(StartError::Otlp);
        if let (Err(error), Some(takeover)) = (&ready, takeover) {
            takeover.fail(&error.to_string());
        }
        self.exporter = ready?.map(ReadyExporter::start);
        Ok(())
    }

    /// Starts the listener of the console. On its embedded default a node serves without one.
    pub(crate) fn start_console(&mut self, config: &Config) -> Result<(), StartError> {
        self.console_urls.clear();
        let Some(console) = &config.console else {
            return Ok(());
        };
        let moves = self.moving_transports.contains(&CONSOLE);
        let started = match &self.management {
            Some(management) => management
                .start_console(console, moves)
                .map_err(|error| error.to_string()),
            None => Err("the node has no management realm".to_owned()),
        };
        match started {
            Ok(urls) => {
                info!("Console started at {}", urls.join(" "));
                self.console_urls = urls;
                Ok(())
            }
            Err(error) if moves => {
                warn!("There is no console: {error}");
                Ok(())
            }
            Err(error) => Err(StartError::Console(error)),
        }
    }

    fn report_triggers(&self) {
        let names: Vec<_> = self.triggers.iter().copied().map(triggers::name).collect();
        let which = match self.triggers[..] {
            [ShutdownTrigger::WorkerExit] => "default",
            _ => "configured",
        };
        info!(
            "Using {which} node shutdown triggers {}",
            report::list(&names)
        );
    }

    /// Crossbar.io and the specification differ in the unit of a call's timeout: logs a warning once for a directory of
    /// Crossbar.io's whose configuration does not decide.
    fn report_call_timeouts(&self, config: &Config) {
        if self.place.directory.file_name() != Some(".crossbar".as_ref()) {
            return;
        }
        let routers = config.workers.iter().filter_map(|worker| match worker {
            Definition::Router(router) => Some(router),
            _ => None,
        });
        let undecided: Vec<_> = routers
            .flat_map(|router| &router.realms)
            .filter(|realm| !realm.is_call_timeout_unit_given)
            .map(|realm| realm.name.as_str())
            .collect();
        if !undecided.is_empty() {
            info!(
                "Realms {}: timeouts of calls count milliseconds, as WAMP has it; for Crossbar.io's \
                 seconds set the realm's option 'call_timeout_unit'",
                report::list(&undecided)
            );
        }
    }
}

/// The configured name, or the machine's.
fn node_id(configured: Option<&str>) -> String {
    if let Some(id) = configured {
        info!("Node ID '{id}' set from configuration");
        return id.to_owned();
    }
    let uname = rustix::system::uname();
    let id = uname.nodename().to_string_lossy().into_owned();
    info!("Node ID '{id}' set from hostname");
    id
}
