//! Bodies of answers, in Crossbar.io's form. Results pass as received.

use crosstie_wamp::{PublicationId, Serializer, Value, codec};

use super::Refusal;

/// The answer to a call: its results, at least one. `None` if they are not a list, as in a message that only its
/// receiver can decode.
pub fn result(args: &[u8], kwargs: &[u8]) -> Option<Vec<u8>> {
    if !(args.is_empty() || args.starts_with(b"[")) {
        return None;
    }
    let mut body = Vec::with_capacity(args.len() + kwargs.len() + 24);
    body.push(b'{');
    match (is_empty(args), is_empty(kwargs)) {
        (true, true) => body.extend_from_slice(b"\"args\":[null]"),
        (false, true) => write(&mut body, b"\"args\":", args),
        (true, false) => write(&mut body, b"\"kwargs\":", kwargs),
        (false, false) => {
            write(&mut body, b"\"args\":", args);
            write(&mut body, b",\"kwargs\":", kwargs);
        }
    }
    body.push(b'}');
    Some(body)
}

/// The answer to a publication.
pub fn published(id: PublicationId) -> Vec<u8> {
    let mut body = b"{\"id\":".to_vec();
    // A number can always be encoded.
    let _ = codec::encode_value(&Value::from(id.0), Serializer::Json, &mut body);
    body.push(b'}');
    body
}

/// A WAMP error, which is an answer like a result.
pub fn error(uri: &str, args: &[u8], kwargs: &[u8]) -> Vec<u8> {
    let mut body = b"{\"error\": ".to_vec();
    write_text(&mut body, uri);
    let args = if args.starts_with(b"[") { args } else { b"[]" };
    write(&mut body, b", \"args\": ", args);
    let kwargs = if kwargs.is_empty() { b"{}" } else { kwargs };
    write(&mut body, b", \"kwargs\": ", kwargs);
    body.push(b'}');
    body
}

/// An internal failure; the log has the details.
pub fn failure() -> Vec<u8> {
    let text = b"[\"Sorry, Crossbar.io has encountered a problem.\"]";
    error("wamp.error.runtime_error", text, b"")
}

/// The answer to a rejected request.
pub fn refusal(refusal: &Refusal) -> Vec<u8> {
    let mut body = b"{\"error\":".to_vec();
    write_text(&mut body, &refusal.to_string());
    body.extend_from_slice(b",\"args\":[],\"kwargs\":{}}");
    body
}

fn write(body: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    body.extend_from_slice(name);
    body.extend_from_slice(value);
}

fn write_text(body: &mut Vec<u8>, text: &str) {
    // A text can always be encoded.
    let _ = codec::encode_value(&Value::from(text), Serializer::Json, body);
}

/// Whether a list or dictionary is empty or absent.
fn is_empty(value: &[u8]) -> bool {
    let inner = value.get(1..value.len().saturating_sub(1));
    inner.unwrap_or_default().trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results() {
        for (args, kwargs, expected) in [
            ("", "", Some(r#"{"args":[null]}"#)),
            ("[]", "{}", Some(r#"{"args":[null]}"#)),
            ("[3]", "", Some(r#"{"args":[3]}"#)),
            ("[1,\"b\",null]", "{ }", Some(r#"{"args":[1,"b",null]}"#)),
            ("[ ]", r#"{"a":1}"#, Some(r#"{"kwargs":{"a":1}}"#)),
            (
                "[1]",
                r#"{"a":2}"#,
                Some(r#"{"args":[1],"kwargs":{"a":2}}"#),
            ),
            ("\"\\u0000AAAA\"", "", None),
        ] {
            let body = result(args.as_bytes(), kwargs.as_bytes());
            assert_eq!(
                body.as_deref(),
                expected.map(str::as_bytes),
                "{args} {kwargs}"
            );
        }
    }

    #[test]
    fn others() {
        let rows = [
            (published(PublicationId(5)), r#"{"id":5}"#),
            (
                error("com.error", b"[\"a\"]", b"{\"b\":1}"),
                r#"{"error": "com.error", "args": ["a"], "kwargs": {"b":1}}"#,
            ),
            (
                error("a\"b", b"", b""),
                r#"{"error": "a\"b", "args": [], "kwargs": {}}"#,
            ),
            (
                failure(),
                r#"{"error": "wamp.error.runtime_error", "args": ["Sorry, Crossbar.io has encountered a problem."], "kwargs": {}}"#,
            ),
            (
                refusal(&Refusal::NotJson),
                r#"{"error":"Request body was invalid JSON.","args":[],"kwargs":{}}"#,
            ),
        ];
        for (body, expected) in rows {
            assert_eq!(String::from_utf8(body).as_deref(), Ok(expected));
        }
    }
}
