//! An event's arguments as the body of an AMQP message.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::envelope::{self, EnvelopeError};

/// The format of bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// An object holds keyword arguments, any other JSON is one positional argument. Other events are written as
    /// [`Body::Wamp`].
    #[default]
    Json,
    /// An object of `args` and `kwargs`.
    Wamp,
    /// A notification of oslo.messaging, with or without its envelope: its fields are keyword arguments.
    Notification,
    /// Any bytes: one positional argument, binary.
    Bytes,
}

/// A body, and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub body: Vec<u8>,
    pub content_type: &'static str,
    pub content_encoding: Option<&'static str>,
}

/// Why a body cannot be converted to arguments, or arguments to a body.
#[derive(Debug)]
pub enum BodyError {
    Json(serde_json::Error),
    Envelope(EnvelopeError),
    /// JSON of an unexpected form.
    Expected(&'static str),
    /// An unsupported content encoding.
    Encoding(String),
}

/// WAMP's prefix of binary values in JSON.
const BINARY: char = '\0';

impl Body {
    /// Reads a body with that content encoding.
    pub fn read(self, body: &[u8], encoding: Option<&str>) -> Result<Arguments, BodyError> {
        if self == Self::Bytes {
            let text = format!("{BINARY}{}", BASE64.encode(body));
            return Ok(Arguments::of_value(Value::from(text)));
        }
        // Compressed text is rejected, as its size after decompression cannot be bounded beforehand.
        if let Some(encoding) = encoding
            && !["utf-8", "utf8", "ascii", "us-ascii", "identity", ""]
                .contains(&encoding.to_ascii_lowercase().as_str())
        {
            return Err(BodyError::Encoding(encoding.to_owned()));
        }
        match self {
            Self::Notification => {
                let fields = envelope::open(body).map_err(BodyError::Envelope)?;
                Ok(Arguments::of_object(fields))
            }
            Self::Wamp => {
                let value = serde_json::from_slice(body).map_err(BodyError::Json)?;
                Arguments::from_both(value)
                    .ok_or(BodyError::Expected("an object of \"args\" and \"kwargs\""))
            }
            Self::Json | Self::Bytes => {
                match serde_json::from_slice(body).map_err(BodyError::Json)? {
                    Value::Object(kwargs) => Ok(Arguments::of_object(kwargs)),
                    value => Ok(Arguments::of_value(value)),
                }
            }
        }
    }

    /// Writes an event's arguments.
    pub fn write(self, mut arguments: Arguments) -> Result<Written, BodyError> {
        let value = match self {
            Self::Bytes => return bytes(&arguments),
            Self::Wamp => arguments.into_both(),
            Self::Notification => return notification(arguments),
            Self::Json if arguments.args.is_empty() => Value::Object(arguments.kwargs),
            // A positional object would come back as keyword arguments.
            Self::Json
                if arguments.args.len() == 1
                    && arguments.kwargs.is_empty()
                    && !arguments.args[0].is_object() =>
            {
                arguments.args.pop().unwrap_or_default()
            }
            Self::Json => arguments.into_both(),
        };
        Ok(Written::json(value.to_string().into_bytes()))
    }
}

impl Written {
    fn json(body: Vec<u8>) -> Self {
        Self {
            body,
            content_type: "application/json",
            content_encoding: Some("utf-8"),
        }
    }
}

/// The single binary argument of an event, as bytes.
fn bytes(arguments: &Arguments) -> Result<Written, BodyError> {
    let expected = BodyError::Expected("one binary argument");
    let [Value::String(text)] = arguments.args.as_slice() else {
        return Err(expected);
    };
    let decoded = text
        .strip_prefix(BINARY)
        .and_then(|text| BASE64.decode(text).ok());
    match decoded {
        Some(body) if arguments.kwargs.is_empty() => Ok(Written {
            body,
            content_type: "application/octet-stream",
            content_encoding: None,
        }),
        _ => Err(expected),
    }
}

/// A notification in the form for listeners of oslo.messaging. Fields that the event lacks are empty.
fn notification(arguments: Arguments) -> Result<Written, BodyError> {
    if !arguments.args.is_empty() {
        return Err(BodyError::Expected(
            "keyword arguments alone: a notification has named fields",
        ));
    }
    let mut fields = Map::new();
    for name in ["message_id", "publisher_id", "event_type"] {
        fields.insert(name.to_owned(), Value::from(""));
    }
    fields.insert("priority".to_owned(), Value::from("INFO"));
    fields.insert("payload".to_owned(), Value::Null);
    fields.insert("timestamp".to_owned(), Value::from(""));
    fields.extend(arguments.kwargs);
    let mut body = Vec::new();
    envelope::seal(&Value::Object(fields).to_string(), &mut body);
    Ok(Written::json(body))
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(e) => write!(f, "a body that is not the JSON it should be: {e}"),
            Self::Envelope(e) => e.fmt(f),
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::Encoding(name) => write!(
                f,
                "the content encoding {name:?}, which is not undone: expected text in UTF-8"
            ),
        }
    }
}

