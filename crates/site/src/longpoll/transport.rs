//! One transport: the messages that wait for its client, and the requests that fetch them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crosstie_front::admission::Admitted;
use crosstie_realms::entrance::Entrance;
use crosstie_transport::{Connection, Portion, Taken};
use crosstie_web::longpoll::Protocol;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::sync::Mutex;

use super::delivery::Delivery;
use super::input::{self, Handled};
use super::table::gone;
use super::talk::Talk;
use super::{Peer, Shared, empty};
use crate::{Body, answer};

/// The transport of a session: lives from `open` until either side closes it.
pub(super) struct Transport {
    pub(super) protocol: Protocol,
    /// A mailbox.
    pub(super) connection: Arc<Connection>,
    /// Number of receive requests so far; the latest gets the messages.
    receives: AtomicU32,
    /// The client terminates JSON messages as Autobahn does.
    pub(super) is_autobahn: AtomicBool,
    /// `None` from the end on. The lock's holder is the only one that handles input.
    talk: Arc<Mutex<Option<Talk>>>,
}

/// Approximate memory of a transport.
const STATE_BYTES: isize = 1536;

impl Transport {
    pub(super) fn open(
        shared: &Shared,
        entrance: &Arc<Entrance>,
        admitted: Admitted,
        protocol: Protocol,
        peer: Peer,
    ) -> Arc<Self> {
        let limits = Arc::clone(&shared.limits);
        let items_max = shared.options.queue_messages_max;
        let connection = Connection::mailbox(peer.address, peer.certificate, items_max, limits);
        let connection = Arc::new(connection);
        connection.hold(STATE_BYTES);
        let talk = Talk::new(shared, entrance, admitted, protocol, &connection);
        Arc::new(Self {
            protocol,
            connection,
            receives: AtomicU32::new(0),
            is_autobahn: AtomicBool::new(false),
            talk: Arc::new(Mutex::new(Some(talk))),
        })
    }

    /// Ends it: other sessions see that the session has left when this returns.
    pub(super) async fn end(&self) {
        // The handler of input stops.
        self.connection.close();
        let talk = self.talk.lock().await.take();
        drop(talk);
        crosstie_transport::uncork();
    }

    /// Handles a client's messages.
    pub(super) async fn send(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        self.connection.note_heard();
        let talk = Arc::clone(&self.talk).lock_owned().await;
        let body = request.into_body();
        match input::take(self, talk, body).await {
            Handled::Done => answer::empty(StatusCode::NO_CONTENT),
            Handled::NoMessage => {
                let text = "could not unserialize WAMP message.";
                answer::text(StatusCode::BAD_REQUEST, text)
            }
            Handled::NoBody(e) => answer::text(e.status(), e.to_string()),
            Handled::Gone => gone(),
        }
    }

    /// Answers with waiting messages, or with the next to arrive; with nothing after a timeout, after a newer request,
    /// or at the end. Later messages wait for the next request.
    pub(super) async fn receive(self: Arc<Self>, within: Duration) -> Response<Body> {
        self.connection.note_heard();
        let number = self
            .receives
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1);
        // An earlier request may belong to a connection that is gone.
        self.connection.stir();
        let taker = self.connection.taker();
        let taken = tokio::time::timeout(within, self.next(number)).await;
        drop(taker);
        let Ok(Some(bytes)) = taken else {
            return empty(self.protocol);
        };
        let is_autobahn = self.is_autobahn.load(Ordering::Relaxed);
        let bytes = self.protocol.delivered(bytes, is_autobahn);
        let body = Delivery::new(bytes, &self.connection);
        let body = body.map_err(|never| match never {}).boxed_unsync();
        let mut response = Response::new(body);
        let kind = HeaderValue::from_static(self.protocol.content_type());
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    /// The next message for the request of that number.
    async fn next(&self, number: u32) -> Option<Vec<u8>> {
        let portion = match self.protocol.is_batched {
            true => Portion::All,
            false => Portion::Item,
        };
        let is_last = || self.receives.load(Ordering::Relaxed) == number;
        while is_last() {
            match self.connection.take(portion) {
                Taken::Bytes(bytes) => return Some(bytes),
                Taken::Over => {
                    // All last messages were delivered.
                    self.connection.close();
                    return None;
                }
                Taken::Nothing => self.connection.offered(|| !is_last()).await,
            }
        }
        None
    }
}
