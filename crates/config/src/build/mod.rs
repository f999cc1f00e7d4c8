//! The checked tree into the model, and what only the whole can tell: names given twice,
//! roles that nobody defined, listeners that would collide.

mod amqp;
mod auth;
mod certificates;
mod component;
mod cookie;
mod cryptosign;
mod endpoint;
mod exposure;
mod fabric;
mod functions;
mod joint;
mod jwt;
mod names;
mod outgoing;
mod principals;
mod realm;
mod references;
mod replicated;
mod rlink;
mod session_limits;
mod store;
mod transport;
mod web;
mod worker;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::files::{Files, NamedFiles};
use crate::model::{Admin, AuditLog, Config, Controller, Json, Limits, ShutdownTrigger};
use crate::problem::Problem;
use crate::tree::Span;
use crate::view::View;

pub(crate) use amqp::standard as standard_amqp;
use names::Names;

/// Builds the model. It is whole even where a problem is found, but of use only without errors.
/// `secrets` are the variables that its secrets came from.
pub(crate) fn build(
    file: View<'_>,
    secrets: BTreeSet<String>,
    problems: &mut Vec<Problem>,
) -> (Config, Vec<NamedFiles>) {
    let mut builder = Builder::new(problems);
    builder.secrets = secrets;
    let config = builder.config(file);
    (config, builder.files)
}

/// The names in the node that were seen so far.
pub(crate) struct Builder<'a> {
    problems: &'a mut Vec<Problem>,
    workers: Names,
    /// Of the worker that is being built.
    rlink_ids: Names,
    listeners: Vec<endpoint::Listener>,
    stores: Vec<amqp::StoreFile>,
    cookie_files: Vec<String>,
    files: Vec<NamedFiles>,
    /// The environment variables that secrets of the file came from.
    secrets: BTreeSet<String>,
    /// The worker that is being built will not be started, and takes no address.
    disabled: bool,
    queue_bytes_max: usize,
    /// What the authenticators of a router worker that are functions are told; nothing where no worker is
    /// being built.
    functions: Option<Vec<Json>>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(problems: &'a mut Vec<Problem>) -> Self {
        Self {
            problems,
            workers: Names::new("the worker id", "worker"),
            rlink_ids: Names::new("the link id", "rlink"),
            listeners: Vec::new(),
            stores: Vec::new(),
            cookie_files: Vec::new(),
            files: Vec::new(),
            secrets: BTreeSet::new(),
            disabled: false,
            queue_bytes_max: usize::MAX,
            functions: None,
        }
    }

    fn config(&mut self, file: View<'_>) -> Config {
        if file.given("version").is_none() {
            let message = "\"version\" is missing and taken to be 2".into();
            self.problems.push(Problem::warning(file.span, message));
        }
        let limits = limits(file.section("limits"));
        self.queue_bytes_max = limits.queue_bytes_max;
        let ids = Names::new("the worker id", "worker");
        self.workers = ids.of(file.objects("workers"));
        let config = Config {
            controller: controller(file.section("controller")),
            workers: file
                .objects("workers")
                .filter_map(|worker| self.worker(worker))
                .collect(),
            audit_log: file.object("audit_log").map(|log| AuditLog {
                file: log.text("file").unwrap_or_default().to_owned(),
                file_bytes_max: bound(log, "file_bytes_max"),
            }),
            admin: file.object("admin").map(|admin| self.admin(admin)),
            limits,
            secret_variables: self.secrets.clone(),
        };
        if config.workers.is_empty() {
            let message = "there is no worker to start".into();
            let at = file.span_of("workers");
            self.problems.push(Problem::warning(at, message));
        }
        config
    }

    /// Files that the node will read, unless what they are for is not started.
    fn names(&mut self, span: Span, files: Files) {
        if !self.disabled {
            self.files.push(NamedFiles { span, files });
        }
    }

    fn admin(&mut self, admin: View<'_>) -> Admin {
        let endpoint = self.endpoint(admin);
        Admin {
            pages: transport::pages(admin, true),
            allowed_hosts: transport::allowed(admin, "allowed_hosts", endpoint.is_loopback()),
            endpoint,
        }
    }
}

fn controller(controller: View<'_>) -> Controller {
    let options = controller.section("options");
    let mut shutdown: Vec<_> = options.texts("shutdown").filter_map(trigger).collect();
    if shutdown.is_empty() {
        shutdown.extend(options.text("shutdown").and_then(trigger));
    }
    Controller {
        id: controller.text("id").map(str::to_owned),
        title: options.text("title").map(str::to_owned),
        shutdown,
    }
}

