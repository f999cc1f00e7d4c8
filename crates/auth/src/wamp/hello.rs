//! The parts of HELLO that concern authentication.

use std::fmt;

use crosstie_wamp::{Dict, Value};

/// The part of a HELLO that authentication reads.
#[derive(Clone, Copy, Debug)]
pub struct Hello<'h> {
    /// Empty if the client leaves the realm to the router.
    pub realm: &'h str,
    /// In the client's order.
    pub authmethods: &'h [Value],
    pub authid: Option<&'h str>,
    pub authrole: Option<&'h str>,
    pub authextra: Option<&'h Dict>,
}

/// A HELLO with an authentication option of the wrong type or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    key: &'static str,
    expected: &'static str,
}

impl Malformed {
    pub(super) fn new(key: &'static str, expected: &'static str) -> Self {
        Self { key, expected }
    }
}

impl<'h> Hello<'h> {
    /// Reads `HELLO.Details`. Null counts as absent.
    pub fn read(realm: &'h str, details: &'h Dict) -> Result<Self, Malformed> {
        let find = |key: &str| {
            let found = details.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value).filter(|v| **v != Value::Null)
        };
        let text = |key: &'static str| match find(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(Malformed {
                key,
                expected: "text",
            }),
        };
        let authmethods = match find("authmethods") {
            None => &[],
            Some(Value::List(methods)) => methods.as_slice(),
            Some(_) => {
                return Err(Malformed {
                    key: "authmethods",
                    expected: "a list",
                });
            }
        };
        if authmethods.iter().any(|method| method.as_str().is_none()) {
            return Err(Malformed {
                key: "authmethods",
                expected: "a list of texts",
            });
        }
        let authextra = match find("authextra") {
            None => None,
            Some(Value::Dict(extra)) => Some(extra),
            Some(_) => {
                return Err(Malformed {
                    key: "authextra",
                    expected: "a dictionary",
                });
            }
        };
        Ok(Self {
            realm,
            authmethods,
            authid: text("authid")?,
            authrole: text("authrole")?,
            authextra,
        })
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.key, self.expected)
    }
}

impl std::error::Error for Malformed {}
