//! A running node: its parts, and the one loop that handles all events.
//!
//! Drive it: [`Node::start`], then [`Node::run`] until it returns the outcome. Call both on one thread that lives as
//! long as the node: children are started from it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crosstie_config::{Limits, ShutdownTrigger};
use crosstie_router::{Admin, Exporter, Router, RouterOptions, Traces, handed};
use serde_json::json;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::directory::Occupied;
use crate::drain::Drain;
use crate::event::{Event, Events};
use crate::log_level::LogControl;
use crate::management::Management;
use crate::outcome::{Ending, Outcome};
use crate::place::Place;
use crate::process::Children;
use crate::reload::{Reloader, Reloads};
use crate::service_manager::ServiceManager;
use crate::upgrade::{Successor, Upgrade, UpgradeOrder};
use crate::workers::Worker;

/// A running node.
pub struct Node {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) triggers: Vec<ShutdownTrigger>,
    pub(crate) limits: Limits,
    pub(crate) place: Place,
    pub(crate) log: LogControl,
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
    pub(crate) incoming: mpsc::UnboundedReceiver<Event>,
    pub(crate) ending: Option<Ending>,
    /// Workers of the configuration whose first start is not complete.
    pub(crate) unsettled: BTreeSet<String>,
    pub(crate) is_ready: bool,
    pub(crate) reloads: Reloads,
    /// The present drain.
    pub(crate) drain: Option<Drain>,
    /// Number of drains that were begun.
    pub(crate) drains: u64,
    /// The exporter of spans, if there is one.
    pub(crate) exporter: Option<Exporter>,
    pub(crate) admin: Option<Admin>,
    /// The addresses of the operators' pages, if any.
    pub(crate) admin_urls: Vec<String>,
    /// The addresses of the console's pages, if any.
    pub(crate) console_urls: Vec<String>,
    pub(crate) manager: ServiceManager,
    /// The node's directory, if it is writable.
    pub(crate) occupied: Option<Arc<Occupied>>,
    /// The present upgrade.
    pub(crate) upgrade: Option<Upgrade>,
    /// An upgrade that waits until the node is ready.
    pub(crate) upgrade_waiting: Option<UpgradeOrder>,
    /// Traces of sessions and connections.
    pub(crate) traces: Traces,
    /// Number of upgrades that were begun.
    pub(crate) upgrades: u64,
    /// The process that serves in the place of this one, which ends.
    pub(crate) succeeded: Option<Successor>,
    /// The process that this one has taken over from has not ended. Processes of workers wait for that.
    pub(crate) awaits_former: bool,
}

/// Time for other threads to complete what they have begun when all parts have started.
const SETTLING: Duration = Duration::from_millis(100);

impl Node {
    /// Runs the node until it ends; `next_signal` returns the name of each signal that shall end it.
    pub async fn run(mut self, mut next_signal: impl AsyncFnMut() -> &'static str) -> Outcome {
        self.show_workers();
        loop {
            self.report_ready();
            self.begin_upgrade();
            if let Some(outcome) = self.outcome() {
                // Tasks with orders to kill run before they end with the runtime.
                tokio::task::yield_now().await;
                if outcome != Outcome::AtOnce
                    && let Some(exporter) = self.exporter.take()
                {
                    exporter.finish().await;
                }
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

    /// A handle that has the node read its configuration anew.
    pub fn reloader(&self) -> Reloader {
        Reloader::new(self.events.clone())
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
            Event::Request(request) => self.handle_request(request),
            Event::Upgrade { number, news } => self.handle_upgrade(number, news),
            Event::Farewell { sessions, until } => self.handle_farewell(sessions, until),
            Event::FormerEnded => self.handle_former_ended(),
            Event::DrainDue(number) => self.handle_drain_due(number),
            Event::Reload(order) => self.handle_reload(order),
            Event::Loaded { order, loaded } => self.handle_loaded(order, loaded),
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

    pub(crate) fn routers(&self) -> Vec<&Router> {
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
        self.manager.settled();
        self.tell("crossbar.on_ready", json!({"id": self.id}));
        for name in handed::unused() {
            warn!(
                "The service manager passed the socket '{name}', and no endpoint of type 'systemd' has that name: \
                 clients that connect there wait in vain"
            );
        }
        match self.router_options.programs {
            Some(_) => {
                let pid = std::process::id();
                info!("Ready; to stop: SIGINT or SIGTERM to process {pid}");
                tokio::spawn(async {
                    // Other threads complete what they have begun.
                    tokio::time::sleep(SETTLING).await;
                    crosstie_router::unmap_program();
                });
            }
            // Signals are for the program around it.
            None => info!("Ready"),
        }
    }

    /// Whether all parts of the configuration have been started, or failed.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }
}
