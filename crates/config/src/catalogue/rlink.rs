//! Links between realms of two routers: every key that is taken. Long and flat.

use super::connecting::CONNECTING_ENDPOINT;
use super::form::{
    Fallback, Key, Kind, Rule, TYPE, Table, Tagged, YES, integer, key, list, list_not_empty,
};
use super::options::{MILLISECONDS, ping_interval};
use super::transport::{SERIALIZER, SERIALIZERS};

pub(crate) static RLINK: Table = Table {
    path: "realms[].rlinks[]",
    name: "a link",
    keys: &[
        key(
            "id",
            Kind::Text(Rule::Name),
            "Id of the link, unique within the worker.",
        )
        .otherwise("`rlink1`, `rlink2`, … by position"),
        key(
            "realm",
            Kind::Text(Rule::RealmName),
            "Realm of the remote router that the link joins.",
        )
        .required(),
        key(
            "transport",
            Kind::Tagged(&RLINK_TRANSPORT),
            "Transport to the remote router. The link retries until it connects, and again after a lost connection.",
        )
        .required(),
        key(
            "authid",
            Kind::Text(Rule::NotEmpty),
            "Authid of the link, sent to the remote router and used in its own realm.",
        )
        .otherwise("given by the remote router for the link's key; in its own realm, the link's id"),
        key(
            "auth",
            Kind::Object(&RLINK_AUTH),
            "Authentication method of the link at the remote router. Give exactly one.",
        )
        .otherwise("cryptosign, with the node's key")
        .own(),
        key(
            "role",
            Kind::Text(Rule::NotEmpty),
            "Role of the link in its own realm.",
        )
        .fallback(Fallback::Text("trusted"))
        .own(),
        key(
            "exclude_authid",
            list(&Kind::Text(Rule::NotEmpty)),
            "Authids in the remote realm that do not receive events from the link.",
        )
        .otherwise("none"),
        key(
            "forward_local_events",
            Kind::Boolean,
            "Subscribes at the remote router to topics subscribed to here, so that remote events reach this realm.",
        )
        .fallback(YES),
        key(
            "forward_remote_events",
            Kind::Boolean,
            "Subscribes here to topics subscribed to at the remote router, so that local events reach the remote \
             realm.",
        )
        .fallback(YES),
        key(
            "forward_local_invocations",
            Kind::Boolean,
            "Registers local procedures at the remote router, so that remote callers reach them.",
        )
        .fallback(YES),
        key(
            "forward_remote_invocations",
            Kind::Boolean,
            "Registers remote procedures here, so that local callers reach them.",
        )
        .fallback(YES),
        key(
            "mirrors_max",
            integer(1, 10_000_000),
            "Maximum number of mirrored subscriptions per side, and likewise of registrations. Further ones are not \
             forwarded.",
        )
        .fallback(Fallback::Integer(100_000))
        .own(),
        key(
            "calls_max",
            integer(1, 1_000_000),
            "Maximum number of pending calls and unacknowledged publications per direction. A further call fails; a \
             further event is dropped.",
        )
        .fallback(Fallback::Integer(4_096))
        .own(),
        key(
            "queue_bytes_max",
            integer(65_536, 1 << 40),
            "Maximum data queued for the remote router, in bytes. At the limit the link stops reading from its own \
             realm. The realm then treats it as any slow client: see `limits.queue_bytes_max`.",
        )
        .fallback(Fallback::Integer(16 << 20))
        .own(),
        key(
            "forward_for_max",
            integer(2, 1_024),
            "Maximum number of entries in `forward_for` of a forwarded event or call. Each link adds two. A message \
             with more is not forwarded, which stops loops.",
        )
        .fallback(Fallback::Integer(16))
        .own(),
        key(
            "reconnect_delay_ms_max",
            integer(100, 3_600_000),
            "Maximum delay between connection attempts, in milliseconds. The delay starts at 250 ms and grows.",
        )
        .fallback(Fallback::Integer(30_000))
        .own(),
    ],
};

static RLINK_TRANSPORT: Tagged = Tagged {
    path: "realms[].rlinks[].transport.type",
    name: "a link's transport",
    variants: &[
        ("rawsocket", &RLINK_RAWSOCKET),
        ("websocket", &RLINK_WEBSOCKET),
    ],
};

const ID: Key = key("id", Kind::Text(Rule::Id), "").inert("a link has one transport");
const ENDPOINT: Key = key(
    "endpoint",
    Kind::Tagged(&CONNECTING_ENDPOINT),
    "Address to connect to.",
);

