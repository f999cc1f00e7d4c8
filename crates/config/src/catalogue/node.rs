//! The node, its workers, realms and bounds: every key that is taken. Long and flat.

use super::transport::{ENDPOINT, PAGES, TRANSPORT};
use super::{
    Fallback, Kind, NO, Rule, TYPE, Table, Tagged, Words, integer, key, list, list_not_empty,
};

/// The whole file.
pub static CONFIG: Table = Table {
    path: "(file)",
    name: "a configuration",
    keys: &[
        key(
            "$schema",
            Kind::Text(Rule::Any),
            "Where an editor finds the JSON Schema of this file; not read.",
        )
        .otherwise("none"),
        key(
            "version",
            Kind::Numbers {
                path: "(file).version",
                numbers: &[2],
            },
            "The version of the format. A file without it counts as version 2, with a warning.",
        )
        .fallback(Fallback::Integer(2)),
        key("controller", Kind::Object(&CONTROLLER), "The node itself.")
            .otherwise("all of its defaults"),
        key(
            "workers",
            list(&Kind::Tagged(&WORKER)),
            "The workers that the node starts.",
        )
        .otherwise("none"),
        key("limits", Kind::Object(&LIMITS), "The node's bounds.")
            .otherwise("all of their defaults")
            .own(),
        key(
            "admin",
            Kind::Object(&ADMIN),
            "A listener for operators: HTTP pages, no WAMP.",
        )
        .otherwise("none")
        .own(),
    ],
};

pub(super) static CONTROLLER: Table = Table {
    path: "controller",
    name: "the controller",
    keys: &[
        key("id", Kind::Text(Rule::Id), "The node's id.").otherwise("made from the host's name"),
        key(
            "options",
            Kind::Object(&CONTROLLER_OPTIONS),
            "More of the node itself.",
        )
        .otherwise("all of their defaults"),
        key("fabric", Kind::Object(&FABRIC), "Must be empty: `{}`.").otherwise("none"),
    ],
};

pub(super) static FABRIC: Table = Table {
    path: "controller.fabric",
    name: "the controller's fabric",
    keys: &[],
};

pub(super) static CONTROLLER_OPTIONS: Table = Table {
    path: "controller.options",
    name: "the controller's options",
    keys: &[
        key(
            "title",
            Kind::Text(Rule::NotEmpty),
            "A name for people, shown when the node starts and on its status page.",
        )
        .otherwise("none"),
        key(
            "shutdown",
            Kind::OneOrMore(&Kind::OneOf(&SHUTDOWN)),
            "What ends the node beside a signal. Router workers are threads of the node \
             and end only with it.",
        )
        .fallback(Fallback::Text("shutdown_on_worker_exit")),
        key("enable_parallel_worker_start", Kind::Boolean, "")
            .inert("router workers are threads and start at once"),
    ],
};

pub(super) static SHUTDOWN: Words = Words {
    path: "controller.options.shutdown",
    words: &[
        "shutdown_on_shutdown_requested",
        "shutdown_on_worker_exit",
        "shutdown_on_worker_exit_with_error",
        "shutdown_on_last_worker_exit",
    ],
};

pub(super) static WORKER: Tagged = Tagged {
    path: "workers[].type",
    name: "a worker",
    variants: &[("router", &ROUTER)],
};

pub(super) static ROUTER: Table = Table {
    path: "workers[router]",
    name: "a router worker",
    keys: &[
        TYPE,
        key(
            "id",
            Kind::Text(Rule::Id),
            "The worker's id; no two workers share one.",
        )
        .otherwise("`worker001`, `worker002`, …"),
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
    ],
};

pub(super) static ROUTER_OPTIONS: Table = Table {
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
            "disabled",
            Kind::Boolean,
            "The worker is checked but not started. From the environment, any value \
             that is not empty counts as true.",
        )
        .fallback(NO)
        .environment(),
        key("title", Kind::Text(Rule::NotEmpty), "")
            .inert("router workers are threads and have no process title"),
        key("python", Kind::Text(Rule::NotEmpty), "").inert("no Python runs in a router worker"),
        key("pythonpath", list(&Kind::Text(Rule::NotEmpty)), "")
            .inert("no Python runs in a router worker"),
    ],
};

