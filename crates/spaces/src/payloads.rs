//! Payloads: octets in MQTT, arguments in WAMP.
//!
//! Without a mapping, towards WAMP: nothing is no arguments; a JSON list is the arguments; a JSON dictionary with no keys
//! but `args` and `kwargs` of the right kinds is both, and any other is the keyword arguments; other UTF-8 is one text;
//! everything else one binary. Towards MQTT: no arguments are nothing; one text or binary alone is its octets; other
//! arguments are a JSON list, keyword arguments a JSON dictionary, both a dictionary with `args` and `kwargs`.

use crosstie_config::PayloadMapping;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Payload, Serializer, Value};

/// Arguments for WAMP.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) serializer: Serializer,
    pub(crate) args: Vec<u8>,
    pub(crate) kwargs: Vec<u8>,
    /// A single value stands in place of the arguments.
    pub(crate) is_encoded: bool,
}

/// The name by which a payload of MQTT in place of arguments is known, as in Crossbar.io.
pub(crate) const ALGORITHM: &str = "mqtt";

const ARGS: &str = "args";
const KWARGS: &str = "kwargs";

impl Arguments {
    pub(crate) fn as_payload(&self) -> Payload<'_> {
        Payload::new(self.serializer, &self.args, &self.kwargs)
    }

    fn of(serializer: Serializer, args: &[u8], kwargs: &[u8]) -> Self {
        Self {
            serializer,
            args: args.to_vec(),
            kwargs: kwargs.to_vec(),
            is_encoded: false,
        }
    }

    /// In place of arguments.
    pub(crate) fn passed_through(payload: &[u8]) -> Self {
        let mut args = Vec::with_capacity(payload.len() + 9);
        head(BINARY, payload.len(), &mut args);
        args.extend_from_slice(payload);
        Self {
            serializer: Serializer::Cbor,
            args,
            kwargs: Vec::new(),
            is_encoded: true,
        }
    }

    /// By the rules that apply without a mapping.
    pub(crate) fn natural(payload: &[u8], limits: &Limits) -> Self {
        if payload.is_empty() {
            return Self::of(Serializer::Cbor, &[], &[]);
        }
        let trimmed = payload.trim_ascii();
        let is_json = || codec::check_value(Serializer::Json, trimmed, limits).is_ok();
        match trimmed.first() {
            Some(b'[') if is_json() => return Self::of(Serializer::Json, trimmed, &[]),
            Some(b'{') if is_json() => {
                return Self::native(Serializer::Json, trimmed, limits)
                    .unwrap_or_else(|| Self::of(Serializer::Json, b"[]", trimmed));
            }
            _ => {}
        }
        let kind = match std::str::from_utf8(payload) {
            Ok(_) => TEXT,
            Err(_) => BINARY,
        };
        let mut args = Vec::with_capacity(payload.len() + 10);
        head(LIST, 1, &mut args);
        head(kind, payload.len(), &mut args);
        args.extend_from_slice(payload);
        Self {
            serializer: Serializer::Cbor,
            args,
            kwargs: Vec::new(),
            is_encoded: false,
        }
    }

    /// A dictionary with no keys but `args` and `kwargs`.
    pub(crate) fn native(serializer: Serializer, payload: &[u8], limits: &Limits) -> Option<Self> {
        codec::check_value(serializer, payload, limits).ok()?;
        let (mut args, mut kwargs) = (&[][..], &[][..]);
        let mut is_other = false;
        let read = codec::read_entries(serializer, payload, limits, |key, value| match key {
            ARGS if is_list(serializer, value) => args = value,
            KWARGS if is_dict(serializer, value) => kwargs = value,
            _ => is_other = true,
        });
        (read.is_ok() && !is_other).then(|| Self::of(serializer, args, kwargs))
    }

    /// The answer of a decoder: a dictionary with `args` and `kwargs`.
    pub(crate) fn of_decoder(answer: &Payload<'_>) -> Option<Self> {
        let limits = Limits::default();
        let args = codec::decode_value(answer.serializer, answer.args, &limits).ok()?;
        let Value::List(mut args) = args else {
            return None;
        };
        let mut written = Vec::new();
        let first = args.drain(..).next()?;
        codec::encode_value(&first, Serializer::Cbor, &mut written).ok()?;
        Self::native(Serializer::Cbor, &written, &limits)
    }
}

