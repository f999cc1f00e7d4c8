//! Keys of realms on several nodes.

use super::form::{Kind, Rule, list, list_not_empty, object, one_of, text};
use super::table::tables;

tables! {
    pub(super) static FABRIC("realms[].fabric", "a realm's fabric") {
        "nats" = object(&NATS).required().own(),
            "NATS servers that connect the realm's nodes. The realm has its own connection to one of them.";
        "detached" = one_of(&DETACHED).or_text("serve").own(),
            "Behaviour without a connection to NATS. `serve` continues with this node's sessions alone. `refuse` \
             rejects new sessions, and publications with `wamp.error.network_failure`.";
        "locality" = one_of(&LOCALITY).or_text("spread").own(),
            "Choice of the callee for a procedure with callees on several nodes. `spread` applies the \
             registration's policy to all of them. `prefer` applies it to those of the caller's node, if it has \
             any.";
        "single" = one_of(&SINGLE).or_text("fast").own(),
            "Handling of single-callee procedures while nodes cannot reach each other. `fast` lets each part have a \
             callee, and revokes all but one when the parts reconnect. With `strict`, JetStream grants the procedure \
             to one node; if JetStream cannot be reached, REGISTER fails with `wamp.error.network_failure`.";
        "single_replicas" = Kind::Numbers { path: "realms[].fabric.single_replicas", numbers: &[1, 3, 5] }.or(3).own(),
            "Number of JetStream replicas of the grants with `single: strict`. An existing bucket keeps its number.";
        "local_prefixes" = list(&text(Rule::NotEmpty)).optional().own(),
            "Prefixes of topics whose events stay on their node.";
    }

    static NATS("realms[].fabric.nats", "NATS") {
        ..URLS, CREDENTIALS, CA_CERTIFICATES;
    }

    pub(super) const URLS = "urls": list_not_empty(&text(Rule::NatsUrl)).required().own(),
        "Addresses of the servers: `nats://host:port`, or `tls://host:port` to require TLS. A connection is \
         kept until it is lost.";
    pub(super) const CREDENTIALS = "credentials": text(Rule::Path).optional().own(),
        "File with the seed of the node's nkey, alone or with a JWT as `nsc` writes it. A relative path starts \
         at the node's directory. The file is read again for each connection to NATS.";
    pub(super) const CA_CERTIFICATES = "ca_certificates": list(&text(Rule::Path))
        .otherwise("those that the system trusts").own(),
        "PEM files of trusted certificate authorities for TLS. Relative paths start at the node's directory. They are \
         read again for each connection to NATS.";

    words LOCALITY("realms[].fabric.locality") { "spread", "prefer" }
    words SINGLE("realms[].fabric.single") { "fast", "strict" }
    words DETACHED("realms[].fabric.detached") { "serve", "refuse" }
}
