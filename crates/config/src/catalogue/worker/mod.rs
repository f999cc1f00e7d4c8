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
        "The worker's id; no two workers share one.",
    )
    .otherwise("`worker1`, `worker2`, …, by its place")
}

const DISABLED: Key = key(
    "disabled",
    Kind::Boolean,
    "The worker is checked but not started. From the environment, any value \
     that is not empty counts as true.",
)
.fallback(NO)
.environment();

const CPU_AFFINITY: Key = key(
    "cpu_affinity",
    list(&CPU),
    "The cores that it may run on, counted from 0.",
)
.otherwise("all of them");

/// As many as the system's own set of cores holds.
static CPU: Kind = integer(0, 1_023);

const TITLE: Key = key(
    "title",
    Kind::Text(Rule::NotEmpty),
    "The name that process lists show for its process.",
)
.otherwise("made from the worker's id");

const PYTHON: Key = key(
    "python",
    Kind::Text(Rule::Path),
    "The Python interpreter: a name to be looked for on `PATH`, or a path.",
)
.otherwise("`python3` beside the node's own program, else on `PATH`");

const PYTHONPATH: Key = key(
    "pythonpath",
    list(&PATH),
    "Directories that modules are imported from, before all others; relative ones \
     begin at the node's directory.",
)
.otherwise("none");

static PATH: Kind = Kind::Text(Rule::Path);

const ENV: Key = key(
    "env",
    Kind::Object(&ENVIRONMENT),
    "The environment variables of its process.",
)
.otherwise("the node's own, but those that secrets of this file come from");

static ENVIRONMENT: Table = Table {
    path: "workers[].options.env",
    name: "a process's environment",
    keys: &[
        key(
            "inherit",
            Kind::Either(&Kind::Boolean, &list(&Kind::Text(Rule::VariableName))),
            "The node's own variables that the process inherits: all (`true`), none (`false`), or those \
             listed.",
        )
        .otherwise(
            "all but those that secrets of this file come from, as in `\"ticket\": \"$TICKET\"`; a CGI \
             program inherits those that programs need to run, such as `PATH`, `HOME`, `LANG` and `TZ`",
        ),
        key(
            "vars",
            Kind::Map {
                keys: Rule::VariableName,
                of: &Kind::Text(Rule::NoNul),
                environment: true,
            },
            "Variables that are set, or set anew.",
        )
        .otherwise("none"),
    ],
};

const NEEDS_COMPONENTS: Key = key(
    "needs_components",
    Kind::Boolean,
    "Whether the node ends, with exit code 1, if a component of this file cannot be loaded when the \
     node starts, or its first attempt to join its realm fails. Otherwise the failure is logged, and a \
     component that could be loaded tries again.",
)
.fallback(YES)
.own();

const EXTRA: Key = key(
    "extra",
    Kind::Json,
    "Anything: what the worker gives to those that ask it.",
)
.otherwise("null");

const EXPOSE_CONTROLLER: Key = key(
    "expose_controller",
    Kind::Only(
        false,
        "`config.controller` is None; a component that is to manage the node connects to its management realm like any client",
    ),
    "Whether components get a session with the node's controller.",
)
.fallback(NO);

const EXPOSE_SHARED: Key = key(
    "expose_shared",
    Kind::Boolean,
    "Whether the components of a worker get one dictionary between them, as their `config.shared`; \
     it begins with `reactor`, Twisted's. Otherwise that is None.",
)
.fallback(NO);

const RESTART: Key = key(
    "restart",
    Kind::OneOf(&RESTARTS),
    "Whether its process is started again when it has ended: 200 ms later at first, \
     then twice as long each time up to 30 s.",
)
.fallback(Fallback::Text("restart-never"));

static RESTARTS: Words = Words {
    path: "workers[].options.restart",
    words: &["restart-never", "restart-on-failed", "restart-always"],
};