fn trigger(word: &str) -> Option<ShutdownTrigger> {
    Some(match word {
        "shutdown_on_shutdown_requested" => ShutdownTrigger::ShutdownRequested,
        "shutdown_on_worker_exit" => ShutdownTrigger::WorkerExit,
        "shutdown_on_worker_exit_with_error" => ShutdownTrigger::WorkerExitWithError,
        "shutdown_on_last_worker_exit" => ShutdownTrigger::LastWorkerExit,
        _ => return None,
    })
}

fn limits(limits: View<'_>) -> Limits {
    Limits {
        queue_bytes_max: bound(limits, "queue_bytes_max"),
        queue_bytes_total_max: bound(limits, "queue_bytes_total_max"),
        queue_stall_timeout: milliseconds(limits, "queue_stall_timeout_ms"),
        message_timeout: milliseconds(limits, "message_timeout_ms"),
        bytes_per_second_min: bound(limits, "bytes_per_second_min"),
        depth_max: bound(limits, "depth_max"),
        handshake_timeout: milliseconds(limits, "handshake_timeout_ms"),
        request_head_bytes_max: bound(limits, "request_head_bytes_max"),
        challenge_timeout: milliseconds(limits, "challenge_timeout_ms"),
        handshakes_pending_max: bound(limits, "handshakes_pending_max"),
        login_delay_max: milliseconds(limits, "login_delay_ms_max"),
        sessions_max: bound(limits, "sessions_max"),
        page_connections_max: bound(limits, "page_connections_max"),
        address_connections_max: limits.integer("address_connections_max").map(size),
        calls_pending_max: bound(limits, "calls_pending_max"),
        realm_subscriptions_max: bound(limits, "realm_subscriptions_max"),
        realm_registrations_max: bound(limits, "realm_registrations_max"),
        realm_calls_pending_max: bound(limits, "realm_calls_pending_max"),
        call_options_bytes_max: bound(limits, "call_options_bytes_max"),
        kept_call_bytes_max: bound(limits, "kept_call_bytes_max"),
        kept_calls_bytes_max: bound(limits, "kept_calls_bytes_max"),
        subscriptions_max: bound(limits, "subscriptions_max"),
        registrations_max: bound(limits, "registrations_max"),
        wildcard_shapes_max: bound(limits, "wildcard_shapes_max"),
        uri_bytes_max: bound(limits, "uri_bytes_max"),
        call_timeout_max: time(limits, "call_timeout_ms_max"),
        retained_events_max: bound(limits, "retained_events_max"),
        retained_bytes_max: bound(limits, "retained_bytes_max"),
        retained_event_bytes_max: bound(limits, "retained_event_bytes_max"),
        retained_sent_max: bound(limits, "retained_sent_max"),
        history_bytes_max: bound(limits, "history_bytes_max"),
        history_answer_bytes_max: bound(limits, "history_answer_bytes_max"),
        testaments_max: bound(limits, "testaments_max"),
        testaments_bytes_max: bound(limits, "testaments_bytes_max"),
        definitions_max: bound(limits, "definitions_max"),
        definitions_bytes_max: bound(limits, "definitions_bytes_max"),
        realm_definitions_max: bound(limits, "realm_definitions_max"),
        unacknowledged_events_max: bound(limits, "unacknowledged_events_max"),
        unacknowledged_bytes_max: bound(limits, "unacknowledged_bytes_max"),
        shutdown_timeout: milliseconds(limits, "shutdown_timeout_ms"),
    }
}

/// A bound that the tables keep from being negative.
fn bound(object: View<'_>, name: &str) -> usize {
    size(object.integer(name).unwrap_or(0))
}

/// A time in milliseconds; none where the number is 0.
fn time(object: View<'_>, name: &str) -> Option<Duration> {
    let time = milliseconds(object, name);
    (!time.is_zero()).then_some(time)
}

fn milliseconds(object: View<'_>, name: &str) -> Duration {
    let milliseconds = object.integer(name).unwrap_or(0);
    Duration::from_millis(milliseconds.try_into().unwrap_or(0))
}

fn size(number: i64) -> usize {
    number.try_into().unwrap_or(usize::MAX)
}
