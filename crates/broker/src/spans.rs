//! Spans of messages of a vhost that belong to a trace: of a publication while it is routed, of a delivery when it is
//! written for its consumer.

use crosstie_amqp::{Method, Properties};
use crosstie_queues::Fault;
use crosstie_spans::{Context, Failure, Span};

/// The header that brings a context.
const PARENT: &str = "traceparent";

/// Begins the span of a publication that belongs to a sampled trace.
#[inline]
pub(crate) fn begin_published(
    vhost: &str,
    (exchange, routing_key): (&str, &str),
    properties: Properties<'_>,
    body: usize,
) -> Option<Box<Span>> {
    match crosstie_spans::is_on() {
        true => begin(vhost, "publish", (exchange, routing_key), properties, body),
        false => None,
    }
}

/// Ends the span of a publication that was accepted or refused.
#[inline]
pub(crate) fn end_published(span: Option<Box<Span>>, outcome: Result<(), &Fault>) {
    if let Some(span) = span {
        let failure = outcome.err().map(|fault| (fault.code.code(), &*fault.text));
        record(*span, failure);
    }
}

/// Records that a message was written for its receiver, if it belongs to a sampled trace.
#[inline]
pub(crate) fn note_sent(vhost: &str, method: &Method<'_>, properties: Properties<'_>, body: usize) {
    if crosstie_spans::is_on() {
        record_sent(vhost, method, properties, body);
    }
}

#[cold]
fn record_sent(vhost: &str, method: &Method<'_>, properties: Properties<'_>, body: usize) {
    let (verb, source, failure) = match method {
        Method::BasicDeliver(sent) => ("deliver", (sent.exchange, sent.routing_key), None),
        Method::BasicGetOk(sent) => ("get", (sent.exchange, sent.routing_key), None),
        Method::BasicReturn(sent) => {
            let failure = (sent.reply_code, sent.reply_text);
            ("return", (sent.exchange, sent.routing_key), Some(failure))
        }
        _ => return,
    };
    if let Some(span) = begin(vhost, verb, source, properties, body) {
        record(*span, failure);
    }
}

/// Ends a span; a failure is a reply code and its text.
#[cold]
fn record(span: Span, failure: Option<(u16, &str)>) {
    match failure {
        Some((code, why)) => {
            let kind = code.to_string();
            span.failed(Failure { kind: &kind, why }).record();
        }
        None => span.record(),
    }
}

#[cold]
fn begin(
    vhost: &str,
    verb: &'static str,
    (exchange, routing_key): (&str, &str),
    properties: Properties<'_>,
    body: usize,
) -> Option<Box<Span>> {
    let headers = properties.parse_for_broker().headers?;
    let context = Context::sampled(headers.find(PARENT)?.as_str()?)?;
    // The default exchange has no name, and its routing keys are those of queues.
    let destination = match exchange {
        "" => routing_key,
        named => named,
    };
    let span = Span::begin(context, verb, destination)?
        .with_text("messaging.system", "amqp")
        .with_text("messaging.operation.name", verb)
        .with_text("messaging.destination.name", destination)
        .with_text("messaging.rabbitmq.destination.routing_key", routing_key)
        .with_text("crosstie.vhost", vhost)
        .with_number("messaging.message.body.size", body as u64);
    Some(Box::new(span))
}
