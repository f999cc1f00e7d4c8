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
            "The servers of NATS, with JetStream, that keep the vhost's journal.",
        )
        .required()
        .own(),
        key(
            "replicas",
            Kind::Numbers {
                path: "workers[router].amqp.vhosts[].replicated.replicas",
                numbers: &[1, 3],
            },
            "How many of the servers have the journal, from when it is made. With 1 the vhost survives its node and not that server.",
        )
        .fallback(Fallback::Integer(3))
        .own(),
        key(
            "standby",
            Kind::OneOf(&STANDBY),
            "What the node does while another one owns the vhost: `warm` reads along, and takes the vhost over first; `cold` \
             reads when it takes the vhost over, and needs no memory before.",
        )
        .fallback(Fallback::Text("warm"))
        .own(),
        key(
            "address",
            Kind::Text(Rule::NotEmpty),
            "Where other nodes reach this one while it owns the vhost, as `host:port`; they are told.",
        )
        .otherwise("they are told none")
        .own(),
        key(
            "elsewhere",
            Kind::OneOf(&ELSEWHERE),
            "What becomes of a client that opens the vhost here while another node owns it: `refuse` closes its connection \
             with 320 (`connection-forced`), upon which clients try the next of their hosts; `splice` has the owner serve it, \
             to whose `address` its octets are passed on. A node with `splice` listens there.",
        )
        .fallback(Fallback::Text("refuse"))
        .own(),
        key(
            "tls",
            Kind::Object(&NODES_TLS),
            "How nodes speak to each other at their `address`: both show a certificate, the one that listens one that names \
             the host of its address.",
        )
        .otherwise("plainly, which takes a loopback address or `plain`")
        .own(),
        key(
            "plain",
            Kind::Boolean,
            "Whether clients may be passed on without TLS to and from other machines: where nobody else is on the network. \
             Nodes know each other by a key all the same.",
        )
        .fallback(NO)
        .own(),
        key(
            "keep_local",
            Kind::Boolean,
            "Whether the node, while it owns the vhost, also keeps what is in it in a file of its own, beside the store. Nobody waits \
             for that; it is there for the day on which all servers have lost the journal.",
        )
        .fallback(YES)
        .own(),
        key(
            "monitor",
            list(&Kind::Text(Rule::HttpUrl)),
            "The monitoring addresses of the servers (`http://host:8222`). Each is asked whether it writes what it acknowledges to the \
             disk at once (`sync_interval: always`); where one does not, the node does not take the vhost over.",
        )
        .otherwise("that is not checked, which a warning says")
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
            "The files of the authorities (PEM) of which one must have signed the other node's certificate.",
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
