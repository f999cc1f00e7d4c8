//! Parses the answer of an authorizer.

use std::fmt;

use crosstie_wamp::{Dict, Value};

use super::permission::Disclose;

/// The outcome of a question to an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Decided(Decision),
    /// No decision: the action fails with `wamp.error.authorization_failed` and this text.
    Failed {
        cause: RefusalCause,
        text: String,
    },
}

/// The decision of an authorizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub allow: bool,
    /// Discloses the caller or publisher; for a registration, discloses the callee to its callers.
    pub disclose: bool,
    /// The decision may be cached.
    pub cache: bool,
    /// Trust level of the call or publication, in place of the role's.
    pub trustlevel: Option<u16>,
}

crosstie_collections::named! {
    /// Why an action was refused, by its name in metrics and in the audit log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum RefusalCause {
        /// The role's permissions do not allow it.
        Permissions = "permissions",
        /// The authorizer, or its cached decision, does not allow it.
        AuthorizerDenied = "authorizer_denied",
        /// The authorizer answered with an error.
        AuthorizerFailed = "authorizer_failed",
        /// The authorizer's answer is malformed.
        AuthorizerNonsense = "authorizer_nonsense",
        /// The authorizer did not answer in time.
        AuthorizerTimeout = "authorizer_timeout",
        /// The authorizer could not be called.
        AuthorizerUnavailable = "authorizer_unavailable",
    }
}

impl Decision {
    pub(crate) fn disclose(self) -> Disclose {
        Disclose {
            caller: self.disclose,
            publisher: self.disclose,
            callee: self.disclose,
        }
    }
}

impl Verdict {
    /// Parses the first argument of an authorizer's RESULT: a boolean, or a dictionary with `allow` and optionally
    /// `disclose`, `cache` and `validate`, as in Crossbar.io, and `trustlevel`. `validate` requests a validation of
    /// payloads, which this router does not have: an action that is allowed only with it is not allowed.
    pub fn read(answer: &Value) -> Self {
        let decided = match answer {
            Value::Bool(allow) => Ok(Decision {
                allow: *allow,
                ..Decision::default()
            }),
            Value::Dict(dict) => read_dict(dict),
            other => Err(Nonsense::Type(type_name(other))),
        };
        match decided {
            Ok(decision) => Self::Decided(decision),
            Err(nonsense) => Self::Failed {
                cause: RefusalCause::AuthorizerNonsense,
                text: nonsense.to_string(),
            },
        }
    }
}

fn read_dict(dict: &Dict) -> Result<Decision, Nonsense<'_>> {
    let (mut allow, mut decision) = (None, Decision::default());
    for (key, value) in dict {
        let boolean = || value.as_bool().ok_or(Nonsense::Value(key));
        match key.as_str() {
            "allow" => allow = Some(boolean()?),
            "disclose" => decision.disclose = boolean()?,
            "cache" => decision.cache = boolean()?,
            "trustlevel" => decision.trustlevel = trustlevel(value)?,
            "validate" => match value {
                Value::Null => {}
                Value::Dict(schemas) if schemas.is_empty() => {}
                Value::Dict(_) => return Err(Nonsense::Validate),
                _ => return Err(Nonsense::ValidateType),
            },
            _ => return Err(Nonsense::Key(key)),
        }
    }
    decision.allow = allow.ok_or(Nonsense::NoAllow)?;
    Ok(decision)
}

/// Null counts as absent.
fn trustlevel(value: &Value) -> Result<Option<u16>, Nonsense<'_>> {
    match value {
        Value::Null => Ok(None),
        _ => {
            let level = value.as_u64().and_then(|level| u16::try_from(level).ok());
            level.map(Some).ok_or(Nonsense::Trustlevel)
        }
    }
}

