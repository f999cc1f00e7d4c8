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
            "Where an editor finds the JSON Schema of this file; not read.",
        )
        .otherwise("none"),
        key(
            "version",
            Kind::Numbers {
                path: "(file).version",
                numbers: &[2],
            },
            "The version of the format. Version 1 is converted when it is read, with a warning; a file without a \
             version is of version 1 where its permissions are.",
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
            "audit_log",
            Kind::Object(&AUDIT_LOG),
            "A file of who was not let in.",
        )
        .otherwise("none")
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
            "What ends the node beside a signal. A worker that is to be started again has \
             not exited; router workers are threads of the node and end only when stopped.",
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
        key("endpoint", Kind::Tagged(&ENDPOINT), "Where it listens.").required(),
        key(
            "pages",
            list_not_empty(&Kind::OneOf(&PAGES)),
            "The pages that it shows.",
        )
        .otherwise("all of them"),
        ALLOWED_HOSTS.otherwise("loopback names alone, at a loopback address; else any"),
    ],
};

static AUDIT_LOG: Table = Table {
    path: "audit_log",
    name: "the audit log",
    keys: &[
        key(
            "file",
            Kind::Text(Rule::Path),
            "The file, relative to the node's directory; only its owner can read it. A line of JSON for each.",
        )
        .required(),
        key(
            "file_bytes_max",
            integer(4_096, 1 << 40),
            "Bytes of the file. At the bound it is renamed, with `.1` behind its name, in the place of \
             the one before, and begun anew.",
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
            "Bytes that wait for one session. An event that finds the queue full is \
             dropped and counted; a call is an error to its caller; a result ends its \
             caller's session.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "queue_bytes_total_max",
            integer(65_536, 1 << 44),
            "Bytes held in memory for all peers of a router worker together: queued behind \
             full sockets (what several are sent counts once), input that is not complete, \
             and state such as subscriptions and compressors. At the bound those for whom \
             most is held are closed, until a tenth of it is free.",
        )
        .fallback(Fallback::Integer(1 << 30)),
        key(
            "queue_stall_timeout_ms",
            integer(100, 86_400_000),
            "How long a session may read nothing of what waits for it, in milliseconds, \
             before it is closed.",
        )
        .fallback(Fallback::Integer(30_000)),
        key(
            "message_timeout_ms",
            integer(1_000, 86_400_000),
            "How long a message may be on its way from a peer, in milliseconds, however slowly \
             it comes; one that takes longer has to come at the rate of \
             `bytes_per_second_min`, or its sender's connection is closed.",
        )
        .fallback(Fallback::Integer(60_000)),
        key(
            "bytes_per_second_min",
            integer(0, 1 << 40),
            "The least rate, in bytes a second, at which a peer sends a message that takes \
             longer than `message_timeout_ms`, and takes what waits for it where its socket \
             stays full for `queue_stall_timeout_ms` and what waits would take ten times as \
             long; a slower one is closed. 0: any progress is enough.",
        )
        .fallback(Fallback::Integer(4_096)),
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
            "request_head_bytes_max",
            integer(8_192, 65_536),
            "Maximum size of the head of an HTTP request, in bytes: its target with the query, and all of its headers, \
             cookies among them. It applies to WebSocket handshakes, pages and web services, over HTTP/2 after decoding. \
             A longer head is answered with 431. The default has room for the cookies of single sign-on.",
        )
        .fallback(Fallback::Integer(32 << 10)),
        key(
            "challenge_timeout_ms",
            integer(100, 3_600_000),
            "How long a WAMP client may take to answer CHALLENGE, in milliseconds, before it is sent ABORT: a person may \
             have to type a password. `handshake_timeout_ms` stands still meanwhile. While more than half of \
             `handshakes_pending_max` are not done, a client has no more than what is left of `handshake_timeout_ms`.",
        )
        .fallback(Fallback::Integer(60_000)),
        key(
            "handshakes_pending_max",
            integer(1, 100_000_000),
            "Handshakes of a router worker that are not done: sessions that have been sent a \
             challenge, or that an authenticator is asked about. One more is refused.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "login_delay_ms_max",
            integer(0, 60_000),
            "Maximum delay of the answer to wrong credentials, in milliseconds. From the fourth failure of an \
             address or for an authid within a minute or two, each doubles the delay, from 100 ms on; clients \
             on this machine wait 250 ms at most. Right credentials are not delayed. While 8 wrong answers \
             of an address wait for one authid, or 24 for any, another attempt waits for its turn, 2 s at most. \
             0: no delay.",
        )
        .fallback(Fallback::Integer(2_000)),
        key(
            "sessions_max",
            integer(1, 100_000_000),
            "Connections that the node holds at a time; one more is closed at once.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "address_connections_max",
            integer(1, 100_000_000),
            "Connections that a router worker holds of one address; one more is told so and \
             closed. An IPv6 network of 64 bits counts as one address, and so do all who come by \
             Unix sockets. Loopback addresses count as any.",
        )
        .otherwise(
            "seven eighths of `sessions_max`, but not less than 256, and at most seven eighths of \
             what the process's file descriptors allow",
        ),
        key(
            "page_connections_max",
            integer(1, 1_000_000),
            "Connections of one listener that pages are being served to; one more is told to come \
             again (503). From half of them on a connection is closed after each answer.",
        )
        .fallback(Fallback::Integer(64)),
        key(
            "calls_pending_max",
            integer(1, 100_000_000),
            "Calls of one session that have no result yet; one more is an error.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "realm_subscriptions_max",
            integer(1, 1_000_000_000),
            "Subscriptions of all sessions of a realm together; one more is an error. The last quarter is \
             for sessions that have less than their share, the bound divided by the sessions.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "realm_registrations_max",
            integer(1, 1_000_000_000),
            "Registrations of all sessions of a realm together; one more is an error. The last quarter is \
             for sessions that have less than their share, the bound divided by the sessions.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "realm_calls_pending_max",
            integer(1, 1_000_000_000),
            "Calls without a result of all sessions of a realm together; one more is an error. The last quarter is \
             for sessions that have less than their share, the bound divided by the sessions.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "call_options_bytes_max",
            integer(0, 1 << 24),
            "Bytes of the attributes (`ppt_*`, `enc_*`, `_*`) that a progressive call keeps of \
             its first CALL to pass them on with each part; more are an error.",
        )
        .fallback(Fallback::Integer(4_096)),
        key(
            "kept_call_bytes_max",
            integer(1_024, 1 << 24),
            "Bytes of one call that [waits for a callee](calls.md#calls-that-wait), with its options and 512 more; to \
             keep a longer one is an error. Likewise of one that may \
             [go to the next callee](calls.md#calls-that-go-to-the-next-callee); a longer one may not.",
        )
        .fallback(Fallback::Integer(1 << 20)),
        key(
            "kept_calls_bytes_max",
            integer(4_096, 1 << 40),
            "Bytes of all calls of a realm that are kept, counted likewise; beyond, a call that has to wait is an error. The last quarter is \
             for sessions that have less than their share, the bound divided by the sessions.",
        )
        .fallback(Fallback::Integer(16 << 20)),
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
            "wildcard_shapes_max",
            integer(1, 65_536),
            "Shapes of wildcard patterns of one length in a realm, of subscriptions and of \
             registrations: which components are empty. Each costs a lookup for a publication or \
             call of that length; a pattern with one more is an error. Up to ten components there \
             are no more than 1,024.",
        )
        .fallback(Fallback::Integer(1_024)),
        key(
            "uri_bytes_max",
            integer(64, 65_536),
            "Bytes of a topic, procedure or pattern; a longer one is an error.",
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
            "retained_events_max",
            integer(1, 100_000_000),
            "Retained events of one realm; at one more the oldest goes.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "retained_bytes_max",
            integer(4_096, 1 << 40),
            "Bytes of one realm's retained events, with their topics and lists of \
             receivers and 256 for each; beyond, the oldest go.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "retained_event_bytes_max",
            integer(1_024, 1 << 24),
            "Bytes of one retained event, counted likewise; to retain a longer one is \
             an error. It also bounds the bytes of retained events that one \
             subscription is sent.",
        )
        .fallback(Fallback::Integer(256 << 10)),
        key(
            "retained_sent_max",
            integer(1, 1_000_000),
            "Retained events that one subscription to a pattern is sent, in the order of \
             their topics' names; it goes without the others.",
        )
        .fallback(Fallback::Integer(1_000)),
        key(
            "history_bytes_max",
            integer(4_096, 1 << 40),
            "Bytes of the events in one realm's histories, with their topics and lists of receivers and 256 for each; beyond, \
             the oldest go, of whatever history. An event is counted in each history that it is in.",
        )
        .fallback(Fallback::Integer(64 << 20)),
        key(
            "history_answer_bytes_max",
            integer(1_024, 1 << 30),
            "Bytes of the events that one call of `wamp.subscription.get_events` is answered with; where there are more \
             the answer says so.",
        )
        .fallback(Fallback::Integer(1 << 20)),
        key(
            "testaments_max",
            integer(0, 1_000_000),
            "[Testaments](meta-api.md#testaments) of one session; one more is an error.",
        )
        .fallback(Fallback::Integer(128)),
        key(
            "testaments_bytes_max",
            integer(0, 1 << 32),
            "Bytes of one session's testaments, each counted as the PUBLISH that it is and 192 more; to \
             pass them is an error.",
        )
        .fallback(Fallback::Integer(256 << 10)),
        key(
            "definitions_max",
            integer(0, 1_000_000),
            "[Definitions](meta-api.md#reflection) of one session; one more is an error.",
        )
        .fallback(Fallback::Integer(1_000)),
        key(
            "definitions_bytes_max",
            integer(0, 1 << 32),
            "Bytes of one session's definitions, in CBOR, each with 256 more and twice its URI; to pass them is an error.",
        )
        .fallback(Fallback::Integer(256 << 10)),
        key(
            "realm_definitions_max",
            integer(0, 10_000),
            "Definitions of all sessions of a realm; one more is an error. The last quarter is for sessions that have fewer \
             than the others' share.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "unacknowledged_events_max",
            integer(1, 1_000_000),
            "[Events](events.md) that a session is to acknowledge and has not; at one more it is closed \
             (`crosstie.error.unacknowledged_max`).",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "unacknowledged_bytes_max",
            integer(0, 1 << 32),
            "Bytes of them, with 192 for each; beyond, it is closed likewise.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        key(
            "shutdown_timeout_ms",
            integer(0, 3_600_000),
            "Maximum time, in milliseconds, that a node, a transport or a realm that stops waits for open calls. Calls \
             that are open then end with `wamp.error.canceled`. Clients that are told GOODBYE have as long to answer.",
        )
        .fallback(Fallback::Integer(5_000)),
    ],
};
