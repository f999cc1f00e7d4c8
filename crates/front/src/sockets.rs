//! Listening sockets: binds them, and accepts connections.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosstie_config as model;
use crosstie_transport::descriptors::is_shortage;
use crosstie_transport::passed::Wanted;
use crosstie_transport::{Endpoint, Listener, Socket, TcpOptions, Workers};

use crate::report;

/// Binds the endpoint, or adopts the socket that another process of the node passed for the listener of that name or
/// address. `stall_max` limits the time that sent bytes stay unacknowledged, unless the endpoint has a `user_timeout`.
/// Needs a tokio context, which then accepts.
pub fn bind(
    name: &str,
    endpoint: &model::Endpoint,
    nodelay: bool,
    mode: Option<u32>,
    directory: &Path,
    stall_max: Duration,
) -> io::Result<Listener> {
    match endpoint {
        model::Endpoint::Tcp(tcp) => {
            let options = options(tcp, nodelay, stall_max);
            let wanted = Wanted::Tcp {
                interface: tcp.interface,
                port: tcp.port,
                last: tcp.port_last,
            };
            let passed = Listener::adopt_passed(name, wanted, &options)?;
            passed.map_or_else(|| bind_first_free(tcp, options), Ok)
        }
        model::Endpoint::Unix { path, backlog, .. } => {
            let (path, backlog) = (directory.join(path), *backlog as i32);
            let options = options_of_unix(backlog);
            let passed = Listener::adopt_passed(name, Wanted::Unix(&path), &options)?;
            let endpoint = Endpoint::Unix {
                path,
                backlog,
                mode,
            };
            passed.map_or_else(|| Listener::bind(endpoint), Ok)
        }
        model::Endpoint::Systemd(given) => {
            Listener::adopt_handed(&given.name, &options_of_handed(given, nodelay, stall_max))
        }
        other => Err(io::Error::other(format!(
            "endpoint {other:?} is not known here"
        ))),
    }
}

/// Gives a listener the options of an endpoint with its address. They apply to connections that it accepts later.
pub fn adjust(
    listener: &Listener,
    endpoint: &model::Endpoint,
    nodelay: bool,
    stall_max: Duration,
) -> io::Result<()> {
    match endpoint {
        model::Endpoint::Tcp(tcp) => listener.adjust(&options(tcp, nodelay, stall_max)),
        model::Endpoint::Unix { backlog, .. } => listener.adjust(&options_of_unix(*backlog as i32)),
        model::Endpoint::Systemd(given) => {
            listener.adjust(&options_of_handed(given, nodelay, stall_max))
        }
        _ => Ok(()),
    }
}

fn options(tcp: &model::TcpEndpoint, nodelay: bool, stall_max: Duration) -> TcpOptions {
    TcpOptions {
        backlog: tcp.backlog as i32,
        shared: tcp.shared,
        user_timeout: tcp.user_timeout.unwrap_or(stall_max),
        nodelay,
        ..TcpOptions::default()
    }
}

fn options_of_unix(backlog: i32) -> TcpOptions {
    TcpOptions {
        backlog,
        ..TcpOptions::default()
    }
}

fn options_of_handed(
    given: &model::SystemdEndpoint,
    nodelay: bool,
    stall_max: Duration,
) -> TcpOptions {
    TcpOptions {
        user_timeout: given.user_timeout.unwrap_or(stall_max),
        nodelay,
        ..TcpOptions::default()
    }
}

/// Binds the port, or the first free one of a range.
fn bind_first_free(tcp: &model::TcpEndpoint, options: TcpOptions) -> io::Result<Listener> {
    let (interface, first) = (tcp.interface, tcp.port);
    let bind = |port| {
        let address = SocketAddr::new(interface, port);
        Listener::bind(Endpoint::Tcp { address, options })
    };
    let Some(last) = tcp.port_last else {
        return bind(first);
    };
    let is_taken = |bound: &io::Result<Listener>| {
        let error = bound.as_ref().err();
        error.is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    let mut bound = (first..=last).map(bind);
    bound.find(|bound| !is_taken(bound)).unwrap_or_else(|| {
        let text = format!("{interface}: no port from {first} to {last} is free");
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    })
}

/// The path of a Unix endpoint.
pub fn unix_path(endpoint: &model::Endpoint, directory: &Path) -> Option<PathBuf> {
    match endpoint {
        model::Endpoint::Unix { path, .. } => Some(directory.join(path)),
        _ => None,
    }
}

/// Waits for the next connection; pauses while none can be accepted.
pub async fn accept(listener: &Listener, workers: &Workers) -> Socket {
    loop {
        match listener.accept().await {
            Ok(socket) => return socket,
            Err(e) => {
                // Usually a lack of descriptors, which ends with the next closed connection.
                report::cannot_accept(&e);
                if is_shortage(&e) && listener.turn_away() {
                    // The next connection waits already, and other tasks do, too.
                    tokio::task::yield_now().await;
                    continue;
                }
                let pause = async { tokio::time::sleep(Duration::from_millis(100)).await };
                // The pause is cancelled only if the router stops.
                let _ = workers.spawn_keeper(pause).await;
            }
        }
    }
}
