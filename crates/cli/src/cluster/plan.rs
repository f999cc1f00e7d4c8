//! The plan of a cluster: its NATS servers, its nodes and its realms; and all its files, as text.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use crosstie_config::NatsUrl;
use crosstie_nats::nkey;
use crosstie_node::directory::NodeKey;
use serde_json::{Value as Json, json};

use super::accounts::{Single, account, credentials, vhost_account, vhost_credentials};
use super::merge::{REALMS, VHOSTS, name_node, put_into};
use super::nats_server::{Account, Cluster, Listens, Tls, User, password, text};

/// The address of a server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// The port for other servers.
    pub(super) route_port: u16,
}

/// The requested cluster.
pub(super) struct Plan {
    pub(super) servers: Vec<Server>,
    pub(super) nodes: Vec<String>,
    pub(super) realms: Vec<String>,
    /// How single-callee procedures of these realms are granted.
    pub(super) single: Single,
    /// Replicated AMQP vhosts.
    pub(super) vhosts: Vec<String>,
    /// For all servers together, or for each one.
    pub(super) tls: Option<Vec<TlsFiles>>,
    /// The configuration of all nodes, apart from the fabric of their realms.
    pub(super) config: Option<Json>,
}

/// A server's TLS files, as texts.
pub(super) struct TlsFiles {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) authorities: String,
}

/// A file to be written.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Readable by its owner only.
    pub(super) is_secret: bool,
}

/// The AMQP user of the vhosts where the operator gives no configuration.
pub(super) const USER: &str = "app";

const AUTHORITIES: &str = "ca.pem";
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";

impl Server {
    pub(super) fn parse(place: usize, text: &str, route_port: Option<u16>) -> anyhow::Result<Self> {
        let url = NatsUrl::parse(&format!("nats://{text}"));
        let url = url.map_err(|_| anyhow::anyhow!("--server {text}: expected HOST:PORT"))?;
        let port = route_port.or_else(|| url.port.checked_add(ROUTE_PORT_ABOVE));
        Ok(Self {
            name: format!("nats{}", place + 1),
            route_port: port.with_context(|| {
                format!("--server {text}: {ROUTE_PORT_ABOVE} more is no port; name one with --route-port")
            })?,
            host: url.host,
            port: url.port,
        })
    }

    /// The host in the form of URLs.
    fn url_host(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        }
    }

    /// The monitoring port: 8222 for 4222, as with NATS' defaults.
    fn monitoring_port(&self) -> anyhow::Result<u16> {
        let port = self.port.checked_add(MONITORING_PORT_ABOVE);
        port.with_context(|| {
            format!(
                "--server {}:{}: {MONITORING_PORT_ABOVE} more is no port for its monitoring",
                self.host, self.port
            )
        })
    }

    pub(super) fn is_here(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The address that it listens at: its own if it is an address, because a name may resolve to another machine's.
    fn interface(&self) -> String {
        match self.host.parse::<std::net::IpAddr>() {
            Ok(_) => self.url_host(),
            Err(_) if self.is_here() => "127.0.0.1".to_owned(),
            Err(_) => "0.0.0.0".to_owned(),
        }
    }
}

/// From NATS' port for clients to that for routes, as with NATS' defaults.
const ROUTE_PORT_ABOVE: u16 = 2_000;

/// And to that for monitoring.
const MONITORING_PORT_ABOVE: u16 = 4_000;