pub(super) static REALM: Table = Table {
    path: "realms[]",
    name: "a realm",
    keys: &[
        key(
            "name",
            Kind::Text(Rule::RealmName),
            "The name that clients join it by; no two realms of a worker share one.",
        )
        .required(),
        key("id", Kind::Text(Rule::Id), "").inert("realms are known by their names"),
        key(
            "options",
            Kind::Object(&REALM_OPTIONS),
            "How the realm routes.",
        )
        .otherwise("all of their defaults"),
        key(
            "roles",
            list(&Kind::Object(&ROLE)),
            "Who may do what. A session whose role is not here cannot join.",
        )
        .otherwise("none"),
    ],
};

pub(super) static REALM_OPTIONS: Table = Table {
    path: "realms[].options",
    name: "a realm's options",
    keys: &[
        key(
            "uri_check",
            Kind::OneOf(&URI_CHECK),
            "How much of WAMP's URI grammar is demanded.",
        )
        .fallback(Fallback::Text("loose")),
        key(
            "request_id_check",
            Kind::OneOf(&REQUEST_ID_CHECK),
            "Whether request ids must count up from 1 as the specification says. Loose \
             takes any id that is not the id of an open call.",
        )
        .fallback(Fallback::Text("loose"))
        .own(),
        key(
            "disclose_me",
            Kind::OneOf(&DISCLOSE_ME),
            "Whether callers and publishers may disclose themselves with `disclose_me`.",
        )
        .fallback(Fallback::Text("allow"))
        .own(),
        key("event_dispatching_chunk_size", integer(1, i64::MAX), "")
            .inert("a large fan-out gives way to other work by itself"),
        key(
            "enable_meta_api",
            Kind::Always(false, "the meta API is not yet there"),
            "Whether the realm has the meta procedures and events.",
        )
        .fallback(NO),
        key(
            "bridge_meta_api",
            Kind::Always(false, "there is no management realm yet"),
            "Whether the meta API is seen from the management realm.",
        )
        .fallback(NO),
    ],
};

pub(super) static REQUEST_ID_CHECK: Words = Words {
    path: "realms[].options.request_id_check",
    words: &["loose", "strict"],
};

pub(super) static DISCLOSE_ME: Words = Words {
    path: "realms[].options.disclose_me",
    words: &["allow", "refuse"],
};

pub(super) static URI_CHECK: Words = Words {
    path: "realms[].options.uri_check",
    words: &["loose", "strict"],
};

pub(super) static ROLE: Table = Table {
    path: "realms[].roles[]",
    name: "a role",
    keys: &[
        key(
            "name",
            Kind::Text(Rule::NotEmpty),
            "The role's name; no two roles of a realm share one.",
        )
        .required(),
        key("id", Kind::Text(Rule::Id), "").inert("roles are known by their names"),
        key(
            "permissions",
            list(&Kind::Object(&PERMISSION)),
            "What sessions with the role may do. Of the permissions that match a URI \
             the most specific counts; without any, nothing is allowed.",
        )
        .otherwise("none"),
    ],
};

pub(super) static PERMISSION: Table = Table {
    path: "realms[].roles[].permissions[]",
    name: "a permission",
    keys: &[
        key(
            "uri",
            Kind::Text(Rule::Uri),
            "The URI or pattern. Without `match`, a star at the end makes it a prefix \
             (`com.*`), stars elsewhere a wildcard (`com.*.on_change`).",
        )
        .required(),
        key(
            "match",
            Kind::OneOf(&MATCH),
            "How `uri` is compared. A star in `uri` then means itself.",
        )
        .otherwise("told from the stars in `uri`; `exact` without any"),
        key(
            "allow",
            Kind::Object(&ALLOW),
            "The actions that are allowed.",
        )
        .otherwise("nothing"),
        key(
            "disclose",
            Kind::Object(&DISCLOSE),
            "Who is disclosed without asking for it.",
        )
        .otherwise("those who ask for it"),
        key(
            "cache",
            Kind::Boolean,
            "Whether the decision may be kept; that of a static permission always is.",
        )
        .fallback(NO),
    ],
};