/// A malformed answer.
enum Nonsense<'d> {
    Type(&'static str),
    Key(&'d str),
    Value(&'d str),
    NoAllow,
    Trustlevel,
    Validate,
    ValidateType,
}

impl fmt::Display for Nonsense<'_> {
    /// Begins with Crossbar.io's words if Crossbar.io has this error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(name) => write!(
                f,
                "Authorizer returned unknown type '{name}', expected a boolean or a dictionary"
            ),
            Self::Key(key) => {
                let shown: String = key.chars().take(KEY_CHARACTERS_MAX).collect();
                write!(
                    f,
                    "Authorizer returned unknown key '{shown}', expected allow, disclose, cache, trustlevel or validate"
                )
            }
            Self::Value(key) => write!(f, "Authorizer must have bool for '{key}'"),
            Self::Trustlevel => write!(
                f,
                "Authorizer must have an integer from 0 to 65535 for 'trustlevel'"
            ),
            Self::NoAllow => write!(f, "Authorizer must have 'allow' in returned dict"),
            Self::Validate => write!(
                f,
                "Authorizer asked for validation with 'validate', and this router does not validate payloads"
            ),
            Self::ValidateType => {
                write!(f, "Authorizer must have a dict or null for 'validate'")
            }
        }
    }
}

const KEY_CHARACTERS_MAX: usize = 100;

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

#[cfg(test)]
mod tests {
    use crosstie_wamp::Serializer;
    use crosstie_wamp::codec::{Limits, decode_value};

    use super::*;

    #[test]
    fn trust_levels() {
        let level = |level: &str| {
            let answer = format!(r#"{{"allow":true,"trustlevel":{level}}}"#);
            let value = decode_value(Serializer::Json, answer.as_bytes(), &Limits::default());
            match Verdict::read(&value.unwrap()) {
                Verdict::Decided(decision) => Some(decision.trustlevel),
                Verdict::Failed { .. } => None,
            }
        };
        assert_eq!(level("null"), Some(None));
        assert_eq!(level("0"), Some(Some(0)));
        assert_eq!(level("65535"), Some(Some(65_535)));
        for wrong in ["65536", "-1", "\"high\"", "true", "1.5"] {
            assert_eq!(level(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn answers() {
        let decided = |allow, disclose, cache| {
            Ok(Decision {
                allow,
                disclose,
                cache,
                trustlevel: None,
            })
        };
        for (answer, expected) in [
            ("true", decided(true, false, false)),
            ("false", decided(false, false, false)),
            (r#"{"allow":true}"#, decided(true, false, false)),
            (
                r#"{"allow":false,"cache":true}"#,
                decided(false, false, true),
            ),
            (
                r#"{"allow":true,"disclose":true,"cache":true,"validate":null}"#,
                decided(true, true, true),
            ),
            (
                r#"{"allow":true,"validate":{}}"#,
                decided(true, false, false),
            ),
            (
                r#"{"allow":true,"validate":{"call":"x"}}"#,
                Err("does not validate"),
            ),
            (r#"{"allow":true,"validate":true}"#, Err("a dict or null")),
            (r#"{"allow":1}"#, Err("must have bool for 'allow'")),
            (
                r#"{"allow":true,"cache":null}"#,
                Err("must have bool for 'cache'"),
            ),
            (r#"{"disclose":true}"#, Err("must have 'allow'")),
            (
                r#"{"allow":true,"allowed":true}"#,
                Err("unknown key 'allowed'"),
            ),
            ("null", Err("unknown type 'null'")),
            ("1", Err("unknown type 'integer'")),
            (r#""yes""#, Err("unknown type 'text'")),
            ("[true]", Err("unknown type 'list'")),
        ] {
            let value = decode_value(Serializer::Json, answer.as_bytes(), &Limits::default());
            match (Verdict::read(&value.unwrap()), expected) {
                (Verdict::Decided(decision), Ok(expected)) => {
                    assert_eq!(decision, expected, "{answer}");
                }
                (Verdict::Failed { cause, text }, Err(part)) => {
                    assert_eq!(cause, RefusalCause::AuthorizerNonsense);
                    assert!(text.contains(part), "{answer}: {text}");
                }
                (verdict, _) => panic!("{answer}: {verdict:?}"),
            }
        }
    }
}
