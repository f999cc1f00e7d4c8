//! SCRAM-SHA-256 (RFC 5802 and 7677) in the authentication data of MQTT 5, and in the words of WAMP-SCRAM, whose proofs are
//! the same.

use crosstie_mqtt::{Auth, Packet, Properties, PropertiesBuf, Property, ReasonCode, Version};
use crosstie_wamp::{Dict, Value};

use crate::client::Client;
use crate::conversation::End;

/// The authentication method.
pub(crate) const METHOD: &str = "SCRAM-SHA-256";

/// The headers of messages of clients without a channel binding, `n,,` and `y,,`, in Base64.
const NO_BINDING: &str = "biws";
const NO_BINDING_OF_SERVER: &str = "eSws";

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) name: String,
    pub(crate) nonce: String,
    exchange: Exchange,
}

/// An exchange after the client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The header of the first message, which the last one repeats, in Base64.
    header: &'static str,
    pub(crate) stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Begun,
    /// The client has been sent the challenge, and has to prove its password.
    Asked,
    /// The proof is being checked.
    Proved,
    /// It was right. This is the server's own proof.
    Over(String),
}

/// The proof of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof<'a> {
    pub(crate) signature: &'a str,
    pub(crate) nonce: &'a str,
}

impl First {
    /// Reads the client's first message. A client that wants a channel binding, another identity or an extension has none.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(data).ok()?;
        let (header, rest) = match text.strip_prefix("n,,") {
            Some(rest) => (NO_BINDING, rest),
            None => (NO_BINDING_OF_SERVER, text.strip_prefix("y,,")?),
        };
        let (name, nonce) = rest.strip_prefix("n=")?.split_once(",r=")?;
        let is_one = |text: &str| !text.is_empty() && !text.contains([',', '\0']);
        (is_one(name) && is_one(nonce)).then_some(())?;
        Some(Self {
            name: unescaped(name)?,
            nonce: nonce.to_owned(),
            exchange: Exchange {
                header,
                stage: Stage::Begun,
            },
        })
    }

    pub(crate) fn exchange(&self) -> Exchange {
        self.exchange.clone()
    }

    /// The entry of HELLO's `authextra`.
    pub(crate) fn extra(&self) -> (String, Value) {
        ("nonce".to_owned(), Value::from(self.nonce.as_str()))
    }
}

impl Exchange {
    /// The server's first message for a challenge; none if the key is derived by another function than SCRAM-SHA-256's.
    pub(crate) fn ask(&mut self, challenge: &Dict) -> Option<String> {
        let find = |key: &str| challenge.iter().find(|(name, _)| name == key);
        let text = |key| find(key).and_then(|(_, value)| value.as_str());
        if text("kdf") != Some("pbkdf2") {
            return None;
        }
        let (nonce, salt) = (text("nonce")?, text("salt")?);
        let (_, iterations) = find("iterations")?;
        let iterations = iterations.as_u64()?;
        self.stage = Stage::Asked;
        Some(format!("r={nonce},s={salt},i={iterations}"))
    }

    /// Reads the client's last message.
    pub(crate) fn prove<'a>(&mut self, data: &'a [u8]) -> Option<Proof<'a>> {
        let text = std::str::from_utf8(data).ok()?;
        let (header, rest) = text.strip_prefix("c=")?.split_once(",r=")?;
        let (nonce, signature) = rest.split_once(",p=")?;
        let is_same = header == self.header && !nonce.contains(',');
        self.stage = Stage::Proved;
        is_same.then_some(Proof { signature, nonce })
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.stage == Stage::Asked
    }

    /// Notes the details of WELCOME.
    pub(crate) fn conclude(&mut self, details: &Dict) {
        let find = |dict: &Dict, key: &str| {
            let found = dict.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value.clone())
        };
        if let Some(Value::Dict(extra)) = find(details, "authextra")
            && let Some(Value::String(verifier)) = find(&extra, "verifier")
        {
            self.stage = Stage::Over(verifier);
        }
    }

    /// The server's last message.
    pub(crate) fn verifier(&self) -> Option<&str> {
        match &self.stage {
            Stage::Over(verifier) => Some(verifier),
            _ => None,
        }
    }
}

