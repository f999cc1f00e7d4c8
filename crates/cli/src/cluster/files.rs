//! The files that follow from a plan, as text: the configurations of servers and nodes, and the trusted authorities.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::accounts::{Single, credentials, vhost_credentials};
use super::merge::{REALMS, VHOSTS, name_node, put_into};
use super::names::{AUTHORITIES, CERTIFICATE, KEY, SERVER_CONFIG, in_folder};
use super::nats_server::{Cluster, Listens, Tls, text};
use super::plan::Plan;
use super::server::Server;

/// A file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) text: String,
    /// Readable by its owner only.
    pub(super) is_secret: bool,
}

/// Files by their paths in the cluster's directory.
pub(super) type Files = BTreeMap<String, File>;

/// The AMQP user of the vhosts where the operator gives no configuration.
pub(super) const USER: &str = "app";

/// The file in a node's directory.
pub(super) fn node_config(plan: &Plan) -> &'static str {
    match plan.config {
        Some(_) => "config.json",
        None => "fabric.json",
    }
}

impl File {
    pub(super) fn plain(text: String) -> Self {
        Self {
            text,
            is_secret: false,
        }
    }

    pub(super) fn secret(text: String) -> Self {
        Self {
            text,
            is_secret: true,
        }
    }
}

impl Plan {
    /// All files that follow from it alone.
    pub(super) fn files(&self) -> anyhow::Result<Files> {
        let mut files = Files::new();
        let accounts = self.accounts();
        let tls = self.has_tls().then_some(Tls {
            certificate: CERTIFICATE,
            key: KEY,
            authorities: AUTHORITIES,
        });
        let route = |server: &Server| format!("{}:{}", server.url_host(), server.route_port);
        let cluster = Cluster {
            routes: self.servers.iter().map(route).collect(),
            password: &self.routes_password,
            accounts: &accounts,
            tls: tls.as_ref(),
        };
        for server in &self.servers {
            let at = |port: u16| format!("{}:{port}", server.interface());
            let [clients, routes] = [server.port, server.route_port].map(at);
            let monitoring = self.monitoring_port(server)?.map(at);
            let listens = Listens {
                clients: &clients,
                routes: &routes,
                monitoring: monitoring.as_deref(),
            };
            let text = text(&server.name, &listens, &cluster);
            files.insert(in_folder(&server.name, SERVER_CONFIG), File::secret(text));
        }
        for node in &self.nodes {
            let path = in_folder(&node.name, node_config(self));
            files.insert(path, self.configuration(&node.name)?);
        }
        if self.has_tls() {
            let servers = self.servers.iter().map(|server| &server.name);
            let folders = servers.chain(self.nodes.iter().map(|node| &node.name));
            let path = |folder| in_folder(folder, AUTHORITIES);
            let text = || File::plain(self.authorities.concat());
            files.extend(folders.map(|folder| (path(folder), text())));
        }
        Ok(files)
    }

    /// A node's configuration with its part of the cluster, or that part alone.
    fn configuration(&self, node: &str) -> anyhow::Result<File> {
        if let Some(config) = &self.config {
            let whole = self.joined(config.clone(), node)?;
            return Ok(File::plain(serde_json::to_string_pretty(&whole)? + "\n"));
        }
        let named = |realm: &String| json!({ "name": realm, "fabric": self.fabric(realm) });
        let realms: Vec<_> = self.realms.iter().map(named).collect();
        let mut part = json!({ "realms": realms });
        name_node(&mut part, node)?;
        if !self.vhosts.is_empty() {
            let named = |vhost: &String| {
                json!({
                    "name": vhost,
                    "permissions": [{"user": USER, "configure": ".*", "write": ".*", "read": ".*"}],
                    "replicated": self.replicated(vhost),
                })
            };
            part["amqp"] = json!({
                "users": [{"name": USER, "password": self.user_password}],
                "vhosts": self.vhosts.iter().map(named).collect::<Vec<_>>(),
            });
        }
        Ok(File {
            text: serde_json::to_string_pretty(&part)? + "\n",
            is_secret: !self.vhosts.is_empty(),
        })
    }

    /// A configuration whose realms and vhosts of these names are on all nodes.
    fn joined(&self, mut config: Json, node: &str) -> anyhow::Result<Json> {
        name_node(&mut config, node)?;
        for realm in &self.realms {
            let part = ("fabric", self.fabric(realm));
            put_into(&mut config, ("realm", REALMS), realm, part)?;
        }
        for vhost in &self.vhosts {
            let part = ("replicated", self.replicated(vhost));
            put_into(&mut config, ("vhost", VHOSTS), vhost, part)?;
        }
        Ok(config)
    }

    fn fabric(&self, realm: &str) -> Json {
        let mut fabric = json!({ "nats": self.nats(&credentials(realm)) });
        if self.single == Single::Strict {
            fabric["single"] = "strict".into();
            fabric["single_replicas"] = 3.into();
        }
        fabric
    }

