//! The kinds of workers, and the keys that several kinds share. Long and flat.

mod component;
mod container;
mod guest;
mod router;
mod small;

pub(crate) use component::{CONTAINER_COMPONENT, ROUTER_COMPONENT};

use container::CONTAINER;
use guest::GUEST;
use router::ROUTER;
use small::{HOST_MONITOR, WEBSOCKET_TESTEE};

use super::form::{Fallback, Key, Kind, NO, Rule, Table, Tagged, Words, YES, integer, key, list};

pub(crate) static WORKER: Tagged = Tagged {
    path: "workers[].type",
    name: "a worker",
    variants: &[
        ("router", &ROUTER),
        ("container", &CONTAINER),
        ("guest", &GUEST),
        ("websocket-testee", &WEBSOCKET_TESTEE),
        ("hostmonitor", &HOST_MONITOR),
    ],
};

const WORKER_ID: Key = worker_id(Rule::UriComponent);

const fn worker_id(rule: Rule) -> Key {
    key(
        "id",
        Kind::Text(rule),
        "Id of the worker, unique within the node.",
    )
    .otherwise("`worker1`, `worker2`, … by position")
}

const DISABLED: Key = key(
    "disabled",
    Kind::Boolean,
    "Checks the worker but does not start it. From the environment, any value that is not empty counts as true.",
)
.fallback(NO)
.environment();

const CPU_AFFINITY: Key = key(
    "cpu_affinity",
    list(&CPU),
    "Cores that the worker may run on, counted from 0.",
)
.otherwise("all of them");

/// As many as the system's own set of cores holds.
static CPU: Kind = integer(0, 1_023);

const TITLE: Key = key(
    "title",
    Kind::Text(Rule::NotEmpty),
    "Name of the process in process lists.",
)
.otherwise("made from the worker's id");

const PYTHON: Key = key(
    "python",
    Kind::Text(Rule::Path),
    "Python interpreter: a name to look up on `PATH`, or a path.",
)
.otherwise("`python3` beside the node's own program, else on `PATH`");

const PYTHONPATH: Key = key(
    "pythonpath",
    list(&PATH),
    "Directories prepended to Python's module path. Relative ones start at the node's directory.",
)
.otherwise("none");

static PATH: Kind = Kind::Text(Rule::Path);

const ENV: Key = key(
    "env",
    Kind::Object(&ENVIRONMENT),
    "Environment of the process.",
)
.otherwise("the node's, without variables that supply secrets of this file");

static ENVIRONMENT: Table = Table {
    path: "workers[].options.env",
    name: "a process's environment",
    keys: &[
        key(
            "inherit",
            Kind::Either(&Kind::Boolean, &list(&Kind::Text(Rule::VariableName))),
            "Variables inherited from the node: all (`true`), none (`false`), or those listed.",
        )
        .otherwise(
            "all but those that supply secrets of this file, as in `\"ticket\": \"$TICKET\"`; a CGI program inherits \
             what programs need to run, such as `PATH`, `HOME`, `LANG` and `TZ`",
        ),
        key(
            "vars",
            Kind::Map {
                keys: Rule::VariableName,
                of: &Kind::Text(Rule::NoNul),
                environment: true,
            },
            "Variables to set or replace.",
        )
        .otherwise("none"),
    ],
};

const NEEDS_COMPONENTS: Key = key(
    "needs_components",
    Kind::Boolean,
    "Ends the node with exit code 1 if a component of this file cannot be loaded at start, or its first attempt to \
     join fails. With `false` the failure is logged, and a loaded component retries.",
)
.fallback(YES)
.own();

const EXTRA: Key = key(
    "extra",
    Kind::Json,
    "Value of any type, which the worker returns on request.",
)
.otherwise("null");

const EXPOSE_CONTROLLER: Key = key(
    "expose_controller",
    Kind::Only(
        false,
        "`config.controller` is None; a component that is to manage the node connects to its management realm like any client",
    ),
    "Gives components a session with the node's controller.",
)
.fallback(NO);

const EXPOSE_SHARED: Key = key(
    "expose_shared",
    Kind::Boolean,
    "Gives the components of a worker one shared dictionary as `config.shared`, in which `reactor` is Twisted's. \
     With `false` it is None.",
)
.fallback(NO);

const RESTART: Key = key(
    "restart",
    Kind::OneOf(&RESTARTS),
    "Policy for restarting an ended process. The first restart follows after 200 ms, each further one after twice as \
             long, up to 30 s.",
)
.fallback(Fallback::Text("restart-never"));

static RESTARTS: Words = Words {
    path: "workers[].options.restart",
    words: &["restart-never", "restart-on-failed", "restart-always"],
};
