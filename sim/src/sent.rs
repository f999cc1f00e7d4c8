//! A message that a session received, or should have.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{CancelMode, Dict, Message, Serializer, Value};

use crate::ask::json;

/// A message to a session, as far as it is compared. Texts for people are left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sent {
    Published {
        request: u64,
        publication: u64,
    },
    Subscribed {
        request: u64,
        subscription: u64,
    },
    Unsubscribed {
        request: u64,
        /// The subscription that was taken, when the request is 0.
        revoked: Option<u64>,
    },
    Registered {
        request: u64,
        registration: u64,
    },
    Unregistered {
        request: u64,
        /// The registration that was taken, when the request is 0.
        revoked: Option<u64>,
    },
    Event {
        subscription: u64,
        publication: u64,
        topic: Option<String>,
        publisher: Option<u64>,
        retained: bool,
        trustlevel: Option<u64>,
        payload: u64,
    },
    Invocation {
        request: u64,
        registration: u64,
        procedure: Option<String>,
        caller: Option<u64>,
        timeout_ms: u64,
        receive_progress: bool,
        progress: bool,
        trustlevel: Option<u64>,
        payload: u64,
    },
    Interrupt {
        request: u64,
        kill: bool,
        reason: String,
    },
    Result {
        request: u64,
        progress: bool,
        callee: Option<u64>,
        payload: u64,
    },
    /// An EVENT of the realm's own; the arguments are JSON.
    MetaEvent {
        subscription: u64,
        topic: Option<String>,
        arguments: String,
    },
    /// A RESULT of the realm's own that is more than a number; its lists of numbers are sorted.
    MetaResult {
        request: u64,
        arguments: String,
    },
    /// `payload` is a callee's; an ERROR of the router's own has a text.
    Error {
        kind: &'static str,
        request: u64,
        uri: String,
        payload: Option<u64>,
    },
    /// The outbox was told to close the session.
    Closed,
    /// The outbox was told that the session has been ended, and is to be told so.
    Goodbye {
        reason: String,
    },
}

impl Sent {
    /// Reads a message of the realm.
    pub fn from_message(message: &Message<'_>) -> Result<Self, String> {
        let number = message.payload().and_then(|payload| number(payload.args));
        let payload = || number.ok_or_else(|| format!("payload lost: {message:?}"));
        let text = || arguments_of(message).ok_or_else(|| format!("no JSON: {message:?}"));
        Ok(match message {
            Message::Published {
                request,
                publication,
            } => Self::Published {
                request: request.0,
                publication: publication.0,
            },
            Message::Subscribed {
                request,
                subscription,
            } => Self::Subscribed {
                request: request.0,
                subscription: subscription.0,
            },
            Message::Unsubscribed { request, revoked } => Self::Unsubscribed {
                request: request.0,
                revoked: revoked.as_ref().map(|revoked| revoked.id.0),
            },
            Message::Registered {
                request,
                registration,
            } => Self::Registered {
                request: request.0,
                registration: registration.0,
            },
            Message::Unregistered { request, revoked } => Self::Unregistered {
                request: request.0,
                revoked: revoked.as_ref().map(|revoked| revoked.id.0),
            },
            Message::Event {
                subscription,
                details,
                ..
            } if number.is_none() => Self::MetaEvent {
                subscription: subscription.0,
                topic: details.topic.as_deref().map(str::to_owned),
                arguments: text()?,
            },
            Message::Event {
                subscription,
                publication,
                details,
                ..
            } => Self::Event {
                subscription: subscription.0,
                publication: publication.0,
                topic: details.topic.as_deref().map(str::to_owned),
                publisher: details.publisher.as_ref().map(|who| who.session.0),
                retained: details.retained,
                trustlevel: trustlevel(details.passthru.as_deref()),
                payload: payload()?,
            },
            Message::Invocation {
                request,
                registration,
                details,
                ..
            } => Self::Invocation {
                request: request.0,
                registration: registration.0,
                procedure: details.procedure.as_deref().map(str::to_owned),
                caller: details.caller.as_ref().map(|who| who.session.0),
                timeout_ms: details.timeout_ms,
                receive_progress: details.receive_progress,
                progress: details.progress,
                trustlevel: trustlevel(details.passthru.as_deref()),
                payload: payload()?,
            },
            Message::Interrupt { request, options } => Self::Interrupt {
                request: request.0,
                kill: options.mode == Some(CancelMode::Kill),
                reason: options.reason.as_deref().unwrap_or_default().to_owned(),
            },
            Message::Result { request, .. } if number.is_none() => Self::MetaResult {
                request: request.0,
                arguments: text()?,
            },
            Message::Result {
                request, details, ..
            } => Self::Result {
                request: request.0,
                progress: details.progress,
                callee: details.callee.as_ref().map(|who| who.session.0),
                payload: payload()?,
            },
            Message::Error {
                request_type,
                request,
                error,
                ..
            } => Self::Error {
                kind: request_type.name(),
                request: request.0,
                uri: error.as_ref().to_owned(),
                payload: number,
            },
            other => return Err(format!("a realm does not send {other:?}")),
        })
    }

