//! The plan of a cluster: its NATS servers, its nodes and their public keys, its realms and its vhosts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::accounts::{
    Single, account, credentials, system_account, vhost_account, vhost_credentials,
};
use super::names::{PENDING, RECORD, SYSTEM};
use super::nats_server::{Account, User};
use super::server::Server;

/// The cluster. The files of its servers and nodes follow from it, apart from seeds and certificates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) servers: Vec<Server>,
    /// Number of servers that ever had a name. JetStream knows a server by its name, so no name is used again.
    pub(super) servers_named: usize,
    pub(super) nodes: Vec<Node>,
    /// Public keys of the operator's user in the system account, the newest first; none without streams.
    pub(super) system_keys: Vec<String>,
    pub(super) realms: Vec<String>,
    /// How single-callee procedures of these realms are granted.
    pub(super) single: Single,
    /// Replicated AMQP vhosts.
    pub(super) vhosts: Vec<String>,
    /// Certificates of the trusted authorities (PEM), the newest first; none without TLS.
    pub(super) authorities: Vec<String>,
    /// The password of the routes between servers.
    pub(super) routes_password: String,
    /// The password of the AMQP user of the vhosts, if there is no configuration.
    pub(super) user_password: String,
    /// The configuration of all nodes, apart from the fabric of their realms.
    pub(super) config: Option<Json>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Node {
    pub(super) name: String,
    /// Public keys by the file of their seed, the newest first.
    pub(super) keys: BTreeMap<String, Vec<String>>,
}

impl Node {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            keys: BTreeMap::new(),
        }
    }

    /// Whether it is one of these nodes: another machine with the same name shares no key.
    pub(super) fn is_among(&self, nodes: &[Self]) -> bool {
        let shares_key = |other: &Self| {
            let keys = self.keys.iter();
            keys.flat_map(|(file, keys)| keys.iter().map(move |key| (file, key)))
                .any(|(file, key)| other.keys.get(file).is_some_and(|keys| keys.contains(key)))
        };
        nodes
            .iter()
            .any(|other| other.name == self.name && shares_key(other))
    }
}

impl Plan {
    /// Checks that all of it can be made.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let servers = self.servers.iter().map(|server| &server.name);
        let folders: Vec<_> = servers
            .chain(self.nodes.iter().map(|node| &node.name))
            .collect();
        for name in [SYSTEM, RECORD, PENDING] {
            let is_free = !folders.iter().any(|folder| *folder == name);
            ensure!(is_free, "--node {name}: that name is in use by a file");
        }
        for (what, names) in [
            ("--realm", self.realms.iter().collect()),
            ("--node", folders),
        ] {
            ensure!(!names.is_empty(), "{what}: expected at least one");
            let mut seen = BTreeSet::new();
            for name in names {
                ensure!(
                    is_name(name),
                    "{what} {name}: expected letters, digits, '.', '-' and '_', the first a letter or digit"
                );
                ensure!(seen.insert(name), "{what} {name}: that name is in use");
            }
        }
        ensure!(!self.servers.is_empty(), "--server: expected at least one");
        // Fewer have no majority when one is gone, or never.
        let has_majority = self.servers.len() >= 3;
        ensure!(
            self.vhosts.is_empty() || has_majority,
            "--vhost: expected three servers at least (--server)"
        );
        ensure!(
            self.single == Single::Fast || has_majority,
            "--single strict: expected three servers at least (--server)"
        );
        let mut seen = BTreeSet::new();
        for vhost in &self.vhosts {
            ensure!(seen.insert(vhost), "--vhost {vhost}: that name is in use");
        }
        let mut ports = BTreeSet::new();
        for server in &self.servers {
            let monitoring = self.monitoring_port(server)?;
            for port in [server.port, server.route_port]
                .into_iter()
                .chain(monitoring)
            {
                let is_new = ports.insert((&server.host, port));
                ensure!(is_new, "port {port} of {} is taken twice", server.host);
            }
        }
        Ok(())
    }

    /// A server's monitoring port, if nodes need it: those of a vhost do.
    pub(super) fn monitoring_port(&self, server: &Server) -> anyhow::Result<Option<u16>> {
        match self.vhosts.is_empty() {
            true => Ok(None),
            false => server.monitoring_port().map(Some),
        }
    }

    pub(super) fn has_tls(&self) -> bool {
        !self.authorities.is_empty()
    }

    /// Its servers store streams.
    pub(super) fn has_streams(&self) -> bool {
        self.single == Single::Strict || !self.vhosts.is_empty()
    }

    /// The files of a node's keys.
    pub(super) fn key_files(&self) -> Vec<String> {
        let realms = self.realms.iter().map(|realm| credentials(realm));
        let vhosts = self.vhosts.iter().map(|vhost| vhost_credentials(vhost));
        realms.chain(vhosts).collect()
    }

    /// The accounts of the servers, with the users of all nodes.
    pub(super) fn accounts(&self) -> Vec<Account> {
        let realms = self.realms.iter();
        let realms = realms.map(|realm| (credentials(realm), account(realm, self.single)));
        let vhosts = self.vhosts.iter();
        let vhosts = vhosts.map(|vhost| (vhost_credentials(vhost), vhost_account(vhost)));
        let accounts = realms.chain(vhosts).map(|(file, mut account)| {
            for node in &self.nodes {
                let keys = node.keys.get(&file);
                add_users(&mut account, &node.name, keys.map_or(&[], Vec::as_slice));
            }
            account
        });
        let mut accounts: Vec<_> = accounts.collect();
        if !self.system_keys.is_empty() {
            let mut account = system_account();
            add_users(&mut account, "the operator", &self.system_keys);
            accounts.push(account);
        }
        accounts
    }
}

