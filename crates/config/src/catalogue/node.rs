//! Keys of the node, its limits and its admin listener.

use std::time::Duration;

use super::auth::AUTH;
use super::endpoint::ENDPOINT;
use super::form::{
    Effect, Kind, Rule, integer, list, list_not_empty, object, one_of, tagged, text,
};
use super::otlp::OTLP;
use super::table::tables;
use super::transport::{ALLOWED_HOSTS, COOKIE_KEY, PAGES};
use super::worker::WORKER;

tables! {
    /// The whole file.
    pub static CONFIG("(file)", "a configuration") {
        "$schema" = text(Rule::Any).optional().at_once(),
            "Location of the JSON Schema, for editors. Crosstie does not read it.";
        "version" = Kind::Numbers { path: "(file).version", numbers: &[2] }.or(2).at_once(),
            "Version of the file format. Crosstie converts version 1 with a warning. A file without `version` \
             counts as version 1 if its permissions have that form.";
        "controller" = object(&CONTROLLER).otherwise("the defaults").restart(), "Keys of the node itself.";
        "workers" = list(&tagged(&WORKER)).optional().at_once().within(Effect::Restart), "Workers that the node starts.";
        "limits" = object(&LIMITS).otherwise("the defaults").own().restart(), "Limits of the node.";
        "audit_log" = object(&AUDIT_LOG).optional().own().restart(), "Log of rejected logins, in a file.";
        "console" = object(&CONSOLE).optional().own().at_once().within(Effect::AtOnce), "Pages of the node for a browser, at a listener of their own.";
        "admin" = object(&ADMIN).optional().own().restart(), "Listener for operators: HTTP pages, no WAMP.";
        "otlp" = object(&OTLP).optional().own().at_once().within(Effect::AtOnce),
            "Export of spans of messages that belong to traces.";
    }

    pub(super) static CONTROLLER("controller", "the controller") {
        "id" = text(Rule::Id).otherwise("made from the host's name"), "Id of the node.";
        "options" = object(&CONTROLLER_OPTIONS).otherwise("the defaults"), "Further options of the node.";
        "fabric" = object(&FABRIC).optional(), "Must be empty: `{}`.";
    }

    pub(super) static FABRIC("controller.fabric", "the controller's fabric") {}

    pub(super) static CONTROLLER_OPTIONS("controller.options", "the controller's options") {
        "title" = text(Rule::NotEmpty).optional().at_once(), "Display name of the node, shown at start and on its status page.";
        "shutdown" = Kind::OneOrMore(&one_of(&SHUTDOWN)).or_text("shutdown_on_worker_exit").at_once(),
            "Events that end the node, beside a signal. A worker that will be restarted has not exited. Router \
             workers are threads of the node and end only when stopped.";
        "enable_parallel_worker_start" = Kind::Boolean.inert("all workers are started at once, whatever it says");
    }

    /// The events that end the node, beside a signal.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum ShutdownTrigger = pub(super) words SHUTDOWN("controller.options.shutdown") {
        "shutdown_on_shutdown_requested" => ShutdownRequested,
        "shutdown_on_worker_exit" => WorkerExit,
        "shutdown_on_worker_exit_with_error" => WorkerExitWithError,
        "shutdown_on_last_worker_exit" => LastWorkerExit,
    }

    pub(super) static ADMIN("admin", "the admin listener") {
        "endpoint" = tagged(&ENDPOINT).required(), "Address that the listener binds.";
        "pages" = list_not_empty(&one_of(&PAGES)).otherwise("all of them"), "Pages that the listener serves.";
        ..ALLOWED_HOSTS.otherwise("loopback names at a loopback address; else any");
    }

    pub(super) static CONSOLE("console", "the console") {
        "endpoint" = tagged(&ENDPOINT).required(), "Address that the listener binds.";
        "auth" = object(&AUTH).required(),
            "Authentication methods. Every role is `monitoring`, which reads, or `administrator`. `anonymous` is \
             refused at an address that other machines reach, and at a loopback address beside `allowed_hosts`, \
             `allowed_origins` or `proxy_protocol`.";
        ..COOKIE_KEY.at_once();
        ..ALLOWED_HOSTS.otherwise("loopback names at a loopback address; else any");
        "allowed_origins" = list_not_empty(&text(Rule::NotEmpty)).otherwise("that of the console's own pages"),
            "Origins of other pages that may open a session. `*` matches anything.";
    }

    /// Log of rejected logins, in a file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AuditLog = static AUDIT_LOG("audit_log", "the audit log") {
        file: String = text(Rule::Path).required(),
            "Path of the log file, with one line of JSON per rejected login. Only its owner can read it. A relative \
             path starts at the node's directory.";
        file_bytes_max: usize = integer(4_096, 1 << 40).or(64 << 20),
            "Maximum size of the log file, in bytes. At the limit it is renamed to end in `.1`, which replaces the \
             previous one, and a new file begins.";
    }

    /// Limits of a node.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Limits = pub(super) static LIMITS("limits", "the node's limits") {
        queue_bytes_max: usize = integer(65_536, 1 << 40).or(16 << 20),
            "Maximum data queued for a session, in bytes. At the limit an event is dropped and counted, a call \
             fails, and a result ends the session of its caller.";
        queue_bytes_total_max: usize = integer(65_536, 1 << 44).or(1 << 30),
            "Maximum memory for all peers of a router worker, in bytes: data queued behind full sockets (data for \
             several receivers counts once), incomplete input, and state such as subscriptions and compressors. At \
             the limit the earlier messages kept for compression are dropped, largest session first; if that is not \
             enough, the router closes the peers that hold most, until a tenth is free.";
        queue_stall_timeout_ms => queue_stall_timeout: Duration = integer(100, 86_400_000).or(30_000),
            "Maximum time that a session may read nothing of its queued data, in milliseconds. After it the session \
             is closed.";
        message_timeout_ms => message_timeout: Duration = integer(1_000, 86_400_000).or(60_000),
            "Time that a peer may take for one message at any rate, in milliseconds. A message that takes longer \
             must arrive at `bytes_per_second_min`; otherwise the connection is closed.";
        bytes_per_second_min: usize = integer(0, 1 << 40).or(4_096),
            "Minimum transfer rate, in bytes per second. It applies to a message that takes longer than \
             `message_timeout_ms`. It also applies to a client whose socket stays full for `queue_stall_timeout_ms`, \
             if its queued data would take ten times as long. Slower connections are closed. 0 disables the check.";
        depth_max: usize = integer(8, 512).or(64),
            "Maximum nesting depth of a message's arguments. A deeper message ends the sender's session.";
        handshake_timeout_ms => handshake_timeout: Duration = integer(100, 3_600_000).or(10_000),
            "Maximum time from accepting a connection until its session has joined, in milliseconds. A slower \
             connection is closed.";
        request_head_bytes_max: usize = integer(8_192, 65_536).or(32 << 10),
            "Maximum size of an HTTP request head, in bytes: target, query and all headers, cookies included. It \
             applies to WebSocket handshakes, pages and web services; over HTTP/2, after decoding. A longer head \
             gets status 431. The default has room for the cookies of single sign-on.";
        challenge_timeout_ms => challenge_timeout: Duration = integer(100, 3_600_000).or(60_000),
            "Maximum time for a WAMP client to answer CHALLENGE, in milliseconds. After it the router sends ABORT. \
             The default leaves time to type a password; `handshake_timeout_ms` stands still meanwhile. While more \
             than half of `handshakes_pending_max` are pending, a client has only the rest of \
             `handshake_timeout_ms`.";
        handshakes_pending_max: usize = integer(1, 100_000_000).or(10_000),
            "Maximum number of pending handshakes per router worker: sessions that were sent a challenge or await \
             an authenticator. Another one is rejected.";
        login_delay_ms_max => login_delay_max: Duration = integer(0, 60_000).or(2_000),
            "Maximum delay of the answer to wrong credentials, in milliseconds. From the fourth failure of an \
             address or for an authid within one to two minutes, each failure doubles the delay, starting at 100 ms. \
             Clients on this machine wait at most 250 ms. Right credentials are not delayed. If 8 wrong answers of \
             an address for one authid, or 24 for any authid, are pending, another attempt waits its turn, at most 2 \
             s. 0 disables the delay.";
        sessions_max: usize = integer(1, 100_000_000).or(100_000),
            "Maximum number of connections of the node. Another connection is closed at once.";
        address_connections_max: Option<usize> = integer(1, 100_000_000)
            .otherwise(
                "seven eighths of `sessions_max`, but not less than 256, and at most seven eighths of what the \
                 process's file descriptors allow"
            ),
            "Maximum number of connections per address and router worker. Another connection is told so and closed. \
             An IPv6 network of 64 bits counts as one address, and so do all Unix sockets. Loopback addresses count \
             like others.";
        page_connections_max: usize = integer(1, 1_000_000).or(64),
            "Maximum number of connections per listener that pages are being served to. Another one gets status \
             503. From half of the limit on, a connection is closed after each answer.";
        calls_pending_max: usize = integer(1, 100_000_000).or(10_000),
            "Maximum number of pending calls per session. Another one fails.";
        realm_subscriptions_max: usize = integer(1, 1_000_000_000).or(1_000_000),
            "Maximum number of subscriptions of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions below their share, which is the limit divided by the number of sessions.";
        realm_registrations_max: usize = integer(1, 1_000_000_000).or(1_000_000),
            "Maximum number of registrations of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions below their share, which is the limit divided by the number of sessions.";
        realm_calls_pending_max: usize = integer(1, 1_000_000_000).or(1_000_000),
            "Maximum number of pending calls of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions below their share, which is the limit divided by the number of sessions.";
        call_options_bytes_max: usize = integer(0, 1 << 24).or(4_096),
            "Maximum size of the attributes (`ppt_*`, `enc_*`, `_*`) that a progressive call keeps from its first \
             CALL, in bytes. The router adds them to each later part. A call with more fails.";
        kept_call_bytes_max: usize = integer(1_024, 1 << 24).or(1 << 20),
            "Maximum size of a kept call, in bytes, with its options and 512 more. It applies to a call that [waits \
             for a callee](calls.md#calls-that-wait): a longer one fails. It also applies to a call that may [go to \
             the next callee](calls.md#calls-that-go-to-the-next-callee): a longer one does not.";
        kept_calls_bytes_max: usize = integer(4_096, 1 << 40).or(16 << 20),
            "Maximum size of all kept calls of a realm, in bytes, counted likewise. A further call that has to wait \
             fails. The last quarter is reserved for sessions below their share, which is the limit divided by the \
             number of sessions.";
        subscriptions_max: usize = integer(1, 100_000_000).or(10_000),
            "Maximum number of subscriptions per session. Another one fails.";
        registrations_max: usize = integer(1, 100_000_000).or(10_000),
            "Maximum number of registrations per session. Another one fails.";
        wildcard_shapes_max: usize = integer(1, 65_536).or(1_024),
            "Maximum number of shapes of wildcard patterns of the same length in a realm, for subscriptions and for \
             registrations. A shape is the set of empty components. Each costs a lookup for a publication or call of \
             that length. A pattern of a further shape fails. Patterns of up to ten components have at most 1,024 \
             shapes.";
        uri_bytes_max: usize = integer(64, 65_536).or(1_024),
            "Maximum length of a topic, procedure or pattern, in bytes. A longer one fails.";
        call_timeout_ms_max => call_timeout_max: Option<Duration> = integer(0, 31_536_000_000).or(0),
            "Maximum duration of a call, in milliseconds. After it the caller gets the timeout error. 0 leaves the \
             duration to the caller.";
        retained_events_max: usize = integer(1, 100_000_000).or(10_000),
            "Maximum number of retained events per realm. Another one evicts the oldest.";
        retained_bytes_max: usize = integer(4_096, 1 << 40).or(16 << 20),
            "Maximum size of a realm's retained events, in bytes, with their topics, receiver lists and 256 for \
             each. Beyond it the oldest are evicted.";
        retained_event_bytes_max: usize = integer(1_024, 1 << 24).or(256 << 10),
            "Maximum size of a retained event, in bytes, counted likewise. Retaining a longer one fails. The same \
             limit bounds the retained events sent to one subscription.";
        retained_sent_max: usize = integer(1, 1_000_000).or(1_000),
            "Maximum number of retained events sent to a subscription to a pattern, in the order of their topics' \
             names. The others are not sent.";
        history_bytes_max: usize = integer(4_096, 1 << 40).or(64 << 20),
            "Maximum size of the events in a realm's histories, in bytes, with their topics, receiver lists and 256 \
             for each. Beyond it the oldest events of any history are evicted. An event counts in each history that \
             has it.";
        history_answer_bytes_max: usize = integer(1_024, 1 << 30).or(1 << 20),
            "Maximum size of the events in one answer of `wamp.subscription.get_events`, in bytes. The answer \
             states whether events are missing.";
        mqtt_sessions_max: usize = integer(1, 100_000_000).or(100_000),
            "Maximum number of MQTT sessions per realm, with those whose client is away. Another CONNECT is refused with \
             0x97 (3 in MQTT 3).";
        mqtt_session_expiry_seconds_max: u32 = integer(0, u32::MAX as i64).or(604_800),
            "Maximum time for which a session is kept whose MQTT client is away, in seconds. A client that asks for more \
             is told this one.";
        mqtt_session_expiry_3_seconds: u32 = integer(0, u32::MAX as i64).or(86_400),
            "Time for which a session is kept whose client of MQTT 3 is away and has not asked for a clean session, in \
             seconds. MQTT 3 has no word for it, and some clients never end their sessions.";
        mqtt_subscriptions_max: usize = integer(1, 1_000_000_000).or(1_000_000),
            "Maximum number of MQTT subscriptions per realm. Another one is refused with 0x97 (0x80 in MQTT 3). \
             `subscriptions_max` bounds those of one session.";
        mqtt_queued_messages_max: usize = integer(1, 60_000).or(1_000),
            "Maximum number of messages that wait for an MQTT session: each has a packet identifier. Another one drops \
             the oldest that was not sent.";
        mqtt_queued_bytes_max: usize = integer(1_024, 1 << 40).or(16 << 20),
            "Maximum size of the messages that wait for an MQTT session, in bytes. Beyond it the oldest that were not \
             sent are dropped.";
        mqtt_retained_messages_max: usize = integer(0, 100_000_000).or(100_000),
            "Maximum number of retained MQTT messages per realm, and per vhost. The publication of another one is refused \
             with 0x97; in MQTT 3, and in a vhost, it is delivered and not retained.";
        mqtt_retained_bytes_max: usize = integer(0, 1 << 40).or(64 << 20),
            "Maximum size of the retained MQTT messages of a realm or vhost, in bytes, with their topics. The effect is that of \
             `mqtt_retained_messages_max`. Those of vhosts count for `memory_bytes_max` and stay in memory: the check warns \
             if one vhost may have more than half of that.";
        testaments_max: usize = integer(0, 1_000_000).or(128),
            "Maximum number of [testaments](meta-api.md#testaments) per session. Another one fails.";
        testaments_bytes_max: usize = integer(0, 1 << 32).or(256 << 10),
            "Maximum size of a session's testaments, in bytes, each counted as its PUBLISH and 192 more. Another \
             one beyond it fails.";
        definitions_max: usize = integer(0, 1_000_000).or(1_000),
            "Maximum number of [definitions](meta-api.md#reflection) per session. Another one fails.";
        definitions_bytes_max: usize = integer(0, 1 << 32).or(256 << 10),
            "Maximum size of a session's definitions, in bytes of CBOR, each with 256 more and twice its URI. \
             Another one beyond it fails.";
        realm_definitions_max: usize = integer(0, 10_000).or(10_000),
            "Maximum number of definitions of all sessions of a realm. Another one fails. The last quarter is \
             reserved for sessions with fewer than their share.";
        unacknowledged_events_max: usize = integer(1, 1_000_000).or(10_000),
            "Maximum number of [events](events.md) that a session has not yet acknowledged. Another one closes the \
             session with `crosstie.error.unacknowledged_max`.";
        unacknowledged_bytes_max: usize = integer(0, 1 << 32).or(16 << 20),
            "Maximum size of a session's unacknowledged events, in bytes, with 192 for each. Beyond it the session \
             is closed likewise.";
        shutdown_timeout_ms => shutdown_timeout: Duration = integer(0, 3_600_000).or(5_000),
            "Maximum time that a stopping node, transport or realm waits for open calls, in milliseconds. Calls \
             still open then end with `wamp.error.canceled`. Clients that receive GOODBYE have the same time to \
             answer.";
    }
}
