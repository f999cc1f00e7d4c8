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
            "How the worker runs.",
        )
        .otherwise("all of their defaults"),
        key(
            "realms",
            list(&Kind::Object(&REALM)),
            "The realms it routes.",
        )
        .otherwise("none"),
        key(
            "transports",
            list(&Kind::Tagged(&TRANSPORT)),
            "The listeners that lead to them.",
        )
        .otherwise("none"),
        key(
            "amqp",
            Kind::Object(&AMQP),
            "What its AMQP transports lead to: a broker of AMQP 0-9-1.",
        )
        .otherwise("all of its defaults, where a transport has the type `amqp`")
        .own(),
        key(
            "joints",
            list(&Kind::Tagged(&JOINT)),
            "What of WAMP is something of AMQP: [procedures and targets, topics and exchanges](joints.md).",
        )
        .otherwise("none")
        .own(),
        key(
            "components",
            list(&Kind::Tagged(&ROUTER_COMPONENT)),
            "Components in its realms. One process beside the router hosts them all.",
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
            "How many threads route. Every thread serves every realm of the worker.",
        )
        .otherwise("one per core")
        .own(),
        key(
            "busy_poll",
            Kind::Boolean,
            "One thread asks its sockets again and again instead of sleeping: the \
             lowest latency, for one core's whole time.",
        )
        .fallback(NO)
        .own(),
        key(
            "goodbye",
            Kind::Boolean,
            "Whether WAMP clients get the specification's GOODBYE when the router, one of its transports or one of its \
             realms stops. JavaScript clients then stay away for good. Otherwise the connection is closed, with code 1001 \
             over WebSocket, and [clients come back](coming-back.md).",
        )
        .fallback(NO)
        .own(),
        NEEDS_COMPONENTS,
        CPU_AFFINITY,
        DISABLED,
        TITLE.about("The name that process lists show for the process of its components."),
        PYTHON,
        PYTHONPATH,
        ENV.about("The environment variables of the process of its components."),
        EXTRA,
        EXPOSE_CONTROLLER,
        EXPOSE_SHARED,
    ],
};
