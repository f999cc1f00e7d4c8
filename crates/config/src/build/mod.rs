//! The checked tree into the model, and what only the whole can tell: names given twice,
//! roles that nobody defined, listeners that would collide.

mod realm;
mod transport;

use std::collections::HashMap;
use std::time::Duration;

use crate::model::{
    Admin, ChildEnvironment, Config, Controller, Inherit, Json, Limits, NativeOptions,
    RouterWorker, ShutdownTrigger, Worker,
};
use crate::problem::Problem;
use crate::tree::{Span, quoted};
use crate::view::View;

/// Builds the model. It is whole even where a problem is found, but of use only without errors.
pub(crate) fn build(file: View<'_>, problems: &mut Vec<Problem>) -> Config {
    let mut builder = Builder {
        problems,
        workers: Names::new("the worker id", "worker"),
        transports: Names::new("the transport id", "transport"),
        listeners: Vec::new(),
        queue_bytes_max: 0,
    };
    builder.config(file)
}

struct Builder<'a> {
    problems: &'a mut Vec<Problem>,
    workers: Names,
    transports: Names,
    listeners: Vec<transport::Listener>,
    queue_bytes_max: usize,
}

impl Builder<'_> {
    fn config(&mut self, file: View<'_>) -> Config {
        if file.given("version").is_none() {
            let message = "\"version\" is missing and taken to be 2".into();
            self.problems.push(Problem::warning(file.span, message));
        }
        let limits = limits(file.section("limits"));
        self.queue_bytes_max = limits.queue_bytes_max;
        let config = Config {
            controller: controller(file.section("controller")),
            workers: file
                .objects("workers")
                .filter_map(|worker| self.router(worker))
                .collect(),
            admin: file.object("admin").map(|admin| self.admin(admin)),
            limits,
        };
        if config.workers.is_empty() {
            let message = "there is no worker to start".into();
            let at = file.span_of("workers");
            self.problems.push(Problem::warning(at, message));
        }
        config
    }

    fn router(&mut self, worker: View<'_>) -> Option<Worker> {
        let options = worker.section("options");
        let id = self.workers.id(worker, self.problems);
        let realms = self.realms(worker);
        let router = RouterWorker {
            id,
            threads: options.integer("threads").map(size),
            busy_poll: options.boolean("busy_poll"),
            cpu_affinity: Vec::new(),
            components: Vec::new(),
            process: native_options(),
            transports: self.transports(worker, &realms),
            realms,
        };
        if options.boolean("disabled") {
            return None;
        }
        if router.transports.is_empty() {
            let message = "the router worker has no transports: nobody can reach it".into();
            let at = worker.span_of("transports");
            self.problems.push(Problem::warning(at, message));
        }
        Some(Worker::Router(router))
    }

    fn admin(&mut self, admin: View<'_>) -> Admin {
        Admin {
            endpoint: self.endpoint(admin),
            pages: transport::pages(admin, true),
        }
    }
}

fn native_options() -> NativeOptions {
    NativeOptions {
        title: None,
        python: None,
        pythonpath: Vec::new(),
        cpu_affinity: Vec::new(),
        environment: ChildEnvironment {
            inherit: Inherit::All,
            variables: Vec::new(),
        },
        extra: Json::Null,
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
        depth_max: bound(limits, "depth_max"),
        handshake_timeout: milliseconds(limits, "handshake_timeout_ms"),
        sessions_max: bound(limits, "sessions_max"),
        calls_pending_max: bound(limits, "calls_pending_max"),
        subscriptions_max: bound(limits, "subscriptions_max"),
        registrations_max: bound(limits, "registrations_max"),
        uri_bytes_max: bound(limits, "uri_bytes_max"),
        call_timeout_max: time(limits, "call_timeout_ms_max"),
        shutdown_timeout: milliseconds(limits, "shutdown_timeout_ms"),
    }
}

/// Ids and names, of which each can be given once.
struct Names {
    what: &'static str,
    /// What ids begin with that nobody gave.
    prefix: &'static str,
    taken: HashMap<String, Span>,
    count: usize,
}

impl Names {
    fn new(what: &'static str, prefix: &'static str) -> Self {
        Self {
            what,
            prefix,
            taken: HashMap::new(),
            count: 0,
        }
    }

    /// The object's own id, or else one made from its place in the file.
    fn id(&mut self, object: View<'_>, problems: &mut Vec<Problem>) -> String {
        self.count += 1;
        if let Some(id) = object.text("id") {
            self.take(id, object.span_of("id"), problems);
            return id.to_owned();
        }
        let numbered = |number| format!("{}{number:03}", self.prefix);
        let mut numbers = self.count..;
        let id = loop {
            // The range of all numbers does not end before a free one is found.
            let id = numbered(numbers.next().unwrap_or(usize::MAX));
            if !self.taken.contains_key(&id) {
                break id;
            }
        };
        self.taken.insert(id.clone(), object.span);
        id
    }

    fn take(&mut self, name: &str, at: Span, problems: &mut Vec<Problem>) {
        match self.taken.get(name) {
            Some(first) => {
                let message = format!("{} {} is given twice", self.what, quoted(name));
                let problem = Problem::error(at, message);
                problems.push(problem.note_at(*first, "it is given first here"));
            }
            None => {
                self.taken.insert(name.to_owned(), at);
            }
        }
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
