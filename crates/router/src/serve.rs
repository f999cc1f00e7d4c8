//! Serving a connection: from its first byte to its end, on the thread that it is dealt to or goes to.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_transport::tls::TlsStage;
use crosstie_transport::{
    Connection, ConnectionStream, Ended, Listener, Place, Protocol, Socket, Stage, Unread, Workers,
    pump_in,
};
use crosstie_wamp::framing::websocket::closing_response;
use parking_lot::Mutex;

use crate::admission::Admitted;
use crate::amqp::splice::Spliced;
use crate::binding::accept;
use crate::counters::{Counter, counters};
use crate::listen::Listening;
use crate::wamp::conversation::Conversation;
use crate::{amqp, pages, report};

/// Accepts conversations for ever, and deals them out to the threads.
pub(crate) async fn serve_all(
    listening: Arc<Listening>,
    listener: Listener,
    workers: Arc<Workers>,
) {
    loop {
        let socket = accept(&listener, &workers).await;
        match Admitted::admit(&listening, &socket) {
            Some(admitted) => {
                workers.spawn_connection(serve(admitted, socket, Arc::clone(&workers)));
            }
            None => counters().count(Counter::ConnectionsRefused),
        }
    }
}

/// One connection, from its first byte on.
async fn serve(admitted: Admitted, socket: Socket, workers: Arc<Workers>) {
    counters().count(Counter::ConnectionsOpened);
    let listening = Arc::clone(&admitted.listening);
    let Some(connection) = connection(&listening, socket) else {
        return;
    };
    let (kept, excess) = (Arc::clone(&connection), admitted.excess);
    match &listening.amqp {
        None => {
            let conversation = Conversation::new(Arc::clone(&listening), kept, excess);
            // A stop that has come meanwhile did not find it in the watch.
            if listening.is_stopping() {
                return;
            }
            converse(
                admitted,
                connection,
                conversation,
                workers,
                Place::Quick,
                None,
            )
            .await;
        }
        Some(amqp) => {
            let endpoint = Arc::clone(amqp);
            let conversation =
                amqp::Conversation::new(Arc::clone(&listening), endpoint, kept, excess);
            if listening.is_stopping() {
                return;
            }
            // Boxed, so that the task of a WAMP connection holds no byte for it.
            converse_boxed(
                admitted,
                connection,
                conversation,
                workers,
                Place::Any,
                None,
            )
            .await;
        }
    }
}

/// Has a conversation on this thread, until it ends or goes to another thread, of the same kind or the
/// other.
async fn converse<C: Converse>(
    admitted: Admitted,
    connection: Arc<Connection>,
    mut conversation: C,
    workers: Arc<Workers>,
    place: Place,
    unread: Option<Box<Unread>>,
) {
    let unread = unread.map_or_else(Unread::default, |unread| *unread);
    let ended = pump_in(place, unread, &connection, &mut conversation).await;
    let there = Arc::clone(&workers);
    let (to, place, unread) = match ended {
        Ended::Moved { to } => (Some(to), place, None),
        Ended::Misplaced(unread) if place == Place::Quick => (None, Place::Bulk, Some(unread)),
        Ended::Misplaced(unread) => (None, Place::Quick, Some(unread)),
        ended => {
            let spliced = conversation.take_spliced();
            conversation.handle_ended(&ended);
            crosstie_transport::uncork();
            if let (Some(spliced), Some(amqp)) = (spliced, &admitted.listening.amqp) {
                let endpoint = Arc::clone(amqp);
                return pass_on(admitted, endpoint, connection, spliced, ended, &workers);
            }
            return end(admitted, connection, ended, &workers);
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

/// What a connection says, in either protocol.
pub(crate) trait Converse: Protocol + Send + 'static {
    /// Cleans up after the connection, however it ended.
    fn handle_ended(&mut self, ended: &Ended);

    /// The client that another node has from now on.
    fn take_spliced(&mut self) -> Option<Box<Spliced>> {
        None
    }
}

/// Leaves a client to the node that has its vhost.
fn pass_on(
    admitted: Admitted,
    endpoint: Arc<amqp::AmqpEndpoint>,
    connection: Arc<Connection>,
    spliced: Box<Spliced>,
    ended: Ended,
    workers: &Workers,
) {
    let Ended::HandedOver { input } = ended else {
        return connection.close();
    };
    let kept = Arc::clone(&connection);
    let serving = amqp::splice::serve(admitted, endpoint, spliced, connection, input);
    if let Err(e) = workers.spawn_web(serving) {
        tracing::error!("cannot start a thread for clients of other nodes: {e}");
        kept.close();
    }
}

/// Ends a connection, or leaves it to those who serve pages.
fn end(admitted: Admitted, connection: Arc<Connection>, ended: Ended, workers: &Workers) {
    match ended {
        Ended::HandedOver { input } if admitted.listening.http.is_some() => {
            serve_http(admitted, connection, input, workers);
        }
        Ended::HandedOver { input } => {
            let kept = Arc::clone(&connection);
            let started = match PagePlace::take(&admitted) {
                Some(place) => workers.spawn_pages(async move {
                    serve_pages(&admitted, &place, &connection, input).await;
                    connection.close();
                }),
                None => return refuse_pages(&connection),
            };
            if let Err(e) = started {
                tracing::error!("cannot start the thread of pages: {e}");
                kept.close();
            }
        }
        // The peer may still read: what it is owed is sent, and the end of our side said.
        Ended::ByPeer { .. } => connection.finish_and_close(),
        _ => connection.close(),
    }
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
        Arc::clone(&listening.limits),
    )))
}

