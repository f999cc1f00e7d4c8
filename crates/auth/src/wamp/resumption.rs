//! The options of HELLO for resumable sessions (a draft that the specification has dropped; Autobahn's keys).

use crosstie_wamp::{Dict, SessionId, Value};
use subtle::ConstantTimeEq as _;

use super::hello::Malformed;

/// The token by which a client proves that a session was its own.
#[derive(Clone, Copy)]
pub struct ResumeToken([u8; Self::BYTES]);

/// The resumption options of a HELLO.
#[derive(Clone, Copy)]
pub struct Resumption {
    /// Whether the new session may be resumed.
    pub is_resumable: bool,
    /// The session to resume.
    pub session: Option<SessionId>,
    /// The client's token for it, unless malformed.
    pub token: Option<ResumeToken>,
}

impl ResumeToken {
    pub const BYTES: usize = 32;

    /// The token made of these random bytes.
    pub fn new(chance: [u8; Self::BYTES]) -> Self {
        Self(chance)
    }

    fn read(text: &str) -> Option<Self> {
        let digits = text.as_bytes().as_chunks::<2>().0;
        // `from_str_radix` would accept a sign before a digit.
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || text.len() != 2 * Self::BYTES {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits) {
            *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// As in WELCOME.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes that are stored with the session.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        self.0
    }

    /// Compares in constant time.
    pub fn is(&self, kept: &[u8; Self::BYTES]) -> bool {
        self.0.ct_eq(kept).into()
    }
}

impl Resumption {
    /// Reads `HELLO.Details`; `None` without resumption options. Null counts as absent.
    pub fn read(details: &Dict) -> Result<Option<Self>, Malformed> {
        let find = |key: &str| {
            let found = details.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value).filter(|v| **v != Value::Null)
        };
        let is_resumable = match find("resumable") {
            None => None,
            Some(value) => {
                let wish = value.as_bool();
                Some(wish.ok_or_else(|| Malformed::new("resumable", "a boolean"))?)
            }
        };
        let session = match find("resume-session") {
            None => None,
            Some(value) => {
                let id = value.as_whole().map(SessionId);
                Some(id.ok_or_else(|| Malformed::new("resume-session", "an id"))?)
            }
        };
        let token = match find("resume-token") {
            None => None,
            Some(value) => {
                let text = value.as_str();
                ResumeToken::read(text.ok_or_else(|| Malformed::new("resume-token", "text"))?)
            }
        };
        let is_said = is_resumable.is_some() || session.is_some();
        Ok(is_said.then_some(Self {
            is_resumable: is_resumable.unwrap_or(false),
            session,
            token,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_text() {
        let token = ResumeToken::new([0xa5; 32]);
        let read = ResumeToken::read(&token.text()).unwrap();
        assert!(read.is(&token.bytes()));
        assert!(!read.is(&[0; 32]));
        for text in [
            "",
            "a5",
            &"+5".repeat(32),
            &"é".repeat(32),
            &"a5".repeat(33),
        ] {
            assert!(ResumeToken::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn wishes_of_wrong_types_are_refused() {
        for key in ["resumable", "resume-session", "resume-token"] {
            let details = vec![(key.to_owned(), Value::List(Vec::new()))];
            assert!(Resumption::read(&details).is_err(), "{key}");
            let details = vec![(key.to_owned(), Value::Null)];
            assert!(matches!(Resumption::read(&details), Ok(None)), "{key}");
        }
    }
}
