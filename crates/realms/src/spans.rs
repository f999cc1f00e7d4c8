//! Spans of the messages of a realm that belong to a trace: of a call from CALL to its answer, of a publication while it
//! is handled.

use std::ptr;
use std::sync::Arc;

use crosstie_spans::{Context, OpenSpans, Span};
use crosstie_transport::Connection;
use crosstie_wamp::{Dict, Message, MessageType};

use crate::payload_encodings::Source;
use crate::peer::Peer;

/// The option that brings a context.
const PARENT: &str = "_traceparent";

const CALLER_LEFT: &str = "the caller has left";

/// Begins the span of a message that belongs to a sampled trace. That of a call is kept until its answer; that of a
/// publication is returned.
#[inline]
pub(super) fn begin(
    (realm, spans): (&str, &OpenSpans),
    message: &Message<'_>,
    source: Source<'_>,
) -> Option<Box<Span>> {
    match crosstie_spans::is_on() {
        true => begin_sampled((realm, spans), message, source),
        false => None,
    }
}

#[cold]
fn begin_sampled(
    (realm, spans): (&str, &OpenSpans),
    message: &Message<'_>,
    source: Source<'_>,
) -> Option<Box<Span>> {
    let bytes = source.len as u64;
    match message {
        Message::Call {
            request,
            options,
            procedure,
            ..
        } => {
            let context = context(options.passthru.as_deref())?;
            let span = Span::begin(context, "call", procedure)
                .with_text("rpc.system", "wamp")
                .with_text("rpc.method", procedure)
                .with_text("crosstie.realm", realm)
                .with_number("messaging.message.envelope.size", bytes);
            spans.open(place(source.connection), request.0, span);
            None
        }
        Message::Publish { options, topic, .. } => {
            let context = context(options.passthru.as_deref())?;
            let span = Span::begin(context, "publish", topic)
                .with_text("messaging.system", "wamp")
                .with_text("messaging.operation.name", "publish")
                .with_text("messaging.destination.name", topic)
                .with_text("crosstie.realm", realm)
                .with_number("messaging.message.envelope.size", bytes);
            Some(Box::new(span))
        }
        _ => None,
    }
}

/// Ends the spans of a caller that has left.
pub(super) fn end_all(spans: &OpenSpans, caller: &Peer) {
    spans.end_all(place(&caller.connection), CALLER_LEFT);
}

/// Ends the span of the call that a message to the caller answers, if it does.
#[cold]
pub(super) fn end_answered(spans: &OpenSpans, to: &Peer, message: &Message<'_>) {
    match message {
        Message::Result {
            request, details, ..
        } if !details.progress => spans.end(place(&to.connection), request.0, None),
        Message::Error {
            request_type: MessageType::Call,
            request,
            error,
            ..
        } => spans.end(place(&to.connection), request.0, Some(error)),
        _ => {}
    }
}

/// Ends the span of a publication, unless an authorizer is asked first: it is then begun again with the verdict.
#[inline]
pub(super) fn end_published(span: Option<Box<Span>>, is_asked: bool) {
    if let Some(span) = span
        && !is_asked
    {
        span.record();
    }
}

/// A connection's number while it lives.
fn place(connection: &Arc<Connection>) -> usize {
    ptr::from_ref(&**connection).addr()
}

fn context(options: Option<&Dict>) -> Option<Context> {
    let (_, parent) = options?.iter().find(|(name, _)| name == PARENT)?;
    Context::sampled(parent.as_str()?)
}
