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
pub(crate) mod hosted;
pub(crate) mod log;
pub(crate) mod process;
pub(crate) mod reload;
pub(crate) mod router;
mod worker;

use std::path::PathBuf;
use std::time::SystemTime;

use crosstie_config::{
    ChildEnvironment, Inherit, Json, NativeOptions, Restart, RouterWorker, TesteeWorker,
    Worker as Definition,
};
use crosstie_router::StartError;
use serde_json::json;

use self::host_monitor::HostMonitor;
use self::hosted::Hosted;
use self::process::{Phase, Process};
use self::router::RunningRouter;
pub(crate) use self::worker::{Wanted, Worker};
use crate::event::Event;
use crate::node::Node;
use crate::report;
use crate::task::Task;

/// Why a worker does not start.
pub(crate) struct StartWorkerError {
    pub(crate) text: String,
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
        let awaits_former = self.awaits_former;
        let has_room = !awaits_former && self.hosts_starting() < hosts_starting_max();
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
        // A reload may have changed it.
        process.set_restart(restart);
        if awaits_former || (!is_guest && !has_room) {
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
        while !self.is_ending()
            && !self.awaits_former
            && self.hosts_starting() < hosts_starting_max()
        {
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

    /// Starts the router of a worker whose router was stopped.
    pub(crate) fn open_again(&self, worker: &Worker) -> Result<RunningRouter, StartWorkerError> {
        let kind = worker.kind();
        match &worker.definition {
            Definition::Router(router) => self.open_router(router, kind),
            Definition::WebSocketTestee(testee) => self.open_router(&as_router(testee), kind),
            _ => Err(format!("worker '{}' is no router", worker.id()).into()),
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
        self.manager.watch(running.router.watched_threads());
        running
            .open(definition, &self.moving_transports)
            .map_err(failed)?;
        Ok(running)
    }

    pub(crate) fn watch(&self, id: &str, directories: Vec<PathBuf>) -> Option<Task> {
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
        spin_budget: 0,
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
