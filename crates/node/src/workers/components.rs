//! Components, in containers and beside routers: requests to their host, and its answers.

use std::time::Duration;

use crosstie_client::{CallError, CallOptions, Client, args};
use crosstie_config::{Json, Worker as Definition};
use tracing::{error, info, warn};

use super::Worker;
use super::hosted::{Hosted, HostedState, NotStarted};
use super::process::Phase;
use crate::event::{Event, Events, Run, SessionNews};
use crate::node::Node;
use crate::outcome::Outcome;
use crate::report;

/// Time for a host of components to become ready.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// Time for a host to answer whether it could start a component.
const STARTED_WITHIN: Duration = Duration::from_secs(60);

impl Worker {
    /// The worker's host of components has ended.
    pub(crate) fn lose_host(&mut self, why: &str) {
        let id = self.id().to_owned();
        let there = self.components.iter_mut().filter(|own| own.is_there());
        for hosted in there {
            let why = NotStarted::lost(format!("its host ended: {why}"));
            hosted.handle_started(&id, Err(why));
        }
    }
}

impl Node {
    /// A host of components is ready, and may be asked to start them.
    pub(crate) fn handle_ready(&mut self, id: &str, pid: u32) {
        let Some(worker) = self.worker_mut(id) else {
            return;
        };
        let is_guest = matches!(worker.definition, Definition::Guest(_));
        let Some(process) = worker.process.as_mut().filter(|_| !is_guest) else {
            return;
        };
        // Its own process, or a descendant of it: any client of the realm could claim this.
        let Some(expected) = process.pid() else {
            return;
        };
        if !process.handle_ready_of(pid) {
            warn!(
                "Process {pid} says that it is the host of components of worker '{id}', whose \
                 process is {expected}: it is not listened to"
            );
            return;
        }
        let is_container = worker.router.is_none();
        if is_container {
            report::started(worker.kind(), id, pid);
        } else {
            info!("Router '{id}': host of its components with PID {pid} started");
        }
        if let Some(worker) = self.worker(id).filter(|_| is_container) {
            self.tell_about_worker("started", worker, worker.pid());
        }
        self.start_waiting_components(id);
        self.settle(id);
        self.start_queued();
    }

    /// Lets a ready host start the waiting components, one after another.
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

    /// A host answered whether it could start a component.
    pub(crate) fn handle_component_started(
        &mut self,
        run: &Run,
        component: &str,
        outcome: Result<(), NotStarted>,
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
            Err(NotStarted { text, .. }) => {
                error!("{title} '{id}': component '{component}' failed to start: {text}");
            }
        }
        // A caller that requested the start only gets the error.
        let is_configured = hosted.starting.is_empty();
        let has_failed = matches!(&outcome, Err(why) if !why.is_lost);
        hosted.handle_started(id, outcome);
        if has_failed {
            worker.component_failures += 1;
        }
        if has_failed && is_configured {
            self.end_without_component(id);
        }
        self.settle(id);
    }

    /// Makes the node end if one of a worker's components does not join its realm.
    pub(crate) fn need_components(&mut self, id: &str) {
        let worker = self.worker_mut(id).filter(|own| own.needs_components());
        let components = worker.map_or(&mut [][..], |worker| &mut worker.components[..]);
        components.iter_mut().for_each(|own| own.is_needed = true);
    }

    /// A component did not start. During the node's own start, that ends the node, as in Crossbar.io: no client relies
    /// on it yet, and a node that lacks a part is worse than none.
    pub(crate) fn end_without_component(&mut self, id: &str) {
        let is_needed = self.worker(id).is_some_and(Worker::needs_components);
        if is_needed && !self.is_ready() {
            self.end_for_want_of_component(id);
        }
    }

    fn end_for_want_of_component(&mut self, id: &str) {
        if self.is_ending() {
            return;
        }
        let title = self.worker(id).map_or("Worker", Worker::title);
        error!(
            "{title} '{id}' lacks a component: the node ends (the worker's option \
             'needs_components' says whether it does)"
        );
        self.begin_end(Outcome::WithFailure);
    }

    /// Handles a change of a component's session.
    ///
    /// A component whose first attempts fail ends the node, as in Crossbar.io. There workers start one after another,
    /// so that an authenticator is ready before components that log in with it. Here they start at once. An attempt
    /// therefore counts only after all other components have been tried; the one in progress then does not.
    pub(crate) fn handle_component_session(
        &mut self,
        id: &str,
        component: &str,
        news: SessionNews,
    ) {
        /// One may have been in progress.
        const FAILURES_MAX: u8 = 2;
        let is_it = |worker: &Worker, hosted: &Hosted| {
            worker.id() == id && hosted.component.id == component
        };
        let is_alone = self.workers.iter().all(|worker| {
            let mut components = worker.components.iter();
            components.all(|hosted| hosted.is_out_of_the_way() || is_it(worker, hosted))
        });
        let Some(worker) = self.worker_mut(id) else {
            return;
        };
        let mut hosted = worker.components.iter_mut();
        let Some(hosted) = hosted.find(|hosted| hosted.component.id == component) else {
            return;
        };
        if !hosted.is_there() {
            return;
        }
        match news {
            SessionNews::Joined => (hosted.waiting, hosted.is_needed) = (None, false),
            SessionNews::Ready => hosted.is_tried = true,
            SessionNews::Waiting(reason) => {
                (hosted.waiting, hosted.is_tried) = (Some(reason), true);
                let counts = u8::from(is_alone && hosted.is_needed);
                hosted.failures_alone = hosted.failures_alone.saturating_add(counts);
                if hosted.failures_alone >= FAILURES_MAX {
                    self.end_for_want_of_component(id);
                }
            }
        }
    }

    /// A component has left, or failed after its start.
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
        // A component that did not start is reported by the answer to the request.
        if let Some(hosted) = hosted.filter(|hosted| hosted.state == HostedState::Started) {
            hosted.lose();
            worker.component_failures += u64::from(failure.is_some());
            hosted.state = failure.map_or(HostedState::Stopped, HostedState::Failed);
        }
    }

    /// A host was not ready in time.
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
        if process.phase() == Phase::Starting {
            let (id, within) = (&run.worker, READY_WITHIN.as_secs());
            error!(
                "Host of components of worker '{id}' was not ready within {within} s: killing it"
            );
            process.kill();
        }
    }
}

/// Asks a host to start components, and sends each answer to the node's loop.
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
            Err(text) => Err(NotStarted::new(text)),
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

/// The host's text is for people; the URI is for programs.
fn described(error: &CallError) -> NotStarted {
    /// The router's errors for a host that is gone.
    const HOST_IS_GONE: [&str; 2] = ["wamp.error.canceled", "wamp.error.no_such_procedure"];
    let CallError::Application(error) = error else {
        return NotStarted::new(error.to_string());
    };
    let text = match error.arguments.argument::<String>(0) {
        Ok(text) => format!("{text} ({})", error.uri),
        Err(_) => error.to_string(),
    };
    match HOST_IS_GONE.contains(&error.uri.as_str()) {
        true => NotStarted::lost(text),
        false => NotStarted::new(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_the_host_did_not_answer_is_no_fault_of_the_component() {
        let check = |uri: &str, expected| {
            let error = crosstie_client::ApplicationError::new(uri, args!["why"]);
            assert_eq!(described(&CallError::Application(error)).is_lost, expected);
        };
        check("wamp.error.canceled", true);
        check("wamp.error.no_such_procedure", true);
        check("crossbar.error.class_import_failed", false);
    }
}
