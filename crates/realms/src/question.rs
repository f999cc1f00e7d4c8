//! An authorizer's question and answer in WAMP, in Crossbar.io's form.

use crosstie_auth::wamp::{Answer, Unanswered};
use crosstie_routing::{Question, RefusalCause, Verdict};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Message, Payload, Serializer, Value};

use crate::peer::Peer;

/// Maximum length of an authorizer's error text that is forwarded.
const TEXT_CHARACTERS_MAX: usize = 500;

/// The serializer of the stored `authextra`.
pub(crate) const SERIALIZER: Serializer = Serializer::Cbor;

/// The reason why an authorizer is not asked.
pub(super) const WAITS_FOR_ITSELF: &str = "those who serve the authorizer have a role that it is asked about, so that it would wait \
     for itself";

/// The call's arguments: the session, the URI, the action, and the message's options.
pub(super) fn arguments(
    question: &Question,
    extra: Option<&[u8]>,
    transport: Value,
    options: Option<Value>,
) -> Value {
    let identity = &question.identity;
    let extra =
        extra.and_then(|bytes| codec::decode_value(SERIALIZER, bytes, &Limits::default()).ok());
    let session = [
        ("session", Value::from(question.session.0)),
        ("authid", Value::from(&*identity.authid)),
        ("authrole", Value::from(&*identity.authrole)),
        ("authmethod", Value::from(&*identity.authmethod)),
        ("authprovider", Value::from(&*identity.authprovider)),
        ("authextra", extra.unwrap_or(Value::Null)),
        ("transport", transport),
    ];
    let session = session.map(|(key, value)| (key.to_owned(), value));
    let mut arguments = vec![
        Value::Dict(session.into_iter().collect()),
        Value::from(question.uri.as_str()),
        Value::from(question.action.name()),
    ];
    arguments.extend(options);
    Value::List(arguments)
}

/// The options of a request, as its sender could have written them.
pub(crate) fn options(peer: &Peer, bytes: &[u8]) -> Value {
    let read = || {
        let message = codec::decode(peer.wire.serializer, bytes, &Limits::default()).ok()?;
        let mut head = Vec::new();
        codec::encode(&without_payload(message)?, SERIALIZER, &mut head).ok()?;
        match codec::decode_value(SERIALIZER, &head, &Limits::default()).ok()? {
            Value::List(fields) => fields.into_iter().nth(OPTIONS_PLACE),
            _ => None,
        }
    };
    read().unwrap_or_else(|| Value::Dict(Dict::new()))
}

/// The position in CALL, REGISTER, PUBLISH and SUBSCRIBE alike.
const OPTIONS_PLACE: usize = 2;

fn without_payload(message: Message<'_>) -> Option<Message<'_>> {
    match message {
        Message::Call {
            request,
            options,
            procedure,
            ..
        } => Some(Message::Call {
            request,
            options,
            procedure,
            payload: Payload::EMPTY,
        }),
        Message::Publish {
            request,
            options,
            topic,
            ..
        } => Some(Message::Publish {
            request,
            options,
            topic,
            payload: Payload::EMPTY,
        }),
        Message::Register { .. } | Message::Subscribe { .. } => Some(message),
        _ => None,
    }
}

/// The verdict in an answer.
pub(super) fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::Value(value) => Verdict::read(&value),
        Answer::Error { uri, text } => {
            let shown: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
            Verdict::Failed {
                cause: cause(&uri),
                text: format!("{uri}: {shown}"),
            }
        }
        Answer::Unanswered(unanswered) => self::unanswered(unanswered),
    }
}

/// The router's own errors mean that the authorizer was not asked.
fn cause(uri: &str) -> RefusalCause {
    let is_own = uri.starts_with("crosstie.error.")
        || uri.starts_with("crossbar.error.")
        || matches!(
            uri,
            "wamp.error.no_such_procedure"
                | "wamp.error.no_available_callee"
                | "wamp.error.canceled"
        );
    match is_own {
        true => RefusalCause::AuthorizerUnavailable,
        false => RefusalCause::AuthorizerFailed,
    }
}

pub(super) fn unanswered(unanswered: Unanswered) -> Verdict {
    match unanswered {
        Unanswered::Timeout { timeout_ms } => Verdict::Failed {
            cause: RefusalCause::AuthorizerTimeout,
            text: format!("the authorizer did not answer within {timeout_ms} ms"),
        },
        Unanswered::Lost { text } => unavailable(&text),
        Unanswered::NoSuchRealm { realm } => {
            unavailable(&format!("there is no realm {realm:?} any more"))
        }
        Unanswered::NoSuchRole { role, .. } => unavailable(&format!("there is no role {role:?}")),
    }
}

pub(super) fn unavailable(text: &str) -> Verdict {
    Verdict::Failed {
        cause: RefusalCause::AuthorizerUnavailable,
        text: format!("the authorizer could not be asked: {text}"),
    }
}

/// Whether a Python authorizer, function or method, takes no `options` argument. It is then called again without it, as
/// Crossbar.io does.
pub(super) fn takes_no_options(answer: &Answer) -> bool {
    let Answer::Error { text, .. } = answer else {
        return false;
    };
    [
        // From Python 2, for a method.
        "takes exactly 4 arguments",
        "takes 3 positional arguments but 4 were given",
        "takes 4 positional arguments but 5 were given",
    ]
    .iter()
    .any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_router_and_of_an_authorizer_are_distinguished() {
        for (uri, expected) in [
            (
                "wamp.error.no_such_procedure",
                RefusalCause::AuthorizerUnavailable,
            ),
            (
                "crosstie.error.calls_max",
                RefusalCause::AuthorizerUnavailable,
            ),
            ("wamp.error.runtime_error", RefusalCause::AuthorizerFailed),
            ("com.example.error", RefusalCause::AuthorizerFailed),
        ] {
            let answer = Answer::Error {
                uri: uri.to_owned(),
                text: "x".repeat(1_000),
            };
            let Verdict::Failed { cause, text } = verdict(answer) else {
                panic!("{uri} decides nothing");
            };
            assert_eq!(cause, expected, "{uri}");
            assert!(text.starts_with(uri) && text.len() < 600, "{text}");
        }
    }

    #[test]
    fn authorizers_without_options_are_recognized() {
        for (text, expected) in [
            ("authorize() takes exactly 4 arguments (5 given)", true),
            ("f() takes 3 positional arguments but 4 were given", true),
            ("A.f() takes 4 positional arguments but 5 were given", true),
            ("f() takes 2 positional arguments but 4 were given", false),
        ] {
            let answer = Answer::Error {
                uri: "wamp.error.runtime_error".to_owned(),
                text: text.to_owned(),
            };
            assert_eq!(takes_no_options(&answer), expected, "{text}");
        }
    }
}
