//! The contents of a message: JSON with the envelope's version and, as a string, the JSON of a call, a cast or a reply.
//!
//! The constant parts of a call are converted to text once ([`RequestText`]); the identifiers of each message are
//! inserted.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use crate::failure::RemoteFailure;

/// The envelope's version, the only one so far.
const VERSION: &str = "2.0";

/// The prefix of the caller's context among a call's keys.
const CONTEXT_PREFIX: &str = "_context_";

/// The request to a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub method: String,
    pub args: Map<String, Value>,
    /// Passed to the method beside its arguments.
    pub context: Map<String, Value>,
    pub namespace: Option<String>,
    pub version: Option<String>,
}

/// A call as received by a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub call: Call,
    /// The reply's `_msg_id`; `None` if no reply is expected.
    pub msg_id: Option<String>,
    pub reply_queue: Option<String>,
    /// Interval in seconds in which the caller expects heartbeats.
    pub monitor_timeout_s: Option<f64>,
    pub unique_id: Option<String>,
}

/// A reply as received by a caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub msg_id: Option<String>,
    pub outcome: Result<Value, Box<RemoteFailure>>,
    /// Whether it is the last reply to its call; others are heartbeats or results.
    pub is_ending: bool,
}

/// A call as text, without the identifiers of each message.
#[derive(Clone, Debug)]
pub struct RequestText {
    front: Vec<u8>,
    back: Vec<u8>,
}

/// Why a message's body is not a call or reply.
#[derive(Debug)]
pub enum EnvelopeError {
    Json(serde_json::Error),
    /// An unknown version of the envelope.
    Version(String),
    /// JSON without `what`.
    Missing(&'static str),
}

impl RequestText {
    pub fn new(call: &Call) -> Self {
        let mut front = format!(
            r#"{{"method": {}, "args": {}"#,
            Value::from(call.method.as_str()),
            Value::from(call.args.clone())
        );
        for (key, value) in [("namespace", &call.namespace), ("version", &call.version)] {
            if let Some(value) = value {
                front += &format!(r#", "{key}": {}"#, Value::from(value.as_str()));
            }
        }
        let mut back = String::new();
        for (key, value) in &call.context {
            let key = Value::from(format!("{CONTEXT_PREFIX}{key}"));
            back += &format!(", {key}: {value}");
        }
        back.push('}');
        Self {
            front: [ENVELOPE_FRONT, inside_quotes(&front).as_bytes()].concat(),
            back: [inside_quotes(&back).as_bytes(), ENVELOPE_BACK].concat(),
        }
    }

    /// Appends the body of a call with a reply. All three identifiers consist of hexadecimal digits, or are a queue's
    /// name made of them.
    pub fn write_call(&self, msg_id: &str, reply_queue: &str, unique_id: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.front);
        for part in [
            r#", \"_msg_id\": \""#,
            msg_id,
            r#"\", \"_reply_q\": \""#,
            reply_queue,
            r#"\", \"_timeout\": null, \"_unique_id\": \""#,
            unique_id,
            r#"\""#,
        ] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&self.back);
    }

    /// Appends the body of a cast.
    pub fn write_cast(&self, unique_id: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.front);
        for part in [r#", \"_unique_id\": \""#, unique_id, r#"\""#] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&self.back);
    }
}

impl Reply {
    /// Appends its body.
    pub fn write(&self, unique_id: &str, out: &mut Vec<u8>) {
        let (result, failure) = match &self.outcome {
            Ok(result) => (Cow::Borrowed(result), Value::Null),
            Err(failure) => (Cow::Owned(Value::Null), Value::from(failure.to_json())),
        };
        let inner = format!(
            r#"{{"result": {result}, "failure": {failure}, "ending": {}, "_msg_id": {}, "_unique_id": "{unique_id}"}}"#,
            self.is_ending,
            Value::from(self.msg_id.as_deref()),
        );
        seal(&inner, out);
    }
}

/// Decodes a server's message.
pub fn read_request(body: &[u8]) -> Result<Request, EnvelopeError> {
    let mut message = open(body)?;
    let mut request = Request {
        msg_id: take_text(&mut message, "_msg_id"),
        reply_queue: take_text(&mut message, "_reply_q"),
        monitor_timeout_s: message.remove("_timeout").and_then(|value| value.as_f64()),
        unique_id: take_text(&mut message, "_unique_id"),
        call: Call {
            method: take_text(&mut message, "method").ok_or(EnvelopeError::Missing("method"))?,
            namespace: take_text(&mut message, "namespace"),
            version: take_text(&mut message, "version"),
            ..Call::default()
        },
    };
    match message.remove("args") {
        Some(Value::Object(args)) => request.call.args = args,
        None | Some(Value::Null) => {}
        Some(_) => return Err(EnvelopeError::Missing("args as an object")),
    }
    for (key, value) in message {
        if let Some(key) = key.strip_prefix(CONTEXT_PREFIX) {
            request.call.context.insert(key.to_owned(), value);
        }
    }
    Ok(request)
}

/// Decodes a caller's message.
pub fn read_reply(body: &[u8]) -> Result<Reply, EnvelopeError> {
    let mut message = open(body)?;
    let outcome = match message.remove("failure") {
        Some(Value::String(failure)) if !failure.is_empty() => {
            let failure = RemoteFailure::from_json(&failure).map_err(EnvelopeError::Json)?;
            Err(Box::new(failure))
        }
        _ => Ok(message.remove("result").unwrap_or_default()),
    };
    Ok(Reply {
        msg_id: take_text(&mut message, "_msg_id"),
        outcome,
        is_ending: message.get("ending") == Some(&Value::Bool(true)),
    })
}

