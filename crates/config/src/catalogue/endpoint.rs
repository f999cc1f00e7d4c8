//! Where listeners listen: every key that is taken. Long and flat.

use super::form::{
    Fallback, Key, Kind, NO, Rule, TYPE, Table, Tagged, Words, integer, key, list, list_not_empty,
};

pub(super) static ENDPOINT: Tagged = Tagged {
    path: "endpoint.type",
    name: "an endpoint",
    variants: &[("tcp", &TCP_ENDPOINT), ("unix", &UNIX_ENDPOINT)],
};

const BACKLOG: Key = key(
    "backlog",
    integer(1, 65_535),
    "Maximum number of connections that wait to be accepted.",
)
.fallback(Fallback::Integer(1_024));

const PORT: Key = key(
    "port",
    integer(0, 65_535),
    "Port to listen on. 0 takes any free port.",
)
.otherwise("a port of `portrange`")
.environment();

const PORTRANGE: Key = key(
    "portrange",
    Kind::List {
        of: &integer(1, 65_535),
        least: 1,
    },
    "First and last port of a range, in place of `port`. The listener takes the first free one.",
)
.otherwise("the port in `port`");

const INTERFACE: Key = key(
    "interface",
    Kind::Text(Rule::Interface),
    "Address to listen on.",
)
.otherwise("all interfaces")
.environment();

const VERSION: Key = key(
    "version",
    Kind::Numbers {
        path: "",
        numbers: &[4, 6],
    },
    "IP version: 4 or 6.",
)
.otherwise("the interface's, else 4");

const SHARED: Key = key(
    "shared",
    Kind::Boolean,
    "Lets other processes listen on the same port (`SO_REUSEPORT`).",
)
.fallback(NO);

const USER_TIMEOUT: Key = key(
    "user_timeout",
    integer(0, 65_535),
    "Time after which the system closes a connection whose sent data stays unacknowledged or whose peer reads \
     nothing, in milliseconds (`TCP_USER_TIMEOUT`). 0 leaves it to the system.",
)
.otherwise("`limits.queue_stall_timeout_ms`");

static TCP_ENDPOINT: Table = Table {
    path: "endpoint[tcp]",
    name: "a TCP endpoint",
    keys: &[
        TYPE,
        PORT,
        PORTRANGE,
        INTERFACE,
        VERSION,
        BACKLOG,
        SHARED,
        USER_TIMEOUT,
        key("tls", Kind::Object(&TLS), "TLS of the listener.").otherwise("none"),
    ],
};

static UNIX_ENDPOINT: Table = Table {
    path: "endpoint[unix]",
    name: "a Unix endpoint",
    keys: &[
        TYPE,
        key(
            "path",
            Kind::Text(Rule::SocketPath),
            "Path of the socket. A relative path starts at the node's directory. `$NAME` and `${NAME}` are replaced \
             anywhere in it. Maximum 107 bytes, the directory's included.",
        )
        .required()
        .environment(),
        BACKLOG,
    ],
};

pub(super) const TLS_KEY: Key = key(
    "key",
    Kind::Text(Rule::NotEmpty),
    "PEM file of the private key. Relative paths of these keys start at the node's directory.",
)
.required()
.environment();

pub(super) const CERTIFICATE: Key = key(
    "certificate",
    Kind::Text(Rule::NotEmpty),
    "PEM file of the certificate.",
)
.required()
.environment();

pub(super) const CHAIN_CERTIFICATES: Key = key(
    "chain_certificates",
    list(&Kind::Text(Rule::NotEmpty)),
    "PEM files of the intermediate certificates, in order.",
)
.otherwise("none");

const DHPARAM: Key =
    key("dhparam", Kind::Text(Rule::Any), "").inert("keys are agreed over elliptic curves only");

const CIPHERS: Key = key("ciphers", Kind::Text(Rule::Any), "").inert(
    "only forward-secret, authenticated cipher suites are offered (TLS 1.3, and \
     of TLS 1.2 ECDHE with AES-GCM or ChaCha20)",
);

static TLS: Table = Table {
    path: "endpoint[tcp].tls",
    name: "a TLS endpoint",
    keys: &[
        TLS_KEY,
        CERTIFICATE,
        CHAIN_CERTIFICATES,
        key(
            "ca_certificates",
            list_not_empty(&Kind::Text(Rule::NotEmpty)),
            "PEM files of the authorities that sign client certificates. Every client must then present a \
             certificate. Certificates are X.509 version 3.",
        )
        .otherwise("none: clients are not asked for certificates"),
        key(
            "client_certificate",
            Kind::OneOf(&CLIENT_CERTIFICATE),
            "Whether clients need a certificate with `ca_certificates`: `required`, or `optional`, which leaves the \
             choice to the client and the authentication methods.",
        )
        .fallback(Fallback::Text("required"))
        .own(),
        DHPARAM,
        CIPHERS,
    ],
};

static CLIENT_CERTIFICATE: Words = Words {
    path: "endpoint[tcp].tls.client_certificate",
    words: &["required", "optional"],
};
