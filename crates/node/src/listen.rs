//! Listeners: accepting connections and giving each its thread.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crosstie_config::{self as model, Page, RawSocket, TransportKind};
use crosstie_transport::tls::{self, TlsFiles, TlsStage};
use crosstie_transport::{
    Connection, ConnectionStream, Ended, Endpoint, Listener, Socket, Stage, TcpOptions, Workers,
    pump,
};
use parking_lot::Mutex;

use crate::conversation::Conversation;
use crate::counters::counters;
use crate::router::Router;
use crate::{pages, report, upgrade};

/// What all connections of one listener share.
pub(crate) struct Listening {
    pub(crate) router: Arc<Router>,
    pub(crate) rawsocket: Option<RawSocket>,
    pub(crate) websockets: Vec<upgrade::Endpoint>,
    pub(crate) pages: Vec<Page>,
    tls: Option<Arc<tls::ServerConfig>>,
    connections: AtomicUsize,
    connections_max: usize,
}

impl Listening {
    pub(crate) fn new(
        router: Arc<Router>,
        transport: &model::Transport,
        directory: &Path,
    ) -> io::Result<Self> {
        let (rawsocket, websockets) = match &transport.kind {
            TransportKind::RawSocket(rawsocket) => (Some(rawsocket.clone()), Vec::new()),
            TransportKind::WebSocket(websocket) => (None, vec![(None, websocket.clone())]),
            TransportKind::Universal {
                rawsocket,
                websocket,
            } => {
                let by_path = websocket
                    .iter()
                    .map(|(path, w)| (Some(path.clone()), w.clone()));
                (rawsocket.clone(), by_path.collect())
            }
            other => {
                return Err(io::Error::other(format!(
                    "transport {other:?} is not known here"
                )));
            }
        };
        let tls = match &transport.endpoint {
            model::Endpoint::Tcp(tcp) => tcp.tls.as_ref().map(|tls| {
                let at = |path: &String| directory.join(path);
                tls::server_config(&TlsFiles {
                    certificate: at(&tls.certificate),
                    key: at(&tls.key),
                    chain: tls.chain_certificates.iter().map(at).collect(),
                    client_authorities: Vec::new(),
                })
            }),
            _ => None,
        };
        Ok(Self {
            router,
            rawsocket,
            websockets,
            pages: transport.pages.clone(),
            tls: tls.transpose()?,
            connections: AtomicUsize::new(0),
            connections_max: transport.connections_max.unwrap_or(usize::MAX),
        })
    }

    fn admit(&self) -> bool {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= self.connections_max {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let admitted = self.router.admit();
        if !admitted {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        }
        admitted
    }

    fn release(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        self.router.release();
    }
}

/// Binds the endpoint. Needs a tokio context, which then accepts.
pub(crate) fn bind(endpoint: &model::Endpoint, directory: &Path) -> io::Result<Listener> {
    Listener::bind(match endpoint {
        model::Endpoint::Tcp(tcp) => Endpoint::Tcp {
            address: SocketAddr::new(tcp.interface, tcp.port),
            options: TcpOptions {
                backlog: tcp.backlog as i32,
                shared: tcp.shared,
                user_timeout: tcp.user_timeout.unwrap_or(Duration::ZERO),
                nodelay: true,
            },
        },
        model::Endpoint::Unix { path, backlog } => Endpoint::Unix {
            path: directory.join(path),
            backlog: *backlog as i32,
        },
        other => {
            return Err(io::Error::other(format!(
                "endpoint {other:?} is not known here"
            )));
        }
    })
}

/// The address a listener of this endpoint is found at, for people.
pub(crate) fn unix_path(endpoint: &model::Endpoint, directory: &Path) -> Option<PathBuf> {
    match endpoint {
        model::Endpoint::Unix { path, .. } => Some(directory.join(path)),
        _ => None,
    }
}

/// Accepts connections for ever and deals them out to the threads in turn.
pub(crate) async fn accept(listening: Arc<Listening>, listener: Listener, workers: Arc<Workers>) {
    loop {
        match listener.accept().await {
            Ok(socket) if listening.admit() => {
                workers.spawn(serve(Arc::clone(&listening), socket));
            }
            Ok(_) => counters().connection_refused(),
            Err(e) => {
                // Mostly a lack of descriptors, which passes when a connection ends.
                tracing::error!("cannot accept a connection: {e}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// One connection, from its first octet to its end.
async fn serve(listening: Arc<Listening>, socket: Socket) {
    counters().connection_opened();
    if let Some(connection) = connection(&listening, socket) {
        let mut conversation = Box::new(Conversation::new(
            Arc::clone(&listening),
            Arc::clone(&connection),
        ));
        let ended = pump(&connection, &mut *conversation).await;
        conversation.handle_ended(&ended);
        drop(conversation);
        crosstie_transport::uncork();
        if let Ended::HandedOver { input } = ended {
            serve_pages(&listening, &connection, input).await;
        }
        connection.close();
    }
    listening.release();
    counters().connection_closed();
}

fn connection(listening: &Listening, socket: Socket) -> Option<Arc<Connection>> {
    let stage: Option<Box<Mutex<dyn Stage>>> = match &listening.tls {
        None => None,
        Some(config) => match TlsStage::server(Arc::clone(config)) {
            Ok(stage) => Some(Box::new(Mutex::new(stage))),
            Err(e) => {
                tracing::error!("cannot begin TLS: {e}");
                return None;
            }
        },
    };
    Some(Arc::new(Connection::new(
        socket,
        stage,
        Arc::clone(&listening.router.limits),
    )))
}

/// Plain HTTP, for as long as the peer keeps asking.
async fn serve_pages(listening: &Arc<Listening>, connection: &Arc<Connection>, input: Vec<u8>) {
    match ConnectionStream::new(Arc::clone(connection), input) {
        Ok(stream) => Box::pin(pages::serve(Arc::clone(listening), stream)).await,
        Err(e) => report::peer_fault(connection, "http", &e.to_string()),
    }
}