const ENVELOPE_FRONT: &[u8] = br#"{"oslo.version": "2.0", "oslo.message": ""#;
const ENVELOPE_BACK: &[u8] = br#""}"#;

/// Puts a message, which is JSON, into an envelope.
pub(crate) fn seal(message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(ENVELOPE_FRONT);
    out.extend_from_slice(inside_quotes(message).as_bytes());
    out.extend_from_slice(ENVELOPE_BACK);
}

/// The contents of the envelope; without one, the message itself.
pub(crate) fn open(body: &[u8]) -> Result<Map<String, Value>, EnvelopeError> {
    let mut message: Map<String, Value> =
        serde_json::from_slice(body).map_err(EnvelopeError::Json)?;
    let (Some(version), Some(inner)) = (
        message.get("oslo.version").and_then(Value::as_str),
        message.get("oslo.message").and_then(Value::as_str),
    ) else {
        return Ok(message);
    };
    if version != VERSION {
        return Err(EnvelopeError::Version(version.to_owned()));
    }
    message = serde_json::from_str(inner).map_err(EnvelopeError::Json)?;
    Ok(message)
}

fn take_text(message: &mut Map<String, Value>, key: &str) -> Option<String> {
    match message.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// The text as it appears between the quotes of a JSON string.
fn inside_quotes(text: &str) -> String {
    let mut quoted = Value::from(text).to_string();
    quoted.pop();
    quoted.remove(0);
    quoted
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "the message is not the JSON it should be: {error}"),
            Self::Version(version) => {
                write!(f, "an envelope of version {version:?}, expected {VERSION}")
            }
            Self::Missing(what) => write!(f, "the message has no {what}"),
        }
    }
}

impl std::error::Error for EnvelopeError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is an object"),
        }
    }

    /// A message of the real library, unchanged but for its identifiers.
    const CALL: &str = r#"{"oslo.version": "2.0", "oslo.message": "{\"method\": \"echo\", \"args\": {\"a\": \"1\"}, \"_msg_id\": \"0123\", \"_reply_q\": \"reply_4567\", \"_timeout\": null, \"_unique_id\": \"89ab\", \"_context_application\": \"rpc-client\", \"_context_time\": \"Fri Nov 20 11:26:59 2026\"}"}"#;

    #[test]
    fn a_call_is_written_and_read() {
        let call = Call {
            method: "echo".to_owned(),
            args: object(json!({"a": "1"})),
            context: object(
                json!({"application": "rpc-client", "time": "Fri Nov 20 11:26:59 2026"}),
            ),
            ..Call::default()
        };
        let text = RequestText::new(&call);
        let mut out = Vec::new();
        text.write_call("0123", "reply_4567", "89ab", &mut out);
        let read = read_request(&out).expect("a call");
        assert_eq!(read, read_request(CALL.as_bytes()).expect("a call"));
        assert_eq!(read.call, call);
        assert_eq!(read.msg_id.as_deref(), Some("0123"));
        assert_eq!(read.reply_queue.as_deref(), Some("reply_4567"));
        assert_eq!(read.unique_id.as_deref(), Some("89ab"));

        out.clear();
        text.write_cast("89ab", &mut out);
        let read = read_request(&out).expect("a cast");
        assert_eq!(
            (read.call, read.msg_id, read.reply_queue),
            (call, None, None)
        );
    }

    #[test]
    fn texts_with_quotes_and_controls_survive() {
        let awkward = "\"\\\u{0}\n\u{1f600}ä";
        let call = Call {
            method: awkward.to_owned(),
            args: object(json!({awkward: [awkward, {awkward: null}]})),
            context: object(json!({awkward: awkward})),
            namespace: Some(awkward.to_owned()),
            version: Some("1.3".to_owned()),
        };
        let mut out = Vec::new();
        RequestText::new(&call).write_call("0", "r", "1", &mut out);
        assert_eq!(read_request(&out).expect("a call").call, call);
    }

    #[test]
    fn replies_are_written_and_read() {
        let failure = RemoteFailure::of_builtin("RuntimeError", "fail \"method\" invoked!");
        for outcome in [Ok(json!({"a": "\n\"", "b": [1.5, null]})), Err(failure)] {
            let reply = Reply {
                msg_id: Some("0123".to_owned()),
                outcome,
                is_ending: true,
            };
            let mut out = Vec::new();
            reply.write("89ab", &mut out);
            assert_eq!(read_reply(&out).expect("a reply"), reply);
        }
    }

    #[test]
    fn invalid_calls_are_rejected() {
        let check = |body: &str, expected: &str| {
            let error = read_request(body.as_bytes()).expect_err("no call");
            assert_eq!(error.to_string(), expected, "{body}");
        };
        check(
            r#"{"oslo.version": "3.0", "oslo.message": "{}"}"#,
            r#"an envelope of version "3.0", expected 2.0"#,
        );
        check(
            r#"{"oslo.version": "2.0", "oslo.message": "{}"}"#,
            "the message has no method",
        );
        check(r#"{"a": 1}"#, "the message has no method");
        check(
            r#"{"method": "m", "args": [1]}"#,
            "the message has no args as an object",
        );
        check(
            "[",
            "the message is not the JSON it should be: invalid type: sequence, expected a map at line 1 column 0",
        );
    }
}
