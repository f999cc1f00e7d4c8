//! Sockets that listen: binding them, and accepting connections from them.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosstie_config as model;
use crosstie_transport::descriptors::is_shortage;
use crosstie_transport::{Endpoint, Listener, Socket, TcpOptions, Workers};

use crate::report;

/// Binds the endpoint. Bytes that a peer does not acknowledge wait for `stall_max`, unless the endpoint has a
/// `user_timeout`. Needs a tokio context, which then accepts.
pub(crate) fn bind(
    endpoint: &model::Endpoint,
    nodelay: bool,
    mode: Option<u32>,
    directory: &Path,
    stall_max: Duration,
) -> io::Result<Listener> {
    match endpoint {
        model::Endpoint::Tcp(tcp) => {
            let options = TcpOptions {
                backlog: tcp.backlog as i32,
                shared: tcp.shared,
                user_timeout: tcp.user_timeout.unwrap_or(stall_max),
                nodelay,
                ..TcpOptions::default()
            };
            bind_first_free(tcp, options)
        }
        model::Endpoint::Unix { path, backlog } => Listener::bind(Endpoint::Unix {
            path: directory.join(path),
            backlog: *backlog as i32,
            mode,
        }),
        other => Err(io::Error::other(format!(
            "endpoint {other:?} is not known here"
        ))),
    }
}

/// Binds the port, or the first of several that is free.
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
pub(crate) fn unix_path(endpoint: &model::Endpoint, directory: &Path) -> Option<PathBuf> {
    match endpoint {
        model::Endpoint::Unix { path, .. } => Some(directory.join(path)),
        _ => None,
    }
}

/// The next connection; waits as long as none can be accepted.
pub(crate) async fn accept(listener: &Listener, workers: &Workers) -> Socket {
    loop {
        match listener.accept().await {
            Ok(socket) => return socket,
            Err(e) => {
                // Mostly a lack of descriptors, which passes when a connection ends.
                report::cannot_accept(&e);
                if is_shortage(&e) && listener.turn_away() {
                    // The next one waits already, and so do other tasks.
                    tokio::task::yield_now().await;
                    continue;
                }
                let pause = async { tokio::time::sleep(Duration::from_millis(100)).await };
                // Only a router that stops cancels it.
                let _ = workers.spawn_keeper(pause).await;
            }
        }
    }
}
