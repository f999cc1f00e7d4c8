//! Router workers: every key that is taken.

use super::super::amqp::AMQP;
use super::super::form::{Kind, NO, Rule, TYPE, Table, integer, key, list};
use super::super::joint::JOINT;
use super::super::realm::REALM;
use super::super::transport::TRANSPORT;
use super::component::ROUTER_COMPONENT;
use super::{
    CPU_AFFINITY, DISABLED, ENV, EXPOSE_CONTROLLER, EXPOSE_SHARED, EXTRA, NEEDS_COMPONENTS, PYTHON,
    PYTHONPATH, TITLE, worker_id,
};

pub(super) static ROUTER: Table = Table {
    path: "workers[router]",
    name: "a router worker",
    keys: &[
        TYPE,
        worker_id(Rule::Id),
        key(
            "options",
            Kind::Object(&ROUTER_OPTIONS),
            "Options of the worker.",
        )
        .otherwise("the defaults"),
        key(
            "realms",
            list(&Kind::Object(&REALM)),
            "Realms that the worker routes.",
        )
        .otherwise("none"),
        key(
            "transports",
            list(&Kind::Tagged(&TRANSPORT)),
            "Listeners of the worker.",
        )
        .otherwise("none"),
        key(
            "amqp",
            Kind::Object(&AMQP),
            "AMQP 0-9-1 broker behind the worker's AMQP transports.",
        )
        .otherwise("the defaults, if a transport has the type `amqp`")
        .own(),
        key(
            "joints",
            list(&Kind::Tagged(&JOINT)),
            "Joints between WAMP and AMQP: [procedures and targets, topics and exchanges](joints.md).",
        )
        .otherwise("none")
        .own(),
        key(
            "components",
            list(&Kind::Tagged(&ROUTER_COMPONENT)),
            "Components in the worker's realms. One process beside the router hosts them all.",
        )
        .otherwise("none"),
    ],
};

/// Python runs in the process that hosts the worker's components.
static ROUTER_OPTIONS: Table = Table {
    path: "workers[router].options",
    name: "a router worker's options",
    keys: &[
        key(
            "threads",
            integer(1, 1024),
            "Number of routing threads. Every thread serves every realm of the worker.",
        )
        .otherwise("one per core")
        .own(),
        key(
            "busy_poll",
            Kind::Boolean,
            "Polls the sockets on one thread instead of sleeping. It gives the lowest latency and occupies a whole \
             core.",
        )
        .fallback(NO)
        .own(),
        key(
            "goodbye",
            Kind::Boolean,
            "Sends GOODBYE to WAMP clients when the router, a transport or a realm stops, as specified. JavaScript \
             clients then do not reconnect. With `false` the connection is closed, with code 1001 over WebSocket, \
             and [clients come back](coming-back.md).",
        )
        .fallback(NO)
        .own(),
        NEEDS_COMPONENTS,
        CPU_AFFINITY,
        DISABLED,
        TITLE.about("Name of the components' process in process lists."),
        PYTHON,
        PYTHONPATH,
        ENV.about("Environment of the components' process."),
        EXTRA,
        EXPOSE_CONTROLLER,
        EXPOSE_SHARED,
    ],
};
