//! Keys of replicated vhosts.

use super::endpoint::{CERTIFICATE, CHAIN_CERTIFICATES, TLS_KEY};
use super::fabric::{CA_CERTIFICATES, CREDENTIALS, URLS};
use super::form::{Kind, OFF, ON, Rule, list, list_not_empty, object, one_of, text};
use super::table::tables;

tables! {
    pub(super) static REPLICATED("workers[router].amqp.vhosts[].replicated", "a replicated vhost") {
        "nats" = object(&NATS).required().own(), "NATS servers with JetStream that keep the vhost's journal.";
        "replicas" = Kind::Numbers { path: "workers[router].amqp.vhosts[].replicated.replicas", numbers: &[1, 3] }
            .or(3).own(),
            "Number of JetStream replicas of the journal, set when the journal is created. With 1 the vhost \
             survives the loss of its node, but not of that server.";
        "standby" = one_of(&STANDBY).or_text("warm").own(),
            "Role of the node while another node owns the vhost. `warm` follows the journal and takes over first. \
             `cold` reads the journal only at takeover, and needs no memory before.";
        "address" = text(Rule::NotEmpty).optional().own(),
            "Address, as `host:port`, at which other nodes reach this node while it owns the vhost. The owner \
             announces it.";
        "elsewhere" = one_of(&ELSEWHERE).or_text("refuse").own(),
            "Handling of clients that open the vhost here while another node owns it. `refuse` closes the \
             connection with 320 (`connection-forced`), so that clients try their next host. `splice` forwards the \
             connection to the owner's `address`; a node with `splice` listens at its own.";
        "tls" = object(&NODES_TLS).otherwise("none, which requires a loopback address or `plain`").own(),
            "TLS between nodes at their `address`. Both sides present a certificate; the listener's must name the \
             host of its address.";
        "plain" = OFF.own(),
            "Allows connections to be forwarded without TLS to and from other machines. Use it only on a private \
             network. Nodes still authenticate each other by key.";
        "keep_local" = ON.own(),
            "Writes a local copy of the vhost beside the store while this node owns it. No client waits for the \
             copy. It serves recovery after all servers have lost the journal.";
        "monitor" = list(&text(Rule::HttpUrl)).otherwise("none: the node logs a warning and does not check").own(),
            "Monitoring addresses of the servers (`http://host:8222`), without a path. Before the node takes over the \
             vhost it asks whether they sync acknowledged data at once (`sync_interval: always`). If most of those that \
             answer do not, it does not take over. A server that does not answer delays nothing.";
    }

    static NATS("workers[router].amqp.vhosts[].replicated.nats", "NATS") {
        ..URLS, CREDENTIALS, CA_CERTIFICATES;
    }

    /// PEM files of connections between nodes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NodesTls = static NODES_TLS("workers[router].amqp.vhosts[].replicated.tls", "TLS between nodes") {
        ..TLS_KEY => key: String;
        ..CERTIFICATE => certificate: String;
        ..CHAIN_CERTIFICATES => chain_certificates: Vec<String>;
        ca_certificates => authorities: Vec<String> = list_not_empty(&text(Rule::NotEmpty)).required(),
            "PEM files of the authorities that sign the other nodes' certificates.";
    }

    words STANDBY("workers[router].amqp.vhosts[].replicated.standby") { "warm", "cold" }
    words ELSEWHERE("workers[router].amqp.vhosts[].replicated.elsewhere") { "refuse", "splice" }
}
