//! The node's workers: their parts, and how they start.
//!
//! A router consists of threads of this process, and runs when its start returns. Workers with a process start with
//! that: a guest as soon as it runs, a host of components when it has joined the management realm and answered for each
//! of its components.

pub(crate) mod components;
pub(crate) mod container;
pub(crate) mod exit;
pub(crate) mod guest;
pub(crate) mod host_monitor;
pub(crate) mod log;
pub(crate) mod process;
pub(crate) mod reload;
pub(crate) mod router;

use std::path::PathBuf;
use std::time::SystemTime;

use crosstie_config::{
    ChildEnvironment, ContainerShutdown, Inherit, Json, NativeOptions, Restart, RouterWorker,
    TesteeWorker, Worker as Definition,
};
use crosstie_router::{StartError, WorkerOverview};
use serde_json::json;

use self::components::Hosted;
use self::host_monitor::HostMonitor;
use self::process::{Phase, Process};
use self::reload::Reload;
use self::router::RunningRouter;
use crate::event::{Event, Run};
use crate::management::Reply;
use crate::node::Node;
use crate::place::Place;
use crate::process::Command;
use crate::report;
use crate::task::Task;

/// One worker of the node.
pub(crate) struct Worker {
    pub(crate) definition: Definition,
    pub(crate) since: SystemTime,
    pub(crate) router: Option<RunningRouter>,
    /// That of a container or a guest; for a router, the host of its components.
    pub(crate) process: Option<Process>,
    pub(crate) monitor: Option<HostMonitor>,
    pub(crate) components: Vec<Hosted>,
    /// Number of component starts and runs that failed.
    pub(crate) component_failures: u64,
    pub(crate) wanted: Wanted,
    pub(crate) reload: Reload,
    /// Callers that wait for the start.
    pub(crate) starting: Vec<Reply>,
    /// Callers that wait for the end of one run and the start of the next.
    pub(crate) restarting: Vec<Reply>,
    /// Callers that wait for the end.
    pub(crate) stopping: Vec<Reply>,
    watch: Option<Task>,
}

/// The next step after the end of a worker's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// As its restart policy says.
    Running,
    /// A caller requested a restart.
    Restart,
    /// Its files have changed.
    Reload,
    Stop,
}

/// Why a worker does not start.
pub(crate) struct StartWorkerError {
    pub(crate) text: String,
}

impl Worker {
    fn new(definition: Definition) -> Self {
        Self {
            definition,
            since: SystemTime::now(),
            router: None,
            process: None,
            monitor: None,
            components: Vec::new(),
            component_failures: 0,
            wanted: Wanted::Running,
            reload: Reload::default(),
            starting: Vec::new(),
            restarting: Vec::new(),
            stopping: Vec::new(),
            watch: None,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.definition.id()
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.definition.type_name()
    }

    /// The name of a host of components in the log.
    pub(crate) fn title(&self) -> &'static str {
        report::title(self.kind())
    }

    /// Whether it is a process, not threads of the node.
    pub(crate) fn is_process(&self) -> bool {
        matches!(
            self.definition,
            Definition::Container(_) | Definition::Guest(_)
        )
    }

    /// The worker's process, or the node's own.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self.is_process() {
            true => self.process.as_ref().and_then(Process::pid),
            false => Some(std::process::id()),
        }
    }

    /// The worker's process, or its last one.
    pub(crate) fn last_pid(&self) -> Option<u32> {
        match self.is_process() {
            true => self.process.as_ref().and_then(Process::last_pid),
            false => Some(std::process::id()),
        }
    }

    pub(crate) fn status(&self) -> &'static str {
        let process = self.process.as_ref().filter(|_| self.is_process());
        let phase = process.map_or(Phase::Started, Process::phase);
        match phase {
            Phase::Starting => "starting",
            Phase::Started => "started",
            Phase::Stopping => "stopping",
            Phase::Restarting => "restarting",
            Phase::Stopped => "stopped",
        }
    }

    /// The fault of its process.
    fn trouble(&self) -> Option<String> {
        let process = self.process.as_ref()?;
        let last_end = process.last_end().unwrap_or_default();
        match process.restarts_in_a_row() {
            0 => None,
            // No event wakes the node once it has run long enough to be healthy.
            _ if process.phase() == Phase::Started => None,
            n => Some(format!("ended {n} times in a row, last with: {last_end}")),
        }
    }

    /// The worker's part of pages and metrics.
    pub(crate) fn overview(&self) -> WorkerOverview {
        let (status, trouble) = (self.status(), self.trouble());
        WorkerOverview {
            id: self.id().to_owned(),
            kind: self.kind(),
            status: match &trouble {
                Some(trouble) => format!("{status}; {trouble}"),
                None => status.to_owned(),
            },
            is_running: status == "started",
            components: self.components.iter().map(Hosted::overview).collect(),
            component_failures: self.component_failures,
            trouble,
        }
    }

    /// The command of its process; `None` for a worker without one.
    fn command(&self, place: &Place) -> Option<Result<Command, String>> {
        let id = self.id();
        Some(match &self.definition {
            Definition::Router(_) if self.components.is_empty() => return None,
            Definition::Router(router) => {
                container::command(id, &router.process, ContainerShutdown::Manual, place)
            }
            Definition::Container(worker) => {
                container::command(id, &worker.process, worker.shutdown, place)
            }
            Definition::Guest(guest) => Ok(guest::command(guest, place)),
            _ => return None,
        })
    }

    /// Whether its first start is complete, successful or not.
    pub(crate) fn is_settled(&self) -> bool {
        let is_starting = match self.process.as_ref().map(Process::phase) {
            Some(Phase::Starting) => true,
            // It could not be started, which is about to be reported.
            Some(Phase::Stopped) => self.router.is_none(),
            _ => false,
        };
        !is_starting && !self.components.iter().any(Hosted::is_under_way)
    }

    /// Whether the node ends if a configured component does not start.
    pub(crate) fn needs_components(&self) -> bool {
        match &self.definition {
            Definition::Router(router) => router.needs_components,
            Definition::Container(container) => container.needs_components,
            _ => false,
        }
    }

    /// Whether that run is the present one.
    pub(crate) fn is_in(&self, run: &Run) -> bool {
        let process = self.process.as_ref();
        process.is_some_and(|process| process.run(self.id()) == *run)
    }
}

