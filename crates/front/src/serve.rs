//! Serves a connection from its first byte to its end, on its assigned thread or threads.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crosstie_transport::tls::TlsStage;
use crosstie_transport::{
    Connection, Ended, Listener, Place, Protocol, Reading, Socket, Stage, Unread, Workers,
};
use parking_lot::{Mutex, RwLock};

use crate::admission::{Admitted, Excess};
use crate::counters::{Counter, counters};
use crate::listen::Listening;
use crate::proxied::{self, Proxied};
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
pub trait Converse: Protocol + Send + Unpin + 'static {
    /// Whether each of its connections counts its bytes.
    const IS_METERED: bool = false;

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
    pub workers: &'w Arc<Workers>,
}

impl HandedOver<'_> {
    /// Serves the connection with another conversation, from its unread bytes on.
    pub fn serve<C: Converse>(
        self,
        place: Place,
        begin: impl FnOnce(Arc<Connection>, Option<Excess>) -> C,
    ) {
        let Self {
            admitted,
            connection,
            input,
            workers,
        } = self;
        let conversation = begin(Arc::clone(&connection), admitted.excess);
        if admitted.listening.is_stopping() {
            return connection.close();
        }
        let there = Arc::clone(workers);
        let serving = Serving(Some(Served {
            reading: Reading::new(place, Unread::of(input)),
            conversation,
            admitted,
            connection,
            workers: Arc::clone(workers),
        }));
        there.spawn_connection(|| Some(serving));
    }
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
    let mut proxied = Proxied::default();
    loop {
        let socket = accept(&listener, &workers).await;
        let (listening, endpoint) = destination.now();
        match &listening.proxies {
            Some(proxies) if proxied::sends_header(proxies, socket.peer()) => {
                let (destination, there) = (Arc::clone(&destination), Arc::clone(&workers));
                let timeout = listening.handshake_timeout;
                proxied.add(socket, timeout, &workers, move |socket| {
                    // A reload meanwhile applies to this connection, too.
                    let (listening, endpoint) = destination.now();
                    start(&listening, endpoint, socket, &there);
                });
            }
            _ => start(&listening, endpoint, socket, &workers),
        }
    }
}

/// Admits a connection, and starts its conversation.
fn start(
    listening: &Arc<Listening>,
    endpoint: Arc<dyn Endpoint>,
    socket: Socket,
    workers: &Arc<Workers>,
) {
    match Admitted::admit(listening, &socket) {
        Some(admitted) => endpoint.start(Arrival {
            admitted,
            socket,
            workers: Arc::clone(workers),
        }),
        None => counters().count(Counter::ConnectionsRefused),
    }
}

/// Serves a connection on the thread that it is dealt to. `begin` makes its conversation there.
pub fn serve<C: Converse>(
    arrival: Arrival,
    place: Place,
    begin: impl FnOnce(Arc<Connection>, Option<Excess>) -> C + Send + Unpin + 'static,
) {
    let Arrival {
        admitted,
        socket,
        workers,
    } = arrival;
    let there = Arc::clone(&workers);
    there.spawn_connection(move || {
        counters().count(Counter::ConnectionsOpened);
        let connection = connection(&admitted.listening, socket, C::IS_METERED)?;
        let conversation = begin(Arc::clone(&connection), admitted.excess);
        // A stop meanwhile did not find this connection in the watch.
        let is_stopping = admitted.listening.is_stopping();
        let serving = Served {
            reading: Reading::new(place, Unread::default()),
            conversation,
            admitted,
            connection,
            workers,
        };
        (!is_stopping).then(|| Serving(Some(serving)))
    });
}

/// Serves a connection on this thread, until it ends or moves to another thread, of the same kind or the other.
struct Serving<C>(Option<Served<C>>);

/// What each open connection holds. `Serving` is written by hand: an `async` block would hold its arguments twice.
struct Served<C> {
    reading: Reading,
    conversation: C,
    admitted: Admitted,
    connection: Arc<Connection>,
    workers: Arc<Workers>,
}

impl<C: Converse> Future for Serving<C> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let serving = &mut self.get_mut().0;
        let Some(Served {
            reading,
            conversation,
            connection,
            ..
        }) = serving
        else {
            return Poll::Ready(());
        };
        let ended = ready!(reading.poll(connection, conversation, cx));
        if let Some(served) = serving.take() {
            served.end(ended);
        }
        Poll::Ready(())
    }
}

impl<C: Converse> Served<C> {
    /// Ends the connection, or continues it elsewhere.
    fn end(mut self, ended: Ended) {
        let place = self.reading.place();
        let there = Arc::clone(&self.workers);
        match ended {
            Ended::Moved { to } => there.spawn_moved(to, self.resumed(place, Unread::default())),
            Ended::Misplaced(unread) if place == Place::Quick => {
                counters().count(Counter::ConnectionsToBulk);
                if let Err(e) = there.spawn_bulk(self.resumed(Place::Bulk, *unread)) {
                    tracing::error!("cannot start a thread for large messages: {e}");
                }
            }
            Ended::Misplaced(unread) => {
                let serving = self.resumed(Place::Quick, *unread);
                there.spawn_connection(|| Some(serving));
            }
            ended => {
                let successor = match ended {
                    Ended::HandedOver { .. } => self.conversation.take_successor(),
                    _ => None,
                };
                self.conversation.handle_ended(&ended);
                crosstie_transport::uncork();
                end(self.admitted, self.connection, ended, successor, &there);
            }
        }
    }

    /// The same connection, in another place.
    fn resumed(mut self, place: Place, unread: Unread) -> Serving<C> {
        self.reading = Reading::new(place, unread);
        Serving(Some(self))
    }
}

/// Ends a connection, or leaves it to its successor.
fn end(
    admitted: Admitted,
    connection: Arc<Connection>,
    ended: Ended,
    successor: Option<Successor>,
    workers: &Arc<Workers>,
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

fn connection(listening: &Listening, socket: Socket, is_metered: bool) -> Option<Arc<Connection>> {
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
    let connection = Connection::new(socket, stage, Arc::clone(&listening.limits));
    Some(Arc::new(match is_metered {
        true => connection.with_meter(Arc::default()),
        false => connection,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_with_a_small_conversation_fits_into_a_task_of_256_bytes() {
        // Tokio and the function that starts it add 104 bytes, and the allocator rounds up to a multiple of 128. WAMP's
        // conversation takes 48 bytes. Builds of all tests have the runtime with many threads, whose handle is longer.
        let handle = size_of::<tokio::runtime::Handle>();
        assert!(size_of::<Serving<[usize; 6]>>() <= 144 + handle);
    }
}
