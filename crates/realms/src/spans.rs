//! Spans of the messages of a realm that belong to a trace: of a call from CALL to its answer, of a publication while it
//! is handled.

use std::ptr;
use std::sync::Arc;

use crosstie_routing::{Refused, error};
use crosstie_spans::{Context, Failure, OpenSpans, Span};
use crosstie_transport::Connection;
use crosstie_wamp::{Dict, Message, MessageType, RequestId};

use crate::payload_encodings::Source;
use crate::peer::Peer;

/// The option that brings a context.
const PARENT: &str = "_traceparent";

const CALLER_LEFT: Failure<'_> = Failure {
    kind: "caller_left",
    why: "the caller has left",
};

const NOT_SENT: Failure<'_> = Failure {
    kind: "answer_not_sent",
    why: "the answer could not be sent",
};

/// Begins the span of a message that belongs to a sampled trace.
#[inline]
pub(super) fn begin(realm: &str, message: &Message<'_>, bytes: usize) -> Option<Box<Span>> {
    match crosstie_spans::is_on() {
        true => begin_sampled(realm, message, bytes),
        false => None,
    }
}

#[cold]
fn begin_sampled(realm: &str, message: &Message<'_>, bytes: usize) -> Option<Box<Span>> {
    let span = match message {
        Message::Call {
            options, procedure, ..
        } => {
            let context = context(options.passthru.as_deref())?;
            Span::begin(context, "call", procedure)?
                .with_text("rpc.system", "wamp")
                .with_text("rpc.method", procedure)
        }
        Message::Publish { options, topic, .. } => {
            let context = context(options.passthru.as_deref())?;
            Span::begin(context, "publish", topic)?
                .with_text("messaging.system", "wamp")
                .with_text("messaging.operation.name", "publish")
                .with_text("messaging.destination.name", topic)
        }
        _ => return None,
    };
    let span = span
        .with_text("crosstie.realm", realm)
        .with_number("messaging.message.envelope.size", bytes as u64);
    Some(Box::new(span))
}

/// Keeps the span of a call until its answer, before it is routed, under the realm's lock. Returns that of a publication.
#[cold]
pub(super) fn keep(
    spans: &OpenSpans,
    source: Source<'_>,
    message: &Message<'_>,
    span: Box<Span>,
) -> Option<Box<Span>> {
    let Message::Call { request, .. } = message else {
        return Some(span);
    };
    spans.open(place(source.connection), request.0, *span);
    None
}

/// Ends the spans that a routed message has ended without an answer. Under the realm's lock.
#[cold]
pub(super) fn settle(
    spans: &OpenSpans,
    caller: &Arc<Connection>,
    message: &Message<'_>,
    is_open: impl Fn(RequestId) -> bool,
) {
    match message {
        // A part that came too late is no call, nor is one of a session that has left.
        Message::Call { request, .. } if !is_open(*request) => {
            spans.forget(place(caller), request.0);
        }
        Message::Cancel { request, .. } if !is_open(*request) => {
            let canceled = Failure::of_uri(error::CANCELED);
            spans.end(place(caller), request.0, Some(canceled));
        }
        _ => {}
    }
}

/// Ends the span of a publication.
#[cold]
pub(super) fn end_published(span: Span, is_denied: bool) {
    match is_denied {
        true => span.failed(Failure::of_uri(error::NOT_AUTHORIZED)).record(),
        false => span.record(),
    }
}

/// Ends the spans of a caller that has left.
pub(super) fn end_all(spans: &OpenSpans, caller: &Peer) {
    spans.end_all(place(&caller.connection), CALLER_LEFT);
}

/// A caller goes on at another connection.
pub(super) fn rename(spans: &OpenSpans, before: &Peer, now: &Peer) {
    spans.rename(place(&before.connection), place(&now.connection));
}

/// Ends the span of the call that a message to the caller answers, if it does.
#[cold]
pub(super) fn end_answered(
    spans: &OpenSpans,
    to: &Peer,
    message: &Message<'_>,
    sent: Result<(), Refused>,
) {
    if !spans.has_some() {
        return;
    }
    let (request, failure) = match message {
        Message::Result {
            request, details, ..
        } if !details.progress => (request, None),
        Message::Error {
            request_type: MessageType::Call,
            request,
            error,
            ..
        } => (request, Some(Failure::of_uri(error))),
        _ => return,
    };
    let failure = match sent {
        // An error follows in its place.
        Err(Refused::TooLong | Refused::Unrepresentable(_)) if failure.is_none() => return,
        Err(_) => Some(NOT_SENT),
        Ok(()) => failure,
    };
    spans.end(place(&to.connection), request.0, failure);
}

/// A connection's number while it lives.
fn place(connection: &Arc<Connection>) -> usize {
    ptr::from_ref(&**connection).addr()
}

fn context(options: Option<&Dict>) -> Option<Context> {
    let (_, parent) = options?.iter().find(|(name, _)| name == PARENT)?;
    Context::sampled(parent.as_str()?)
}
