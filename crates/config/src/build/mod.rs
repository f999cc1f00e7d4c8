//! Builds the model from the checked tree, and checks relations: duplicate names, undefined roles, colliding
//! listeners.

mod amqp;
mod auth;
mod auth_backends;
mod certificates;
mod component;
mod console;
mod cookie;
mod cryptosign;
mod endpoint;
mod exposure;
mod fabric;
mod functions;
mod joint;
mod jwt;
mod mqtt;
mod names;
mod networks;
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

use crate::files::{Files, NamedFiles};
use crate::model::{Admin, AuditLog, Config, Controller, Json, Limits, Otlp, ShutdownTrigger};
use crate::plain::{Plain, Section, Word};
use crate::problem::Problem;
use crate::tree::Span;
use crate::view::View;

pub(crate) use amqp::standard as standard_amqp;
use names::Names;

/// Builds the model. The model is complete despite problems, but usable only without errors. `secrets` are the
/// variables that secrets come from.
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
    /// Link ids of the current worker.
    rlink_ids: Names,
    listeners: Vec<endpoint::Listener>,
    stores: Vec<amqp::StoreFile>,
    cookie_files: Vec<String>,
    files: Vec<NamedFiles>,
    /// The environment variables that secrets of the file came from.
    secrets: BTreeSet<String>,
    /// The current worker is disabled and reserves no address.
    disabled: bool,
    queue_bytes_max: usize,
    /// Maximum size of the retained MQTT messages of each vhost.
    retained_bytes_max: usize,
    /// Configurations of the current router worker's authenticator functions; `None` outside a worker.
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
            retained_bytes_max: 0,
            functions: None,
        }
    }

    fn config(&mut self, file: View<'_>) -> Config {
        if file.given("version").is_none() {
            let message = "\"version\" is missing and taken to be 2".into();
            self.problems.push(Problem::warning(file.span, message));
        }
        let limits = Limits::read(file.section("limits"));
        self.queue_bytes_max = limits.queue_bytes_max;
        self.retained_bytes_max = limits.mqtt_retained_bytes_max;
        let ids = Names::new("the worker id", "worker");
        self.workers = ids.of(file.objects("workers"));
        let config = Config {
            controller: controller(file.section("controller")),
            workers: file
                .objects("workers")
                .filter_map(|worker| self.worker(worker))
                .collect(),
            audit_log: file.object("audit_log").map(AuditLog::read),
            console: file.object("console").map(|console| self.console(console)),
            admin: file.object("admin").map(|admin| self.admin(admin)),
            otlp: file.object("otlp").map(otlp),
            limits,
            secret_variables: self.secrets.clone(),
        };
        if config.workers.is_empty() {
            let message = "there is no worker to start";
            self.warn(file, "workers", message);
        }
        config
    }

    /// Reports an error at the value of `key`, or else at the object.
    fn error(&mut self, object: View<'_>, key: &str, message: impl Into<String>) {
        let at = object.span_of(key);
        self.problems.push(Problem::error(at, message.into()));
    }

    fn warn(&mut self, object: View<'_>, key: &str, message: impl Into<String>) {
        let at = object.span_of(key);
        self.problems.push(Problem::warning(at, message.into()));
    }

    /// Adds files that the node will read, unless the worker is disabled.
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

fn otlp(otlp: View<'_>) -> Otlp {
    Otlp {
        headers: otlp.variables("headers"),
        ..Otlp::read(otlp)
    }
}

fn controller(controller: View<'_>) -> Controller {
    let options = controller.section("options");
    let mut shutdown: Vec<_> = options
        .texts("shutdown")
        .filter_map(ShutdownTrigger::of)
        .collect();
    if shutdown.is_empty() {
        shutdown.extend(options.text("shutdown").and_then(ShutdownTrigger::of));
    }
    Controller {
        id: controller.text("id").map(str::to_owned),
        title: options.text("title").map(str::to_owned),
        shutdown,
    }
}

fn text(object: View<'_>, key: &str) -> String {
    String::read(object, key)
}

/// A bound that the tables keep from being negative.
fn bound(object: View<'_>, name: &str) -> usize {
    usize::read(object, name)
}
