//! The requester of a meta API call, and its answer.

use crosstie_wamp::{
    Message, MessageType, Payload, RequestId, ResultDetails, Serializer, Value, codec,
};

use super::open_queries::{Asked, Asker};
use crate::across::{Crossing, NeighbourKey};
use crate::dealer::{too_long, unrepresentable};
use crate::fault::Fault;
use crate::{Outbox, Realm, Refused, Time};

impl<H> Realm<H> {
    /// Answers a call that the realm serves itself.
    pub(super) fn answer_meta(
        &mut self,
        now: Time,
        asked: Asked,
        answer: Result<Value, Fault>,
        out: &mut dyn Outbox<H>,
    ) {
        match asked.by {
            Asker::Session(_) => self.answer_session(now, asked, answer, out),
            Asker::Node(node) => self.answer_node(now, (node, asked.request), (answer, 0), out),
            Asker::ClusterQuery(number) => self.answered_here(now, number, answer, out),
        }
    }

    /// Answers in the caller's serializer: a list of a hundred thousand ids would be encoded twice otherwise.
    fn answer_session(
        &mut self,
        now: Time,
        asked: Asked,
        answer: Result<Value, Fault>,
        out: &mut dyn Outbox<H>,
    ) {
        let Asked {
            by: Asker::Session(key),
            request,
            serializer,
        } = asked
        else {
            return;
        };
        let Some(to) = self.sessions.find(key) else {
            return;
        };
        let (_, _, mut context) = self.split(now, out);
        let fault = match answer {
            Err(fault) => fault,
            Ok(value) => {
                let arguments = written(Value::List(vec![value]), serializer);
                let result = Message::Result {
                    request,
                    details: ResultDetails::default(),
                    payload: Payload::new(serializer, &arguments, &[]),
                };
                match context.reply(to, &result) {
                    Ok(()) | Err(Refused::Full | Refused::Gone) => return,
                    Err(Refused::TooLong) => too_long("caller"),
                    Err(Refused::Unrepresentable(reason)) => unrepresentable(reason),
                }
            }
        };
        context.refuse(to, MessageType::Call, request, &fault);
    }

    /// Answers another node; for a list also with the number of items skipped before the requested part.
    pub(super) fn answer_node(
        &mut self,
        now: Time,
        (to, request): (NeighbourKey, RequestId),
        (answer, skipped): (Result<Value, Fault>, usize),
        out: &mut dyn Outbox<H>,
    ) {
        let Some(to) = self.sessions.neighbours.find(to) else {
            return;
        };
        let (_, _, mut context) = self.split(now, out);
        let fault = match answer {
            Err(fault) => fault,
            Ok(value) => {
                let serializer = Serializer::Cbor;
                let arguments = written(Value::List(vec![value]), serializer);
                let skipped = Value::from(skipped as u64);
                let named = Value::Dict(vec![(SKIPPED.to_owned(), skipped)]);
                let named = written(named, serializer);
                let result = Message::Result {
                    request,
                    details: ResultDetails::default(),
                    payload: Payload::new(serializer, &arguments, &named),
                };
                match context.cross(to.into(), &Crossing::Answer(&result)) {
                    Ok(()) | Err(Refused::Full | Refused::Gone) => return,
                    Err(Refused::TooLong) => too_long("other node"),
                    Err(Refused::Unrepresentable(reason)) => unrepresentable(reason),
                }
            }
        };
        let arguments = fault.arguments();
        let error = Message::Error {
            request_type: MessageType::Call,
            request,
            details: Vec::new(),
            error: fault.uri.into(),
            payload: Payload::new(Serializer::Json, arguments.as_bytes(), &[]),
        };
        let _ = context.cross(to.into(), &Crossing::Answer(&error));
    }
}

/// The keyword argument for the number of list items that a node skipped.
pub(super) const SKIPPED: &str = "skipped";

fn written(value: Value, serializer: Serializer) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    // Only NaN and infinities have no form in a serializer, and here are none.
    let written = codec::encode_value(&value, serializer, &mut bytes);
    debug_assert!(written.is_ok(), "a value has no form");
    bytes
}
