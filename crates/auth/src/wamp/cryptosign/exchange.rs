//! The exchange between client and router: the client's opening, the challenge, the signature.

use crosstie_wamp::{Dict, Value};
use subtle::ConstantTimeEq as _;

use super::key::SIGNATURE_BYTES;
use super::{Parsed, PublicKey, SigningKey};
use crate::wamp::refusal::NOT_AUTHORIZED;
use crate::wamp::{Cause, Channel, Refusal, hexadecimal};

/// The part of `HELLO.Details.authextra` that is for this method.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::wamp) struct Opening {
    pub(in crate::wamp) key: Option<PublicKey>,
    binding: Option<Binding>,
    /// The challenge that the router has to sign.
    challenge: Option<[u8; 32]>,
}

/// The id of a channel, and the name of its kind.
#[derive(Clone, Debug, PartialEq)]
struct Binding {
    name: String,
    id: [u8; 32],
}

/// The octets that a client has to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::wamp) struct Challenge([u8; 32]);

/// The fault of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wamp) enum Fault {
    NotHexadecimal,
    /// A signature of something else: another handshake's challenge, or another channel.
    Message,
    Signature,
}

impl Opening {
    pub(in crate::wamp) fn read(
        extra: Option<&Dict>,
        channel: &Channel<'_>,
    ) -> Result<Self, Refusal> {
        let entries = extra.map_or(&[][..], Vec::as_slice);
        let find = |key: &str| {
            let found = entries.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value).filter(|v| **v != Value::Null)
        };
        let key = match find("pubkey") {
            None => None,
            Some(value) => {
                let text = value.as_str().unwrap_or_default();
                Some(PublicKey::parse(text).map_err(|e| malformed("pubkey", &e.to_string()))?)
            }
        };
        let challenge = match find("challenge") {
            None => None,
            Some(Value::String(text)) if text.is_empty() => None,
            Some(value) => {
                let bytes = value.as_str().and_then(hexadecimal::decode);
                let expected = "expected 64 hexadecimal digits";
                Some(bytes.ok_or_else(|| malformed("challenge", expected))?)
            }
        };
        let binding = match find("channel_binding") {
            None => None,
            Some(Value::String(name)) => Some(bind(name, channel)?),
            Some(_) => return Err(malformed("channel_binding", "expected text")),
        };
        Ok(Self {
            key,
            binding,
            challenge,
        })
    }

    /// The challenge for the client, with the router's own proof if the client asked for one.
    pub(in crate::wamp) fn challenge(
        &self,
        challenge: [u8; 32],
        own: Option<&SigningKey>,
    ) -> Result<(Challenge, Dict), Refusal> {
        let binding = self.binding.as_ref();
        let name = binding.map_or(Value::Null, |b| Value::from(b.name.as_str()));
        let mut extra = vec![
            (
                "challenge".to_owned(),
                Value::String(hexadecimal::encode(&challenge)),
            ),
            ("channel_binding".to_owned(), name),
        ];
        if let Some(asked) = self.challenge {
            let Some(own) = own else {
                let text = "HELLO.Details.authextra.challenge: this router has no key of its own to sign it with";
                return Err(Refusal::new(
                    NOT_AUTHORIZED,
                    text.to_owned(),
                    Cause::MalformedExtra,
                ));
            };
            let signed = own.sign(&self.bound(asked));
            extra.push(("signature".to_owned(), Value::String(signed)));
            extra.push(("pubkey".to_owned(), Value::String(own.public_hexadecimal())));
        }
        Ok((Challenge(self.bound(challenge)), extra))
    }

    fn bound(&self, challenge: [u8; 32]) -> [u8; 32] {
        let mut message = challenge;
        if let Some(Binding { id, .. }) = &self.binding {
            message
                .iter_mut()
                .zip(id)
                .for_each(|(byte, of)| *byte ^= of);
        }
        message
    }
}

impl Challenge {
    /// Whether `text` is a signature of this by `key`; `known` is a principal's key.
    pub(in crate::wamp) fn verify(
        &self,
        key: &PublicKey,
        known: Option<&Parsed>,
        text: &str,
    ) -> Result<(), Fault> {
        let signed: [u8; SIGNATURE_BYTES + 32] =
            hexadecimal::decode(text).ok_or(Fault::NotHexadecimal)?;
        let (signature, message) = signed.split_first_chunk().ok_or(Fault::NotHexadecimal)?;
        if !bool::from(message.ct_eq(&self.0)) {
            return Err(Fault::Message);
        }
        match key.verify(known, &self.0, signature) {
            true => Ok(()),
            false => Err(Fault::Signature),
        }
    }
}

/// The id of the channel, of the kind that the client asks for. Without one the handshake is refused.
fn bind(name: &str, channel: &Channel<'_>) -> Result<Binding, Refusal> {
    let refuse = |text| Refusal::new(NOT_AUTHORIZED, text, Cause::NoChannelBinding);
    let why = match (name, channel.tls_exporter) {
        ("tls-exporter", Some(id)) => {
            let name = name.to_owned();
            return Ok(Binding { name, id });
        }
        ("tls-exporter" | "tls-unique", _) if !channel.is_tls => {
            "but the transport has no TLS channel ID"
        }
        ("tls-exporter", None) => "which the router supports over TLS 1.3 only",
        ("tls-unique", _) => {
            "which TLS 1.3 lacks (RFC 9266) and the router's TLS library does not support for TLS 1.2: ask \
             for \"tls-exporter\" over TLS 1.3"
        }
        _ => {
            let text = format!("invalid channel binding type \"{name}\" requested");
            return Err(refuse(text));
        }
    };
    Err(refuse(format!(
        "channel binding \"{name}\" requested, {why}"
    )))
}

fn malformed(key: &str, expected: &str) -> Refusal {
    let text = format!("HELLO.Details.authextra.{key}: {expected}");
    Refusal::new(NOT_AUTHORIZED, text, Cause::MalformedExtra)
}
