//! A webhook's request as an event.

use crosstie_wamp::{Dict, Serializer, Value, codec};
use http::HeaderMap;

/// The event's arguments: one dictionary with the request's headers and its body.
pub fn arguments(headers: &HeaderMap, body: &str) -> Vec<u8> {
    let fields = headers.keys().map(|name| {
        let values = headers.get_all(name).iter();
        let values = values.map(|value| Value::String(text(value.as_bytes())));
        (written(name.as_str()), Value::List(values.collect()))
    });
    let event: Dict = vec![
        ("headers".to_owned(), Value::Dict(fields.collect())),
        ("body".to_owned(), Value::from(body)),
    ];
    let mut arguments = Vec::with_capacity(body.len() + 512);
    let list = Value::List(vec![Value::Dict(event)]);
    // Text and lists can always be encoded.
    let _ = codec::encode_value(&list, Serializer::Json, &mut arguments);
    arguments
}

/// Bytes that are not UTF-8 are decoded as Latin-1, HTTP's former encoding.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// A header's name in Crossbar.io's form: `X-Hub-Signature`.
pub fn written(name: &str) -> String {
    const OTHERS: [&str; 7] = [
        "Content-MD5",
        "DNT",
        "ETag",
        "P3P",
        "TE",
        "WWW-Authenticate",
        "X-XSS-Protection",
    ];
    if let Some(other) = OTHERS.iter().find(|other| other.eq_ignore_ascii_case(name)) {
        return (*other).to_owned();
    }
    let mut is_first = true;
    let capitals = name.chars().map(|c| {
        let was_first = std::mem::replace(&mut is_first, c == '-');
        if was_first { c.to_ascii_uppercase() } else { c }
    });
    capitals.collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("host", "Host"),
            ("x-hub-signature-256", "X-Hub-Signature-256"),
            ("etag", "ETag"),
            ("te", "TE"),
            ("x", "X"),
        ] {
            assert_eq!(written(name), expected);
        }
    }

    #[test]
    fn events() {
        let mut headers = HeaderMap::new();
        let name = HeaderName::from_static("x-one");
        headers.append(&name, HeaderValue::from_static("1"));
        headers.append(&name, HeaderValue::from_bytes(b"\xe9").expect("a header"));
        let arguments = arguments(&headers, "a=\"b\"\n");
        let expected = r#"[{"headers":{"X-One":["1","é"]},"body":"a=\"b\"\n"}]"#;
        assert_eq!(String::from_utf8(arguments).as_deref(), Ok(expected));
    }
}
