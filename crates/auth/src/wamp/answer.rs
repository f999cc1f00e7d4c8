//! What an authenticator says, read.

use std::sync::Arc;

use crosstie_wamp::{Dict, Value};

use super::refusal::NOT_AUTHORIZED;
use super::wampcra::{Salted, Secret};
use super::{Cause, Refusal};

/// What came of a call of an authenticator.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The first argument of its RESULT; null where there is none.
    Value(Value),
    /// Its ERROR: the URI, and the first argument as text.
    Error {
        uri: String,
        text: String,
    },
    Unanswered(Unanswered),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    NoSuchRealm {
        realm: String,
    },
    /// The realm does not let that role call.
    NoSuchRole {
        realm: String,
        role: String,
    },
    Timeout {
        timeout_ms: u64,
    },
    /// The call was lost, with its realm or for want of room.
    Lost {
        text: String,
    },
}

/// Whom an authenticator has named.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assigned {
    pub(super) realm: Option<String>,
    pub(super) authid: Option<String>,
    pub(super) role: Option<Arc<str>>,
    pub(super) extra: Dict,
}

impl Answer {
    /// The value, or why nobody is let in without one.
    pub(super) fn into_value(self) -> Result<Value, Refusal> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Error { uri, text } => {
                // Everything that goes wrong on the way to it comes in the same form.
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
                format!("there is no realm {realm:?} to ask an authenticator in"),
            ),
            Self::NoSuchRole { realm, role } => failed(
                "wamp.error.no_such_role",
                format!("realm {realm:?} has no role {role:?} to ask an authenticator with"),
            ),
            Self::Timeout { timeout_ms } => Refusal::of_authenticator(format!(
                "the authenticator did not answer within {timeout_ms} ms"
            )),
            Self::Lost { text } => {
                Refusal::of_authenticator(format!("the authenticator could not be asked: {text}"))
            }
        }
    }
}

/// Reads a role, or a dictionary.
pub(super) fn principal(value: &Value) -> Result<Assigned, Refusal> {
    let dict = match value {
        Value::String(role) => {
            return Ok(Assigned {
                role: Some(role.as_str().into()),
                ..Assigned::default()
            });
        }
        Value::Dict(dict) => dict,
        other => return Err(wrong_type(other)),
    };
    let text = |key| text(dict, key).map(|text| text.map(str::to_owned));
    Ok(Assigned {
        realm: text("realm")?,
        authid: text("authid")?,
        role: text("role")?.map(Into::into),
        extra: match find(dict, "extra") {
            None => Dict::new(),
            Some(Value::Dict(extra)) => extra.clone(),
            Some(other) => return Err(wrong_key("extra", "a dictionary", other)),
        },
    })
}

/// Reads the secret in a dictionary that has one.
pub(super) fn secret(value: &Value) -> Result<Secret, Refusal> {
    let Value::Dict(dict) = value else {
        return Err(wrong_type(value));
    };
    let Some(secret) = text(dict, "secret")? else {
        return Err(Refusal::of_authenticator(
            "got a principal without \"secret\" from the dynamic authenticator".to_owned(),
        ));
    };
    let number = |key, otherwise| match find(dict, key) {
        None => Ok(otherwise),
        Some(value) => {
            let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
            number.ok_or_else(|| wrong_key(key, "a number", value))
        }
    };
    let salted = match text(dict, "salt")? {
        None => None,
        Some(salt) => Some(Salted {
            salt: salt.to_owned(),
            iterations: number("iterations", Salted::ITERATIONS)?,
            key_bytes: number("keylen", Salted::KEY_BYTES)?,
        }),
    };
    Secret::underived(secret, salted).map_err(|e| {
        Refusal::of_authenticator(format!(
            "got a bad secret from the dynamic authenticator: {e}"
        ))
    })
}

/// Null counts as not given.
fn find<'d>(dict: &'d Dict, key: &str) -> Option<&'d Value> {
    let found = dict.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value).filter(|v| **v != Value::Null)
}

fn text<'d>(dict: &'d Dict, key: &'static str) -> Result<Option<&'d str>, Refusal> {
    match find(dict, key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_key(key, "text", other)),
    }
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
