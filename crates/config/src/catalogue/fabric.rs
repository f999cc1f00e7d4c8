//! Realms of several nodes: every key that is taken.

use super::form::{Fallback, Key, Kind, Rule, Table, Words, key, list, list_not_empty};

pub(super) static FABRIC: Table = Table {
    path: "realms[].fabric",
    name: "a realm's fabric",
    keys: &[
        key(
            "nats",
            Kind::Object(&NATS),
            "NATS servers that connect the realm's nodes. The realm has its own connection to one of them.",
        )
        .required()
        .own(),
        key(
            "detached",
            Kind::OneOf(&DETACHED),
            "Behaviour without a connection to NATS. `serve` continues with this node's sessions alone. `refuse` \
             rejects new sessions, and publications with `wamp.error.network_failure`.",
        )
        .fallback(Fallback::Text("serve"))
        .own(),
        key(
            "locality",
            Kind::OneOf(&LOCALITY),
            "Choice of the callee for a procedure with callees on several nodes. `spread` applies the registration's \
             policy to all of them. `prefer` applies it to those of the caller's node, if it has any.",
        )
        .fallback(Fallback::Text("spread"))
        .own(),
        key(
            "single",
            Kind::OneOf(&SINGLE),
            "Handling of single-callee procedures while nodes cannot reach each other. `fast` lets each part have a \
             callee, and revokes all but one when the parts reconnect. With `strict`, JetStream grants the procedure \
             to one node; if JetStream cannot be reached, REGISTER fails with `wamp.error.network_failure`.",
        )
        .fallback(Fallback::Text("fast"))
        .own(),
        key(
            "single_replicas",
            Kind::Numbers {
                path: "realms[].fabric.single_replicas",
                numbers: &[1, 3, 5],
            },
            "Number of JetStream replicas of the grants with `single: strict`. An existing bucket keeps its number.",
        )
        .fallback(Fallback::Integer(3))
        .own(),
        key(
            "local_prefixes",
            list(&Kind::Text(Rule::NotEmpty)),
            "Prefixes of topics whose events stay on their node.",
        )
        .otherwise("none")
        .own(),
    ],
};

static NATS: Table = Table {
    path: "realms[].fabric.nats",
    name: "NATS",
    keys: &[URLS, CREDENTIALS, CA_CERTIFICATES],
};

pub(super) const URLS: Key = key(
    "urls",
    list_not_empty(&Kind::Text(Rule::NatsUrl)),
    "Addresses of the servers: `nats://host:port`, or `tls://host:port` to require TLS. A connection is kept until \
     it is lost.",
)
.required()
.own();

pub(super) const CREDENTIALS: Key = key(
    "credentials",
    Kind::Text(Rule::Path),
    "File with the seed of the node's nkey, alone or with a JWT as `nsc` writes it. A relative path starts at the \
     node's directory.",
)
.otherwise("none")
.own();

pub(super) const CA_CERTIFICATES: Key = key(
    "ca_certificates",
    list(&Kind::Text(Rule::Path)),
    "PEM files of trusted certificate authorities for TLS. Relative paths start at the node's directory.",
)
.otherwise("those that the system trusts")
.own();

static LOCALITY: Words = Words {
    path: "realms[].fabric.locality",
    words: &["spread", "prefer"],
};

static SINGLE: Words = Words {
    path: "realms[].fabric.single",
    words: &["fast", "strict"],
};

static DETACHED: Words = Words {
    path: "realms[].fabric.detached",
    words: &["serve", "refuse"],
};
