//! Components, in containers and beside routers: what their host was asked for, and its answers.

use std::time::Duration;

use crosstie_client::{CallError, CallOptions, Client, args};
use crosstie_config::{Component, Json};
use tracing::{error, info};

use super::Worker;
use crate::event::{Event, Events, Run};
use crate::management::Reply;
use crate::management::errors;
use crate::node::Node;
use crate::report;

/// How long a host of components may take to be ready.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long a host may take to say whether it could start a component.
const STARTED_WITHIN: Duration = Duration::from_secs(60);

/// One component that the controller has a host start.
pub(crate) struct Hosted {
    pub(crate) component: Component,
    pub(crate) state: HostedState,
    /// Who waits for its start.
    pub(crate) starting: Vec<Reply>,
}

/// Where a component stands, as far as the controller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostedState {
    /// Its host is not ready yet.
    Waiting,
    /// Its host was asked to start it.
    Starting,
    Started,
    /// It left by itself.
    Stopped,
    Failed(String),
}

impl Hosted {
    pub(crate) fn new(component: Component) -> Self {
        Self {
            component,
            state: HostedState::Waiting,
            starting: Vec::new(),
        }
    }

    pub(crate) fn all(components: &[Component]) -> Vec<Self> {
        components.iter().cloned().map(Self::new).collect()
    }

    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.state, HostedState::Waiting | HostedState::Starting)
    }

    /// Whether it runs, or is about to.
    pub(crate) fn is_there(&self) -> bool {
        self.is_under_way() || self.state == HostedState::Started
    }

    /// There is a new host, which knows nothing of it.
    pub(crate) fn await_host(&mut self) {
        self.state = HostedState::Waiting;
    }

    pub(crate) fn handle_started(&mut self, worker: &str, outcome: Result<(), String>) {
        let id = &self.component.id;
        let answer = match &outcome {
            Ok(()) => Ok(serde_json::json!({"id": id, "worker": worker})),
            Err(text) => Err(errors::cannot_start(text)),
        };
        for reply in self.starting.drain(..) {
            // Whoever asked may have gone.
            let _ = reply.send(answer.clone());
        }
        self.state = match outcome {
            Ok(()) => HostedState::Started,
            Err(text) => HostedState::Failed(text),
        };
    }
}

impl Worker {
    /// Its components have nobody to start them any more.
    pub(crate) fn lose_host(&mut self, why: &str) {
        let id = self.id().to_owned();
        for hosted in self
            .components
            .iter_mut()
            .filter(|hosted| hosted.is_under_way())
        {
            hosted.handle_started(&id, Err(format!("its host ended: {why}")));
        }
    }
}

impl Node {
    /// A host of components is ready: it may be asked for them now.
    pub(crate) fn handle_ready(&mut self, id: &str, pid: u32) {
        let Some(worker) = self.worker_mut(id) else {
            return;
        };
        // Its own process only: anybody in the realm could say so.
        let Some(process) = worker.process.as_mut().filter(|own| own.pid() == Some(pid)) else {
            return;
        };
        process.handle_ready();
        let is_container = worker.router.is_none();
        if is_container {
            report::started(worker.kind(), id, pid);
        } else {
            info!("Router '{id}': host of its components with PID {pid} started");
        }
        if let Some(worker) = self.worker(id).filter(|_| is_container) {
            self.tell_about_worker("started", worker);
        }
        self.start_waiting_components(id);
        self.settle(id);
    }

    /// Has a ready host start what waits for it, one component after the other.
    pub(crate) fn start_waiting_components(&mut self, id: &str) {
        let Some(client) = self.management.as_ref().map(|realm| realm.client.clone()) else {
            return;
        };
        let private = self.place.private.clone().unwrap_or_default();
        let Some(worker) = self.workers.iter_mut().find(|worker| worker.id() == id) else {
            return;
        };
        let Some(process) = &worker.process else {
            return;
        };
        let run = process.run(id);
        let mut definitions = Vec::new();
        for hosted in &mut worker.components {
            if hosted.state != HostedState::Waiting {
                continue;
            }
            let definition = match &mut worker.router {
                Some(router) => router.definition(&hosted.component, &private),
                None => Ok(hosted.component.definition.clone()),
            };
            hosted.state = HostedState::Starting;
            definitions.push((hosted.component.id.clone(), definition));
        }
        if !definitions.is_empty() {
            tokio::spawn(ask_host(client, run, definitions, self.events.clone()));
        }
    }

    /// A host said whether it could start a component.
    pub(crate) fn handle_component_started(
        &mut self,
        run: &Run,
        component: &str,
        outcome: Result<(), String>,
    ) {
        let Some(worker) = self
            .worker_mut(&run.worker)
            .filter(|worker| worker.is_in(run))
        else {
            return;
        };
        let (id, title) = (run.worker.as_str(), worker.title());
        let mut hosted = worker.components.iter_mut();
        let Some(hosted) = hosted.find(|hosted| hosted.component.id == component) else {
            return;
        };
        match &outcome {
            Ok(()) => info!("{title} '{id}': component '{component}' started"),
            Err(text) => error!("{title} '{id}': component '{component}' failed to start: {text}"),
        }
        hosted.handle_started(id, outcome);
        self.settle(id);
    }

    /// A host said that a component has left, or failed after its start.
    pub(crate) fn handle_component_ended(
        &mut self,
        worker: &str,
        component: &str,
        failure: Option<String>,
    ) {
        let Some(worker) = self.worker_mut(worker) else {
            return;
        };
        let mut hosted = worker.components.iter_mut();
        let hosted = hosted.find(|hosted| hosted.component.id == component);
        // One that did not start is answered for by who was asked to start it.
        if let Some(hosted) = hosted.filter(|hosted| hosted.state == HostedState::Started) {
            hosted.state = failure.map_or(HostedState::Stopped, HostedState::Failed);
        }
    }

    /// A host had its time.
    pub(crate) fn handle_ready_overdue(&mut self, run: &Run) {
        let Some(worker) = self
            .worker_mut(&run.worker)
            .filter(|worker| worker.is_in(run))
        else {
            return;
        };
        let Some(process) = &mut worker.process else {
            return;
        };
        if process.phase() == super::process::Phase::Starting {
            let (id, within) = (&run.worker, READY_WITHIN.as_secs());
            error!(
                "Host of components of worker '{id}' was not ready within {within} s: killing it"
            );
            process.kill();
        }
    }
}

/// Asks a host to start components, and tells the node's loop each answer.
async fn ask_host(
    client: Client,
    run: Run,
    definitions: Vec<(String, Result<Json, String>)>,
    events: Events,
) {
    let procedure = format!("crossbar.worker.{}.start_component", run.worker);
    for (component, definition) in definitions {
        let outcome = match definition {
            Ok(definition) => {
                let mut options = CallOptions::default();
                options.timeout = Some(STARTED_WITHIN);
                let arguments = args![component.as_str(), definition];
                let answer = client.call_with(&procedure, arguments, options).await;
                answer.map(drop).map_err(|error| described(&error))
            }
            Err(error) => Err(error),
        };
        let run = run.clone();
        let told = events.send(Event::ComponentStarted {
            run,
            component,
            outcome,
        });
        // The node has ended.
        if told.is_err() {
            return;
        }
    }
}

/// What the host says is for people; the URI is for those who look for it.
fn described(error: &CallError) -> String {
    let CallError::Application(error) = error else {
        return error.to_string();
    };
    match error.arguments.argument::<String>(0) {
        Ok(text) => format!("{text} ({})", error.uri),
        Err(_) => error.to_string(),
    }
}
