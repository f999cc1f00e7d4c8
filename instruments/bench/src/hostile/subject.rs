//! The subjects: our own node, restarted for each attack so that its memory is comparable, peers started likewise, or a
//! foreign router and broker, which stay.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crosstie_wamp::Serializer;
use serde_json::{Value, json};

use super::attacks::web::{FILE, FILE_BYTES, FILES_PATH, LONGPOLL_PATH};
use super::catalogue::Setting;
use super::options::{HostileOptions, HostilePeer};
use super::ways::{Pages, Ways};
use crate::broker::Broker;
use crate::broker::url::ACCOUNT;
use crate::error::BenchError;
use crate::frame::OWN;
use crate::machine::{allowed_cores, process_tree, process_trees};
use crate::network::Network;
use crate::peer::StartedPeer;
use crate::peer::rabbitmq::{BrokerPeer, RabbitMq};
use crate::subject::{
    Case, Endpoint, NodeDirectory, REALM, ServerProcess, Socket, Target, Transport, Url, guarded,
    own_program,
};

/// The subject that takes its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Own,
    Foreign,
    Peer(HostilePeer),
}

/// A running subject, and its addresses.
pub(super) struct Started {
    pub(super) ways: Ways,
    server: Server,
}

enum Server {
    Own(ServerProcess),
    Crossbar(StartedPeer),
    RabbitMq(Box<RabbitMq>),
    Foreign(Vec<u32>),
}

pub(super) struct Starting<'a> {
    pub(super) options: &'a HostileOptions,
    pub(super) executable: &'a Path,
    /// An empty directory of its own.
    pub(super) directory: &'a Path,
    pub(super) network: &'a Network,
}

const PATIENCE: Duration = Duration::from_secs(20);

/// The transports and serializers of attackers.
const SPOKEN: [(Transport, Serializer); 4] = [
    (Transport::RawSocket, Serializer::MsgPack),
    (Transport::WebSocket, Serializer::MsgPack),
    (Transport::WebSocket, Serializer::Json),
    (Transport::WebSocketBatched, Serializer::Json),
];

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own => OWN,
            Self::Foreign => "the one at the URL",
            Self::Peer(HostilePeer::Wamp(peer)) => peer.name(),
            Self::Peer(HostilePeer::Amqp(peer)) => peer.name(),
        }
    }

    /// Starts it; `None` if it is not installed.
    pub(super) fn start(
        self,
        setting: Setting,
        starting: &Starting<'_>,
    ) -> Result<Option<Started>, BenchError> {
        match self {
            Self::Own => start_own(setting, starting).map(Some),
            Self::Foreign => Ok(Some(foreign(starting.options))),
            Self::Peer(HostilePeer::Wamp(peer)) => {
                // Its batches need a library, and no other WebSocket has any.
                let cases: Vec<Case> = SPOKEN.iter().take(3).map(case).collect();
                let Starting {
                    directory,
                    executable,
                    network,
                    ..
                } = starting;
                let started = peer.start(&cases, directory, executable, network)?;
                Ok(started.map(|started| Started {
                    ways: Ways {
                        targets: started.targets.iter().map(|(_, t)| t.clone()).collect(),
                        ..Ways::default()
                    },
                    server: Server::Crossbar(started),
                }))
            }
            Self::Peer(HostilePeer::Amqp(BrokerPeer::RabbitMq)) => {
                let started =
                    RabbitMq::start(starting.directory, starting.executable, starting.network, 1)?;
                Ok(started.map(|started| Started {
                    ways: Ways {
                        broker: Some(started.broker.clone()),
                        ..Ways::default()
                    },
                    server: Server::RabbitMq(Box::new(started)),
                }))
            }
        }
    }
}

impl Started {
    /// All its current processes; empty if unknown.
    pub(super) fn processes(&self) -> Vec<u32> {
        match &self.server {
            Server::Own(process) => process_tree(process.id()),
            Server::Crossbar(started) => process_tree(started.process.id()),
            Server::RabbitMq(started) => started.processes(),
            Server::Foreign(processes) => process_trees(processes),
        }
    }

    pub(super) fn is_alive(&mut self) -> bool {
        match &mut self.server {
            Server::Own(process) => process.is_alive(),
            Server::Crossbar(started) => started.process.is_alive(),
            Server::RabbitMq(started) => started.is_alive(),
            Server::Foreign(processes) => processes
                .iter()
                .all(|process| Path::new(&format!("/proc/{process}")).exists()),
        }
    }
}

fn case((transport, serializer): &(Transport, Serializer)) -> Case {
    Case {
        socket: Socket::Tcp,
        transport: *transport,
        serializer: *serializer,
    }
}

