//! A running node: its parts, and the one loop that handles all events.
//!
//! Drive it: [`Node::start`], then [`Node::run`] until it returns the outcome. Call both on one thread that lives as
//! long as the node: children are started from it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crosstie_config::{AuditLog, Config, Limits, ShutdownTrigger, Worker as Definition};
use crosstie_router::{Admin, Audit, Router, RouterOptions};
use serde_json::json;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::directory::NodeKey;
use crate::event::{Event, Events};
use crate::management::Management;
use crate::place::Place;
use crate::process::Children;
use crate::programs::Starter;
use crate::report;
use crate::shutdown::Ending;
use crate::triggers;
use crate::workers::Worker;

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
    /// The node's own program, with the hidden commands through which children start.
    pub executable: PathBuf,
    pub version: &'static str,
    /// The node's key, if any.
    pub key: Option<NodeKey>,
    /// The log level of Python children, as a command line word.
    pub loglevel: &'static str,
    /// Time for which the first thread of a router polls before it sleeps, if configured.
    pub busy_poll: Duration,
    /// The time after which the node ends by itself.
    pub shutdown_after: Option<Duration>,
}

/// A running node.
pub struct Node {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) triggers: Vec<ShutdownTrigger>,
    pub(crate) limits: Limits,
    pub(crate) place: Place,
    pub(crate) version: &'static str,
    pub(crate) public_key: Option<String>,
    pub(crate) router_options: RouterOptions,
    pub(crate) moving_transports: Vec<&'static str>,
    pub(crate) since: SystemTime,
    pub(crate) children: Children,
    /// In the order of their starts.
    pub(crate) workers: Vec<Worker>,
    pub(crate) management: Option<Management>,
    pub(crate) events: Events,
    incoming: mpsc::UnboundedReceiver<Event>,
    pub(crate) ending: Option<Ending>,
    /// Workers of the configuration whose first start is not complete.
    pub(crate) unsettled: BTreeSet<String>,
    is_ready: bool,
    pub(crate) admin: Option<Admin>,
    /// The addresses of the operators' pages, if any.
    pub(crate) admin_urls: Vec<String>,
}

/// The outcome of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Orderly,
    /// A worker failed, or had to be killed.
    WithFailure,
    /// It was signalled twice, and did not wait.
    AtOnce,
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
    #[error("cannot open the audit log {path}: {error}")]
    AuditLog { path: String, error: std::io::Error },
}

fn open_audit(log: &AuditLog, directory: &Path) -> Result<Arc<Audit>, StartError> {
    let path = directory.join(&log.file);
    let opened = Audit::open(&path, log.file_bytes_max);
    opened.map(Arc::new).map_err(|error| StartError::AuditLog {
        path: path.display().to_string(),
        error,
    })
}

