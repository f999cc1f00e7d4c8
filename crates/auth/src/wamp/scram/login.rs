//! SCRAM's steps of a handshake.

use std::sync::Arc;

use crosstie_wamp::Value;

use super::exchange::Opening;
use super::{Credential, Principals};
use crate::wamp::answer::{self, Answered, Assigned};
use crate::wamp::client::Client;
use crate::wamp::next::{Next, Outcome};
use crate::wamp::{Cause, Channel, Principal, Provider, Refusal, Source};

/// The source of the credentials that clients authenticate with.
pub type Scram = Source<Principals>;

impl Scram {
    /// Handles HELLO: looks up the keys or calls the authenticator.
    pub(in crate::wamp) fn begin(&self, client: &Client, channel: &Channel<'_>) -> Outcome {
        let opening = Opening::read(client.method, client.authextra.as_ref())?;
        let authid = client.need_authid()?;
        match self {
            Self::Static {
                principals,
                default_role,
            } => {
                let known = principals.find(authid);
                client.check_known(known.is_some())?;
                // The decoy is computed for known principals, too, so that both cases take the same time.
                let decoy = principals.decoy(authid, channel.own_key.map(Arc::as_ref));
                let Some(user) = known.or(decoy.as_ref()) else {
                    // No principals are configured.
                    return Err(failed(client, false));
                };
                let assigned = Assigned {
                    role: user.role.clone(),
                    ..Assigned::default()
                };
                let default_role = default_role.as_ref();
                let principal = client.assign(assigned, default_role, Provider::Static)?;
                let credential = user.credential.clone();
                let is_known = known.is_some();
                Ok(challenge(client, opening, credential, principal, is_known))
            }
            Self::Dynamic(authenticator) => {
                let default_role = authenticator.default_role.clone();
                let provider = authenticator.authprovider;
                let call = client.call(authenticator, None);
                Ok(Next::call(call, move |client, value| {
                    let assigned = answer::principal(&value)?;
                    let credential = credential(&value)?;
                    let default_role = default_role.as_ref();
                    let principal = client.assign(assigned, default_role, provider)?;
                    Ok(challenge(client, opening, credential, principal, true))
                }))
            }
        }
    }
}

fn challenge(
    client: &Client,
    opening: Opening,
    credential: Credential,
    principal: Principal,
    is_known: bool,
) -> Next {
    let challenge = opening.challenge(client.method, credential, client.given.scram_nonce());
    let extra = challenge.extra(client.method);
    let mut principal = principal;
    Next::challenge(extra, move |client, authenticate| {
        // The client's own authid: the authenticator may have assigned another one.
        let authid = client.need_authid()?;
        match challenge.verify(authid, authenticate)? {
            Some(verifier) if is_known => {
                let specified = format!("v={verifier}");
                for (key, text) in [
                    ("scram_server_signature", verifier),
                    ("verifier", specified),
                ] {
                    principal.authextra.retain(|(name, _)| name != key);
                    let entry = (key.to_owned(), Value::String(text));
                    principal.authextra.push(entry);
                }
                Ok(Next::accept(principal))
            }
            _ => Err(failed(client, is_known)),
        }
    })
}

fn failed(client: &Client, is_known: bool) -> Refusal {
    let cause = match is_known {
        true => Cause::WrongSignature,
        false => Cause::UnknownPrincipal,
    };
    client.refusal(cause, "SCRAM authentication failed")
}

/// Reads the credential in an authenticator's answer.
fn credential(value: &Value) -> Result<Credential, Refusal> {
    let answered = Answered::read(value)?;
    let kdf = answered.need_text("kdf")?;
    let iterations = answered.need_number("iterations")?;
    let memory_kib = answered.number("memory")?;
    let digits = [
        answered.need_text("salt")?,
        answered.need_text("stored-key")?,
        answered.need_text("server-key")?,
    ];
    Credential::parse(kdf, iterations, memory_kib, digits).map_err(|e| {
        Refusal::of_authenticator(format!(
            "got a bad credential from the dynamic authenticator: {e}"
        ))
    })
}
