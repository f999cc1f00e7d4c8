//! Web services by which HTTP requests are calls and publications. Long and flat.

use super::form::{
    Fallback, Key, Kind, NO, Rule, SECRET, TYPE, Table, integer, integer_or_zero, key,
    list_not_empty,
};
use super::web_files::SERVICE_ID;

const REALM: Key = key(
    "realm",
    Kind::Text(Rule::RealmName),
    "The realm that requests lead to.",
)
.required();
const ROLE: Key = key(
    "role",
    Kind::Text(Rule::NotEmpty),
    "The role whose permissions requests have.",
)
.required();
const OPTIONS: Key = key(
    "options",
    Kind::Object(&BRIDGE_OPTIONS),
    "Which requests are taken.",
)
.otherwise("all of their defaults");

pub(super) static CALLER: Table = Table {
    path: "web[caller]",
    name: "a service of calls",
    keys: &[TYPE, SERVICE_ID, REALM, ROLE, OPTIONS],
};

pub(super) static PUBLISHER: Table = Table {
    path: "web[publisher]",
    name: "a service of publications",
    keys: &[TYPE, SERVICE_ID, REALM, ROLE, OPTIONS],
};

pub(super) static WEBHOOK: Table = Table {
    path: "web[webhook]",
    name: "a webhook",
    keys: &[
        TYPE,
        SERVICE_ID,
        REALM,
        ROLE,
        key(
            "options",
            Kind::Object(&WEBHOOK_OPTIONS),
            "What becomes of requests.",
        )
        .required(),
    ],
};

const DEBUG: Key = key("debug", Kind::Boolean, "").inert("the log level says what is logged");

const POST_BODY_LIMIT: Key = key(
    "post_body_limit",
    integer(0, 1 << 20),
    "Bytes of a request's body; a longer one is refused (413). 0: as many as a message may have, which is 16,777,216, \
     or `limits.queue_bytes_max` if that is less.",
)
.fallback(Fallback::Integer(0));

static BRIDGE_OPTIONS: Table = Table {
    path: "web[caller].options",
    name: "options of an HTTP bridge",
    keys: &[
        key(
            "key",
            Kind::Text(Rule::NotEmpty),
            "The name of `secret`, which signed requests say.",
        )
        .otherwise("requests need no signature")
        .environment(),
        key(
            "secret",
            SECRET,
            "What requests must be signed with.",
        )
        .otherwise("requests need no signature")
        .environment(),
        key(
            "require_tls",
            Kind::Boolean,
            "Whether requests must come over TLS.",
        )
        .fallback(NO),
        key(
            "require_ip",
            list_not_empty(&Kind::Text(Rule::Network)),
            "The addresses and networks that requests may come from: `192.168.0.0/16`, or with the mask written out.",
        )
        .otherwise("any"),
        POST_BODY_LIMIT,
        key(
            "timestamp_delta_limit",
            integer_or_zero(1, 86_400),
            "How far the time of a signed request may be from ours, in seconds; 0: any time is taken.",
        )
        .fallback(Fallback::Integer(300)),
        key(
            "refuse_replay",
            Kind::Boolean,
            "Whether a signed request is taken once only; it needs a `timestamp_delta_limit`.",
        )
        .fallback(NO)
        .own(),
        key(
            "replays_max",
            integer(1, 1 << 30),
            "Signed requests that `refuse_replay` remembers, each for two to four times `timestamp_delta_limit`, in some 24 \
             bytes; while there are so many, none is taken (503).",
        )
        .fallback(Fallback::Integer(1_000_000))
        .own(),
        DEBUG,
    ],
};

static WEBHOOK_OPTIONS: Table = Table {
    path: "web[webhook].options",
    name: "options of a webhook",
    keys: &[
        key(
            "topic",
            Kind::Text(Rule::ExactUri),
            "The topic that requests are published to.",
        )
        .required(),
        key(
            "success_response",
            Kind::Text(Rule::Any),
            "The body of the answer to what was published (202).",
        )
        .fallback(Fallback::Text("OK")),
        key(
            "error_response",
            Kind::Text(Rule::Any),
            "The body of the answer to what could not be published (500).",
        )
        .fallback(Fallback::Text("NOT OK")),
        key(
            "github_secret",
            SECRET,
            "What GitHub signs its requests with.",
        )
        .otherwise("requests need no signature")
        .environment(),
        POST_BODY_LIMIT,
        DEBUG,
    ],
};