impl Node {
    /// Starts a worker: a router runs when this returns; processes have been started.
    pub(crate) fn start_worker(&mut self, definition: Definition) -> Result<(), StartWorkerError> {
        let mut worker = Worker::new(definition);
        let id = worker.id().to_owned();
        report::starting(worker.kind(), &id);
        // A process publishes this with each of its runs.
        if !worker.is_process() {
            self.tell_about_worker("starting", &worker, None);
        }
        if let Err(error) = self.open(&mut worker) {
            self.tell_about_worker("stopped", &worker, worker.last_pid());
            return Err(error);
        }
        if !worker.is_process() {
            self.tell_about_worker("started", &worker, worker.pid());
        }
        self.workers.push(worker);
        self.bridge_meta_apis(&id);
        self.unsettled.insert(id.clone());
        self.start_process(&id);
        self.settle(&id);
        Ok(())
    }

    /// Starts the parts of a worker that live in the node's own process.
    fn open(&self, worker: &mut Worker) -> Result<(), StartWorkerError> {
        let (kind, id) = (worker.kind(), worker.id().to_owned());
        match &worker.definition {
            Definition::Router(router) => {
                worker.router = Some(self.open_router(router, kind)?);
                worker.components = Hosted::all(&router.components);
            }
            Definition::WebSocketTestee(testee) => {
                worker.router = Some(self.open_router(&as_router(testee), kind)?);
            }
            Definition::Container(container) => {
                worker.components = Hosted::all(&container.components);
            }
            Definition::Guest(guest) => {
                worker.watch = self.watch(&id, guest::watched(guest, &self.place));
            }
            Definition::HostMonitor(monitor) => {
                let client = self.management.as_ref().map(|realm| realm.client.clone());
                worker.monitor = Some(HostMonitor::start(&id, monitor.interval, client));
                report::started(kind, &id, std::process::id());
            }
            _ => return Err(format!("workers of type '{kind}' are not known here").into()),
        }
        Ok(())
    }

    /// Begins a run of a worker's process, if it has one, once fewer than the maximum are starting.
    pub(crate) fn start_process(&mut self, id: &str) {
        let Some(at) = self.workers.iter().position(|worker| worker.id() == id) else {
            return;
        };
        let has_room = self.hosts_starting() < hosts_starting_max();
        let worker = &mut self.workers[at];
        worker.wanted = Wanted::Running;
        let Some(command) = worker.command(&self.place) else {
            return;
        };
        let (title, restart) = match &worker.definition {
            Definition::Guest(guest) => ("Guest", guest.restart),
            Definition::Container(container) => ("Container", container.restart),
            // The components of a router belong to it while it exists.
            _ => ("Container", Restart::OnFailed),
        };
        let is_guest = matches!(worker.definition, Definition::Guest(_));
        worker.since = SystemTime::now();
        if let (None, Ok(command)) = (&worker.process, &command) {
            report::withheld(
                id,
                &command.withheld(std::env::vars_os().map(|(name, _)| name)),
            );
        }
        let process = worker
            .process
            .get_or_insert_with(|| Process::new(title, restart));
        if !is_guest && !has_room {
            process.is_waiting = false;
            process.is_queued = true;
            return;
        }
        process.start(id, command, &self.children, &self.events);
        let is_process = worker.is_process();
        if is_process {
            self.tell_about_worker("starting", &self.workers[at], None);
        }
        let worker = &mut self.workers[at];
        let Some((process, pid)) = worker
            .process
            .as_mut()
            .and_then(|process| process.pid().map(|pid| (process, pid)))
        else {
            return;
        };
        if is_guest {
            process.handle_ready();
            report::started(worker.kind(), id, pid);
            self.tell_about_worker("started", &self.workers[at], Some(pid));
            return;
        }
        // A container restarts with all configured components; beside a router, components that had left or failed by
        // themselves stay away.
        let mut components = worker.components.iter_mut();
        components
            .by_ref()
            .filter(|component| is_process || component.is_wanted())
            .for_each(Hosted::await_host);
        let overdue = Event::ReadyOverdue(process.run(id));
        self.send_after(components::READY_WITHIN, overdue);
    }