impl Outcome {
    /// The more severe of both outcomes.
    pub(crate) fn worse(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Node {
    /// Starts routers, then everything else, in the order of the file. When this returns, routers are running, and
    /// processes have been started.
    pub async fn start(config: Config, options: Options) -> Result<Self, StartError> {
        let (events, incoming) = mpsc::unbounded_channel();
        let place = Place {
            directory: options.directory.clone(),
            private: options.private,
            management: options.management,
            executable: options.executable.clone(),
            loglevel: options.loglevel.to_owned(),
            secrets: Arc::new(config.secret_variables.clone()),
        };
        let id = node_id(config.controller.id.as_deref());
        let audit = config.audit_log.as_ref();
        let audit = audit.map(|log| open_audit(log, &options.directory));
        let audit = audit.transpose()?;
        let starting = events.clone();
        let programs = Starter {
            place: place.clone(),
            send: Box::new(move |order| drop(starting.send(Event::StartProgram(order)))),
        };
        let mut node = Self {
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
                overview: Arc::default(),
                audit,
                key: options.key.as_ref().map(NodeKey::signing_key),
                programs: Some(Arc::new(programs)),
            },
            moving_transports: options.moving_transports,
            since: SystemTime::now(),
            children: Children::new(options.executable),
            workers: Vec::new(),
            management: None,
            events,
            incoming,
            ending: None,
            unsettled: BTreeSet::new(),
            is_ready: false,
            admin: None,
            admin_urls: Vec::new(),
            place,
        };
        node.report_triggers();
        node.start_management().await?;
        node.report_call_timeouts(&config);
        report::descriptors();
        node.start_workers(&config)?;
        if let Some(after) = options.shutdown_after {
            node.send_after(after, Event::TimeIsUp);
        }
        Ok(node)
    }

    /// Runs the node until it ends; `next_signal` returns the name of each signal that shall end it.
    pub async fn run(mut self, mut next_signal: impl AsyncFnMut() -> &'static str) -> Outcome {
        self.show_workers();
        loop {
            self.report_ready();
            if let Some(outcome) = self.outcome() {
                // Tasks with orders to kill run before they end with the runtime.
                tokio::task::yield_now().await;
                return outcome;
            }
            let event = tokio::select! {
                signal = next_signal() => Event::Signal(signal),
                // The node itself holds a sender, so that the channel stays open.
                Some(event) = self.incoming.recv() => event,
            };
            self.handle(event);
            self.show_workers();
        }
    }

    /// The URL of the management realm, if any.
    pub fn management_url(&self) -> Option<String> {
        self.management.as_ref().map(|realm| realm.url.clone())
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Signal(signal) => self.handle_signal(signal),
            Event::TimeIsUp => self.handle_time_is_up(),
            Event::Ended { run, end } => self.handle_ended(&run, &end),
            Event::Ready { worker, pid } => self.handle_ready(&worker, pid),
            Event::ReadyOverdue(run) => self.handle_ready_overdue(&run),
            Event::ComponentStarted {
                run,
                component,
                outcome,
            } => self.handle_component_started(&run, &component, outcome),
            Event::ComponentEnded {
                worker,
                component,
                failure,
            } => self.handle_component_ended(&worker, &component, failure),
            Event::ComponentSession {
                worker,
                component,
                news,
            } => self.handle_component_session(&worker, &component, news),
            Event::RestartDue(run) => self.handle_restart_due(&run),
            Event::FilesChanged { worker, first } => self.handle_files_changed(&worker, &first),
            Event::EndOverdue(run) => self.handle_end_overdue(&run),
            Event::KillDue => self.handle_kill_due(),
            Event::RoutersStopped { is_all_stored } => self.handle_routers_stopped(is_all_stored),
            Event::StartProgram(order) => {
                if !self.is_ending() {
                    order.start(&self.children);
                }
            }
            Event::Request(request) => request.answer(self),
        }
    }

    async fn start_management(&mut self) -> Result<(), StartError> {
        let Some(socket) = self.place.management_socket() else {
            return Ok(());
        };
        match Management::start(&self.id, &socket, self.events.clone()).await {
            Ok(management) => {
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

    /// Sends an event to the loop after a delay.
    pub(crate) fn send_after(&self, delay: Duration, event: Event) {
        let events = self.events.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // A node that has ended ignores it.
            let _ = events.send(event);
        });
    }

    /// A worker's first start is complete, successful or not.
    pub(crate) fn settled(&mut self, id: &str) {
        self.unsettled.remove(id);
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
        self.start_each(&others)
    }

    fn start_each(&mut self, definitions: &[&Definition]) -> Result<(), StartError> {
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

    fn start_admin(&mut self, config: &Config) -> Result<(), StartError> {
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

    fn routers(&self) -> Vec<&Router> {
        let running = self
            .workers
            .iter()
            .filter_map(|worker| worker.router.as_ref());
        running.map(|running| &running.router).collect()
    }

    /// Updates the routers on the operators' pages.
    pub(crate) fn show_routers(&self) {
        if let Some(admin) = &self.admin {
            admin.show(&self.routers());
        }
    }

    /// Updates the workers on the operators' pages.
    fn show_workers(&self) {
        let workers = self.workers.iter().map(Worker::overview);
        self.router_options.overview.show(workers.collect());
    }

    /// Reports once that all parts of the configuration have been started, or failed.
    fn report_ready(&mut self) {
        if self.is_ready || self.is_ending() || !self.unsettled.is_empty() {
            return;
        }
        self.is_ready = true;
        self.tell("crossbar.on_ready", json!({"id": self.id}));
        let pid = std::process::id();
        info!("Ready; to stop: SIGINT or SIGTERM to process {pid}");
    }

    /// Whether all parts of the configuration have been started, or failed.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
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