fn foreign(options: &HostileOptions) -> Started {
    let spoken = |url: &Url| -> Vec<Target> {
        let all = SPOKEN.iter().map(case);
        let cases = all.filter(|case| case.transport.is_websocket() == url.websocket);
        cases.map(|case| url.target(case, &options.realm)).collect()
    };
    let pages = options.url.as_ref().and_then(|url| match url.endpoint {
        Endpoint::Tcp(address) => Some(Pages {
            address,
            host: url.host.clone(),
        }),
        Endpoint::Unix(_) => None,
    });
    Started {
        ways: Ways {
            targets: options.url.as_ref().map(spoken).unwrap_or_default(),
            broker: options.amqp_url.clone(),
            pages,
            web: None,
        },
        server: Server::Foreign(options.common.pids.clone()),
    }
}

fn start_own(setting: Setting, starting: &Starting<'_>) -> Result<Started, BenchError> {
    let wamp = starting.network.free_server_address()?;
    let mut amqp = starting.network.free_server_address()?;
    // A free port may be given out twice.
    while amqp == wamp {
        amqp = starting.network.free_server_address()?;
    }
    let directory = starting.directory;
    let node = NodeDirectory {
        config: config(setting, wamp, amqp),
        directory,
        options: &["--loglevel", "warn"],
        patience: PATIENCE,
    };
    let files = directory.join(FILES_PATH);
    fs::create_dir_all(&files)?;
    fs::write(files.join(FILE), vec![b'x'; FILE_BYTES])?;
    let command = own_command(setting, starting)?;
    let endpoints = [wamp, amqp].map(Endpoint::Tcp);
    let process = ServerProcess::start_node(command, OWN, &node, endpoints)?;
    let target = |spoken| Target::own(Endpoint::Tcp(wamp), case(spoken), "/ws");
    let pages = Pages {
        address: wamp,
        host: wamp.to_string(),
    };
    Ok(Started {
        ways: Ways {
            targets: SPOKEN.iter().map(target).collect(),
            broker: Some(Broker::own(amqp)),
            web: (setting == Setting::WebServices).then(|| pages.clone()),
            pages: Some(pages),
        },
        server: Server::Own(process),
    })
}

fn own_command(setting: Setting, starting: &Starting<'_>) -> Result<Command, BenchError> {
    let place = starting.network.server_place(&allowed_cores()?);
    let executable = starting.executable;
    if setting != Setting::FewDescriptors {
        return Ok(guarded(executable, &place, &own_program()?));
    }
    // The hard limit too: a node that raises the soft one must not circumvent it.
    let mut command = guarded(executable, &place, Path::new("/bin/sh"));
    command
        .args(["-c", "ulimit -n 1024 && exec \"$0\" \"$@\""])
        .arg(own_program()?);
    Ok(command)
}

/// All permissions for all clients, with default options.
fn config(setting: Setting, wamp: SocketAddr, amqp: SocketAddr) -> Value {
    let websocket = match setting {
        Setting::Compression => json!({ "options": { "compression": { "deflate": {} } } }),
        _ => json!({}),
    };
    let mut broker = json!({
        "users": [{ "name": ACCOUNT, "password": ACCOUNT }],
        "vhosts": [{
            "name": "/",
            "permissions": [{
                "user": ACCOUNT, "configure": ".*", "write": ".*", "read": ".*"
            }]
        }],
        "store": "amqp.store"
    });
    if setting == Setting::LittleMemory {
        broker["limits"] = json!({ "memory_bytes_max": 256 << 20 });
    }
    let mut universal = json!({
        "type": "universal",
        "rawsocket": {},
        "websocket": { "ws": websocket },
        "pages": ["health", "metrics"]
    });
    if setting == Setting::WebServices {
        universal["web"] = json!({ "paths": {
            FILES_PATH: { "type": "static", "directory": FILES_PATH },
            LONGPOLL_PATH: { "type": "longpoll" }
        } });
    }
    let endpoint = |address: SocketAddr| json!({ "type": "tcp", "interface": address.ip().to_string(), "port": address.port() });
    universal["endpoint"] = endpoint(wamp);
    json!({
        "version": 2,
        "workers": [{
            "type": "router",
            "realms": [{
                "name": REALM,
                "roles": [{
                    "name": "anonymous",
                    "permissions": [{
                        "uri": "*",
                        "allow": {
                            "call": true, "register": true, "publish": true, "subscribe": true
                        }
                    }]
                }]
            }],
            "amqp": broker,
            "transports": [
                universal,
                { "type": "amqp", "endpoint": endpoint(amqp) }
            ]
        }]
    })
}
