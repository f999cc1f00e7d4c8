//! The node itself, its bounds and its admin listener: every key that is taken. Long and flat.

use super::endpoint::ENDPOINT;
use super::form::{Fallback, Kind, Rule, Table, Words, integer, key, list, list_not_empty};
use super::transport::{ALLOWED_HOSTS, PAGES};
use super::worker::WORKER;

/// The whole file.
pub static CONFIG: Table = Table {
    path: "(file)",
    name: "a configuration",
    keys: &[
        key(
            "$schema",
            Kind::Text(Rule::Any),
            "Location of the JSON Schema, for editors. Crosstie does not read it.",
        )
        .otherwise("none"),
        key(
            "version",
            Kind::Numbers {
                path: "(file).version",
                numbers: &[2],
            },
            "Version of the file format. Crosstie converts version 1 with a warning. A file without `version` counts \
             as version 1 if its permissions have that form.",
        )
        .fallback(Fallback::Integer(2)),
        key("controller", Kind::Object(&CONTROLLER), "Keys of the node itself.")
            .otherwise("the defaults"),
        key(
            "workers",
            list(&Kind::Tagged(&WORKER)),
            "Workers that the node starts.",
        )
        .otherwise("none"),
        key("limits", Kind::Object(&LIMITS), "Limits of the node.")
            .otherwise("the defaults")
            .own(),
        key(
            "audit_log",
            Kind::Object(&AUDIT_LOG),
            "Log of rejected logins, in a file.",
        )
        .otherwise("none")
        .own(),
        key(
            "admin",
            Kind::Object(&ADMIN),
            "Listener for operators: HTTP pages, no WAMP.",
        )
        .otherwise("none")
        .own(),
    ],
};

