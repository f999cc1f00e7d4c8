//! Our own broker: a node with MQTT in a realm, plain and over TLS, started as by a user.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::tls::Certificate;
use crate::error::BenchError;
use crate::frame::{OWN, Site};
use crate::subject::{
    Endpoint, NodeDirectory, REALM, ServerProcess, guarded, node_configuration, own_program,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Starts it in a directory of that name, and waits until it accepts.
pub(super) fn start(
    site: &Site,
    name: &str,
    (plain, tls): (SocketAddr, SocketAddr),
    certificate: &Certificate,
) -> Result<ServerProcess, BenchError> {
    let directory = site.directory.path().join(name);
    let place = site.network.server_place(&site.allowed);
    let node = NodeDirectory {
        config: configuration(plain, tls, certificate),
        directory: &directory,
        options: &["--loglevel", "error"],
        patience: PATIENCE,
    };
    let command = guarded(&site.executable, &place, &own_program()?);
    let endpoints = [plain, tls].map(Endpoint::Tcp);
    ServerProcess::start_node(command, OWN, &node, endpoints)
}

/// One thread: it has one core in each placement that a goal judges. A session that is away keeps all messages of a
/// round.
fn configuration(plain: SocketAddr, tls: SocketAddr, certificate: &Certificate) -> Value {
    let transport = |address: SocketAddr, tls: Option<Value>| {
        let mut endpoint = json!({
            "type": "tcp",
            "interface": address.ip().to_string(),
            "port": address.port()
        });
        if let Some(tls) = tls {
            endpoint["tls"] = tls;
        }
        json!({ "type": "mqtt", "endpoint": endpoint, "options": { "realm": REALM } })
    };
    let files = json!({
        "certificate": path(&certificate.certificate),
        "key": path(&certificate.key)
    });
    let transports = json!([transport(plain, None), transport(tls, Some(files))]);
    let mut config = node_configuration("anonymous", transports);
    config["workers"][0]["options"] = json!({ "threads": 1 });
    // Kept sessions are on the disk; others pay nothing for that.
    config["workers"][0]["realms"][0]["mqtt_store"] = json!("mqtt.store");
    config["limits"] = json!({
        "mqtt_queued_messages_max": 60_000,
        "mqtt_queued_bytes_max": 1 << 30
    });
    config
}

fn path(file: &Path) -> String {
    file.display().to_string()
}
