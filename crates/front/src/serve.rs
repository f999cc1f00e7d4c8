//! Serves a connection from its first byte to its end, on its assigned thread or threads.

use std::pin::Pin;
use std::sync::Arc;

use crosstie_transport::tls::TlsStage;
use crosstie_transport::{
    Connection, Ended, Listener, Place, Protocol, Socket, Stage, Unread, Workers, pump_in,
};
use parking_lot::{Mutex, RwLock};

use crate::admission::{Admitted, Excess};
use crate::counters::{Counter, counters};
use crate::listen::Listening;
use crate::sockets::accept;

/// The destination of a listener's connections.
pub trait Endpoint: Send + Sync {
    /// Starts the conversation of a connection, as [`serve`] does.
    fn start(self: Arc<Self>, arrival: Arrival);
}

/// A connection that was accepted and counted in.
pub struct Arrival {
    admitted: Admitted,
    socket: Socket,
    workers: Arc<Workers>,
}

impl Arrival {
    pub fn listening(&self) -> Arc<Listening> {
        Arc::clone(&self.admitted.listening)
    }
}

/// The server's side of what a connection says.
pub trait Converse: Protocol + Send + 'static {
    /// Cleans up after the connection, however it ended.
    fn handle_ended(&mut self, ended: &Ended);

    /// The next owner of the connection, which the conversation has handed over.
    fn take_successor(&mut self) -> Option<Successor>;
}

/// Continues a connection that its conversation has handed over.
pub type Successor = Box<dyn FnOnce(HandedOver<'_>) + Send>;

/// A connection that its conversation has handed over, with its unread bytes.
pub struct HandedOver<'w> {
    pub admitted: Admitted,
    pub connection: Arc<Connection>,
    pub input: Vec<u8>,
    pub workers: &'w Workers,
}

/// The destination of connections that a listener accepts, until it gets another one.
pub struct Destination(RwLock<(Arc<Listening>, Arc<dyn Endpoint>)>);

impl Destination {
    pub fn new(listening: Arc<Listening>, endpoint: Arc<dyn Endpoint>) -> Arc<Self> {
        Arc::new(Self(RwLock::new((listening, endpoint))))
    }

    /// Leads later connections elsewhere. Present ones stay.
    pub fn set(&self, listening: Arc<Listening>, endpoint: Arc<dyn Endpoint>) {
        *self.0.write() = (listening, endpoint);
    }

    fn now(&self) -> (Arc<Listening>, Arc<dyn Endpoint>) {
        self.0.read().clone()
    }
}

/// Accepts connections forever, and distributes them over the threads.
pub async fn serve_all(
    destination: Arc<Destination>,
    listener: Arc<Listener>,
    workers: Arc<Workers>,
) {
    loop {
        let socket = accept(&listener, &workers).await;
        let (listening, endpoint) = destination.now();
        match Admitted::admit(&listening, &socket) {
            Some(admitted) => endpoint.start(Arrival {
                admitted,
                socket,
                workers: Arc::clone(&workers),
            }),
            None => counters().count(Counter::ConnectionsRefused),
        }
    }
}

/// Serves a connection on the thread that it is dealt to. `begin` makes its conversation there.
pub fn serve<C: Converse>(
    arrival: Arrival,
    place: Place,
    begin: impl FnOnce(Arc<Connection>, Option<Excess>) -> C + Send + 'static,
) {
    let Arrival {
        admitted,
        socket,
        workers,
    } = arrival;
    let there = Arc::clone(&workers);
    there.spawn_connection(async move {
        counters().count(Counter::ConnectionsOpened);
        let Some(connection) = connection(&admitted.listening, socket) else {
            return;
        };
        let conversation = begin(Arc::clone(&connection), admitted.excess);
        // A stop meanwhile did not find this connection in the watch.
        if admitted.listening.is_stopping() {
            return;
        }
        converse(admitted, connection, conversation, workers, place, None).await;
    });
}

/// Runs a conversation on this thread, until it ends or moves to another thread, of the same kind or the other.
#[allow(
    clippy::manual_async_fn,
    reason = "an async fn would hold its arguments twice, for as long as the connection is open"
)]
fn converse<C: Converse>(
    admitted: Admitted,
    connection: Arc<Connection>,
    mut conversation: C,
    workers: Arc<Workers>,
    place: Place,
    unread: Option<Box<Unread>>,
) -> impl Future<Output = ()> + Send {
    async move {
        let unread = unread.map_or_else(Unread::default, |unread| *unread);
        let ended = pump_in(place, unread, &connection, &mut conversation).await;
        let there = Arc::clone(&workers);
        let (to, place, unread) = match ended {
            Ended::Moved { to } => (Some(to), place, None),
            Ended::Misplaced(unread) if place == Place::Quick => (None, Place::Bulk, Some(unread)),
            Ended::Misplaced(unread) => (None, Place::Quick, Some(unread)),
            ended => {
                let successor = match ended {
                    Ended::HandedOver { .. } => conversation.take_successor(),
                    _ => None,
                };
                conversation.handle_ended(&ended);
                crosstie_transport::uncork();
                return end(admitted, connection, ended, successor, &workers);
            }
        };
        let moved = converse_boxed(admitted, connection, conversation, workers, place, unread);
        match to {
            Some(to) => there.spawn_moved(to, moved),
            None if place == Place::Quick => there.spawn_connection(moved),
            None => {
                counters().count(Counter::ConnectionsToBulk);
                if let Err(e) = there.spawn_bulk(moved) {
                    tracing::error!("cannot start a thread for large messages: {e}");
                }
            }
        }
    }
}

fn converse_boxed<C: Converse>(
    admitted: Admitted,
    connection: Arc<Connection>,
    conversation: C,
    workers: Arc<Workers>,
    place: Place,
    unread: Option<Box<Unread>>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(converse(
        admitted,
        connection,
        conversation,
        workers,
        place,
        unread,
    ))
}

/// Ends a connection, or leaves it to its successor.
fn end(
    admitted: Admitted,
    connection: Arc<Connection>,
    ended: Ended,
    successor: Option<Successor>,
    workers: &Workers,
) {
    match (ended, successor) {
        (Ended::HandedOver { input }, Some(successor)) => successor(HandedOver {
            admitted,
            connection,
            input,
            workers,
        }),
        // The peer may still read: sends its output, then closes this side.
        (Ended::ByPeer { .. }, _) => connection.finish_and_close(),
        _ => connection.close(),
    }
}

fn connection(listening: &Listening, socket: Socket) -> Option<Arc<Connection>> {
    let stage: Option<Box<Mutex<dyn Stage>>> = match &listening.tls {
        None => None,
        Some(presented) => match TlsStage::server(presented.now()) {
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
        Arc::clone(&listening.limits),
    )))
}
