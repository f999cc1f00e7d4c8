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
            "The link's id; no two links of a worker share one.",
        )
        .otherwise("`rlink1`, `rlink2`, …, by its place"),
        key(
            "realm",
            Kind::Text(Rule::RealmName),
            "The realm of the other router that it joins.",
        )
        .required(),
        key(
            "transport",
            Kind::Tagged(&RLINK_TRANSPORT),
            "How it connects to the other router. It tries until it succeeds, and again when the connection is lost.",
        )
        .required(),
        key(
            "authid",
            Kind::Text(Rule::NotEmpty),
            "Who it says that it is, to the other router, and is in its own realm.",
        )
        .otherwise("the other router knows it by its key; in its own realm, the link's id"),
        key(
            "auth",
            Kind::Object(&RLINK_AUTH),
            "How it proves that: one method.",
        )
        .otherwise("cryptosign, with the node's key")
        .own(),
        key(
            "role",
            Kind::Text(Rule::NotEmpty),
            "The role that it has in its own realm.",
        )
        .fallback(Fallback::Text("trusted"))
        .own(),
        key(
            "exclude_authid",
            list(&Kind::Text(Rule::NotEmpty)),
            "Who, in the other router's realm, is sent none of the events that the link brings there.",
        )
        .otherwise("nobody"),
        key(
            "forward_local_events",
            Kind::Boolean,
            "Whether topics that are subscribed to here are subscribed to there, so that events of the other \
             router come here.",
        )
        .fallback(YES),
        key(
            "forward_remote_events",
            Kind::Boolean,
            "Whether topics that are subscribed to there are subscribed to here, so that events of this router \
             go there.",
        )
        .fallback(YES),
        key(
            "forward_local_invocations",
            Kind::Boolean,
            "Whether procedures that are registered here are registered there, so that they can be called from \
             there.",
        )
        .fallback(YES),
        key(
            "forward_remote_invocations",
            Kind::Boolean,
            "Whether procedures that are registered there are registered here, so that they can be called from \
             here.",
        )
        .fallback(YES),
        key(
            "mirrors_max",
            integer(1, 10_000_000),
            "Subscriptions, and registrations likewise, that it keeps account of on either side; what is beyond is \
             not forwarded.",
        )
        .fallback(Fallback::Integer(100_000))
        .own(),
        key(
            "calls_max",
            integer(1, 1_000_000),
            "Calls in one direction that are not answered, together with publications there that are not \
             acknowledged; a further call is an error, a further event is dropped.",
        )
        .fallback(Fallback::Integer(4_096))
        .own(),
        key(
            "queue_bytes_max",
            integer(65_536, 1 << 40),
            "Bytes that wait to be sent to the other router. Beyond them the link takes nothing from its own realm, \
             where it is then treated as any client that does not read: `limits.queue_bytes_max`.",
        )
        .fallback(Fallback::Integer(16 << 20))
        .own(),
        key(
            "forward_for_max",
            integer(2, 1_024),
            "Those who stand in `forward_for` of an event or a call that it forwards: each link adds two. With more it \
             is not forwarded.",
        )
        .fallback(Fallback::Integer(16))
        .own(),
        key(
            "reconnect_delay_ms_max",
            integer(100, 3_600_000),
            "How long it waits at most before it tries again, in milliseconds: the first time 250, then longer and \
             longer.",
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
    "Where it connects to.",
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
            "The serializer that it speaks.",
        )
        .fallback(Fallback::Text("cbor")),
        key(
            "options",
            Kind::Object(&RLINK_RAWSOCKET_OPTIONS),
            "How RawSocket is spoken.",
        )
        .otherwise("all of their defaults"),
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
    "The largest message that it takes, in bytes.",
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
            "The URL that it asks for.",
        )
        .required()
        .environment(),
        key(
            "serializers",
            list_not_empty(&SERIALIZER),
            "The serializers that it offers, in order.",
        )
        .otherwise("CBOR, MessagePack, JSON"),
        key(
            "options",
            Kind::Object(&RLINK_WEBSOCKET_OPTIONS),
            "How WebSocket is spoken.",
        )
        .otherwise("all of their defaults"),
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
        method("anonymous", &RLINK_ANONYMOUS, "It proves nothing."),
        method("ticket", &RLINK_TICKET, "It knows a ticket."),
        method("wampcra", &RLINK_WAMPCRA, "It knows a secret (WAMP-CRA)."),
        method("scram", &RLINK_SCRAM, "It knows a password (SCRAM)."),
        method("cryptosign", &RLINK_CRYPTOSIGN, "It has a private key."),
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
    keys: &[secret("ticket", Rule::NotEmpty, "What it shows.")],
};

static RLINK_WAMPCRA: Table = Table {
    path: "realms[].rlinks[].auth.wampcra",
    name: "a link's WAMP-CRA",
    keys: &[secret("secret", Rule::NotEmpty, "What it signs with.")],
};

static RLINK_SCRAM: Table = Table {
    path: "realms[].rlinks[].auth.scram",
    name: "a link's SCRAM",
    keys: &[secret(
        "password",
        Rule::NotEmpty,
        "What it proves that it knows.",
    )],
};

static RLINK_CRYPTOSIGN: Table = Table {
    path: "realms[].rlinks[].auth.cryptosign",
    name: "a link's cryptosign",
    keys: &[secret(
        "privkey",
        Rule::Hexadecimal64,
        "Its private key: 64 hexadecimal digits.",
    )],
};
