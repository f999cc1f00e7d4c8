//! WAMP in HTTP requests (WAMP specification, "HTTP Longpoll Transport"): decodes requests, and encodes answers.
//!
//! ```text
//! POST <base>/open          {"protocols": [names]}  ▶  {"transport": id, "protocol": name}
//! POST <base>/<id>/send     a message, or a batch   ▶
//! POST <base>/<id>/receive                          ▶  a message, or a batch
//! POST <base>/<id>/close                            ▶
//! ```
//!
//! In a batch of binary messages, each follows its length in four bytes, big-endian. In a batch of JSON, a separator
//! follows each message: 0x1E by the specification, 0x18 by Autobahn (the decimal 30 of it, written as octal). JSON
//! text contains neither, so that both are accepted; a client gets the one that it uses.

use std::fmt;

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::batched::{SEPARATOR, SEPARATOR_AUTOBAHN};
use crosstie_wamp::framing::websocket::{from_subprotocol, subprotocol};
use crosstie_wamp::{Serializer, Value};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Open,
    Send(TransportId),
    Receive(TransportId),
    Close(TransportId),
}

/// The id of a transport. It is a credential for the session, and therefore drawn from all numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransportId(pub u128);

/// The negotiated protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    pub serializer: Serializer,
    /// A body contains all waiting messages, not just one.
    pub is_batched: bool,
}

/// An invalid request to open a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadOpen {
    /// The body is not JSON.
    Json(String),
    /// The body is not an object.
    Type,
    /// A list of names is missing.
    Protocols,
    /// No common protocol; `spoken` are the supported ones.
    NoneSpoken { spoken: String },
}

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 32;
/// Length of a message's length prefix.
const LENGTH_BYTES: usize = 4;

impl Operation {
    /// The operation at these path components below the service's own.
    pub fn of(rest: &[String]) -> Option<Self> {
        let rest: Vec<_> = rest.iter().map(String::as_str).collect();
        match rest[..] {
            ["open"] => Some(Self::Open),
            [id, "send"] => TransportId::parse(id).map(Self::Send),
            [id, "receive"] => TransportId::parse(id).map(Self::Receive),
            [id, "close"] => TransportId::parse(id).map(Self::Close),
            _ => None,
        }
    }
}

impl TransportId {
    fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == ID_DIGITS && text.bytes().all(is_digit);
        is_id.then(|| u128::from_str_radix(text, 16).map(Self).ok())?
    }
}

impl fmt::Display for TransportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Protocol {
    /// The first supported protocol in a request.
    pub fn negotiate(body: &[u8], spoken: &[Serializer]) -> Result<Self, BadOpen> {
        let value = codec::decode_value(Serializer::Json, body, &Limits::default())
            .map_err(|e| BadOpen::Json(e.to_string()))?;
        let Value::Dict(asked) = value else {
            return Err(BadOpen::Type);
        };
        let names = asked.into_iter().find(|(key, _)| key == "protocols");
        let Some((_, Value::List(names))) = names else {
            return Err(BadOpen::Protocols);
        };
        let known = names.iter().filter_map(|name| match name {
            Value::String(name) => from_subprotocol(name),
            _ => None,
        });
        let mut spoken_here = known.filter(|(serializer, _)| spoken.contains(serializer));
        match spoken_here.next() {
            Some((serializer, is_batched)) => Ok(Self {
                serializer,
                is_batched,
            }),
            None => {
                let names = spoken.iter().map(|s| subprotocol(*s, false));
                let spoken = names.collect::<Vec<_>>().join(", ");
                Err(BadOpen::NoneSpoken { spoken })
            }
        }
    }

    pub fn name(self) -> &'static str {
        subprotocol(self.serializer, self.is_batched)
    }

    /// The media type of messages, as in Autobahn.
    pub fn content_type(self) -> &'static str {
        match self.serializer {
            Serializer::Json => "application/json; charset=utf-8",
            Serializer::MsgPack => "application/x-msgpack",
            Serializer::Cbor => "application/cbor",
        }
    }

    /// The answer to a request that opens a transport.
    pub fn opened(self, id: TransportId) -> String {
        format!(
            "{{\"transport\": \"{id}\", \"protocol\": \"{}\"}}",
            self.name()
        )
    }

    /// The body for messages that were queued, each behind its length: a single message, unless batches were
    /// negotiated.
    pub fn delivered(self, mut queued: Vec<u8>, is_autobahn: bool) -> Vec<u8> {
        match (self.is_batched, self.serializer.is_binary()) {
            (false, _) => {
                queued.drain(..LENGTH_BYTES.min(queued.len()));
                queued
            }
            (true, true) => queued,
            (true, false) => {
                let separator = match is_autobahn {
                    true => SEPARATOR_AUTOBAHN,
                    false => SEPARATOR,
                };
                separated(queued, separator)
            }
        }
    }
}