/// The octets of an event, by its mapping. `None` if it has none.
pub(crate) fn octets(
    payload: &Payload<'_>,
    is_encoded: bool,
    mapping: Option<&PayloadMapping>,
) -> Option<Vec<u8>> {
    match mapping {
        _ if is_encoded => encoded(payload),
        Some(PayloadMapping::Passthrough) => None,
        Some(PayloadMapping::Native(serializer)) => native(payload, *serializer),
        _ => natural(payload),
    }
}

/// The value in place of arguments.
fn encoded(payload: &Payload<'_>) -> Option<Vec<u8>> {
    if payload.args.is_empty() {
        return Some(Vec::new());
    }
    let value = codec::decode_value(payload.serializer, payload.args, &Limits::default());
    bytes_of(value.ok()?).ok()
}

fn natural(payload: &Payload<'_>) -> Option<Vec<u8>> {
    let (args, kwargs) = values(payload)?;
    let mut args = args.unwrap_or_default();
    let value = match (args.len(), kwargs) {
        (0, None) => return Some(Vec::new()),
        (0, Some(kwargs)) => kwargs,
        (1, None) => match args.pop().map(bytes_of)? {
            Ok(octets) => return Some(octets),
            Err(other) => Value::List(vec![other]),
        },
        (_, None) => Value::List(args),
        (_, Some(kwargs)) => both(Some(Value::List(args)), Some(kwargs)),
    };
    written(&value, Serializer::Json)
}

fn native(payload: &Payload<'_>, serializer: Serializer) -> Option<Vec<u8>> {
    let (args, kwargs) = values(payload)?;
    written(&both(args.map(Value::List), kwargs), serializer)
}

/// The arguments of an event for an encoder.
pub(crate) fn for_encoder(topic: &str, uri: &str, payload: &Payload<'_>) -> Option<Vec<u8>> {
    let (args, kwargs) = values(payload)?;
    let arguments = Value::List(vec![
        Value::from(topic),
        Value::from(uri),
        Value::List(args.unwrap_or_default()),
        kwargs.unwrap_or_else(|| Value::Dict(Vec::new())),
    ]);
    written(&arguments, Serializer::Cbor)
}

/// The arguments of a payload for a decoder.
pub(crate) fn for_decoder(uri: &str, topic: &str, payload: &[u8]) -> Option<Vec<u8>> {
    let payload = Value::Binary(payload.to_vec());
    let arguments = Value::List(vec![Value::from(uri), Value::from(topic), payload]);
    written(&arguments, Serializer::Cbor)
}

/// The answer of an encoder: text or binary.
pub(crate) fn of_encoder(answer: &Payload<'_>) -> Option<Vec<u8>> {
    let args = codec::decode_value(answer.serializer, answer.args, &Limits::default());
    match args.ok()? {
        Value::List(args) => bytes_of(args.into_iter().next()?).ok(),
        _ => None,
    }
}

/// Arguments, and keyword arguments that are not empty.
fn values(payload: &Payload<'_>) -> Option<(Option<Vec<Value>>, Option<Value>)> {
    let limits = Limits { depth_max: 512 };
    let read = |bytes: &[u8]| match bytes {
        [] => Some(None),
        bytes => codec::decode_value(payload.serializer, bytes, &limits)
            .ok()
            .map(Some),
    };
    let args = match read(payload.args)? {
        None => None,
        Some(Value::List(args)) => Some(args),
        Some(_) => return None,
    };
    let kwargs = read(payload.kwargs)?;
    let kwargs = kwargs.filter(|kwargs| !matches!(kwargs, Value::Dict(dict) if dict.is_empty()));
    Some((args, kwargs))
}

fn both(args: Option<Value>, kwargs: Option<Value>) -> Value {
    let args = args.map(|args| (ARGS.to_owned(), args));
    let kwargs = kwargs.map(|kwargs| (KWARGS.to_owned(), kwargs));
    Value::Dict(args.into_iter().chain(kwargs).collect())
}

fn bytes_of(value: Value) -> Result<Vec<u8>, Value> {
    match value {
        Value::String(text) => Ok(text.into_bytes()),
        Value::Binary(bytes) => Ok(bytes),
        other => Err(other),
    }
}

