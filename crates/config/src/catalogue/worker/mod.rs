//! The kinds of workers, and the keys that several kinds share.

mod component;
pub(crate) mod container;
pub(crate) mod guest;
pub(crate) mod router;
pub(crate) mod small;

pub(crate) use component::{CONTAINER_COMPONENT, ROUTER_COMPONENT};

use super::form::{Key, Kind, OFF, ON, Rule, integer, list, object, one_of, text};
use super::table::tables;
use container::CONTAINER;
use guest::GUEST;
use router::ROUTER;
use small::{HOST_MONITOR, WEBSOCKET_TESTEE};

tables! {
    pub(crate) tagged WORKER("workers[].type", "a worker") {
        "router" => ROUTER,
        "container" => CONTAINER,
        "guest" => GUEST,
        "websocket-testee" => WEBSOCKET_TESTEE,
        "hostmonitor" => HOST_MONITOR,
    }
}

const WORKER_ID: Key = worker_id(Rule::UriComponent);

const fn worker_id(rule: Rule) -> Key {
    Key {
        name: "id",
        about: "Id of the worker, unique within the node.",
        ..text(rule).otherwise("`worker1`, `worker2`, … by position")
    }
}

tables! {
    const DISABLED = "disabled": OFF.environment(),
        "Checks the worker but does not start it. From the environment, any value that is not empty counts as \
         true.";
    const CPU_AFFINITY = "cpu_affinity": list(&CPU).otherwise("all of them"),
        "Cores that the worker may run on, counted from 0.";
}

/// The size of the system's set of cores.
static CPU: Kind = integer(0, 1_023);

tables! {
    const TITLE = "title": text(Rule::NotEmpty).otherwise("made from the worker's id"),
        "Name of the process in process lists.";
    const PYTHON = "python": text(Rule::Path).otherwise("`python3` beside the node's own program, else on `PATH`"),
        "Python interpreter: a name to look up on `PATH`, or a path.";
    const PYTHONPATH = "pythonpath": list(&PATH).optional(),
        "Directories prepended to Python's module path. Relative ones start at the node's directory.";
}

static PATH: Kind = Kind::Text(Rule::Path);

tables! {
    const ENV = "env": object(&ENVIRONMENT).otherwise("the node's, without variables that supply secrets of this file"),
        "Environment of the process.";

    static ENVIRONMENT("workers[].options.env", "a process's environment") {
        "inherit" = Kind::Either(&Kind::Boolean, &list(&text(Rule::VariableName)))
            .otherwise(
                "all but those that supply secrets of this file, as in `\"ticket\": \"$TICKET\"`; a CGI program \
                 inherits what programs need to run, such as `PATH`, `HOME`, `LANG` and `TZ`"
            ),
            "Variables inherited from the node: all (`true`), none (`false`), or those listed.";
        "vars" = Kind::Map { keys: Rule::VariableName, of: &text(Rule::NoNul), environment: true }.optional(),
            "Variables to set or replace.";
    }

    const NEEDS_COMPONENTS = "needs_components": ON.own(),
        "Ends the node with exit code 1 if a component of this file cannot be loaded at start, or its first \
         attempt to join fails. With `false` the failure is logged, and a loaded component retries.";
    const EXTRA = "extra": Kind::Json.otherwise("null"), "Value of any type, which the worker returns on request.";
    const EXPOSE_CONTROLLER = "expose_controller": Kind::Only(
        false,
        "`config.controller` is None; a component that is to manage the node connects to its management realm \
         like any client",
    ).or_no(),
        "Gives components a session with the node's controller.";
    const EXPOSE_SHARED = "expose_shared": OFF,
        "Gives the components of a worker one shared dictionary as `config.shared`, in which `reactor` is \
         Twisted's. With `false` it is None.";
    const RESTART = "restart": one_of(&RESTARTS).or_text("restart-never"),
        "Policy for restarting an ended process. The first restart follows after 200 ms, each further one after \
         twice as long, up to 30 s.";

    /// The restart policy of a worker's process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Restart = words RESTARTS("workers[].options.restart") {
        "restart-never" => Never,
        "restart-on-failed" => OnFailed,
        "restart-always" => Always,
    }
}
