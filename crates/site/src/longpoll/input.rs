//! The body of a `send`: received within the limits of any input, handled in turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crosstie_transport::Connection;
use crosstie_wamp::framing::batched;
use crosstie_web::longpoll::Protocol;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::OwnedMutexGuard;

use super::talk::{self, Talk};
use super::transport::Transport;
use crate::body::{self, NoBody};

/// The result of a body.
pub(super) enum Handled {
    Done,
    /// The body, or a part of its batch, is not a message. The session has ended.
    NoMessage,
    NoBody(NoBody),
    /// The transport has ended.
    Gone,
}

const DRAINED_BYTES_MAX: usize = 64 * 1024;
const DRAINED_WITHIN: Duration = Duration::from_secs(2);

/// The right to handle a body of the session.
pub(super) type Turn = OwnedMutexGuard<Option<Talk>>;

/// Receives a body and handles its messages.
pub(super) async fn take(transport: Arc<Transport>, mut turn: Turn, body: Incoming) -> Handled {
    let talking = turn.as_ref().filter(|talk| !talk.is_over());
    let Some(bytes_max) = talking.map(Talk::body_bytes_max) else {
        drain(body).await;
        return Handled::Gone;
    };
    let partial = Partial(Arc::clone(&transport.connection));
    let received = tokio::select! {
        biased;
        () = transport.connection.ended() => return Handled::Gone,
        received = receive(body, &partial, bytes_max) => received,
    };
    let body = match received {
        Ok(body) => body,
        Err(e) => {
            if let (NoBody::TooLong { bytes }, Some(talk)) = (&e, &mut *turn) {
                talk.handle_too_long(*bytes);
                crosstie_transport::uncork();
            }
            return Handled::NoBody(e);
        }
    };
    // In a separate task, so that received messages are handled even if the client disconnects.
    let handling = tokio::spawn(handle(transport, turn, body, partial));
    handling.await.unwrap_or(Handled::Gone)
}

/// Reads and drops a short body, so that its connection can be used again.
pub(super) async fn drain(body: Incoming) {
    let _ = body::collect(body, DRAINED_BYTES_MAX, DRAINED_WITHIN).await;
}

/// Reads a whole body. Its bytes are charged to the session's account, and the rules for slow messages apply.
async fn receive(
    mut body: Incoming,
    partial: &Partial,
    bytes_max: usize,
) -> Result<Vec<u8>, NoBody> {
    let too_long = |bytes: u64| (bytes > bytes_max as u64).then_some(NoBody::TooLong { bytes });
    if let Some(e) = too_long(body.size_hint().lower()) {
        drain(body).await;
        return Err(e);
    }
    let mut received = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(NoBody::Broken)?.into_data() else {
            continue;
        };
        if let Some(e) = too_long((received.len() + data.len()) as u64) {
            drain(body).await;
            return Err(e);
        }
        received.extend_from_slice(&data);
        partial.note(received.len());
    }
    Ok(received)
}

/// Handles a body, in turns; other sessions run between turns, and outcomes are awaited.
async fn handle(
    transport: Arc<Transport>,
    mut turn: Turn,
    body: Vec<u8>,
    partial: Partial,
) -> Handled {
    let Some(talk) = &mut *turn else {
        return Handled::Gone;
    };
    let protocol = transport.protocol;
    if !protocol.is_batched {
        let body = talk.handle_message(body);
        wait(talk, &transport.connection).await;
        return handled(talk, protocol, &body);
    }
    if batched::is_autobahn(protocol.serializer, &body) {
        transport.is_autobahn.store(true, Ordering::Relaxed);
    }
    let mut left = body.len();
    loop {
        left = talk.handle_batch(&body[body.len() - left..]);
        wait(talk, &transport.connection).await;
        if left == 0 || talk.is_over() {
            break;
        }
        tokio::task::yield_now().await;
    }
    drop(partial);
    handled(talk, protocol, &body)
}

/// The answer for a handled body. Only for a session that has ended is the body checked again.
fn handled(talk: &Talk, protocol: Protocol, body: &[u8]) -> Handled {
    let limits = talk.decoding();
    match talk.is_over() && !talk::has_messages(protocol, body, limits) {
        true => Handled::NoMessage,
        false => Handled::Done,
    }
}

/// Flushes sent messages, and waits for pending outcomes.
async fn wait(talk: &mut Talk, connection: &Arc<Connection>) {
    crosstie_transport::uncork();
    while talk.session.waits() && !talk.is_over() {
        connection.reading().await;
        talk.handle_elsewhere();
        crosstie_transport::uncork();
    }
}

/// A part of a body that is kept, while this lives.
struct Partial(Arc<Connection>);

impl Partial {
    fn note(&self, bytes: usize) {
        self.0.note_partial(bytes);
        crosstie_transport::uncork();
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        self.0.note_partial(0);
    }
}
