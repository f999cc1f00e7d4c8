//! The expected answers.

use serde::Deserialize;
use serde_json::Value;

/// The correct body; the status is always 200.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    Bytes(Vec<u8>),
    /// JSON of this value. The bytes of the first such answer are those of all that follow: a server that varies its
    /// spacing fails.
    Value(Value),
    /// `{"id": …}`, another one each time.
    Publication,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    id: u64,
}

/// The highest possible id (WAMP, "IDs").
const ID_MAX: u64 = 1 << 53;

impl Expected {
    /// Returns the fault, with a part of the answer.
    pub(super) fn check(&mut self, status: u16, body: &[u8]) -> Result<(), String> {
        let is_right = status == 200
            && match self {
                Self::Bytes(expected) => body == expected,
                Self::Value(expected) => {
                    let found: Option<Value> = serde_json::from_slice(body).ok();
                    found.as_ref() == Some(expected)
                }
                Self::Publication => serde_json::from_slice(body)
                    .is_ok_and(|published: Published| (1..=ID_MAX).contains(&published.id)),
            };
        if !is_right {
            let part = String::from_utf8_lossy(&body[..body.len().min(200)]);
            return Err(format!("a wrong answer: {status} `{part}`"));
        }
        if let Self::Value(_) = self {
            *self = Self::Bytes(body.to_vec());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_answers_are_found() {
        #[track_caller]
        fn check(expected: &Expected, status: u16, body: &str, is_right: bool) {
            let found = expected.clone().check(status, body.as_bytes());
            assert_eq!(found.is_ok(), is_right, "{body}: {found:?}");
        }
        let bytes = Expected::Bytes(b"abc".to_vec());
        check(&bytes, 200, "abc", true);
        check(&bytes, 200, "abd", false);
        check(&bytes, 404, "abc", false);
        let publication = Expected::Publication;
        check(&publication, 200, r#"{"id": 12}"#, true);
        check(&publication, 200, r#"{"id": 0}"#, false);
        check(&publication, 200, r#"{"error": "x"}"#, false);
        check(&publication, 200, r#"{"id": 12, "error": "x"}"#, false);
        let value = Expected::Value(json!({ "args": [1] }));
        check(&value, 200, r#"{ "args": [1] }"#, true);
        check(&value, 200, r#"{"args":[2]}"#, false);
        check(&value, 200, "x", false);

        let mut value = value;
        value.check(200, br#"{"args":[1]}"#).unwrap();
        check(&value, 200, r#"{"args":[1]}"#, true);
        check(&value, 200, r#"{"args": [1]}"#, false);
    }
}