/// Adds a user for each key, the newest first.
fn add_users(account: &mut Account, who: &str, keys: &[String]) {
    for (place, key) in keys.iter().enumerate() {
        let whose = match place {
            0 => who.to_owned(),
            _ => format!("{who}, until its former key is dropped"),
        };
        account.users.push(User {
            whose,
            nkey: key.clone(),
        });
    }
}

/// It is part of files' names, and of NATS' configuration.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A plan with two nodes, without keys.
    pub(in super::super) fn plan(config: Option<Json>) -> Plan {
        let server = |number: usize| {
            let text = format!("127.0.0.1:{}", 4221 + number);
            Server::parse(number, &text, None).expect("it is one")
        };
        Plan {
            servers: (1..=3).map(server).collect(),
            servers_named: 3,
            nodes: ["node1", "node2"].map(Node::new).into(),
            system_keys: Vec::new(),
            realms: vec!["com.example".to_owned()],
            single: Single::Fast,
            vhosts: vec!["/".to_owned()],
            authorities: Vec::new(),
            routes_password: "routing".to_owned(),
            user_password: "using".to_owned(),
            config,
        }
    }

    #[test]
    fn impossible_plans_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut Plan), expected: &str) {
            let mut plan = plan(None);
            change(&mut plan);
            let error = plan.check().expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(plan(None).check().is_ok());
        check(|p| p.realms.push("a\"b".to_owned()), "letters");
        check(|p| p.realms.push("com.example".to_owned()), "in use");
        check(|p| p.vhosts.push("/".to_owned()), "in use");
        check(|p| p.servers[0].port = 65_000, "monitoring");
        check(|p| p.servers.truncate(2), "--vhost: expected three servers");
        let strict_on_two = |p: &mut Plan| {
            (p.vhosts, p.single) = (Vec::new(), Single::Strict);
            p.servers.truncate(2);
        };
        check(strict_on_two, "--single strict: expected three servers");
        check(|p| p.nodes.push(Node::new("nats1")), "in use");
        check(|p| p.nodes.push(Node::new("../up")), "letters");
        check(|p| p.nodes.push(Node::new("system.nk")), "by a file");
        check(|p| p.servers[1].route_port = 4222, "taken twice");
        check(|p| p.servers.clear(), "at least one");
        for wrong in ["host", "host:0", "a b:1", "h:65000"] {
            assert!(Server::parse(1, wrong, None).is_err(), "{wrong}");
        }
    }
}
