//! What an account of NATS is for a realm, and for a vhost that survives its machine; and the files of its users' keys.

use crosstie_fabric::Subjects;
use crosstie_nats::escaped;

use super::nats_server::Account;

pub(super) fn account(realm: &str) -> Account {
    let every = Subjects::new(realm).every();
    Account {
        name: realm.to_owned(),
        publish: vec![every.clone()],
        subscribe: vec![every],
        has_streams: false,
        users: Vec::new(),
    }
}

/// As docs/replicated-vhosts.md says what a node needs.
pub(super) fn vhost_account(vhost: &str) -> Account {
    let word = escaped(vhost);
    let of_stream = ["STREAM.INFO", "STREAM.CREATE", "STREAM.PURGE", "DIRECT.GET"];
    let asked = of_stream.map(|what| format!("$JS.API.{what}.A1_{word}"));
    let mut publish = vec![format!("A1.{word}.>")];
    publish.extend(asked);
    Account {
        name: format!("vhost-{word}"),
        publish,
        subscribe: vec![format!("A1.{word}.beat"), "_INBOX.>".to_owned()],
        has_streams: true,
        users: Vec::new(),
    }
}

/// The file with a node's key for a vhost, in the node's directory.
pub(super) fn vhost_credentials(vhost: &str) -> String {
    format!("vhost-{}.nk", escaped(vhost))
}

/// The file with a node's key for a realm, in the node's directory.
pub(super) fn credentials(realm: &str) -> String {
    format!("{realm}.nk")
}