/// Replaces each message's length prefix by a separator behind it, in place.
fn separated(mut queued: Vec<u8>, separator: u8) -> Vec<u8> {
    let (mut from, mut to) = (0, 0);
    while let Some(prefix) = queued.get(from..).and_then(<[u8]>::first_chunk) {
        let start = from + LENGTH_BYTES;
        let length = u32::from_be_bytes(*prefix) as usize;
        let end = start.saturating_add(length).min(queued.len());
        queued.copy_within(start..end, to);
        to += end - start;
        queued[to] = separator;
        to += 1;
        from = end;
    }
    queued.truncate(to);
    queued
}

impl fmt::Display for BadOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(e) => write!(f, "could not parse WAMP session open request body: {e}"),
            Self::Type => f.write_str("invalid type for WAMP session open request: expected an object"),
            Self::Protocols => f.write_str(
                "missing attribute 'protocols' in WAMP session open request: expected a list of names",
            ),
            Self::NoneSpoken { spoken } => {
                write!(f, "no common protocol to speak (I speak: {spoken}, and each .batched)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn paths_and_their_operations() {
        let id = TransportId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(id.to_string(), ID);
        assert_eq!(TransportId(5).to_string().len(), ID.len());
        let rows: &[(&[&str], Option<Operation>)] = &[
            (&["open"], Some(Operation::Open)),
            (&[ID, "send"], Some(Operation::Send(id))),
            (&[ID, "receive"], Some(Operation::Receive(id))),
            (&[ID, "close"], Some(Operation::Close(id))),
            (&[], None),
            (&[""], None),
            (&["open", ""], None),
            (&[ID], None),
            (&[ID, "open"], None),
            (&[ID, "send", ""], None),
            (&[&ID[1..], "send"], None),
            (&["0123456789ABCDEF0123456789ABCDEF", "send"], None),
            (&["+123456789abcdef0123456789abcdef", "send"], None),
        ];
        for (rest, expected) in rows {
            let rest: Vec<_> = rest.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(Operation::of(&rest), *expected, "{rest:?}");
        }
    }

    #[test]
    fn protocols_are_negotiated() {
        let all = &Serializer::ALL[..];
        let json = &[Serializer::Json][..];
        #[rustfmt::skip]
        let rows: &[(&str, &[Serializer], Result<&str, &str>)] = &[
            (r#"{"protocols": ["wamp.2.json"]}"#, all, Ok("wamp.2.json")),
            (
                r#"{"more": 1, "protocols": ["wamp.3.json", 7, "wamp.2.cbor.batched", "wamp.2.json"]}"#,
                all,
                Ok("wamp.2.cbor.batched"),
            ),
            (r#"{"protocols": ["wamp.2.cbor", "wamp.2.json.batched"]}"#, json, Ok("wamp.2.json.batched")),
            (r#"{"protocols": ["wamp.2.msgpack"]}"#, json, Err("no common protocol to speak")),
            (r#"{"protocols": []}"#, all, Err("no common protocol")),
            (r#"{"protocols": "wamp.2.json"}"#, all, Err("missing attribute")),
            (r"{}", all, Err("missing attribute")),
            (r"[]", all, Err("invalid type")),
            ("", all, Err("could not parse")),
            ("{", all, Err("could not parse")),
            (r#"{"protocols": ["wamp.2.json"]} 1"#, all, Err("could not parse")),
        ];
        for (body, spoken, expected) in rows {
            match (Protocol::negotiate(body.as_bytes(), spoken), expected) {
                (Ok(protocol), Ok(name)) => assert_eq!(protocol.name(), *name, "{body}"),
                (Err(e), Err(text)) => assert!(e.to_string().starts_with(text), "{body}: {e}"),
                (found, _) => panic!("{body}: {found:?}"),
            }
        }
    }

    #[test]
    fn bodies_of_delivered_messages() {
        let queued = b"\0\0\0\x03[1]\0\0\0\x04[22]";
        let rows: &[(&str, &[u8], bool, &[u8])] = &[
            ("wamp.2.json", &queued[..7], false, b"[1]"),
            ("wamp.2.cbor", &queued[..7], false, b"[1]"),
            ("wamp.2.json.batched", queued, false, b"[1]\x1e[22]\x1e"),
            ("wamp.2.json.batched", queued, true, b"[1]\x18[22]\x18"),
            ("wamp.2.msgpack.batched", queued, false, queued),
            ("wamp.2.cbor.batched", queued, true, queued),
        ];
        for (name, queued, is_autobahn, expected) in rows {
            let (serializer, is_batched) = from_subprotocol(name).expect("a name");
            let protocol = Protocol {
                serializer,
                is_batched,
            };
            let delivered = protocol.delivered(queued.to_vec(), *is_autobahn);
            assert_eq!(delivered, *expected, "{name}");
        }
    }
}