    /// The RESULT of a call that the realm answers itself.
    pub(crate) fn result_of(request: u64, value: &Value) -> Self {
        match value.as_u64() {
            Some(payload) => Self::Result {
                request,
                progress: false,
                callee: None,
                payload,
            },
            None => Self::MetaResult {
                request,
                arguments: json(sorted(Value::List(vec![value.clone()]))),
            },
        }
    }

    /// The list of numbers that a RESULT has, if it is this one.
    pub(crate) fn list_told(&self, answered: u64) -> Option<Vec<Value>> {
        match self {
            Self::MetaResult { request, arguments } if *request == answered => {
                match read(arguments.as_bytes())? {
                    Value::List(mut arguments) => match arguments.pop()? {
                        Value::List(list) => Some(list),
                        _ => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether it has another session's payload in it.
    pub fn carries_payload(&self) -> bool {
        matches!(
            self,
            Self::Event { .. }
                | Self::MetaEvent { .. }
                | Self::MetaResult { .. }
                | Self::Invocation { .. }
                | Self::Result { .. }
                | Self::Error {
                    payload: Some(_),
                    ..
                }
        )
    }
}

/// The trust level among the attributes of a message.
pub(crate) fn trustlevel(passthru: Option<&Dict>) -> Option<u64> {
    let mut passed_on = passthru.into_iter().flatten();
    let (_, level) = passed_on.find(|(key, _)| key == "trustlevel")?;
    level.as_u64()
}

fn number(args: &[u8]) -> Option<u64> {
    let inner = args.strip_prefix(b"[")?.strip_suffix(b"]")?;
    str::from_utf8(inner).ok()?.parse().ok()
}

fn arguments_of(message: &Message<'_>) -> Option<String> {
    let payload = message.payload()?;
    Some(json(sorted(read(payload.args)?)))
}

fn read(text: &[u8]) -> Option<Value> {
    codec::decode_value(Serializer::Json, text, &Limits::default()).ok()
}

/// With all lists of numbers in it sorted: lists have no order.
fn sorted(arguments: Value) -> Value {
    let Value::List(arguments) = arguments else {
        return arguments;
    };
    Value::List(arguments.into_iter().map(with_sorted_lists).collect())
}

fn with_sorted_lists(value: Value) -> Value {
    match value {
        Value::List(mut list) => {
            list.sort_by_key(|value| value.as_u64());
            Value::List(list)
        }
        Value::Dict(dict) => {
            let sorted = |(key, value)| (key, with_sorted_lists(value));
            Value::Dict(dict.into_iter().map(sorted).collect())
        }
        other => other,
    }
}
