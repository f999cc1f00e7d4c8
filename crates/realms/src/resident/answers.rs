//! A realm's messages to a session of the router's own, read from its mailbox.

use std::sync::Arc;

use crosstie_transport::{Portion, Taken};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{Item, rawsocket};
use crosstie_wamp::{Message, MessageType};

use super::reply::Reply;
use super::session::{Resident, send};
use super::streams::{Event, Invocation};

/// Bytes that were taken and do not form a complete message yet.
pub(super) struct Unread {
    frames: rawsocket::Decoder,
    bytes: Vec<u8>,
}

/// Whether the maximum was taken at once, or why nothing more will come.
type Took = Result<bool, &'static str>;

/// Ends the session, also if the thread ends that reads its answers.
struct Reader {
    resident: Arc<Resident>,
    why: &'static str,
}

const CLOSED: &str = "its session was closed";
/// Bytes taken at once: these have left the queue, and with it the queue's bound.
const TAKEN_BYTES_MAX: usize = 64 * 1024;

/// Reads until the session ends.
pub(crate) async fn read(resident: Arc<Resident>) {
    let mut reader = Reader {
        resident,
        why: CLOSED,
    };
    let connection = &reader.resident.peer.connection;
    loop {
        connection.reading().await;
        let took = reader.resident.unread.lock().take(&reader.resident);
        send();
        match took {
            Ok(true) => tokio::task::yield_now().await,
            Ok(false) => connection.offered(|| false).await,
            Err(why) => {
                reader.why = why;
                return;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.resident.end(self.why);
        send();
    }
}

impl Resident {
    /// Reads present answers on the requesting thread: an answer that the realm itself gives needs no other thread.
    pub(super) fn read_now(self: &Arc<Self>) {
        // The current holder continues until the mailbox is empty.
        if let Some(mut unread) = self.unread.try_lock()
            && !self.peer.connection.is_reading_paused()
            && let Err(why) = unread.take(self)
        {
            drop(unread);
            self.end(why);
        }
    }
}

impl Unread {
    pub(crate) fn new(message_bytes_max: usize) -> Self {
        Self {
            frames: rawsocket::Decoder::new(message_bytes_max),
            bytes: Vec::new(),
        }
    }

    fn take(&mut self, resident: &Arc<Resident>) -> Took {
        let portion = Portion::Bytes(TAKEN_BYTES_MAX);
        let bytes = match resident.peer.connection.take(portion) {
            Taken::Nothing => return Ok(false),
            Taken::Over => return Err(CLOSED),
            Taken::Bytes(bytes) => bytes,
        };
        let is_full = bytes.len() == TAKEN_BYTES_MAX;
        match self.bytes.is_empty() {
            true => self.bytes = bytes,
            false => self.bytes.extend_from_slice(&bytes),
        }
        self.handle(resident)?;
        Ok(is_full)
    }

    fn handle(&mut self, resident: &Arc<Resident>) -> Result<(), &'static str> {
        let mut consumed = 0;
        loop {
            // Only this router writes there.
            let step = self.frames.next(&mut self.bytes[consumed..]);
            let step = step.map_err(|_| CLOSED)?;
            if step.consumed == 0 {
                break;
            }
            consumed += step.consumed;
            if let Some(Item::Message { bytes, .. }) = step.item {
                handle_message(resident, bytes)?;
            }
        }
        if consumed == self.bytes.len() {
            // An idle session holds no buffer.
            self.bytes = Vec::new();
        } else {
            self.bytes.drain(..consumed);
        }
        Ok(())
    }
}

/// Handles a message from the realm, or returns why nothing more will come.
fn handle_message(resident: &Arc<Resident>, bytes: &[u8]) -> Result<(), &'static str> {
    let serializer = resident.peer.wire.serializer;
    // As deep as any router's limit allows.
    let limits = Limits { depth_max: 512 };
    let Ok(message) = codec::decode(serializer, bytes, &limits) else {
        return Err(CLOSED);
    };
    match message {
        Message::Result {
            request, payload, ..
        } => resident.answer(request, Reply::Result(payload)),
        Message::Published {
            request,
            publication,
        } => resident.answer(request, Reply::Published(publication)),
        Message::Subscribed {
            request,
            subscription,
        } => resident.answer(request, Reply::Subscribed(subscription)),
        Message::Registered {
            request,
            registration,
        } => resident.answer(request, Reply::Registered(registration)),
        Message::Error {
            request_type:
                MessageType::Call
                | MessageType::Publish
                | MessageType::Subscribe
                | MessageType::Register,
            request,
            error,
            payload,
            ..
        } => {
            let uri = &*error;
            resident.answer(request, Reply::Error { uri, payload });
        }
        Message::Goodbye { .. } => return Err("its realm was stopped"),
        Message::Abort { .. } => return Err(CLOSED),
        unasked => handle_unasked(resident, unasked),
    }
    Ok(())
}

/// Handles a message that is not an answer.
fn handle_unasked(resident: &Arc<Resident>, message: Message<'_>) {
    match message {
        Message::Event {
            subscription,
            publication,
            details,
            payload,
        } => {
            let event = Event::new(resident, publication, details, &payload);
            resident.pass_event(subscription, event);
        }
        Message::Invocation {
            request,
            registration,
            details,
            payload,
        } => {
            let (invocation, interrupt) = Invocation::new(resident, request, details, &payload);
            resident.pass_invocation(registration, invocation, interrupt);
        }
        Message::Interrupt { request, .. } => resident.interrupt(request),
        Message::Unsubscribed {
            revoked: Some(revoked),
            ..
        } => {
            resident.forget_subscription(revoked.id);
        }
        Message::Unregistered {
            revoked: Some(revoked),
            ..
        } => {
            resident.forget_registration(revoked.id);
        }
        _ => {}
    }
}