    /// Begins the runs that waited for others to start.
    pub(crate) fn start_queued(&mut self) {
        let is_queued = |worker: &&Worker| {
            let process = worker.process.as_ref();
            process.is_some_and(|process| process.is_queued)
        };
        while !self.is_ending() && self.hosts_starting() < hosts_starting_max() {
            let Some(worker) = self.workers.iter().find(is_queued) else {
                return;
            };
            let id = worker.id().to_owned();
            self.start_process(&id);
            self.settle(&id);
        }
    }

    /// Number of hosts of components that run and are not ready yet.
    fn hosts_starting(&self) -> usize {
        let processes = self.workers.iter().filter_map(|own| own.process.as_ref());
        processes
            .filter(|process| process.is_running() && process.phase() == Phase::Starting)
            .count()
    }

    /// Checks whether a worker's start is complete, and informs waiting callers.
    pub(crate) fn settle(&mut self, id: &str) {
        let Some(worker) = self.workers.iter_mut().find(|worker| worker.id() == id) else {
            self.settled(id);
            return;
        };
        if !worker.is_settled() {
            return;
        }
        let about = json!({
            "id": worker.id(),
            "type": worker.kind(),
            "pid": worker.pid(),
            "status": worker.status(),
        });
        for reply in worker.starting.drain(..) {
            // The caller may have gone.
            let _ = reply.send(Ok(about.clone()));
        }
        self.settled(id);
    }

    pub(crate) fn worker(&self, id: &str) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.id() == id)
    }

    pub(crate) fn worker_mut(&mut self, id: &str) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|worker| worker.id() == id)
    }

    /// Bridges the meta APIs of a worker's realms that are configured for it and not bridged yet.
    pub(crate) fn bridge_meta_apis(&self, worker: &str) {
        let worker = self.worker(worker);
        let Some(router) = worker.and_then(|worker| worker.router.as_ref()) else {
            return;
        };
        for realm in router
            .realms
            .iter()
            .filter(|realm| realm.is_meta_api_bridged)
        {
            let join = || router.router.meta_session(&realm.name);
            let bridged = match &self.management {
                Some(management) => management.bridge_meta_api(router.router.id(), &realm.id, join),
                None => Err("there is no management realm".to_owned()),
            };
            if let Err(why) = bridged {
                tracing::warn!("Realm '{}' has no \"bridge_meta_api\": {why}", realm.id);
            }
        }
    }

    fn open_router(
        &self,
        definition: &RouterWorker,
        kind: &str,
    ) -> Result<RunningRouter, StartWorkerError> {
        let failed = |error: StartError| error.to_string();
        let (limits, options) = (&self.limits, &self.router_options);
        let title = report::title(kind);
        let mut running =
            RunningRouter::start(definition, limits, options, title).map_err(failed)?;
        report::started(kind, &definition.id, std::process::id());
        running
            .open(definition, &self.moving_transports)
            .map_err(failed)?;
        Ok(running)
    }

    fn watch(&self, id: &str, directories: Vec<PathBuf>) -> Option<Task> {
        if directories.is_empty() {
            return None;
        }
        let began = SystemTime::now();
        let watching = guest::tell_changes(id.to_owned(), directories, began, self.events.clone());
        Some(Task::spawn(watching))
    }
}

/// Maximum number of hosts of components that start at once: more would only delay each other.
fn hosts_starting_max() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// A testee is a router that only echoes.
fn as_router(testee: &TesteeWorker) -> RouterWorker {
    RouterWorker {
        id: testee.id.clone(),
        threads: None,
        busy_poll: false,
        cpu_affinity: testee.cpu_affinity.clone(),
        realms: Vec::new(),
        transports: vec![testee.transport.clone()],
        amqp: None,
        joints: Vec::new(),
        components: Vec::new(),
        bridges: Vec::new(),
        says_goodbye: false,
        needs_components: false,
        process: no_process(),
    }
}

/// For routers that host nothing.
pub(crate) fn no_process() -> NativeOptions {
    NativeOptions {
        title: None,
        python: None,
        pythonpath: Vec::new(),
        cpu_affinity: Vec::new(),
        environment: ChildEnvironment {
            inherit: Inherit::AllButSecrets,
            variables: Vec::new(),
        },
        exposes_shared: false,
        extra: Json::Null,
    }
}

impl From<String> for StartWorkerError {
    fn from(text: String) -> Self {
        Self { text }
    }
}