impl std::error::Error for BodyError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(args: &str, kwargs: &str) -> Arguments {
        Arguments::read(args.as_bytes(), kwargs.as_bytes()).expect("JSON")
    }

    #[test]
    fn events_become_bodies_and_come_back() {
        let check = |form: Body, args: &str, kwargs: &str, body: &str| {
            let given = arguments(args, kwargs);
            let written = form.write(given.clone()).expect("a body");
            assert_eq!(String::from_utf8_lossy(&written.body), body);
            assert_eq!(form.read(body.as_bytes(), None).expect("arguments"), given);
        };
        check(Body::Json, "", "", "{}");
        check(Body::Json, "", r#"{"a":1}"#, r#"{"a":1}"#);
        check(Body::Json, "[[1,2]]", "", "[1,2]");
        check(Body::Json, r#"["ä"]"#, "", r#""ä""#);
        check(Body::Wamp, "", "", r#"{"args":[],"kwargs":{}}"#);
        check(
            Body::Wamp,
            r#"[{"x":1},2]"#,
            r#"{"a":1}"#,
            r#"{"args":[{"x":1},2],"kwargs":{"a":1}}"#,
        );
    }

    #[test]
    fn bytes_pass_unchanged() {
        let body = [0, 255, b'a', b'"'];
        let read = Body::Bytes.read(&body, Some("gzip")).expect("any bytes");
        assert_eq!(read.args, ["\0AP9hIg=="]);
        let written = Body::Bytes.write(read).expect("binary");
        assert_eq!(
            (&*written.body, written.content_type),
            (&body[..], "application/octet-stream")
        );
        for (args, kwargs) in [
            ("", ""),
            ("[\"text\"]", ""),
            (r#"["\u0000AP9h"]"#, r#"{"a":1}"#),
            (r#"["\u0000A"]"#, ""),
        ] {
            assert!(
                Body::Bytes.write(arguments(args, kwargs)).is_err(),
                "{args} {kwargs}"
            );
        }
    }

    #[test]
    fn mixed_arguments_are_written_as_both_parts() {
        for (args, kwargs) in [("[1]", r#"{"a":1}"#), (r#"[{"a":1}]"#, ""), ("[1,2]", "")] {
            let written = |form: Body| form.write(arguments(args, kwargs)).expect("a body").body;
            assert_eq!(written(Body::Json), written(Body::Wamp));
        }
    }

    #[test]
    fn notifications_are_opened_and_sealed() {
        let fields = r#"{"message_id":"1","publisher_id":"p","event_type":"compute.end","priority":"INFO","payload":{"a":"\"ä"},"timestamp":"t"}"#;
        let sealed = format!(
            r#"{{"oslo.version": "2.0", "oslo.message": {}}}"#,
            Value::from(fields)
        );
        let read = |body: &str| Body::Notification.read(body.as_bytes(), Some("utf-8"));
        let opened = read(&sealed).expect("with an envelope");
        assert_eq!(opened, read(fields).expect("without"));
        assert_eq!(opened.kwargs["event_type"], "compute.end");
        let written = Body::Notification
            .write(opened.clone())
            .expect("a body")
            .body;
        let written = Body::Notification
            .read(&written, None)
            .expect("a notification");
        assert_eq!(written, opened);
        assert!(Body::Notification.write(arguments("[1]", "")).is_err());
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        let check = |form: Body, body: &str, encoding: Option<&str>, expected: &str| {
            let error = form.read(body.as_bytes(), encoding).expect_err(body);
            let error = error.to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check(
            Body::Json,
            "",
            None,
            "a body that is not the JSON it should be: EOF",
        );
        check(Body::Json, "{\"a\": NaN}", None, "a body that is not");
        check(Body::Json, &"[".repeat(10_000), None, "a body that is not");
        check(
            Body::Json,
            "{}",
            Some("gzip"),
            "the content encoding \"gzip\"",
        );
        let both = "expected an object of \"args\" and \"kwargs\"";
        for body in [
            "[]",
            "1",
            r#"{"args": 1}"#,
            r#"{"kwargs": []}"#,
            r#"{"args": [], "x": 1}"#,
        ] {
            check(Body::Wamp, body, None, both);
        }
        check(Body::Notification, "[]", None, "the message is not");
        check(
            Body::Notification,
            r#"{"oslo.version": "9", "oslo.message": "{}"}"#,
            None,
            "an envelope of version",
        );
    }
}
