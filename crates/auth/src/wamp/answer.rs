//! Reads an authenticator's answer.

use std::sync::Arc;

use crosstie_wamp::{Dict, Value};

use super::refusal::NOT_AUTHORIZED;
use super::{Cause, Refusal};

/// The outcome of a call of an authenticator.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The first argument of its RESULT; null if it has none.
    Value(Value),
    /// Its ERROR: the URI, and the first argument as text.
    Error {
        uri: String,
        text: String,
    },
    Unanswered(Unanswered),
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    NoSuchRealm {
        realm: String,
    },
    /// The realm does not have the role in which the authenticator is called.
    NoSuchRole {
        realm: String,
        role: String,
    },
    Timeout {
        timeout_ms: u64,
    },
    /// The call was lost, because the realm closed or for want of room.
    Lost {
        text: String,
    },
}

/// The principal that an authenticator has assigned.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assigned {
    pub(super) realm: Option<String>,
    pub(super) authid: Option<String>,
    pub(super) role: Option<Arc<str>>,
    pub(super) extra: Dict,
}

impl Answer {
    /// The value, or the refusal that follows from its absence.
    pub(super) fn into_value(self) -> Result<Value, Refusal> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Error { uri, text } => {
                // Failures of the call itself arrive as ERRORs, too.
                let is_denial = !uri.starts_with("wamp.error.")
                    || uri == NOT_AUTHORIZED
                    || uri == "wamp.error.authentication_failed"
                    || uri == "wamp.error.authentication_denied"
                    || uri == "wamp.error.no_such_principal";
                let cause = match is_denial {
                    true => Cause::AuthenticatorDenied,
                    false => Cause::AuthenticatorFailed,
                };
                Err(Refusal::new(uri, text, cause))
            }
            Self::Unanswered(unanswered) => Err(unanswered.into_refusal()),
        }
    }
}

impl Unanswered {
    fn into_refusal(self) -> Refusal {
        let failed = |reason, text| Refusal::new(reason, text, Cause::AuthenticatorFailed);
        match self {
            Self::NoSuchRealm { realm } => failed(
                "wamp.error.no_such_realm",
                format!("no realm {realm:?} to call the authenticator in"),
            ),
            Self::NoSuchRole { realm, role } => failed(
                "wamp.error.no_such_role",
                format!("realm {realm:?} has no role {role:?} to call the authenticator with"),
            ),
            Self::Timeout { timeout_ms } => Refusal::of_authenticator(format!(
                "the authenticator did not answer within {timeout_ms} ms"
            )),
            Self::Lost { text } => {
                Refusal::of_authenticator(format!("the authenticator could not be called: {text}"))
            }
        }
    }
}

/// A dictionary that an authenticator has answered with. Null counts as absent.
#[derive(Clone, Copy)]
pub(super) struct Answered<'a>(&'a Dict);

/// Reads a role, or a dictionary.
pub(super) fn principal(value: &Value) -> Result<Assigned, Refusal> {
    if let Value::String(role) = value {
        return Ok(Assigned {
            role: Some(role.as_str().into()),
            ..Assigned::default()
        });
    }
    let answered = Answered::read(value)?;
    let text = |key| answered.text(key).map(|text| text.map(str::to_owned));
    Ok(Assigned {
        realm: text("realm")?,
        authid: text("authid")?,
        role: text("role")?.map(Into::into),
        extra: match answered.find("extra") {
            None => Dict::new(),
            Some(Value::Dict(extra)) => extra.clone(),
            Some(other) => return Err(wrong_key("extra", "a dictionary", other)),
        },
    })
}

impl<'a> Answered<'a> {
    pub(super) fn read(value: &'a Value) -> Result<Self, Refusal> {
        match value {
            Value::Dict(dict) => Ok(Self(dict)),
            other => Err(wrong_type(other)),
        }
    }

    pub(super) fn text(self, key: &'static str) -> Result<Option<&'a str>, Refusal> {
        match self.find(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_key(key, "text", other)),
        }
    }

    /// A text that the challenge cannot do without.
    pub(super) fn need_text(self, key: &'static str) -> Result<&'a str, Refusal> {
        self.text(key)?.ok_or_else(|| missing(key))
    }

    pub(super) fn number(self, key: &'static str) -> Result<Option<u32>, Refusal> {
        let Some(value) = self.find(key) else {
            return Ok(None);
        };
        let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
        let number = number.ok_or_else(|| wrong_key(key, "a number", value))?;
        Ok(Some(number))
    }

    /// A number that the challenge cannot do without.
    pub(super) fn need_number(self, key: &'static str) -> Result<u32, Refusal> {
        self.number(key)?.ok_or_else(|| missing(key))
    }

    fn find(self, key: &str) -> Option<&'a Value> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value).filter(|v| **v != Value::Null)
    }
}

fn missing(key: &str) -> Refusal {
    Refusal::of_authenticator(format!(
        "got a principal without {key:?} from the dynamic authenticator"
    ))
}

fn wrong_type(value: &Value) -> Refusal {
    Refusal::of_authenticator(format!(
        "got invalid return type \"{}\" from dynamic authenticator",
        type_name(value)
    ))
}

fn wrong_key(key: &str, expected: &str, value: &Value) -> Refusal {
    Refusal::of_authenticator(format!(
        "got {} for {key:?} from dynamic authenticator, expected {expected}",
        type_name(value)
    ))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Integer(_) => "integer",
        Value::Float(_) => "float",
        Value::String(_) => "text",
        Value::Binary(_) => "binary",
        Value::List(_) => "list",
        Value::Dict(_) => "dictionary",
    }
}
