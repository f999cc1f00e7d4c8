//! NATS accounts for realms and replicated vhosts, and the files of their users' keys.

use crosstie_fabric::Subjects;
use crosstie_nats::escaped;
use serde::{Deserialize, Serialize};

use super::nats_server::Account;

/// In the configuration's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Single {
    #[default]
    Fast,
    /// By a majority of the servers.
    Strict,
}

/// With the permissions of docs/fabric.md, and more if procedures are granted strictly.
pub(super) fn account(realm: &str, single: Single) -> Account {
    let subjects = Subjects::new(realm);
    let every = subjects.every();
    let (mut publish, mut subscribe) = (vec![every.clone()], vec![every]);
    if single == Single::Strict {
        let bucket = subjects.bucket();
        let asked = ["STREAM.CREATE", "STREAM.MSG.GET"];
        publish.extend(asked.map(|what| format!("$JS.API.{what}.{bucket}")));
        subscribe.push("_INBOX.>".to_owned());
    }
    Account {
        name: realm.to_owned(),
        publish,
        subscribe,
        has_streams: single == Single::Strict,
        users: Vec::new(),
    }
}

/// With the permissions of docs/replicated-vhosts.md.
pub(super) fn vhost_account(vhost: &str) -> Account {
    let word = escaped(vhost);
    let of_stream = [
        "STREAM.INFO",
        "STREAM.CREATE",
        "STREAM.DELETE",
        "STREAM.PURGE",
        "DIRECT.GET",
    ];
    let asked = of_stream.map(|what| format!("$JS.API.{what}.A1_{word}"));
    let mut publish = vec![format!("A1.{word}.>")];
    publish.extend(asked);
    Account {
        name: format!("vhost-{word}"),
        publish,
        subscribe: vec![
            format!("A1.{word}.beat"),
            format!("A1.{word}.term.*"),
            "_INBOX.>".to_owned(),
        ],
        has_streams: true,
        users: Vec::new(),
    }
}

/// The system account, with the requests by which an operator replaces a server for good.
pub(super) fn system_account() -> Account {
    let asked = [
        "$SYS.REQ.SERVER.PING.JSZ",
        "$JS.API.SERVER.EVACUATE",
        "$JS.API.SERVER.REMOVE",
    ];
    Account {
        name: "$SYS".to_owned(),
        publish: asked.map(str::to_owned).into(),
        subscribe: vec!["_INBOX.>".to_owned()],
        has_streams: false,
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
