//! Components, in containers and beside routers: what their host was asked for, and its answers.

use std::time::Duration;

use crosstie_client::{CallError, CallOptions, Client, args};
use crosstie_config::{Component, Json, Worker as Definition};
use crosstie_router::ComponentOverview;
use tracing::{error, info, warn};

use super::Worker;
use crate::event::{Event, Events, Run, SessionNews};
use crate::management::Reply;
use crate::management::errors;
use crate::node::{Node, Outcome};
use crate::report;

/// How long a host of components may take to be ready.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long a host may take to say whether it could start a component.
const STARTED_WITHIN: Duration = Duration::from_secs(60);

/// One component that the controller has a host start.
pub(crate) struct Hosted {
    pub(crate) component: Component,
    pub(crate) state: HostedState,
    /// Why it has no session, where its host goes on trying to get one.
    waiting: Option<String>,
    /// The node ends if it does not come to join its realm.
    is_needed: bool,
    /// It has been ready, or has failed to be.
    is_tried: bool,
    /// Times that it got no session though all others were tried: one of them may be its authenticator.
    failures_alone: u8,
    /// Callers that wait for its start.
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
    /// Its host ended, by which it failed too: the next one starts it again.
    Lost(String),
}

/// Why a component does not run.
#[derive(Clone, Debug)]
pub(crate) struct NotStarted {
    text: String,
    /// Nothing is known about the component itself.
    is_lost: bool,
}

impl Hosted {
    pub(crate) fn new(component: Component) -> Self {
        Self {
            component,
            state: HostedState::Waiting,
            waiting: None,
            is_needed: false,
            is_tried: false,
            failures_alone: 0,
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

    /// Whether a new host is to start it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_there() || matches!(self.state, HostedState::Lost(_))
    }

    /// There is a new host, which knows nothing of it.
    pub(crate) fn await_host(&mut self) {
        self.state = HostedState::Waiting;
        self.waiting = None;
    }

    /// Its state in a word, and what is wrong with it.
    pub(crate) fn condition(&self) -> (&'static str, Option<&str>) {
        match (&self.state, &self.waiting) {
            (HostedState::Failed(why) | HostedState::Lost(why), _) => ("failed", Some(why)),
            (HostedState::Stopped, _) => ("stopped", None),
            (_, Some(why)) => ("waiting", Some(why)),
            (HostedState::Started, None) => ("started", None),
            (HostedState::Waiting | HostedState::Starting, None) => ("starting", None),
        }
    }

    /// The component's part of pages and metrics.
    pub(crate) fn overview(&self) -> ComponentOverview {
        let (state, reason) = self.condition();
        ComponentOverview {
            id: self.component.id.clone(),
            state,
            reason: reason.map(str::to_owned),
        }
    }

    fn lose(&mut self) {
        (self.waiting, self.is_needed, self.is_tried) = (None, false, true);
    }

    /// Whether others need not wait for its first attempt: also if it has `references`, and waits for others.
    fn is_out_of_the_way(&self) -> bool {
        self.is_tried || self.component.definition.get("references").is_some()
    }

    pub(crate) fn handle_started(&mut self, worker: &str, outcome: Result<(), NotStarted>) {
        let id = &self.component.id;
        let answer = match &outcome {
            Ok(()) => Ok(serde_json::json!({"id": id, "worker": worker})),
            Err(why) => Err(errors::cannot_start(&why.text)),
        };
        for reply in self.starting.drain(..) {
            // The caller may have gone.
            let _ = reply.send(answer.clone());
        }
        self.state = match outcome {
            Ok(()) => HostedState::Started,
            Err(why) => {
                self.lose();
                match why.is_lost {
                    true => HostedState::Lost(why.text),
                    false => HostedState::Failed(why.text),
                }
            }
        };
    }
}

impl NotStarted {
    pub(crate) fn new(text: String) -> Self {
        Self {
            text,
            is_lost: false,
        }
    }

    fn lost(text: String) -> Self {
        Self {
            text,
            is_lost: true,
        }
    }
}

impl Worker {
    /// Its components have nobody to start them any more.
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
    /// A host of components is ready: it may be asked for them now.
    pub(crate) fn handle_ready(&mut self, id: &str, pid: u32) {
        let Some(worker) = self.worker_mut(id) else {
            return;
        };
        let is_guest = matches!(worker.definition, Definition::Guest(_));
        let Some(process) = worker.process.as_mut().filter(|_| !is_guest) else {
            return;
        };
        // Its own process, or what that started: anybody in the realm could say so.
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
        // A caller that asked for it is told, and that is all.
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

    /// Has the node end if one of a worker's components does not come to join its realm.
    pub(crate) fn need_components(&mut self, id: &str) {
        let worker = self.worker_mut(id).filter(|own| own.needs_components());
        let components = worker.map_or(&mut [][..], |worker| &mut worker.components[..]);
        components.iter_mut().for_each(|own| own.is_needed = true);
    }

    /// A component did not start. If that happens during the node's own start, the node ends, as
    /// Crossbar.io's: no client relies on it yet, and a node that lacks a part is worse than none.
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

    /// A host said how the session of a component is.
    ///
    /// A component whose first attempts fail ends the node, as on Crossbar.io. There workers start one after
    /// the other, so that an authenticator is ready before components that log in with it. Here they start
    /// at once. So an attempt counts once all other components have been tried; the one under way does not.
    pub(crate) fn handle_component_session(
        &mut self,
        id: &str,
        component: &str,
        news: SessionNews,
    ) {
        /// One may have been under way.
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
            hosted.lose();
            worker.component_failures += u64::from(failure.is_some());
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

/// What the host says is for people; the URI is for those who look for it.
fn described(error: &CallError) -> NotStarted {
    /// What the router answers when the host is gone.
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
    fn a_new_host_starts_what_was_there_when_the_last_one_ended() {
        let definition =
            serde_json::json!({"type": "class", "classname": "a.B", "realm": "r", "role": "x"});
        let component = crosstie_config::component_from_json(&definition, true).expect("one");
        let check = |state: HostedState, expected| {
            let mut hosted = Hosted::new(component.clone());
            hosted.state = state.clone();
            if hosted.is_there() {
                let why = NotStarted::lost("its host ended".to_owned());
                hosted.handle_started("worker1", Err(why));
                assert!(!hosted.is_there(), "{state:?}");
            }
            assert_eq!(hosted.is_wanted(), expected, "{state:?}");
        };
        check(HostedState::Waiting, true);
        check(HostedState::Starting, true);
        check(HostedState::Started, true);
        check(HostedState::Stopped, false);
        check(HostedState::Failed("import".to_owned()), false);
    }

    #[test]
    fn a_call_that_its_host_did_not_live_to_answer_says_nothing_about_a_component() {
        let check = |uri: &str, expected| {
            let error = crosstie_client::ApplicationError::new(uri, args!["why"]);
            assert_eq!(described(&CallError::Application(error)).is_lost, expected);
        };
        check("wamp.error.canceled", true);
        check("wamp.error.no_such_procedure", true);
        check("crossbar.error.class_import_failed", false);
    }
}