pub(super) static CONTROLLER: Table = Table {
    path: "controller",
    name: "the controller",
    keys: &[
        key("id", Kind::Text(Rule::Id), "Id of the node.").otherwise("made from the host's name"),
        key(
            "options",
            Kind::Object(&CONTROLLER_OPTIONS),
            "Further options of the node.",
        )
        .otherwise("the defaults"),
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
            "Display name of the node, shown at start and on its status page.",
        )
        .otherwise("none"),
        key(
            "shutdown",
            Kind::OneOrMore(&Kind::OneOf(&SHUTDOWN)),
            "Events that end the node, beside a signal. A worker that will be restarted has not exited. Router \
             workers are threads of the node and end only when stopped.",
        )
        .fallback(Fallback::Text("shutdown_on_worker_exit")),
        key("enable_parallel_worker_start", Kind::Boolean, "")
            .inert("all workers are started at once, whatever it says"),
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

pub(super) static ADMIN: Table = Table {
    path: "admin",
    name: "the admin listener",
    keys: &[
        key(
            "endpoint",
            Kind::Tagged(&ENDPOINT),
            "Address that the listener binds.",
        )
        .required(),
        key(
            "pages",
            list_not_empty(&Kind::OneOf(&PAGES)),
            "Pages that the listener serves.",
        )
        .otherwise("all of them"),
        ALLOWED_HOSTS.otherwise("loopback names at a loopback address; else any"),
    ],
};

static AUDIT_LOG: Table = Table {
    path: "audit_log",
    name: "the audit log",
    keys: &[
        key(
            "file",
            Kind::Text(Rule::Path),
            "Path of the log file, with one line of JSON per rejected login. Only its owner can read it. A relative \
             path starts at the node's directory.",
        )
        .required(),
        key(
            "file_bytes_max",
            integer(4_096, 1 << 40),
            "Maximum size of the log file, in bytes. At the limit it is renamed to end in `.1`, which replaces the \
             previous one, and a new file begins.",
        )
        .fallback(Fallback::Integer(64 << 20)),
    ],
};

pub(super) static LIMITS: Table = Table {
    path: "limits",
    name: "the node's limits",
    keys: &[
        key(
            "queue_bytes_max",
            integer(65_536, 1 << 40),
            "Maximum data queued for a session, in bytes. At the limit an event is dropped and counted, a call \
             fails, and a result ends the session of its caller.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "queue_bytes_total_max",
            integer(65_536, 1 << 44),
            "Maximum memory for all peers of a router worker, in bytes: data queued behind full sockets (data for \
             several receivers counts once), incomplete input, and state such as subscriptions and compressors. At \
             the limit the router closes the peers that hold most, until a tenth is free.",
        )
        .fallback(Fallback::Integer(1 << 30)),
        key(
            "queue_stall_timeout_ms",
            integer(100, 86_400_000),
            "Maximum time that a session may read nothing of its queued data, in milliseconds. After it the session \
             is closed.",
        )
        .fallback(Fallback::Integer(30_000)),
        key(
            "message_timeout_ms",
            integer(1_000, 86_400_000),
            "Time that a peer may take for one message at any rate, in milliseconds. A message that takes longer \
             must arrive at `bytes_per_second_min`; otherwise the connection is closed.",
        )
        .fallback(Fallback::Integer(60_000)),
        key(
            "bytes_per_second_min",
            integer(0, 1 << 40),
            "Minimum transfer rate, in bytes per second. It applies to a message that takes longer than \
             `message_timeout_ms`. It also applies to a client whose socket stays full for `queue_stall_timeout_ms`, \
             if its queued data would take ten times as long. Slower connections are closed. 0 disables the check.",
        )
        .fallback(Fallback::Integer(4_096)),
        key(
            "depth_max",
            integer(8, 512),
            "Maximum nesting depth of a message's arguments. A deeper message ends the sender's session.",
        )
        .fallback(Fallback::Integer(64)),
        key(
            "handshake_timeout_ms",
            integer(100, 3_600_000),
            "Maximum time from accepting a connection until its session has joined, in milliseconds. A slower \
             connection is closed.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "request_head_bytes_max",
            integer(8_192, 65_536),
            "Maximum size of an HTTP request head, in bytes: target, query and all headers, cookies included. It \
             applies to WebSocket handshakes, pages and web services; over HTTP/2, after decoding. A longer head \
             gets status 431. The default has room for the cookies of single sign-on.",
        )
        .fallback(Fallback::Integer(32 << 10)),
        key(
            "challenge_timeout_ms",
            integer(100, 3_600_000),
            "Maximum time for a WAMP client to answer CHALLENGE, in milliseconds. After it the router sends ABORT. \
             The default leaves time to type a password; `handshake_timeout_ms` stands still meanwhile. While more \
             than half of `handshakes_pending_max` are pending, a client has only the rest of \
             `handshake_timeout_ms`.",
        )
        .fallback(Fallback::Integer(60_000)),
        key(
            "handshakes_pending_max",
            integer(1, 100_000_000),
            "Maximum number of pending handshakes per router worker: sessions that were sent a challenge or await an \
             authenticator. Another one is rejected.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "login_delay_ms_max",
            integer(0, 60_000),
            "Maximum delay of the answer to wrong credentials, in milliseconds. From the fourth failure of an \
             address or for an authid within one to two minutes, each failure doubles the delay, starting at 100 ms. \
             Clients on this machine wait at most 250 ms. Right credentials are not delayed. If 8 wrong answers of \
             an address for one authid, or 24 for any authid, are pending, another attempt waits its turn, at most 2 \
             s. 0 disables the delay.",
        )
        .fallback(Fallback::Integer(2_000)),
        key(
            "sessions_max",
            integer(1, 100_000_000),
            "Maximum number of connections of the node. Another connection is closed at once.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "address_connections_max",
            integer(1, 100_000_000),
            "Maximum number of connections per address and router worker. Another connection is told so and closed. \
             An IPv6 network of 64 bits counts as one address, and so do all Unix sockets. Loopback addresses count \
             like others.",
        )
        .otherwise(
            "seven eighths of `sessions_max`, but not less than 256, and at most seven eighths of \
             what the process's file descriptors allow",
        ),
        key(
            "page_connections_max",
            integer(1, 1_000_000),
            "Maximum number of connections per listener that pages are being served to. Another one gets status 503. \
             From half of the limit on, a connection is closed after each answer.",
        )
        .fallback(Fallback::Integer(64)),
        key(
            "calls_pending_max",
            integer(1, 100_000_000),
            "Maximum number of pending calls per session. Another one fails.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "realm_subscriptions_max",
            integer(1, 1_000_000_000),
            "Maximum number of subscriptions of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions below their share, which is the limit divided by the number of sessions.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "realm_registrations_max",
            integer(1, 1_000_000_000),
            "Maximum number of registrations of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions below their share, which is the limit divided by the number of sessions.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "realm_calls_pending_max",
            integer(1, 1_000_000_000),
            "Maximum number of pending calls of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions below their share, which is the limit divided by the number of sessions.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "call_options_bytes_max",
            integer(0, 1 << 24),
            "Maximum size of the attributes (`ppt_*`, `enc_*`, `_*`) that a progressive call keeps from its first \
             CALL, in bytes. The router adds them to each later part. A call with more fails.",
        )
        .fallback(Fallback::Integer(4_096)),
        key(
            "kept_call_bytes_max",
            integer(1_024, 1 << 24),
            "Maximum size of a kept call, in bytes, with its options and 512 more. It applies to a call that [waits \
             for a callee](calls.md#calls-that-wait): a longer one fails. It also applies to a call that may [go to \
             the next callee](calls.md#calls-that-go-to-the-next-callee): a longer one does not.",
        )
        .fallback(Fallback::Integer(1 << 20)),
        key(
            "kept_calls_bytes_max",
            integer(4_096, 1 << 40),
            "Maximum size of all kept calls of a realm, in bytes, counted likewise. A further call that has to wait \
             fails. The last quarter is reserved for sessions below their share, which is the limit divided by the \
             number of sessions.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "subscriptions_max",
            integer(1, 100_000_000),
            "Maximum number of subscriptions per session. Another one fails.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "registrations_max",
            integer(1, 100_000_000),
            "Maximum number of registrations per session. Another one fails.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "wildcard_shapes_max",
            integer(1, 65_536),
            "Maximum number of shapes of wildcard patterns of the same length in a realm, for subscriptions and for \
             registrations. A shape is the set of empty components. Each costs a lookup for a publication or call of \
             that length. A pattern of a further shape fails. Patterns of up to ten components have at most 1,024 \
             shapes.",
        )
        .fallback(Fallback::Integer(1_024)),
        key(
            "uri_bytes_max",
            integer(64, 65_536),
            "Maximum length of a topic, procedure or pattern, in bytes. A longer one fails.",
        )
        .fallback(Fallback::Integer(1_024)),
        key(
            "call_timeout_ms_max",
            integer(0, 31_536_000_000),
            "Maximum duration of a call, in milliseconds. After it the caller gets the timeout error. 0 leaves the \
             duration to the caller.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "retained_events_max",
            integer(1, 100_000_000),
            "Maximum number of retained events per realm. Another one evicts the oldest.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "retained_bytes_max",
            integer(4_096, 1 << 40),
            "Maximum size of a realm's retained events, in bytes, with their topics, receiver lists and 256 for \
             each. Beyond it the oldest are evicted.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "retained_event_bytes_max",
            integer(1_024, 1 << 24),
            "Maximum size of a retained event, in bytes, counted likewise. Retaining a longer one fails. The same \
             limit bounds the retained events sent to one subscription.",
        )
        .fallback(Fallback::Integer(256 << 10)),
        key(
            "retained_sent_max",
            integer(1, 1_000_000),
            "Maximum number of retained events sent to a subscription to a pattern, in the order of their topics' \
             names. The others are not sent.",
        )
        .fallback(Fallback::Integer(1_000)),
        key(
            "history_bytes_max",
            integer(4_096, 1 << 40),
            "Maximum size of the events in a realm's histories, in bytes, with their topics, receiver lists and 256 \
             for each. Beyond it the oldest events of any history are evicted. An event counts in each history that \
             has it.",
        )
        .fallback(Fallback::Integer(64 << 20)),
        key(
            "history_answer_bytes_max",
            integer(1_024, 1 << 30),
            "Maximum size of the events in one answer of `wamp.subscription.get_events`, in bytes. The answer states \
             whether events are missing.",
        )
        .fallback(Fallback::Integer(1 << 20)),
        key(
            "testaments_max",
            integer(0, 1_000_000),
            "Maximum number of [testaments](meta-api.md#testaments) per session. Another one fails.",
        )
        .fallback(Fallback::Integer(128)),
        key(
            "testaments_bytes_max",
            integer(0, 1 << 32),
            "Maximum size of a session's testaments, in bytes, each counted as its PUBLISH and 192 more. Another one \
             beyond it fails.",
        )
        .fallback(Fallback::Integer(256 << 10)),
        key(
            "definitions_max",
            integer(0, 1_000_000),
            "Maximum number of [definitions](meta-api.md#reflection) per session. Another one fails.",
        )
        .fallback(Fallback::Integer(1_000)),
        key(
            "definitions_bytes_max",
            integer(0, 1 << 32),
            "Maximum size of a session's definitions, in bytes of CBOR, each with 256 more and twice its URI. \
             Another one beyond it fails.",
        )
        .fallback(Fallback::Integer(256 << 10)),
        key(
            "realm_definitions_max",
            integer(0, 10_000),
            "Maximum number of definitions of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions with fewer than their share.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "unacknowledged_events_max",
            integer(1, 1_000_000),
            "Maximum number of [events](events.md) that a session has not yet acknowledged. Another one closes the \
             session with `crosstie.error.unacknowledged_max`.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "unacknowledged_bytes_max",
            integer(0, 1 << 32),
            "Maximum size of a session's unacknowledged events, in bytes, with 192 for each. Beyond it the session \
             is closed likewise.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "shutdown_timeout_ms",
            integer(0, 3_600_000),
            "Maximum time that a stopping node, transport or realm waits for open calls, in milliseconds. Calls \
             still open then end with `wamp.error.canceled`. Clients that receive GOODBYE have the same time to \
             answer.",
        )
        .fallback(Fallback::Integer(5_000)),
    ],
};
