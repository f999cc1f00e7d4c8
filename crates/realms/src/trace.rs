//! The trace of a WAMP session: its messages, without arguments unless they are requested, and never with a secret.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use crosstie_config::Json;
use crosstie_front::trace::{Direction, REDACTED, SHOWN_BYTES_MAX, Trace, TraceOptions, redact};
use crosstie_transport::Tap;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{Framing, batched, rawsocket, websocket};
use crosstie_wamp::{Message, Payload, Serializer};

use crate::peer::Peer;

/// Begins the trace of a session's connection; `None` if it is traced already, or uses long-poll.
pub fn begin(peer: &Peer, options: TraceOptions) -> Option<Arc<Trace>> {
    let (serializer, framing) = (peer.wire.serializer, peer.wire.framing);
    Trace::begin(&peer.connection, options, |trace| SessionTap {
        serializer,
        framing,
        trace,
    })
}

struct SessionTap {
    serializer: Serializer,
    framing: Framing,
    trace: Arc<Trace>,
}

impl Tap for SessionTap {
    fn sent(&self, bytes: &[u8]) {
        let _ = each_message(self.framing, bytes, |message| {
            match self.framing.is_batched() {
                true => batched::split(self.serializer, message)
                    .map_while(Result::ok)
                    .for_each(|message| self.push(Direction::Sent, message)),
                false => self.push(Direction::Sent, message),
            }
        });
    }

    fn received(&self, bytes: &[u8]) {
        self.push(Direction::Received, bytes);
    }
}

impl SessionTap {
    /// Shows a message, unless the trace has ended.
    fn push(&self, direction: Direction, bytes: &[u8]) {
        if self.trace.has_ended() {
            return;
        }
        if bytes.len() > SHOWN_BYTES_MAX {
            return self.trace.push(direction, bytes.len(), |_| {});
        }
        let has_payload = self.trace.options.has_payload;
        let message = codec::decode(self.serializer, bytes, &LIMITS);
        // Another session of the connection may be in another realm.
        if let Ok(Message::Hello { .. }) = message {
            return self.trace.stop("closed");
        }
        self.trace
            .push(direction, bytes.len(), |line| match &message {
                Ok(message) => describe(message, has_payload, line),
                Err(error) => line["fault"] = error.to_string().into(),
            });
        let is_last = match &message {
            Ok(Message::Goodbye { .. }) => direction == Direction::Sent,
            Ok(Message::Abort { .. }) => true,
            _ => false,
        };
        if is_last {
            self.trace.stop("closed");
        }
    }
}

/// The realm has judged the messages: the deepest that it may allow are shown.
const LIMITS: Limits = Limits { depth_max: 512 };

/// Shows the messages in frames that were queued whole. A break: the rest is no frame.
fn each_message(
    framing: Framing,
    mut bytes: &[u8],
    mut show: impl FnMut(&[u8]),
) -> ControlFlow<()> {
    while !bytes.is_empty() {
        let found = match framing {
            Framing::RawSocket | Framing::LongPoll | Framing::Mqtt => rawsocket::sent_frame(bytes),
            _ => websocket::sent_frame(bytes).map(|(opcode, payload, length)| {
                let message = (!opcode.is_control()).then_some(payload);
                (message, length)
            }),
        };
        let Some((message, length)) = found else {
            return ControlFlow::Break(());
        };
        if let Some(message) = message {
            show(message);
        }
        bytes = &bytes[length..];
    }
    ControlFlow::Continue(())
}

fn describe(message: &Message<'_>, has_payload: bool, line: &mut Json) {
    line["type"] = message.kind().name().into();
    let payload = message.payload().copied().unwrap_or(Payload::EMPTY);
    if !has_payload && !payload.is_empty() {
        line["argument_bytes"] = payload.len().into();
    }
    let without;
    let shown = match has_payload {
        true => message,
        false => {
            without = message.with_payload(Payload::EMPTY);
            &without
        }
    };
    let signed;
    let shown = match shown {
        Message::Authenticate { .. } => {
            signed = Message::Authenticate {
                signature: Cow::Borrowed(REDACTED),
                extra: Vec::new(),
            };
            &signed
        }
        Message::Challenge { method, .. } => {
            signed = Message::Challenge {
                method: method.clone(),
                extra: Vec::new(),
            };
            &signed
        }
        other => other,
    };
    let mut text = Vec::new();
    let written = codec::encode(shown, Serializer::Json, &mut text);
    let value = String::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    match (written, value) {
        (Ok(()), Some(mut value)) => {
            redact(&mut value);
            line["message"] = value;
        }
        (Err(error), _) => line["fault"] = error.to_string().into(),
        // JSON has numbers that are beyond those of a line.
        (Ok(()), None) => line["fault"] = "cannot be shown as JSON".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(message: &str, has_payload: bool) -> String {
        let decoded = codec::decode(Serializer::Json, message.as_bytes(), &LIMITS);
        let mut line = Json::default();
        describe(&decoded.expect("a message"), has_payload, &mut line);
        line.to_string()
    }

    #[test]
    fn arguments_are_shown_on_request_and_secrets_never() {
        for (message, has_payload, expected) in [
            (
                r#"[48,1,{},"com.x",["a"],{"password":"p","b":2}]"#,
                false,
                r#"{"type":"CALL","argument_bytes":27,"message":[48,1,{},"com.x"]}"#,
            ),
            (
                r#"[48,1,{},"com.x",["a"],{"password":"p","b":2}]"#,
                true,
                r#"{"type":"CALL","message":[48,1,{},"com.x",["a"],{"password":"(redacted)","b":2}]}"#,
            ),
            (
                r#"[5,"secret",{"a":1}]"#,
                true,
                r#"{"type":"AUTHENTICATE","message":[5,"(redacted)",{}]}"#,
            ),
            (
                r#"[4,"wampcra",{"challenge":"c","salt":"s"}]"#,
                true,
                r#"{"type":"CHALLENGE","message":[4,"wampcra",{}]}"#,
            ),
        ] {
            assert_eq!(described(message, has_payload), expected, "{message}");
        }
    }
}
