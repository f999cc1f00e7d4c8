//! Where listeners listen: every key that is taken. Long and flat.

use super::{Fallback, Key, Kind, NO, Rule, TYPE, Table, Tagged, integer, key, list};

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

static TCP_ENDPOINT: Table = Table {
    path: "endpoint[tcp]",
    name: "a TCP endpoint",
    keys: &[
        TYPE,
        key(
            "port",
            integer(0, 65_535),
            "The port; 0 takes any that is free.",
        )
        .required()
        .environment(),
        key(
            "interface",
            Kind::Text(Rule::Interface),
            "The address to listen on.",
        )
        .otherwise("all interfaces")
        .environment(),
        key(
            "version",
            Kind::Numbers {
                path: "",
                numbers: &[4, 6],
            },
            "The version of IP: 4 or 6.",
        )
        .otherwise("the interface's, else 4"),
        BACKLOG,
        key(
            "shared",
            Kind::Boolean,
            "Whether other processes may listen on the port too (`SO_REUSEPORT`).",
        )
        .fallback(NO),
        key(
            "user_timeout",
            integer(0, 65_535),
            "How long sent octets may stay unacknowledged before the connection is \
             given up, in milliseconds (`TCP_USER_TIMEOUT`); 0: the system decides.",
        )
        .fallback(Fallback::Integer(30_000)),
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
            Kind::Text(Rule::NotEmpty),
            "The socket's file; a relative path begins at the node's directory.",
        )
        .required()
        .environment(),
        BACKLOG,
    ],
};

static TLS: Table = Table {
    path: "endpoint[tcp].tls",
    name: "a TLS endpoint",
    keys: &[
        key(
            "key",
            Kind::Text(Rule::NotEmpty),
            "The file of the private key (PEM); a relative path begins at the node's \
             directory, as for all of these.",
        )
        .required()
        .environment(),
        key(
            "certificate",
            Kind::Text(Rule::NotEmpty),
            "The file of the certificate (PEM).",
        )
        .required()
        .environment(),
        key(
            "chain_certificates",
            list(&Kind::Text(Rule::NotEmpty)),
            "The files of the certificates between it and the root (PEM), in order.",
        )
        .otherwise("none"),
        key("dhparam", Kind::Text(Rule::Any), "")
            .inert("keys are agreed over elliptic curves only"),
        key("ciphers", Kind::Text(Rule::Any), "").inert(
            "only forward-secret, authenticated cipher suites are offered (TLS 1.3, and \
             of TLS 1.2 ECDHE with AES-GCM or ChaCha20)",
        ),
    ],
};