pub(super) static MATCH: Words = Words {
    path: "permissions[].match",
    words: &["exact", "prefix", "wildcard"],
};

pub(super) static ALLOW: Table = Table {
    path: "permissions[].allow",
    name: "a permission's allow",
    keys: &[
        key("call", Kind::Boolean, "CALL.").fallback(NO),
        key("register", Kind::Boolean, "REGISTER.").fallback(NO),
        key("publish", Kind::Boolean, "PUBLISH.").fallback(NO),
        key("subscribe", Kind::Boolean, "SUBSCRIBE.").fallback(NO),
    ],
};

pub(super) static DISCLOSE: Table = Table {
    path: "permissions[].disclose",
    name: "a permission's disclose",
    keys: &[
        key(
            "caller",
            Kind::Boolean,
            "Callees are told who calls, whether the caller asks for it or not.",
        )
        .fallback(NO),
        key(
            "publisher",
            Kind::Boolean,
            "Subscribers are told who publishes, whether the publisher asks for it or not.",
        )
        .fallback(NO),
    ],
};

pub(super) static ADMIN: Table = Table {
    path: "admin",
    name: "the admin listener",
    keys: &[
        key("endpoint", Kind::Tagged(&ENDPOINT), "Where it listens.").required(),
        key(
            "pages",
            list_not_empty(&Kind::OneOf(&PAGES)),
            "The pages that it shows.",
        )
        .otherwise("all of them"),
    ],
};

pub(super) static LIMITS: Table = Table {
    path: "limits",
    name: "the node's limits",
    keys: &[
        key(
            "queue_bytes_max",
            integer(65_536, 1 << 40),
            "Octets that wait for one session. An event that finds the queue full is \
             dropped and counted; a call is an error to its caller; a result ends its \
             caller's session.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "queue_bytes_total_max",
            integer(65_536, 1 << 44),
            "Octets that wait for all sessions together; then every queue counts as full.",
        )
        .fallback(Fallback::Integer(1 << 30)),
        key(
            "queue_stall_timeout_ms",
            integer(100, 86_400_000),
            "How long a session may read nothing of what waits for it, in milliseconds, \
             before it is closed.",
        )
        .fallback(Fallback::Integer(60_000)),
        key(
            "depth_max",
            integer(8, 512),
            "How deep a message's arguments may nest. A deeper one ends its sender's session.",
        )
        .fallback(Fallback::Integer(64)),
        key(
            "handshake_timeout_ms",
            integer(100, 3_600_000),
            "How long a connection may take until its session has joined, in \
             milliseconds, before it is closed.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "sessions_max",
            integer(1, 100_000_000),
            "Connections that the node holds at a time; one more is closed at once.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "calls_pending_max",
            integer(1, 100_000_000),
            "Calls of one session that have no result yet; one more is an error.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "subscriptions_max",
            integer(1, 100_000_000),
            "Subscriptions of one session; one more is an error.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "registrations_max",
            integer(1, 100_000_000),
            "Registrations of one session; one more is an error.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "uri_bytes_max",
            integer(64, 65_536),
            "Octets of a topic, procedure or pattern; a longer one is an error.",
        )
        .fallback(Fallback::Integer(1_024)),
        key(
            "call_timeout_ms_max",
            integer(0, 31_536_000_000),
            "How long any call may stay open, in milliseconds, before its caller gets \
             the error of a timeout; 0: as long as the caller asks for.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "shutdown_timeout_ms",
            integer(0, 3_600_000),
            "How long the node waits for its sessions to say goodbye when it ends, in \
             milliseconds.",
        )
        .fallback(Fallback::Integer(5_000)),
    ],
};
