//! Workers of every kind.

use super::{Builder, text};
use crate::files::Files;
use crate::model::{
    ChildEnvironment, ContainerWorker, GuestInput, GuestWorker, HostMonitorWorker, Inherit,
    NativeOptions, RouterWorker, TesteeWorker, Worker,
};
use crate::plain::{Plain, Section, section};
use crate::problem::Problem;
use crate::tree::{Value, quoted};
use crate::view::View;

impl Builder<'_> {
    /// The worker; `None` if it is disabled.
    pub(crate) fn worker(&mut self, worker: View<'_>) -> Option<Worker> {
        let id = self.workers.id(worker, self.problems);
        self.disabled = worker.section("options").boolean("disabled");
        let built = match worker.text("type") {
            Some("container") => Worker::Container(self.container(worker, id)),
            Some("guest") => Worker::Guest(guest(worker, id)),
            Some("websocket-testee") => Worker::WebSocketTestee(Box::new(TesteeWorker {
                id,
                cpu_affinity: Vec::read(worker.section("options"), "cpu_affinity"),
                transport: self.testee_transport(worker),
            })),
            Some("hostmonitor") => Worker::HostMonitor(HostMonitorWorker {
                id,
                ..HostMonitorWorker::read(worker.section("options"))
            }),
            _ => Worker::Router(Box::new(self.router(worker, id))),
        };
        let options = worker.section("options");
        if options.has("cpu_affinity") {
            let cores = Vec::<usize>::read(options, "cpu_affinity");
            if !cores.is_empty() {
                self.names(options.span_of("cpu_affinity"), Files::Cores(cores));
            }
        }
        if std::mem::take(&mut self.disabled) {
            return None;
        }
        self.warn_of_idle(worker, &built);
        self.warn_of_withheld(worker, &built);
        Some(built)
    }

    fn router(&mut self, worker: View<'_>, id: String) -> RouterWorker {
        let mut realms = self.realms(worker);
        self.functions = Some(Vec::new());
        let transports = self.transports(worker, &realms);
        let amqp = self.amqp(worker, &transports);
        if !self.disabled {
            self.check_exposure(worker, &realms, &transports, amqp.as_ref());
        }
        let joints = self.joints(worker, &realms, amqp.as_ref());
        let mut components = self.components(worker, Some(&realms));
        let bridges = self.outgoing(worker, &mut components);
        self.hosted(worker, &mut components, &mut realms);
        RouterWorker {
            id,
            amqp,
            joints,
            transports,
            components,
            bridges,
            realms,
            ..RouterWorker::read(worker.section("options"))
        }
    }

    fn container(&mut self, worker: View<'_>, id: String) -> ContainerWorker {
        ContainerWorker {
            id,
            components: self.components(worker, None),
            ..ContainerWorker::read(worker.section("options"))
        }
    }

    /// Warns of variables that a process does not inherit because they supply secrets of this file.
    fn warn_of_withheld(&mut self, worker: View<'_>, built: &Worker) {
        let environment = match built {
            Worker::Container(container) => &container.process.environment,
            Worker::Guest(guest) => &guest.environment,
            Worker::Router(router) if !router.components.is_empty() => &router.process.environment,
            _ => return,
        };
        if environment.inherit != Inherit::AllButSecrets {
            return;
        }
        let is_set = |name: &str| environment.variables.iter().any(|(set, _)| set == name);
        let withheld = self.secrets.iter().filter(|name| !is_set(name));
        let withheld: Vec<&str> = withheld.map(String::as_str).collect();
        let Some(first) = withheld.first() else {
            return;
        };
        let message = format!(
            "the process of the worker {} does not see the environment variables that secrets of this \
             file come from ({}): \"env\": {{\"vars\": {{\"{first}\": \"${first}\"}}}} in its \
             \"options\" passes one on",
            quoted(built.id()),
            withheld.join(", ")
        );
        self.problems.push(Problem::warning(worker.span, message));
    }

    /// Warns of a worker that does nothing.
    fn warn_of_idle(&mut self, worker: View<'_>, built: &Worker) {
        let (key, message) = match built {
            Worker::Router(router) if router.transports.is_empty() => (
                "transports",
                "the router worker has no transports: nobody can reach it",
            ),
            Worker::Container(container) if container.components.is_empty() => (
                "components",
                "the container worker has no components: it does nothing",
            ),
            _ => return,
        };
        self.warn(worker, key, message);
    }
}

fn guest(worker: View<'_>, id: String) -> GuestWorker {
    let options = worker.section("options");
    GuestWorker {
        id,
        executable: text(worker, "executable"),
        arguments: Vec::read(worker, "arguments"),
        stdin: options
            .object("stdin")
            .map_or(GuestInput::Close, |stdin| GuestInput::Json {
                value: stdin.json("value"),
                close: stdin.boolean("close"),
            }),
        ..GuestWorker::read(options)
    }
}

impl Section for NativeOptions {
    fn read(options: View<'_>) -> Self {
        Self {
            title: Option::read(options, "title"),
            python: Option::read(options, "python"),
            pythonpath: Vec::read(options, "pythonpath"),
            cpu_affinity: Vec::read(options, "cpu_affinity"),
            environment: section(options, "env"),
            exposes_shared: options.boolean("expose_shared"),
            extra: options.json("extra"),
        }
    }
}

impl Section for ChildEnvironment {
    fn read(env: View<'_>) -> Self {
        Self {
            inherit: match env.given("inherit").map(|node| &node.value) {
                Some(Value::List(_)) => Inherit::Only(Vec::read(env, "inherit")),
                Some(Value::Boolean(false)) => Inherit::None,
                Some(_) => Inherit::All,
                None => Inherit::AllButSecrets,
            },
            variables: env.variables("vars"),
        }
    }
}
