//! One worker of the node: its parts and its state.

use std::time::SystemTime;

use crosstie_config::{ContainerShutdown, Worker as Definition};
use crosstie_router::WorkerOverview;

use super::host_monitor::HostMonitor;
use super::hosted::Hosted;
use super::process::{Phase, Process};
use super::reload::Reload;
use super::router::RunningRouter;
use super::{container, guest};
use crate::event::Run;
use crate::management::Reply;
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
    pub(crate) watch: Option<Task>,
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

impl Worker {
    pub(super) fn new(definition: Definition) -> Self {
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
    pub(super) fn command(&self, place: &Place) -> Option<Result<Command, String>> {
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