fn written(value: &Value, serializer: Serializer) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    codec::encode_value(value, serializer, &mut out).ok()?;
    Some(out)
}

fn is_list(serializer: Serializer, value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or_default();
    match serializer {
        Serializer::Json => first == b'[',
        Serializer::MsgPack => matches!(first, 0x90..=0x9f | 0xdc | 0xdd),
        Serializer::Cbor => first >> 5 == LIST >> 5,
    }
}

fn is_dict(serializer: Serializer, value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or_default();
    match serializer {
        Serializer::Json => first == b'{',
        Serializer::MsgPack => matches!(first, 0x80..=0x8f | 0xde | 0xdf),
        Serializer::Cbor => first >> 5 == DICT >> 5,
    }
}

// CBOR's major types (RFC 8949, section 3.1).
const BINARY: u8 = 2 << 5;
const TEXT: u8 = 3 << 5;
const LIST: u8 = 4 << 5;
const DICT: u8 = 5 << 5;

/// Appends the head of a value in CBOR: a payload is copied once, and not by way of a [`Value`].
fn head(major: u8, length: usize, out: &mut Vec<u8>) {
    match length {
        0..=23 => out.push(major | length as u8),
        24..=0xff => out.extend_from_slice(&[major | 24, length as u8]),
        0x100..=0xffff => {
            out.push(major | 25);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(payload: &Payload<'_>) -> String {
        let mut out = Vec::new();
        for bytes in [payload.args, payload.kwargs] {
            match bytes {
                [] => out.extend_from_slice(b"-"),
                bytes => {
                    codec::transcode(payload.serializer, bytes, Serializer::Json, &mut out)
                        .unwrap();
                }
            }
            out.push(b' ');
        }
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

    #[test]
    fn payloads_become_arguments_and_come_back() {
        let long = "x".repeat(70_000);
        let long_args = format!("[\"{long}\"] -");
        for (payload, arguments, back) in [
            (&b""[..], "- -", &b""[..]),
            (b"21.5", "[\"21.5\"] -", b"21.5"),
            (b"on", "[\"on\"] -", b"on"),
            (b" [1, 2] ", "[1, 2] -", b"[1,2]"),
            (b"{\"t\": 1}", "[] {\"t\": 1}", b"{\"t\":1}"),
            (
                b"{\"args\": [1], \"kwargs\": {\"k\": 2}}",
                "[1] {\"k\": 2}",
                b"{\"args\":[1],\"kwargs\":{\"k\":2}}",
            ),
            (b"{\"args\": 1}", "[] {\"args\": 1}", b"{\"args\":1}"),
            (b"{oops", "[\"{oops\"] -", b"{oops"),
            (b"\xff\x00", "[\"\\u0000/wA=\"] -", b"\xff\x00"),
            (long.as_bytes(), &long_args, long.as_bytes()),
        ] {
            let found = Arguments::natural(payload, &Limits::default());
            assert_eq!(json(&found.as_payload()), arguments);
            let octets = octets(&found.as_payload(), false, None);
            assert_eq!(octets.as_deref(), Some(back));
        }
    }

    #[test]
    fn a_mapping_decides() {
        let limits = Limits::default();
        let through = Arguments::passed_through(b"\x01x");
        let payload = through.as_payload();
        assert_eq!(octets(&payload, true, None).as_deref(), Some(&b"\x01x"[..]));
        let natural = Arguments::natural(b"on", &limits);
        let payload = natural.as_payload();
        assert_eq!(
            octets(&payload, false, Some(&PayloadMapping::Passthrough)),
            None
        );
        let native = PayloadMapping::Native(Serializer::Json);
        let found = octets(&payload, false, Some(&native));
        assert_eq!(found.as_deref(), Some(&b"{\"args\":[\"on\"]}"[..]));
        for (text, expected) in [
            ("{\"args\": [1]}", Some("[1] -")),
            ("{}", Some("- -")),
            ("[1]", None),
            ("{\"args\": [1], \"x\": 2}", None),
            ("text", None),
        ] {
            let found = Arguments::native(Serializer::Json, text.as_bytes(), &limits);
            let found = found.map(|found| json(&found.as_payload()));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