impl Plan {
    /// Checks that all of it can be made.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let names = self.servers.iter().map(|server| &server.name);
        let folders: Vec<_> = names.chain(&self.nodes).collect();
        for (what, names) in [
            ("--realm", self.realms.iter().collect()),
            ("--node", folders),
        ] {
            ensure!(!names.is_empty(), "{what}: expected at least one");
            let mut seen = std::collections::BTreeSet::new();
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
        let mut seen = std::collections::BTreeSet::new();
        for vhost in &self.vhosts {
            ensure!(seen.insert(vhost), "--vhost {vhost}: that name is in use");
        }
        let mut ports = std::collections::BTreeSet::new();
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
    fn monitoring_port(&self, server: &Server) -> anyhow::Result<Option<u16>> {
        match self.vhosts.is_empty() {
            true => Ok(None),
            false => server.monitoring_port().map(Some),
        }
    }

    /// All files, with new keys in them.
    pub(super) fn files(&self) -> anyhow::Result<Vec<File>> {
        let mut files = Vec::new();
        let realms = self.realms.iter();
        let realms = realms.map(|realm| (credentials(realm), account(realm, self.single)));
        let vhosts = self.vhosts.iter();
        let vhosts = vhosts.map(|vhost| (vhost_credentials(vhost), vhost_account(vhost)));
        let (keys, mut accounts): (Vec<_>, Vec<_>) = realms.chain(vhosts).unzip();
        let user_password = password()?;
        for node in &self.nodes {
            let folder = Path::new(node);
            for (key_file, account) in keys.iter().zip(&mut accounts) {
                let key = NodeKey::generate()?;
                let (public, seed) = key.octets();
                account.users.push(User {
                    node: node.clone(),
                    nkey: nkey::write_user(public),
                });
                files.push(File {
                    path: folder.join(key_file),
                    text: nkey::write_user_seed(seed) + "\n",
                    is_secret: true,
                });
            }
            files.push(self.configuration(node, &user_password)?);
            if let Some(tls) = &self.tls {
                let mut all: Vec<_> = tls.iter().map(|tls| &*tls.authorities).collect();
                all.dedup();
                files.push(plain(folder.join(AUTHORITIES), all.concat()));
            }
        }
        files.extend(self.of_servers(&accounts)?);
        Ok(files)
    }

    /// The servers' files.
    fn of_servers(&self, accounts: &[Account]) -> anyhow::Result<Vec<File>> {
        let mut files = Vec::new();
        let password = password()?;
        let tls = self.tls.as_ref().map(|_| Tls {
            certificate: CERTIFICATE,
            key: KEY,
            authorities: AUTHORITIES,
        });
        let route = |server: &Server| format!("{}:{}", server.url_host(), server.route_port);
        let cluster = Cluster {
            routes: self.servers.iter().map(route).collect(),
            password: &password,
            accounts,
            tls: tls.as_ref(),
        };
        for (place, server) in self.servers.iter().enumerate() {
            let folder = Path::new(&server.name);
            let at = |port: u16| format!("{}:{port}", server.interface());
            files.push(File {
                path: folder.join("nats.conf"),
                text: text(
                    &server.name,
                    &Listens {
                        clients: &at(server.port),
                        routes: &at(server.route_port),
                        monitoring: self.monitoring_port(server)?.map(at).as_deref(),
                    },
                    &cluster,
                ),
                is_secret: true,
            });
            if let Some(tls) = self
                .tls
                .as_ref()
                .and_then(|all| all.get(place).or_else(|| all.first()))
            {
                files.push(plain(folder.join(CERTIFICATE), tls.certificate.clone()));
                files.push(plain(folder.join(AUTHORITIES), tls.authorities.clone()));
                files.push(File {
                    path: folder.join(KEY),
                    text: tls.key.clone(),
                    is_secret: true,
                });
            }
        }
        Ok(files)
    }

    /// A node's configuration with its part of the cluster, or that part alone. `user_password` is equal on all nodes.
    fn configuration(&self, node: &str, user_password: &str) -> anyhow::Result<File> {
        let path = |name: &str| Path::new(node).join(name);
        if let Some(config) = &self.config {
            let whole = self.joined(config.clone(), node)?;
            let text = serde_json::to_string_pretty(&whole)? + "\n";
            return Ok(plain(path("config.json"), text));
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
                "users": [{"name": USER, "password": user_password}],
                "vhosts": self.vhosts.iter().map(named).collect::<Vec<_>>(),
            });
        }
        Ok(File {
            path: path("fabric.json"),
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
        let scheme = if self.tls.is_some() { "https" } else { "http" };
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
        let scheme = match self.tls {
            Some(_) => "tls",
            None => "nats",
        };
        let url = |server: &Server| format!("{scheme}://{}:{}", server.url_host(), server.port);
        let urls: Vec<_> = self.servers.iter().map(url).collect();
        let mut nats = json!({ "urls": urls, "credentials": credentials });
        if self.tls.is_some() {
            nats["ca_certificates"] = json!([AUTHORITIES]);
        }
        nats
    }
}

fn plain(path: PathBuf, text: String) -> File {
    File {
        path,
        text,
        is_secret: false,
    }
}

/// It is part of files' names, and of NATS' configuration.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(config: Option<Json>) -> Plan {
        let server =
            |place: usize| Server::parse(place, &format!("127.0.0.1:{}", 4222 + place), None);
        Plan {
            servers: (0..3)
                .map(|place| server(place).expect("it is one"))
                .collect(),
            nodes: vec!["node1".to_owned(), "node2".to_owned()],
            realms: vec!["com.example".to_owned()],
            single: Single::Fast,
            vhosts: vec!["/".to_owned()],
            tls: None,
            config,
        }
    }

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
        check(|p| p.nodes.push("nats1".to_owned()), "in use");
        check(|p| p.nodes.push("../up".to_owned()), "letters");
        check(|p| p.servers[1].route_port = 4222, "taken twice");
        check(|p| p.servers.clear(), "at least one");
        for wrong in ["host", "host:0", "a b:1", "h:65000"] {
            assert!(Server::parse(0, wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_node_has_a_key_of_its_own_that_the_servers_know() {
        let files = plan(None).files().expect("they can be made");
        let named = |name: &str| {
            let found = files.iter().find(|file| file.path == Path::new(name));
            found.unwrap_or_else(|| panic!("there is no {name}"))
        };
        let seeds = ["node1", "node2"].map(|node| named(&format!("{node}/com.example.nk")));
        assert!(seeds.iter().all(|seed| seed.is_secret));
        assert_ne!(seeds[0].text, seeds[1].text);
        let texts =
            ["nats1", "nats2", "nats3"].map(|name| &*named(&format!("{name}/nats.conf")).text);
        let users = texts.map(|text| text.lines().filter(|line| line.contains("nkey: U")).count());
        // For the realm, and for the vhost.
        assert_eq!(users, [4; 3]);
        assert!(texts[1].contains("$JS.API.STREAM.INFO.A1_=2F"));
        assert!(texts[1].contains("http: \"127.0.0.1:8223\""));
        assert!(texts[0].contains("W1.com=2Eexample.>"));
        assert!(!texts[0].contains("W1_com=2Eexample"));
    }

    #[test]
    fn a_part_has_a_user_who_may_use_the_vhosts() {
        let files = plan(None).files().expect("they can be made");
        let part = |node: &str| -> Json {
            let path = Path::new(node).join("fabric.json");
            let file = files.iter().find(|file| file.path == path);
            let file = file.expect("every node has one");
            assert!(file.is_secret, "it has a password");
            serde_json::from_str(&file.text).expect("it is JSON")
        };
        let [first, second] = ["node1", "node2"].map(|node| part(node)["amqp"].clone());
        assert_eq!(first["users"], second["users"]);
        assert_eq!(first["users"][0]["name"], USER);
        assert_eq!(
            first["users"][0]["password"].as_str().map(str::len),
            Some(48)
        );
        assert_eq!(first["vhosts"][0]["permissions"][0]["user"], USER);
    }

    #[test]
    fn what_is_granted_strictly_has_streams_and_no_monitoring() {
        let plan = Plan {
            single: Single::Strict,
            vhosts: Vec::new(),
            ..plan(None)
        };
        let files = plan.files().expect("they can be made");
        let named = |name: &str| {
            let found = files.iter().find(|file| file.path == Path::new(name));
            &*found.unwrap_or_else(|| panic!("there is no {name}")).text
        };
        let server = named("nats2/nats.conf");
        assert!(server.contains("jetstream: enabled") && !server.contains("http"));
        assert!(server.contains("$JS.API.STREAM.MSG.GET.W1_com=2Eexample"));
        let node: Json = serde_json::from_str(named("node1/fabric.json")).expect("it is JSON");
        assert_eq!(node["realms"][0]["fabric"]["single"], "strict");
    }
}
