//! What a realm sends to a session of the router's own, read from its socket.

use std::sync::Arc;

use crosstie_transport::{Connection, Outcome, Protocol, pump};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{Item, rawsocket};
use crosstie_wamp::{Message, MessageType};

use super::reply::Reply;
use super::session::{Resident, send};
use super::streams::{Event, Invocation};

struct Answers {
    frames: rawsocket::Decoder,
    resident: Arc<Resident>,
    why: &'static str,
}

const CLOSED: &str = "its session was closed";

/// Reads until the session ends.
pub(super) async fn read(
    reader: Arc<Connection>,
    resident: Arc<Resident>,
    message_bytes_max: usize,
) {
    let mut answers = Answers {
        frames: rawsocket::Decoder::new(message_bytes_max),
        resident,
        why: CLOSED,
    };
    pump(&reader, &mut answers).await;
}

impl Drop for Answers {
    /// Also where the thread ends that this is read on.
    fn drop(&mut self) {
        self.resident.end(self.why);
        send();
    }
}

impl Protocol for Answers {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let mut consumed = 0;
        loop {
            // Nobody but this router writes there.
            let Ok(step) = self.frames.next(&mut input[consumed..]) else {
                return Outcome::Close;
            };
            if step.consumed == 0 {
                let wanted = step.wanted;
                return Outcome::Continue { consumed, wanted };
            }
            if let Some(Item::Message { bytes, .. }) = step.item
                && let Err(why) = handle_message(&self.resident, bytes)
            {
                self.why = why;
                return Outcome::Close;
            }
            consumed += step.consumed;
        }
    }
}

/// Handles what the realm says, or says why nothing more is to come.
fn handle_message(resident: &Arc<Resident>, bytes: &[u8]) -> Result<(), &'static str> {
    let serializer = resident.peer.wire.serializer;
    // As deep as any router's bound lets it be.
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

/// Handles what is no answer.
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
