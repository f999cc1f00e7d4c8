//! Web services by which HTTP requests are calls and publications. Long and flat.

use super::form::{
    Fallback, Key, Kind, NO, Rule, SECRET, TYPE, Table, integer, integer_or_zero, key,
    list_not_empty,
};
use super::web_files::SERVICE_ID;

const REALM: Key = key(
    "realm",
    Kind::Text(Rule::RealmName),
    "Realm of the requests.",
)
.required();
const ROLE: Key = key(
    "role",
    Kind::Text(Rule::NotEmpty),
    "Role whose permissions apply to requests.",
)
.required();
const OPTIONS: Key = key(
    "options",
    Kind::Object(&BRIDGE_OPTIONS),
    "Conditions for requests.",
)
.otherwise("the defaults");

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
            "Options of the webhook.",
        )
        .required(),
    ],
};

const DEBUG: Key = key("debug", Kind::Boolean, "").inert("the log level says what is logged");

const POST_BODY_LIMIT: Key = key(
    "post_body_limit",
    integer(0, 1 << 20),
    "Maximum size of a request body, in bytes. A longer one gets status 413. 0 applies the maximum of a message: \
     16,777,216, or `limits.queue_bytes_max` if that is less.",
)
.fallback(Fallback::Integer(0));

static BRIDGE_OPTIONS: Table = Table {
    path: "web[caller].options",
    name: "options of an HTTP bridge",
    keys: &[
        key(
            "key",
            Kind::Text(Rule::NotEmpty),
            "Name of `secret`, which signed requests contain.",
        )
        .otherwise("none: requests need no signature")
        .environment(),
        key(
            "secret",
            SECRET,
            "Secret that signs requests.",
        )
        .otherwise("none: requests need no signature")
        .environment(),
        key(
            "require_tls",
            Kind::Boolean,
            "Requires requests over TLS.",
        )
        .fallback(NO),
        key(
            "require_ip",
            list_not_empty(&Kind::Text(Rule::Network)),
            "Addresses and networks that requests may come from: `192.168.0.0/16`, or with the mask written out.",
        )
        .otherwise("any"),
        POST_BODY_LIMIT,
        key(
            "timestamp_delta_limit",
            integer_or_zero(1, 86_400),
            "Tolerated difference between a signed request's time and the router's, in seconds. 0 accepts any time.",
        )
        .fallback(Fallback::Integer(300)),
        key(
            "refuse_replay",
            Kind::Boolean,
            "Accepts a signed request only once. It needs `timestamp_delta_limit`.",
        )
        .fallback(NO)
        .own(),
        key(
            "replays_max",
            integer(1, 1 << 30),
            "Maximum number of signed requests that `refuse_replay` remembers, each for two to four times \
             `timestamp_delta_limit`, in about 24 bytes. At the limit a request gets status 503.",
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
            "Topic that requests are published to.",
        )
        .required(),
        key(
            "success_response",
            Kind::Text(Rule::Any),
            "Body of the answer to a published request (202).",
        )
        .fallback(Fallback::Text("OK")),
        key(
            "error_response",
            Kind::Text(Rule::Any),
            "Body of the answer to a request that could not be published (500).",
        )
        .fallback(Fallback::Text("NOT OK")),
        key(
            "github_secret",
            SECRET,
            "Secret that signs GitHub's requests.",
        )
        .otherwise("none: requests need no signature")
        .environment(),
        POST_BODY_LIMIT,
        DEBUG,
    ],
};
