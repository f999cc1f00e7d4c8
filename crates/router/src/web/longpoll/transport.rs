//! One transport: what waits for its client, and the requests that ask for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

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
use crate::admission::Admitted;
use crate::web::{Body, answer};

/// A session's place: alive from `open` until it is closed by anybody.
pub(super) struct Transport {
    pub(super) protocol: Protocol,
    /// A mailbox.
    pub(super) connection: Arc<Connection>,
    /// How many have asked for messages; the last one gets them.
    receives: AtomicU32,
    /// Its client ends JSON messages as Autobahn does.
    pub(super) is_autobahn: AtomicBool,
    /// None from the end on. Whoever has it is the only one who speaks.
    talk: Arc<Mutex<Option<Talk>>>,
}

/// What a transport is in memory, roughly.
const STATE_BYTES: isize = 1536;

impl Transport {
    pub(super) fn open(
        shared: &Shared,
        admitted: Admitted,
        protocol: Protocol,
        peer: Peer,
    ) -> Arc<Self> {
        let limits = Arc::clone(&shared.limits);
        let items_max = shared.options.queue_messages_max;
        let connection = Connection::mailbox(peer.address, peer.certificate, items_max, limits);
        let connection = Arc::new(connection);
        connection.hold(STATE_BYTES);
        let talk = Talk::new(shared, admitted, protocol, &connection);
        Arc::new(Self {
            protocol,
            connection,
            receives: AtomicU32::new(0),
            is_autobahn: AtomicBool::new(false),
            talk: Arc::new(Mutex::new(Some(talk))),
        })
    }

    /// Ends it: for others the session has left when this returns.
    pub(super) async fn end(&self) {
        // Whoever speaks stops.
        self.connection.close();
        let talk = self.talk.lock().await.take();
        drop(talk);
        crosstie_transport::uncork();
    }

    /// Handles what a client sends.
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

    /// Answers with what waits, or with what comes first; with nothing when the time is over, when another request asks
    /// for it, or at the end: what comes then is told to the next request.
    pub(super) async fn receive(self: Arc<Self>, within: Duration) -> Response<Body> {
        self.connection.note_heard();
        let number = self
            .receives
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1);
        // An earlier one may be of a connection that is there no more.
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

    /// What is next for the request of that number.
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
                    // There were no last words, or they were taken.
                    self.connection.close();
                    return None;
                }
                Taken::Nothing => self.connection.offered(|| !is_last()).await,
            }
        }
        None
    }
}