    /// A node's configuration of a replicated vhost.
    fn replicated(&self, vhost: &str) -> Json {
        let scheme = if self.has_tls() { "https" } else { "http" };
        let monitor = self.servers.iter().filter_map(|server| {
            let port = server.monitoring_port().ok()?;
            Some(format!("{scheme}://{}:{port}", server.url_host()))
        });
        json!({
            "nats": self.nats(&vhost_credentials(vhost)),
            "replicas": 3,
            "monitor": monitor.collect::<Vec<_>>(),
        })
    }

    fn nats(&self, credentials: &str) -> Json {
        let scheme = if self.has_tls() { "tls" } else { "nats" };
        let url = |server: &Server| format!("{scheme}://{}:{}", server.url_host(), server.port);
        let urls: Vec<_> = self.servers.iter().map(url).collect();
        let mut nats = json!({ "urls": urls, "credentials": credentials });
        if self.has_tls() {
            nats["ca_certificates"] = json!([AUTHORITIES]);
        }
        nats
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::super::seeds;
    use super::*;

    #[test]
    fn a_fabric_is_put_into_the_realm_of_that_name_once() {
        let realms =
            |realms: Json| json!({ "workers": [{ "type": "container" }, { "realms": realms }] });
        let joined = |config: Json| {
            let plan = Plan {
                vhosts: Vec::new(),
                ..plan(Some(config.clone()))
            };
            plan.joined(config, "node1")
        };
        let made = joined(realms(json!([{ "name": "a" }, { "name": "com.example" }])));
        let made = made.expect("it has the realm");
        assert_eq!(made["workers"][1]["realms"][0], json!({ "name": "a" }));
        let fabric = &made["workers"][1]["realms"][1]["fabric"]["nats"];
        assert_eq!(fabric["urls"][2], "nats://127.0.0.1:4224");
        assert_eq!(fabric["credentials"], "com.example.nk");
        for (config, why) in [
            (realms(json!([])), "no realm 'com.example'"),
            (
                realms(json!([{ "name": "com.example", "fabric": {} }])),
                "already",
            ),
            (
                realms(json!([{ "name": "com.example" }, { "name": "com.example" }])),
                "several",
            ),
        ] {
            let error = joined(config).expect_err("it is refused").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_vhost_is_replicated_by_all_servers() {
        let config = json!({ "workers": [{
            "realms": [{ "name": "com.example" }],
            "amqp": { "vhosts": [{ "name": "/" }, { "name": "other" }] },
        }] });
        let made = plan(None)
            .joined(config, "node1")
            .expect("it has the vhost");
        let vhosts = &made["workers"][0]["amqp"]["vhosts"];
        assert_eq!(vhosts[1], json!({ "name": "other" }));
        let replicated = &vhosts[0]["replicated"];
        assert_eq!(replicated["replicas"], 3);
        assert_eq!(replicated["nats"]["credentials"], "vhost-=2F.nk");
        assert_eq!(replicated["monitor"][2], "http://127.0.0.1:8224");
        let none = plan(None).joined(
            json!({ "workers": [{ "realms": [{ "name": "com.example" }] }] }),
            "node1",
        );
        let error = none.expect_err("it has no vhost").to_string();
        assert!(error.contains("no vhost '/'"), "{error}");
    }

    #[test]
    fn a_part_has_a_user_who_may_use_the_vhosts() {
        let files = plan(None).files().expect("they can be made");
        let part = |node: &str| -> Json {
            let file = files.get(&in_folder(node, "fabric.json"));
            let file = file.expect("every node has one");
            assert!(file.is_secret, "it has a password");
            serde_json::from_str(&file.text).expect("it is JSON")
        };
        let [first, second] = ["node1", "node2"].map(|node| part(node)["amqp"].clone());
        assert_eq!(first["users"], second["users"]);
        assert_eq!(first["users"][0]["name"], USER);
        assert_eq!(first["users"][0]["password"], "using");
        assert_eq!(first["vhosts"][0]["permissions"][0]["user"], USER);
    }

    #[test]
    fn what_is_granted_strictly_has_streams_and_no_monitoring() {
        let mut plan = Plan {
            single: Single::Strict,
            vhosts: Vec::new(),
            ..plan(None)
        };
        seeds::complete(&mut plan).expect("they can be made");
        let files = plan.files().expect("they can be made");
        let named = |name: &str| &*files.get(name).expect("it is made").text;
        let server = named("nats2/nats.conf");
        assert!(server.contains("jetstream: enabled") && !server.contains("http"));
        assert!(server.contains("$JS.API.STREAM.MSG.GET.W1_com=2Eexample"));
        let node: Json = serde_json::from_str(named("node1/fabric.json")).expect("it is JSON");
        assert_eq!(node["realms"][0]["fabric"]["single"], "strict");
    }
}
