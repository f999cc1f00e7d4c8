//! Encodes requests, and formats errors for operators.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    Dict, MatchPolicy, Message, Payload, RegisterOptions, RegistrationId, RequestId, Serializer,
    SubscribeOptions, SubscriptionId, Value,
};

use crate::interests::Key;
use crate::sides::Kind;

/// Encodes a list of values as a payload's arguments.
pub(crate) fn written(serializer: Serializer, args: Vec<Value>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Text, ids and lists have a form in every serializer.
    let _ = codec::encode_value(&Value::List(args), serializer, &mut bytes);
    bytes
}

pub(crate) fn payload(serializer: Serializer, args: &[u8]) -> Payload<'_> {
    Payload::new(serializer, args, &[])
}

/// The arguments of a payload; empty unless they are a list.
pub(crate) fn arguments(payload: &Payload<'_>) -> Vec<Value> {
    let limits = Limits::default();
    match codec::decode_value(payload.serializer, payload.args, &limits) {
        Ok(Value::List(args)) => args,
        _ => Vec::new(),
    }
}

/// SUBSCRIBE or REGISTER for a mirror.
pub(crate) fn hold<'k>(
    kind: Kind,
    key: &'k Key,
    invoke: crosstie_wamp::InvocationPolicy,
    request: RequestId,
) -> Message<'k> {
    let uri = (&*key.uri).into();
    let match_policy = key.match_policy;
    match kind {
        Kind::Subscription => Message::Subscribe {
            request,
            options: SubscribeOptions::matching(match_policy),
            topic: uri,
        },
        Kind::Registration => Message::Register {
            request,
            options: RegisterOptions {
                match_policy,
                invoke,
                ..RegisterOptions::default()
            },
            procedure: uri,
        },
    }
}

/// UNSUBSCRIBE or UNREGISTER for a mirror.
pub(crate) fn give_up(kind: Kind, id: u64, request: RequestId) -> Message<'static> {
    match kind {
        Kind::Subscription => Message::Unsubscribe {
            request,
            subscription: SubscriptionId(id),
        },
        Kind::Registration => Message::Unregister {
            request,
            registration: RegistrationId(id),
        },
    }
}

/// The text of an ERROR, shortened for operators.
pub(crate) fn reason(uri: &str, payload: &Payload<'_>) -> String {
    let args = match payload.args.len() {
        0..=4096 => arguments(payload),
        _ => Vec::new(),
    };
    match args.first() {
        Some(Value::String(text)) => format!("{uri}: {text}"),
        _ => uri.to_owned(),
    }
}

/// The `message` of a GOODBYE or an ABORT.
pub(crate) fn message_of(details: &Dict) -> Option<&str> {
    details.iter().find_map(|(key, value)| match value {
        Value::String(text) if key == "message" => Some(text.as_str()),
        _ => None,
    })
}

pub(crate) fn id(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(id) => u64::try_from(*id).ok(),
        _ => None,
    }
}

pub(crate) fn text(value: Option<&Value>) -> Option<&str> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

pub(crate) fn match_policy(name: &str) -> Option<MatchPolicy> {
    let all = [
        MatchPolicy::Exact,
        MatchPolicy::Prefix,
        MatchPolicy::Wildcard,
    ];
    all.into_iter().find(|policy| policy.name() == name)
}
