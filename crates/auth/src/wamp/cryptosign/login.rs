//! WAMP-cryptosign's steps of a handshake.

use std::sync::Arc;

use crosstie_wamp::Value;

use super::{Challenge, Fault, KeyHolders, Opening, Parsed, PublicKey};
use crate::wamp::answer::{self, Answered, Assigned};
use crate::wamp::client::Client;
use crate::wamp::next::{Next, Outcome};
use crate::wamp::refusal::NOT_AUTHORIZED;
use crate::wamp::{Cause, Channel, ErrorTexts, Provider, Refusal, Source};

/// The source of the keys that clients authenticate with.
pub type Cryptosign = Source<KeyHolders>;

impl Cryptosign {
    /// Handles HELLO. Configured keys are looked up after the signature; an authenticator is called now.
    pub(in crate::wamp) fn begin(&self, client: &Client, channel: &Channel<'_>) -> Outcome {
        let opening = Opening::read(client.authextra.as_ref(), channel)?;
        let own = channel.own_key.map(Arc::clone);
        match self {
            Self::Static {
                principals,
                default_role,
            } => {
                let principals = Arc::clone(principals);
                refuse_certificates(client)?;
                let key = need_key(client, &opening)?;
                if client.error_texts == ErrorTexts::Crossbar {
                    find(client, &principals, &key)?;
                }
                let (challenge, extra) =
                    opening.challenge(client.given.challenge(), own.as_deref())?;
                let default_role = default_role.clone();
                Ok(Next::challenge(extra, move |client, authenticate| {
                    let known = principals.parsed(&key);
                    verify(client, &challenge, &key, known, authenticate.signature)?;
                    let assigned = find(client, &principals, &key)?;
                    let default_role = default_role.as_ref();
                    let principal = client.assign(assigned, default_role, Provider::Static)?;
                    Ok(Next::accept(principal))
                }))
            }
            Self::Dynamic(authenticator) => {
                let default_role = authenticator.default_role.clone();
                let provider = authenticator.authprovider;
                let call = client.call(authenticator, None);
                Ok(Next::call(call, move |client, value| {
                    let answered = Answered::read(&value)?;
                    let assigned = answer::principal(&value)?;
                    let key = PublicKey::parse(answered.need_text("pubkey")?).map_err(|e| {
                        let text = format!("got a bad pubkey from the dynamic authenticator: {e}");
                        Refusal::of_authenticator(text)
                    })?;
                    let default_role = default_role.as_ref();
                    let principal = client.assign(assigned, default_role, provider)?;
                    let (challenge, extra) =
                        opening.challenge(client.given.challenge(), own.as_deref())?;
                    Ok(Next::challenge(extra, move |client, authenticate| {
                        verify(client, &challenge, &key, None, authenticate.signature)?;
                        Ok(Next::accept(principal))
                    }))
                }))
            }
        }
    }
}

/// Refuses a client that sends a chain of certificates, because it expects to be identified by the chain.
fn refuse_certificates(client: &Client) -> Result<(), Refusal> {
    let extra = client.authextra.as_deref().unwrap_or_default();
    let is_given = |value: &Value| match value {
        Value::Null => false,
        Value::List(certificates) => !certificates.is_empty(),
        _ => true,
    };
    let mut given = extra.iter().filter(|(_, value)| is_given(value));
    let named = given.find(|(key, _)| matches!(key.as_str(), "trustroot" | "certificates"));
    let Some((key, _)) = named else {
        return Ok(());
    };
    let text = format!(
        "HELLO.Details.authextra.{key}: Ethereum certificates are not supported, a client is identified by its key"
    );
    Err(Refusal::new(NOT_AUTHORIZED, text, Cause::MalformedExtra))
}

/// The public key that the client has sent.
fn need_key(client: &Client, opening: &Opening) -> Result<PublicKey, Refusal> {
    opening.key.ok_or_else(|| {
        let text = match (client.error_texts, &client.authid) {
            (ErrorTexts::Crossbar, None) => {
                "cannot identify client: no authid requested and no extra.pubkey provided"
            }
            _ => {
                "HELLO.Details.authextra.pubkey: expected 64 hexadecimal digits, which authmethod cryptosign needs"
            }
        };
        Refusal::new(NOT_AUTHORIZED, text.to_owned(), Cause::MalformedExtra)
    })
}

/// The principal that has the key.
fn find(client: &Client, principals: &KeyHolders, key: &PublicKey) -> Result<Assigned, Refusal> {
    let authid = client.authid.as_deref();
    match principals.find(authid, key) {
        Ok((authid, holder)) => Ok(Assigned {
            realm: holder.realm.clone(),
            authid: Some(authid.to_owned()),
            role: holder.role.clone(),
            ..Assigned::default()
        }),
        // Only the holder of the key gets this text, unless the texts are Crossbar.io's.
        Err(Cause::AmbiguousKey) => {
            let text = "cannot infer client identity from pubkey: multiple authids in principal database have \
                        this pubkey";
            Err(Refusal::new(
                NOT_AUTHORIZED,
                text.to_owned(),
                Cause::AmbiguousKey,
            ))
        }
        Err(cause) => {
            let crossbar = match (cause, authid) {
                (Cause::UnknownPrincipal, Some(authid)) => {
                    format!("no principal with authid \"{authid}\" exists")
                }
                (_, Some(_)) => {
                    "extra.pubkey provided does not match any one of authorized_keys for the principal"
                        .to_owned()
                }
                (_, None) => "cannot identify client: no authid requested and no principal found for provided \
                              extra.pubkey"
                    .to_owned(),
            };
            Err(client.refusal(cause, &crossbar))
        }
    }
}

/// Verifies the client's signature of its challenge. A malformed signature or one of another message has its own error
/// text, whether or not the principal exists.
fn verify(
    client: &Client,
    challenge: &Challenge,
    key: &PublicKey,
    known: Option<&Parsed>,
    signature: &str,
) -> Result<(), Refusal> {
    let fault = match challenge.verify(key, known, signature) {
        Ok(()) => return Ok(()),
        Err(fault) => fault,
    };
    let (text, crossbar) = match fault {
        Fault::NotHexadecimal => (
            Some("expected 192 hexadecimal digits, the signature and then the signed message"),
            "signed message is invalid (not a HEX encoded string of 96 bytes)",
        ),
        Fault::Message => (
            Some(
                "the signed message is not the challenge, combined with the channel's id if one was requested",
            ),
            "message signed is bogus",
        ),
        Fault::Signature => (None, "signed message has invalid signature"),
    };
    let cause = Cause::WrongSignature;
    Err(match text {
        Some(text) if client.error_texts == ErrorTexts::Neutral => {
            let text = format!("AUTHENTICATE.Signature: {text}");
            Refusal::new(NOT_AUTHORIZED, text, cause)
        }
        _ => client.refusal(cause, crossbar),
    })
}
