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
    "How many connections may wait to be accepted.",
)
.fallback(Fallback::Integer(1_024));

const PORT: Key = key(
    "port",
    integer(0, 65_535),
    "The port; 0 takes any that is free.",
)
.otherwise("`portrange` says which")
.environment();

const PORTRANGE: Key = key(
    "portrange",
    Kind::List {
        of: &integer(1, 65_535),
        least: 1,
    },
    "In place of `port`: the first and the last of the ports of which the first that is free is taken.",
)
.otherwise("`port` says which");

const INTERFACE: Key = key(
    "interface",
    Kind::Text(Rule::Interface),
    "The address to listen on.",
)
.otherwise("all interfaces")
.environment();

const VERSION: Key = key(
    "version",
    Kind::Numbers {
        path: "",
        numbers: &[4, 6],
    },
    "The version of IP: 4 or 6.",
)
.otherwise("the interface's, else 4");

const SHARED: Key = key(
    "shared",
    Kind::Boolean,
    "Whether other processes may listen on the port too (`SO_REUSEPORT`).",
)
.fallback(NO);

const USER_TIMEOUT: Key = key(
    "user_timeout",
    integer(0, 65_535),
    "How long sent bytes may stay unacknowledged, or a peer that does not read may take nothing, \
     before the system gives the connection up, in milliseconds (`TCP_USER_TIMEOUT`); 0: the \
     system decides.",
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
        key("tls", Kind::Object(&TLS), "TLS on the port.").otherwise("none"),
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
            "The socket's file; a relative path begins at the node's directory. `$NAME` and `${NAME}` are replaced \
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
    "The file of the private key (PEM); a relative path begins at the node's \
     directory, as for all of these.",
)
.required()
.environment();

pub(super) const CERTIFICATE: Key = key(
    "certificate",
    Kind::Text(Rule::NotEmpty),
    "The file of the certificate (PEM).",
)
.required()
.environment();

pub(super) const CHAIN_CERTIFICATES: Key = key(
    "chain_certificates",
    list(&Kind::Text(Rule::NotEmpty)),
    "The files of the certificates between it and the root (PEM), in order.",
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
            "The files of the authorities (PEM) of which one must have signed the certificate \
             that every client then has to show. Certificates are of X.509 version 3.",
        )
        .otherwise("clients are not asked for certificates"),
        key(
            "client_certificate",
            Kind::OneOf(&CLIENT_CERTIFICATE),
            "Whether a client may do without a certificate where `ca_certificates` are given: `required`, or \
             `optional`, which leaves it to the client and to the methods of authentication.",
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
