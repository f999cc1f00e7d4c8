//! A cookie as a line of a file: JSON, with Crossbar.io's keys.

use std::sync::Arc;

use chrono::DateTime;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, Value};

use crate::wamp::{Method, hexadecimal, rfc3339};

/// A short hash of a principal's credentials and role. It is short so that a file of cookies reveals next to nothing of
/// a ticket. One change of credentials in 16 million goes unnoticed.
pub type Stamp = [u8; 3];

/// The principal of a login.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    pub realm: String,
    pub authid: String,
    pub authrole: Arc<str>,
    pub authmethod: Method,
    pub authextra: Dict,
    /// Of the principal, if the configuration has it.
    pub stamp: Option<Stamp>,
}

/// A cookie and its login.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub text: String,
    /// Milliseconds since 1970.
    pub created_ms: u64,
    pub modified_ms: u64,
    pub max_age_s: u64,
    pub who: Remembered,
}

impl Record {
    /// The end of its validity.
    pub fn expires_ms(&self) -> u64 {
        let max_age_ms = self.max_age_s.saturating_mul(1_000);
        self.created_ms.saturating_add(max_age_ms)
    }

    /// Appends the line that stores it, or with `deleted_ms` the line that deletes it.
    pub fn write(&self, deleted_ms: Option<u64>, out: &mut Vec<u8>) {
        let status = match deleted_ms {
            Some(_) => "deleted",
            None => "modified",
        };
        let text = |text: &str| Value::from(text);
        let time = |ms| Value::String(rfc3339(ms));
        let who = &self.who;
        let entries = [
            ("cbtid", text(&self.text)),
            ("status", text(status)),
            ("created", time(self.created_ms)),
            ("modified", time(self.modified_ms)),
            ("deleted", deleted_ms.map_or(Value::Null, time)),
            ("max_age", Value::from(self.max_age_s)),
            ("authid", text(&who.authid)),
            ("authrole", text(&who.authrole)),
            ("authmethod", text(who.authmethod.name())),
            ("authrealm", text(&who.realm)),
            ("authextra", Value::Dict(who.authextra.clone())),
        ];
        let entries = entries.map(|(key, value)| (key.to_owned(), value));
        let mut entries: Dict = entries.into();
        if let Some([first, second, third]) = who.stamp {
            let digits = format!("{first:02x}{second:02x}{third:02x}");
            entries.push((STAMP.to_owned(), Value::String(digits)));
        }
        let before = out.len();
        let value = Value::Dict(entries);
        match codec::encode_value(&value, Serializer::Json, out) {
            Ok(()) => out.push(b'\n'),
            // An extra that JSON cannot hold is not stored.
            Err(_) => out.truncate(before),
        }
    }

    /// Reads a line: the cookie's text, and the cookie unless the line deletes it or has no login. `None`: malformed.
    pub fn read(line: &[u8]) -> Option<(String, Option<Self>)> {
        let read = codec::decode_value(Serializer::Json, line, &Limits::default()).ok()?;
        let dict = read.as_dict()?;
        let find = |key: &str| dict.iter().find(|(name, _)| name == key).map(|(_, v)| v);
        let text = |key| find(key).and_then(Value::as_str);
        let cookie = text("cbtid")?.to_owned();
        let is_deleted = find("deleted").is_some_and(|value| *value != Value::Null)
            || text("status") == Some("deleted");
        if is_deleted {
            return Some((cookie, None));
        }
        let kept = || {
            let created_ms = milliseconds(text("created")?)?;
            Some(Self {
                text: cookie.clone(),
                created_ms,
                modified_ms: text("modified")
                    .and_then(milliseconds)
                    .unwrap_or(created_ms),
                max_age_s: find("max_age")?.as_u64()?,
                who: Remembered {
                    realm: text("authrealm")?.to_owned(),
                    authid: text("authid")?.to_owned(),
                    authrole: text("authrole")?.into(),
                    authmethod: Method::parse(text("authmethod")?)?,
                    authextra: match find("authextra") {
                        Some(Value::Dict(extra)) => extra.clone(),
                        _ => Dict::new(),
                    },
                    stamp: text(STAMP).and_then(hexadecimal::decode),
                },
            })
        };
        let kept = kept();
        Some((cookie, kept))
    }
}

/// Crossbar.io has no such key.
const STAMP: &str = "x_standing";

fn milliseconds(text: &str) -> Option<u64> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    u64::try_from(time.timestamp_millis()).ok()
}