/// Whether a packet has this method.
pub(crate) fn is_method(properties: Properties<'_>) -> bool {
    properties.authentication_method() == Some(METHOD)
}

/// Sends the client a message of the server. Fails if the packet is longer than the client's maximum.
pub(crate) fn send_auth(
    client: &Client,
    reason: ReasonCode,
    data: &str,
    packet_bytes_max: u32,
) -> Result<(), End> {
    let properties = PropertiesBuf::new()
        .with(Property::AuthenticationMethod(METHOD))
        .with(Property::AuthenticationData(data.as_bytes()));
    let packet = Packet::Auth(Auth {
        reason,
        properties: properties.as_properties(),
    });
    check_fits(&packet, packet_bytes_max)?;
    client.send(&packet);
    Ok(())
}

/// Checks that a packet is no longer than the maximum of its receiver.
pub(crate) fn check_fits(packet: &Packet<'_>, packet_bytes_max: u32) -> Result<(), End> {
    let mut octets = Vec::new();
    let encoded = packet.encode(Version::V5, &mut octets);
    match encoded.is_ok() && octets.len() <= packet_bytes_max as usize {
        true => Ok(()),
        false => Err(End::Reason(ReasonCode::PacketTooLarge)),
    }
}

/// A name without the escapes of RFC 5802, section 5.1.
fn unescaped(name: &str) -> Option<String> {
    let mut parts = name.split('=');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (escape, rest) = (part.get(..2)?, part.get(2..)?);
        text.push(match escape {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        text.push_str(rest);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_has_a_name_and_a_nonce() {
        for (data, expected) in [
            (
                "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
                Some(("user", "rOprNGfwEbeRWgbNEkqO")),
            ),
            ("y,,n=a=2Cb=3Dc,r=1", Some(("a,b=c", "1"))),
            ("p=tls-unique,,n=user,r=1", None),
            ("n,a=other,n=user,r=1", None),
            ("n,,m=x,n=user,r=1", None),
            ("n,,n=user,r=1,x=y", None),
            ("n,,n=,r=1", None),
            ("n,,n=user,r=", None),
            ("n,,n=a=2,r=1", None),
            ("n,,n=a=41,r=1", None),
            ("n,,n=a\0b,r=1", None),
            ("n,,n=a,r=1\0", None),
            ("", None),
        ] {
            let first = First::parse(data.as_bytes());
            let found = first.as_ref();
            let found = found.map(|first| (&*first.name, &*first.nonce));
            assert_eq!(found, expected, "{data}");
        }
        assert_eq!(First::parse(b"n,,n=\xFF,r=1"), None);
    }

    #[test]
    fn the_last_message_repeats_the_header() {
        let mut exchange = First::parse(b"n,,n=u,r=1").expect("is right").exchange();
        let proof = Proof {
            signature: "YQ==",
            nonce: "12",
        };
        for (data, expected) in [
            ("c=biws,r=12,p=YQ==", Some(proof)),
            ("c=eSws,r=12,p=YQ==", None),
            ("c=biws,r=12,x=y,p=YQ==", None),
            ("c=biws,p=YQ==", None),
        ] {
            assert_eq!(exchange.prove(data.as_bytes()), expected, "{data}");
        }
    }

    #[test]
    fn a_challenge_needs_the_function_of_the_method() {
        let mut exchange = First::parse(b"n,,n=u,r=1").expect("is right").exchange();
        let challenge = |kdf: &str| {
            let text = |key: &str, value: &str| (key.to_owned(), Value::from(value));
            let iterations = ("iterations".to_owned(), Value::from(4_096_u64));
            vec![
                text("nonce", "12"),
                text("kdf", kdf),
                text("salt", "c2FsdA=="),
                iterations,
            ]
        };
        assert_eq!(exchange.ask(&challenge("argon2id13")), None);
        let asked = exchange.ask(&challenge("pbkdf2"));
        assert_eq!(asked.as_deref(), Some("r=12,s=c2FsdA==,i=4096"));
        assert!(exchange.is_asked());
    }
}
