//! The configuration of a NATS server, as in docs/fabric.md.

use std::fmt::Write as _;

use anyhow::Context as _;

/// The parts common to all servers of a cluster.
pub(super) struct Cluster<'c> {
    /// The servers' addresses for routes.
    pub(super) routes: Vec<String>,
    pub(super) password: &'c str,
    pub(super) accounts: &'c [Account],
    pub(super) tls: Option<&'c Tls>,
}

/// A realm's or a vhost's account. Accounts are isolated: none receives another's messages, or can send to it.
pub(super) struct Account {
    pub(super) name: String,
    /// The subjects that its nodes publish, and subscribe.
    pub(super) publish: Vec<String>,
    pub(super) subscribe: Vec<String>,
    /// Its messages are stored in streams.
    pub(super) has_streams: bool,
    pub(super) users: Vec<User>,
}

/// A key of a node in it.
pub(super) struct User {
    /// The comment above it.
    pub(super) whose: String,
    pub(super) nkey: String,
}

/// Names of files in the server's directory.
pub(super) struct Tls {
    pub(super) certificate: &'static str,
    pub(super) key: &'static str,
    pub(super) authorities: &'static str,
}

/// The user of routes between servers.
const ROUTE_USER: &str = "routes";

/// The addresses of a server.
pub(super) struct Listens<'l> {
    /// For nodes.
    pub(super) clients: &'l str,
    /// For other servers.
    pub(super) routes: &'l str,
    /// For monitoring.
    pub(super) monitoring: Option<&'l str>,
}

pub(super) fn text(name: &str, listens: &Listens<'_>, cluster: &Cluster<'_>) -> String {
    let Listens {
        clients,
        routes,
        monitoring,
    } = listens;
    let mut text = format!(
        "# A server of NATS that nodes of Crosstie meet on. Start it in this directory: nats-server -c nats.conf\n\
         server_name: \"{name}\"\n\
         listen: \"{clients}\"\n\
         \n\
         # The longest event; the longest subject; what may wait for a node.\n\
         max_payload: 8MB\n\
         max_control_line: 32KB\n\
         max_pending: 256MB\n\
         ping_interval: \"5s\"\n\
         # A node that reads slowly makes nobody wait.\n\
         no_fast_producer_stall: true\n"
    );
    // Writing to a string cannot fail, here and below.
    if let Some(tls) = cluster.tls {
        let _ = write!(text, "\ntls {}", files(tls));
    }
    text += &streams(*monitoring, cluster);
    let _ = write!(
        text,
        "\ncluster {{\n  name: \"crosstie\"\n  listen: \"{routes}\"\n"
    );
    let password = cluster.password;
    let _ = writeln!(
        text,
        "  authorization {{ user: \"{ROUTE_USER}\", password: \"{password}\" }}"
    );
    if let Some(tls) = cluster.tls {
        let _ = write!(text, "  tls {}", files(tls));
    }
    // A machine that is cut off sends no end of its connections.
    text += "  ping_interval: \"2s\"\n  ping_max: 2\n";
    text += "  routes: [\n";
    for route in &cluster.routes {
        let _ = writeln!(text, "    \"nats-route://{ROUTE_USER}:{password}@{route}\"");
    }
    text += "  ]\n}\n\n# An account for each realm and vhost, a user for each node in it.\naccounts {\n";
    for account in cluster.accounts {
        let _ = writeln!(text, "  \"{}\" {{", account.name);
        if account.has_streams {
            text += "    jetstream: enabled\n";
        }
        text += "    users: [\n";
        let (publish, subscribe) = (listed(&account.publish), listed(&account.subscribe));
        for User { whose, nkey } in &account.users {
            let _ = writeln!(
                text,
                "      # {whose}\n      {{ nkey: {nkey}, permissions: {{ publish: {publish}, subscribe: {subscribe} }} }}"
            );
        }
        text += "    ]\n  }\n";
    }
    text += "}\n";
    text
}

/// The JetStream settings, if an account has streams, and the monitoring address.
fn streams(monitoring: Option<&str>, cluster: &Cluster<'_>) -> String {
    let mut text = String::new();
    if cluster.accounts.iter().any(|account| account.has_streams) {
        text += "\n# Streams, of which nothing is acknowledged that is not on the disk.\n\
             jetstream { store_dir: \"jetstream\", sync_interval: always }\n";
    }
    if let Some(monitoring) = monitoring {
        let scheme = match cluster.tls {
            Some(_) => "https",
            None => "http",
        };
        let _ = write!(
            text,
            "# Nodes ask whether that is so.\n{scheme}: \"{monitoring}\"\n"
        );
    }
    text
}

/// The password of the routes between the cluster's servers.
pub(super) fn password() -> anyhow::Result<String> {
    let mut octets = [0; 24];
    getrandom::fill(&mut octets).context("the system gives no random bytes")?;
    let digits = octets.iter().map(|octet| format!("{octet:02x}"));
    Ok(digits.collect())
}

fn listed(subjects: &[String]) -> String {
    let subjects = subjects.iter().map(|subject| format!("\"{subject}\""));
    format!("[{}]", subjects.collect::<Vec<_>>().join(", "))
}

fn files(tls: &Tls) -> String {
    let Tls {
        certificate,
        key,
        authorities,
    } = tls;
    format!("{{ cert_file: \"{certificate}\", key_file: \"{key}\", ca_file: \"{authorities}\" }}\n")
}
