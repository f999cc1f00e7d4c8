//! Realms of several nodes: every key that is taken.

use super::form::{Fallback, Key, Kind, Rule, Table, Words, key, list, list_not_empty};

pub(super) static FABRIC: Table = Table {
    path: "realms[].fabric",
    name: "a realm's fabric",
    keys: &[
        key(
            "nats",
            Kind::Object(&NATS),
            "The servers of NATS that the realm's nodes meet on. The realm has a connection of its own to one of them.",
        )
        .required()
        .own(),
        key(
            "detached",
            Kind::OneOf(&DETACHED),
            "What the realm does while no server is reached: `serve` goes on with this node's sessions alone; `refuse` \
             lets nobody in, and refuses what is published with `wamp.error.network_failure`.",
        )
        .fallback(Fallback::Text("serve"))
        .own(),
        key(
            "locality",
            Kind::OneOf(&LOCALITY),
            "Who serves calls of a procedure that several nodes have callees of: `spread` has the registration's policy \
             choose among all of them, `prefer` among those of the caller's node, where there are any.",
        )
        .fallback(Fallback::Text("spread"))
        .own(),
        key(
            "single",
            Kind::OneOf(&SINGLE),
            "Who may have the one callee of a procedure while nodes do not see each other: `fast` lets each part of them have \
             one, and takes it from one of them when they see each other again; `strict` asks JetStream, which grants it to one \
             node, and refuses with `wamp.error.network_failure` where that cannot be reached.",
        )
        .fallback(Fallback::Text("fast"))
        .own(),
        key(
            "single_replicas",
            Kind::Numbers {
                path: "realms[].fabric.single_replicas",
                numbers: &[1, 3, 5],
            },
            "How many servers keep what is granted where `single` is `strict`; of a bucket that is there already it is not \
             changed.",
        )
        .fallback(Fallback::Integer(3))
        .own(),
        key(
            "local_prefixes",
            list(&Kind::Text(Rule::NotEmpty)),
            "Topics that begin with one of these stay on their node.",
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
    "Where the servers are: `nats://host:port`, or `tls://host:port` where TLS is demanded. One that is \
     reached is kept until it is lost.",
)
.required()
.own();

pub(super) const CREDENTIALS: Key = key(
    "credentials",
    Kind::Text(Rule::Path),
    "The file with the seed of the node's nkey, alone or with a JWT as `nsc` writes it. A relative path begins \
     at the node's directory.",
)
.otherwise("none are shown")
.own();

pub(super) const CA_CERTIFICATES: Key = key(
    "ca_certificates",
    list(&Kind::Text(Rule::Path)),
    "The files of the certificates that are trusted (PEM), with TLS; relative paths begin at the node's directory.",
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
