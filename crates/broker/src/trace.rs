//! The trace of an AMQP connection: its frames, without properties and bodies unless they are requested, and never with
//! a secret.

use std::collections::HashMap;
use std::sync::Arc;

use crosstie_amqp::frame::{self, Decoded, Frame, FrameKind};
use crosstie_amqp::method::Argument;
use crosstie_amqp::{ContentHeader, Method, Version};
use crosstie_config::Json;
use crosstie_front::trace::{Direction, REDACTED, Trace, TraceOptions, redact, redacted};
use crosstie_transport::Tap;
use parking_lot::Mutex;

use super::arguments::to_json;
use super::broker::Broker;

impl Broker {
    /// Begins the trace of a connection. `None`: there is none with that number; `Some(None)`: it is traced already.
    pub fn trace(&self, number: u64, options: TraceOptions) -> Option<Option<Arc<Trace>>> {
        let peer = self.peers.lock().get(&number).cloned()?;
        let version = peer.version;
        Some(Trace::begin(&peer.connection, options, |trace| {
            ConnectionTap {
                version,
                trace,
                bodies: Mutex::default(),
            }
        }))
    }
}

struct ConnectionTap {
    version: Version,
    trace: Arc<Trace>,
    /// The bytes of the body that follows, by direction and channel.
    bodies: Mutex<HashMap<(Direction, u16), u64>>,
}

impl Tap for ConnectionTap {
    fn sent(&self, bytes: &[u8]) {
        self.push(Direction::Sent, bytes);
    }

    fn received(&self, bytes: &[u8]) {
        self.push(Direction::Received, bytes);
    }
}

impl ConnectionTap {
    /// Shows the whole frames.
    fn push(&self, direction: Direction, mut bytes: &[u8]) {
        while !self.trace.has_ended()
            && let Ok(Decoded::Frame { frame, consumed }) = frame::decode(bytes, 0)
        {
            let shows = self.shows(direction, &frame);
            self.trace.push(direction, consumed, |line| {
                describe(&frame, self.version, shows, line);
            });
            bytes = &bytes[consumed..];
        }
    }