/// Leaves a connection to the listener's web services.
fn serve_http(admitted: Admitted, connection: Arc<Connection>, input: Vec<u8>, workers: &Workers) {
    let listening = Arc::clone(&admitted.listening);
    let Some(http) = &listening.http else {
        return connection.close();
    };
    let kept = Arc::clone(&connection);
    let serving = Arc::clone(http).serve(Arc::clone(&listening), Arc::clone(&connection), input);
    let started = workers.spawn_web(async move {
        serving.await;
        connection.finish_and_close();
        drop(admitted);
    });
    if let Err(e) = started {
        tracing::error!("cannot start a thread for HTTP: {e}");
        kept.close();
    }
}

/// Plain HTTP, for as long as the peer keeps asking.
async fn serve_pages(
    admitted: &Admitted,
    place: &PagePlace,
    connection: &Arc<Connection>,
    input: Vec<u8>,
) {
    match ConnectionStream::new(Arc::clone(connection), input) {
        Ok(stream) => {
            let listening = Arc::clone(&admitted.listening);
            pages::serve(listening, connection, stream, place.may_stay).await;
        }
        Err(e) => report::peer_fault(connection, "http", &e.to_string()),
    }
}

/// One of the connections that pages are served to, for as long as this lives.
struct PagePlace {
    listening: Arc<Listening>,
    /// The connection may wait for another request.
    may_stay: bool,
}

impl PagePlace {
    /// Takes a place, if there is one. Only half of them are for who stays, so that nobody waits for
    /// those who have said nothing more.
    fn take(admitted: &Admitted) -> Option<Self> {
        let listening = &admitted.listening;
        let before = listening.page_connections.fetch_add(1, Ordering::Relaxed);
        let place = Self {
            listening: Arc::clone(listening),
            may_stay: before < listening.page_connections_max.div_ceil(2)
                && admitted.excess.is_none(),
        };
        (before < listening.page_connections_max).then_some(place)
    }
}

impl Drop for PagePlace {
    fn drop(&mut self) {
        self.listening
            .page_connections
            .fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells a peer that asks for a page to come again.
fn refuse_pages(connection: &Arc<Connection>) {
    counters().count(Counter::PageConnectionsRefused);
    let text = "there are as many connections for pages as are allowed: ask again in a moment";
    let response = closing_response(503, text, &[("Retry-After", "1")]);
    // A new connection has room; one that is gone needs no answer.
    let _ = connection.append(|out| {
        out.extend_from_slice(&response);
        Ok::<(), ()>(())
    });
    connection.finish();
    crosstie_transport::uncork();
    connection.close();
}
