//! The workers that do one small thing: the WebSocket testee and the host monitor.

use super::super::form::{Fallback, Key, Kind, Rule, TYPE, Table, Tagged, integer, key};
use super::super::transport::{TESTEE_TRANSPORT_KEYS, WEBSOCKET_TESTEE_TRANSPORT};
use super::{
    CPU_AFFINITY, DISABLED, ENV, EXPOSE_CONTROLLER, EXPOSE_SHARED, EXTRA, PYTHON, PYTHONPATH,
    TITLE, WORKER_ID,
};

pub(super) static WEBSOCKET_TESTEE: Table = Table {
    path: "workers[websocket-testee]",
    name: "a websocket-testee worker",
    keys: &[
        TYPE,
        WORKER_ID,
        key(
            "options",
            Kind::Object(&TESTEE_OPTIONS),
            "Options of the worker.",
        )
        .otherwise("the defaults"),
        key(
            "transport",
            Kind::Tagged(&TESTEE_TRANSPORT),
            "Listener of the worker.",
        )
        .required(),
    ],
};

const THREAD: &str = "the worker is a thread of the node";

static TESTEE_OPTIONS: Table = Table {
    path: "workers[websocket-testee].options",
    name: "a websocket-testee worker's options",
    keys: &[
        CPU_AFFINITY,
        DISABLED,
        TITLE.inert(THREAD),
        PYTHON.inert(THREAD),
        PYTHONPATH.inert(THREAD),
        ENV.inert(THREAD),
        EXTRA.inert(THREAD),
        EXPOSE_CONTROLLER,
        EXPOSE_SHARED.inert(THREAD),
    ],
};

/// Crossbar.io calls the echo a WebSocket transport here.
static TESTEE_TRANSPORT: Tagged = Tagged {
    path: "workers[websocket-testee].transport.type",
    name: "a testee's transport",
    variants: &[
        ("websocket", &TESTEE_WEBSOCKET),
        ("websocket.testee", &WEBSOCKET_TESTEE_TRANSPORT),
    ],
};

static TESTEE_WEBSOCKET: Table = Table {
    path: "workers[websocket-testee].transport[websocket]",
    name: "a WebSocket testee",
    keys: TESTEE_TRANSPORT_KEYS,
};

pub(super) static HOST_MONITOR: Table = Table {
    path: "workers[hostmonitor]",
    name: "a host monitor",
    keys: &[
        TYPE,
        WORKER_ID,
        key(
            "options",
            Kind::Object(&HOST_MONITOR_OPTIONS),
            "Options of the worker.",
        )
        .otherwise("the defaults"),
    ],
};

static HOST_MONITOR_OPTIONS: Table = Table {
    path: "workers[hostmonitor].options",
    name: "a host monitor's options",
    keys: &[
        key(
            "interval",
            integer(100, 3_600_000),
            "Interval between measurements, in milliseconds.",
        )
        .fallback(Fallback::Integer(500)),
        DISABLED,
        MONITORS,
        CPU_AFFINITY.inert(THREAD),
        TITLE.inert(THREAD),
        PYTHON.inert(THREAD),
        PYTHONPATH.inert(THREAD),
        ENV.inert(THREAD),
        EXTRA.inert(THREAD),
        EXPOSE_CONTROLLER,
        EXPOSE_SHARED.inert(THREAD),
    ],
};

const MONITORS: Key = key(
    "monitors",
    Kind::Map {
        keys: Rule::Any,
        of: &Kind::Json,
        environment: false,
    },
    "",
)
.inert("everything that it reads is published");