static RLINK_RAWSOCKET: Table = Table {
    path: "realms[].rlinks[].transport[rawsocket]",
    name: "a link's RawSocket transport",
    keys: &[
        TYPE,
        ID,
        ENDPOINT.required(),
        key("url", Kind::Text(Rule::Any), "").inert("the endpoint says where it connects to"),
        key(
            "serializer",
            Kind::OneOf(&SERIALIZERS),
            "Serializer of the connection.",
        )
        .fallback(Fallback::Text("cbor")),
        key(
            "options",
            Kind::Object(&RLINK_RAWSOCKET_OPTIONS),
            "Options of the RawSocket protocol.",
        )
        .otherwise("the defaults"),
    ],
};

static RLINK_RAWSOCKET_OPTIONS: Table = Table {
    path: "realms[].rlinks[].transport[rawsocket].options",
    name: "RawSocket options of a link",
    keys: &[MESSAGE_BYTES, ping_interval(20_000).own()],
};

const MESSAGE_BYTES: Key = key(
    "max_message_size",
    integer(512, 16 << 20),
    "Maximum size of a received message, in bytes.",
)
.fallback(Fallback::Integer(16 << 20));

static RLINK_WEBSOCKET: Table = Table {
    path: "realms[].rlinks[].transport[websocket]",
    name: "a link's WebSocket transport",
    keys: &[
        TYPE,
        ID,
        ENDPOINT.otherwise("made from the URL"),
        key(
            "url",
            Kind::Text(Rule::WebSocketUrl),
            "URL of the WebSocket.",
        )
        .required()
        .environment(),
        key(
            "serializers",
            list_not_empty(&SERIALIZER),
            "Offered serializers, in order.",
        )
        .otherwise("CBOR, MessagePack, JSON"),
        key(
            "options",
            Kind::Object(&RLINK_WEBSOCKET_OPTIONS),
            "Options of the WebSocket protocol.",
        )
        .otherwise("the defaults"),
    ],
};

static RLINK_WEBSOCKET_OPTIONS: Table = Table {
    path: "realms[].rlinks[].transport[websocket].options",
    name: "WebSocket options of a link",
    keys: &[
        MESSAGE_BYTES,
        ping_interval(20_000),
        key("auto_ping_timeout", MILLISECONDS, "")
            .inert("a router that is silent for a whole `auto_ping_interval` is given up"),
        key("auto_ping_size", integer(1, 125), "").inert("pings of a link are empty"),
        key("open_handshake_timeout", MILLISECONDS, "")
            .inert("the endpoint's `timeout` holds until the session is there"),
        key("close_handshake_timeout", MILLISECONDS, "")
            .inert("a link closes its connection within a second"),
    ],
};

static RLINK_AUTH: Table = Table {
    path: "realms[].rlinks[].auth",
    name: "a link's auth",
    keys: &[
        method("anonymous", &RLINK_ANONYMOUS, "Joins without credentials."),
        method("ticket", &RLINK_TICKET, "Authenticates by ticket."),
        method(
            "wampcra",
            &RLINK_WAMPCRA,
            "Authenticates by a shared secret (WAMP-CRA).",
        ),
        method("scram", &RLINK_SCRAM, "Authenticates by password (SCRAM)."),
        method(
            "cryptosign",
            &RLINK_CRYPTOSIGN,
            "Authenticates by private key (WAMP-cryptosign).",
        ),
    ],
};

const fn method(name: &'static str, of: &'static Table, about: &'static str) -> Key {
    key(name, Kind::Object(of), about)
        .otherwise("another method")
        .own()
}

const fn secret(name: &'static str, rule: Rule, about: &'static str) -> Key {
    key(name, Kind::Text(rule), about)
        .required()
        .environment()
        .own()
}

static RLINK_ANONYMOUS: Table = Table {
    path: "realms[].rlinks[].auth.anonymous",
    name: "a link's anonymous auth",
    keys: &[],
};

static RLINK_TICKET: Table = Table {
    path: "realms[].rlinks[].auth.ticket",
    name: "a link's ticket",
    keys: &[secret("ticket", Rule::NotEmpty, "Ticket to send.")],
};

static RLINK_WAMPCRA: Table = Table {
    path: "realms[].rlinks[].auth.wampcra",
    name: "a link's WAMP-CRA",
    keys: &[secret(
        "secret",
        Rule::NotEmpty,
        "Secret that signs the challenge.",
    )],
};

static RLINK_SCRAM: Table = Table {
    path: "realms[].rlinks[].auth.scram",
    name: "a link's SCRAM",
    keys: &[secret("password", Rule::NotEmpty, "SCRAM password.")],
};

static RLINK_CRYPTOSIGN: Table = Table {
    path: "realms[].rlinks[].auth.cryptosign",
    name: "a link's cryptosign",
    keys: &[secret(
        "privkey",
        Rule::Hexadecimal64,
        "Private key: 64 hexadecimal digits.",
    )],
};