    /// What is shown of a frame. The secrets in a part of a body cannot be told from its other bytes.
    fn shows(&self, direction: Direction, frame: &Frame<'_>) -> Shows {
        if !self.trace.options.has_payload {
            return Shows::NoPayload;
        }
        let key = (direction, frame.channel);
        match frame.kind {
            FrameKind::Header => {
                if let Ok(header) = ContentHeader::decode(frame.payload) {
                    self.bodies.lock().insert(key, header.body_bytes);
                }
            }
            FrameKind::Body
                if self.bodies.lock().remove(&key) != Some(frame.payload.len() as u64) =>
            {
                return Shows::Part;
            }
            _ => {}
        }
        Shows::All
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    NoPayload,
    /// No more than that it is a part of a body.
    Part,
    All,
}

fn describe(frame: &Frame<'_>, version: Version, shows: Shows, line: &mut Json) {
    line["channel"] = frame.channel.into();
    match frame.kind {
        FrameKind::Method => match version.decode(frame.payload) {
            Ok(method) => describe_method(&method, line),
            Err(error) => line["fault"] = format!("{error:?}").into(),
        },
        FrameKind::Header => {
            line["type"] = "header".into();
            match ContentHeader::decode(frame.payload) {
                Ok(header) => {
                    line["body_bytes"] = header.body_bytes.into();
                    if shows == Shows::All {
                        line["properties"] = properties(&header);
                    }
                }
                Err(error) => line["fault"] = format!("{error:?}").into(),
            }
        }
        FrameKind::Body => {
            line["type"] = "body".into();
            match shows {
                Shows::NoPayload => {}
                Shows::Part => line["part"] = true.into(),
                Shows::All => show_bytes(line, "body", frame.payload),
            }
        }
        FrameKind::Heartbeat => line["type"] = "heartbeat".into(),
    }
}

fn describe_method(method: &Method<'_>, line: &mut Json) {
    line["type"] = method.name().into();
    let mut arguments = Json::Object(Default::default());
    for (name, argument) in method.arguments() {
        match argument {
            _ if is_secret(name) => arguments[name] = REDACTED.into(),
            Argument::Number(number) => arguments[name] = number.into(),
            Argument::Bit(bit) => arguments[name] = bit.into(),
            Argument::Text(text) => arguments[name] = text.into(),
            Argument::Bytes(bytes) => show_bytes(&mut arguments, name, bytes),
            Argument::Table(table) => arguments[name] = to_json(table),
        }
    }
    redact(&mut arguments);
    line["arguments"] = arguments;
}

/// Passwords and tokens in the arguments of methods.
fn is_secret(argument: &str) -> bool {
    matches!(argument, "response" | "challenge" | "new_secret")
}

fn properties(header: &ContentHeader<'_>) -> Json {
    let decoded = header.properties.parse();
    let mut shown = Json::Object(Default::default());
    for (name, text) in decoded.texts() {
        if let Some(text) = text {
            shown[name] = text.into();
        }
    }
    for (name, number) in decoded.numbers() {
        if let Some(number) = number {
            shown[name] = number.into();
        }
    }
    if let Some(headers) = decoded.headers {
        shown["headers"] = to_json(headers);
    }
    redact(&mut shown);
    shown
}

/// Text as it is, other bytes in hexadecimal digits under another name.
fn show_bytes(line: &mut Json, name: &str, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => line[name] = redacted(text).unwrap_or_else(|| text.to_owned()).into(),
        Err(_) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            line[format!("{name}_hex")] = digits.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::method::{BasicPublish, ConnectionUpdateSecret};

    use super::*;

    fn described(bytes: &[u8], shows: Shows) -> String {
        let Ok(Decoded::Frame { frame, .. }) = frame::decode(bytes, 0) else {
            panic!("expected a frame");
        };
        let mut line = Json::default();
        describe(&frame, Version::default(), shows, &mut line);
        line.to_string()
    }

    #[test]
    fn methods_have_their_arguments_and_no_secret() {
        let mut bytes = Vec::new();
        let publish = BasicPublish {
            mandatory: true,
            ..BasicPublish::to("x", "k")
        };
        frame::write_method(3, &publish, &mut bytes);
        assert_eq!(
            described(&bytes, Shows::NoPayload),
            r#"{"channel":3,"type":"basic.publish","arguments":{"exchange":"x","routing_key":"k","mandatory":true,"immediate":false}}"#
        );
        bytes.clear();
        let update = ConnectionUpdateSecret {
            new_secret: b"token",
            reason: "r",
        };
        frame::write_method(0, &update, &mut bytes);
        let shown = described(&bytes, Shows::All);
        assert!(shown.contains(r#""new_secret":"(redacted)""#), "{shown}");
    }

    #[test]
    fn bodies_are_shown_on_request() {
        for (body, shows, expected) in [
            (
                &b"abc"[..],
                Shows::NoPayload,
                r#"{"channel":1,"type":"body"}"#,
            ),
            (
                br#"{"password": "#,
                Shows::Part,
                r#"{"channel":1,"type":"body","part":true}"#,
            ),
            (
                b"abc",
                Shows::All,
                r#"{"channel":1,"type":"body","body":"abc"}"#,
            ),
            (
                br#"{"token": "t"}"#,
                Shows::All,
                r#"{"channel":1,"type":"body","body":"{\"token\":\"(redacted)\"}"}"#,
            ),
            (
                b"\xff\x00",
                Shows::All,
                r#"{"channel":1,"type":"body","body_hex":"ff00"}"#,
            ),
        ] {
            let mut bytes = Vec::new();
            frame::write(FrameKind::Body, 1, &mut bytes, |out| {
                out.extend_from_slice(body);
            });
            assert_eq!(described(&bytes, shows), expected);
        }
    }
}
