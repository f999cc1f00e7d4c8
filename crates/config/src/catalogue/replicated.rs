//! Vhosts that survive their machine: every key that is taken.

use super::endpoint::{CERTIFICATE, CHAIN_CERTIFICATES, TLS_KEY};
use super::fabric::{CA_CERTIFICATES, CREDENTIALS, URLS};
use super::form::{Fallback, Kind, NO, Rule, Table, Words, YES, key, list, list_not_empty};

pub(super) static REPLICATED: Table = Table {
    path: "workers[router].amqp.vhosts[].replicated",
    name: "a replicated vhost",
    keys: &[
        key(
            "nats",
            Kind::Object(&NATS),
            "NATS servers with JetStream that keep the vhost's journal.",
        )
        .required()
        .own(),
        key(
            "replicas",
            Kind::Numbers {
                path: "workers[router].amqp.vhosts[].replicated.replicas",
                numbers: &[1, 3],
            },
            "Number of JetStream replicas of the journal, set when the journal is created. With 1 the vhost survives \
             the loss of its node, but not of that server.",
        )
        .fallback(Fallback::Integer(3))
        .own(),
        key(
            "standby",
            Kind::OneOf(&STANDBY),
            "Role of the node while another node owns the vhost. `warm` follows the journal and takes over first. \
             `cold` reads the journal only at takeover, and needs no memory before.",
        )
        .fallback(Fallback::Text("warm"))
        .own(),
        key(
            "address",
            Kind::Text(Rule::NotEmpty),
            "Address, as `host:port`, at which other nodes reach this node while it owns the vhost. The owner \
             announces it.",
        )
        .otherwise("none")
        .own(),
        key(
            "elsewhere",
            Kind::OneOf(&ELSEWHERE),
            "Handling of clients that open the vhost here while another node owns it. `refuse` closes the connection \
             with 320 (`connection-forced`), so that clients try their next host. `splice` forwards the connection \
             to the owner's `address`; a node with `splice` listens at its own.",
        )
        .fallback(Fallback::Text("refuse"))
        .own(),
        key(
            "tls",
            Kind::Object(&NODES_TLS),
            "TLS between nodes at their `address`. Both sides present a certificate; the listener's must name the \
             host of its address.",
        )
        .otherwise("none, which requires a loopback address or `plain`")
        .own(),
        key(
            "plain",
            Kind::Boolean,
            "Allows connections to be forwarded without TLS to and from other machines. Use it only on a private \
             network. Nodes still authenticate each other by key.",
        )
        .fallback(NO)
        .own(),
        key(
            "keep_local",
            Kind::Boolean,
            "Writes a local copy of the vhost beside the store while this node owns it. No client waits for the \
             copy. It serves recovery after all servers have lost the journal.",
        )
        .fallback(YES)
        .own(),
        key(
            "monitor",
            list(&Kind::Text(Rule::HttpUrl)),
            "Monitoring addresses of the servers (`http://host:8222`). Without a path. Before the node takes \
             over the vhost it asks whether they sync acknowledged data at once (`sync_interval: always`). If most of \
             those that answer do not, it does not take over. A server that does not answer delays nothing.",
        )
        .otherwise("none: the node logs a warning and does not check")
        .own(),
    ],
};

static NATS: Table = Table {
    path: "workers[router].amqp.vhosts[].replicated.nats",
    name: "NATS",
    keys: &[URLS, CREDENTIALS, CA_CERTIFICATES],
};

static NODES_TLS: Table = Table {
    path: "workers[router].amqp.vhosts[].replicated.tls",
    name: "TLS between nodes",
    keys: &[
        TLS_KEY,
        CERTIFICATE,
        CHAIN_CERTIFICATES,
        key(
            "ca_certificates",
            list_not_empty(&Kind::Text(Rule::NotEmpty)),
            "PEM files of the authorities that sign the other nodes' certificates.",
        )
        .required(),
    ],
};

static STANDBY: Words = Words {
    path: "workers[router].amqp.vhosts[].replicated.standby",
    words: &["warm", "cold"],
};

static ELSEWHERE: Words = Words {
    path: "workers[router].amqp.vhosts[].replicated.elsewhere",
    words: &["refuse", "splice"],
};
