//! Crossbar.io, with a node directory for the given cases: one router worker, one transport per case, everything
//! allowed to `anonymous`, warnings logged only.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::StartedPeer;
use crate::error::BenchError;
use crate::machine::allowed_cores;
use crate::network::Network;
use crate::subject::{
    Case, Endpoint, NodeDirectory, ServerProcess, Socket, Target, guarded, node_configuration,
};

/// It starts in three to five seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn start(
    cases: &[Case],
    directory: &Path,
    executable: &Path,
    network: &Network,
) -> Result<Option<StartedPeer>, BenchError> {
    let Some(crossbar) = find_on_path("crossbar") else {
        return Ok(None);
    };
    let node = directory.join("crossbar");
    let mut targets = Vec::new();
    for case in cases {
        let address = network.free_server_address()?;
        targets.push((*case, target(*case, &node, address)));
    }
    let place = network.server_place(&allowed_cores()?);
    let command = guarded(executable, &place, &crossbar);
    let node = NodeDirectory {
        config: node_config(&targets),
        directory: &node,
        options: &["--loglevel", "warn"],
        patience: PATIENCE,
    };
    let endpoints = targets.iter().map(|(_, target)| target.endpoint.clone());
    let process = ServerProcess::start_node(command, "crossbar", &node, endpoints)?;
    Ok(Some(StartedPeer {
        version: version(&crossbar),
        process,
        targets,
    }))
}

/// The transports' endpoints, each case with its own.
fn target(case: Case, node: &Path, address: SocketAddr) -> Target {
    let endpoint = match case.socket {
        Socket::Unix => Endpoint::Unix(node.join(format!("{case}.sock"))),
        Socket::Tcp => Endpoint::Tcp(address),
    };
    Target::own(endpoint, case, "/")
}

fn node_config(targets: &[(Case, Target)]) -> Value {
    let transports = targets.iter();
    let transports = transports.map(|(case, target)| transport(*case, target));
    node_configuration("anonymous", transports.collect())
}

fn transport(case: Case, target: &Target) -> Value {
    let endpoint = match &target.endpoint {
        Endpoint::Unix(path) => json!({ "type": "unix", "path": path }),
        Endpoint::Tcp(address) => json!({
            "type": "tcp", "interface": address.ip().to_string(), "port": address.port()
        }),
    };
    let kind = if case.transport.is_websocket() {
        "websocket"
    } else {
        "rawsocket"
    };
    json!({ "type": kind, "endpoint": endpoint, "serializers": [case.serializer.name()] })
}

/// The program of that name that a shell would run.
pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| {
            fs::metadata(path)
                .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
}

/// Its own version text; empty if it prints none.
pub(crate) fn version(crossbar: &Path) -> String {
    let output = Command::new(crossbar).arg("version").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    parse_version(&String::from_utf8_lossy(&text))
}

fn parse_version(text: &str) -> String {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == name).then(|| value.trim().to_owned())
        })
    };
    match (field("Crossbar.io"), field("Python")) {
        (Some(version), Some(python)) => format!("{version}, Python {python}"),
        (version, _) => version.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_its_transport() {
        let node = Path::new("/tmp/node");
        let [unix, tcp] = Case::OF_THE_DOCUMENT;
        let address = ([127, 0, 0, 1], 9000).into();
        let targets = [unix, tcp].map(|case| (case, target(case, node, address)));
        let config = node_config(&targets);
        let transports = &config["workers"][0]["transports"];
        assert_eq!(
            transports[0],
            json!({
                "type": "rawsocket",
                "endpoint": { "type": "unix", "path": "/tmp/node/uds-rawsocket-msgpack.sock" },
                "serializers": ["msgpack"]
            })
        );
        assert_eq!(transports[1]["type"], "websocket");
        assert_eq!(transports[1]["endpoint"]["interface"], "127.0.0.1");
        assert_eq!(transports[1]["serializers"], json!(["json"]));
    }

    #[test]
    fn versions() {
        #[track_caller]
        fn check(text: &str, version: &str) {
            assert_eq!(parse_version(text), version);
        }
        let text = "    :::   Crossbar.io v26.10.1 [20261021]\n\n \
                    Crossbar.io      : 26.10.1\n   txaio  : 26.6.1\n   \
                    Python           : 3.11.7/CPython\n";
        check(text, "26.10.1, Python 3.11.7/CPython");
        check("", "");
    }
}
