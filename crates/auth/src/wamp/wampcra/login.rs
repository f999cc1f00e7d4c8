//! WAMP-CRA's steps of a handshake.

use std::sync::Arc;

use crosstie_wamp::Value;

use super::challenge::Challenge;
use super::{Salted, Secret, Users};
use crate::wamp::answer::{self, Answered, Assigned};
use crate::wamp::client::Client;
use crate::wamp::next::{Next, Outcome};
use crate::wamp::{Cause, Channel, Derivation, Principal, Provider, Refusal, SigningKey, Source};

/// The source of the secrets that clients authenticate with.
pub type WampCra = Source<Users>;

/// The challenge, and the principal that its signature proves.
struct Expected {
    challenge: String,
    secret: Option<Secret>,
    is_known: bool,
    principal: Principal,
}

impl WampCra {
    /// Handles HELLO: looks up the secret or calls the authenticator.
    pub(in crate::wamp) fn begin(&self, client: &Client, channel: &Channel<'_>) -> Outcome {
        match self {
            Self::Static {
                principals: users,
                default_role,
            } => {
                let key = channel.own_key.map(Arc::as_ref);
                challenge_user(client, users, key, default_role.as_ref())
            }
            Self::Dynamic(authenticator) => {
                let default_role = authenticator.default_role.clone();
                let provider = authenticator.authprovider;
                let call = client.call(authenticator, None);
                Ok(Next::call(call, move |client, value| {
                    let assigned = answer::principal(&value)?;
                    let secret = secret(&value)?;
                    let default_role = default_role.as_ref();
                    let principal = client.assign(assigned, default_role, provider)?;
                    Ok(challenge(client, principal, Some(secret), true))
                }))
            }
        }
    }
}

fn challenge_user(
    client: &Client,
    users: &Users,
    key: Option<&SigningKey>,
    default_role: Option<&Arc<str>>,
) -> Outcome {
    let authid = client.need_authid()?;
    let known = users.find(authid);
    client.check_known(known.is_some())?;
    // The decoy is computed for known users, too, so that both cases take the same time.
    let decoy = users.decoy(authid, key);
    let user = known.or(decoy.as_ref());
    let assigned = Assigned {
        role: user.and_then(|user| user.role.clone()),
        ..Assigned::default()
    };
    let principal = client.assign(assigned, default_role, Provider::Static)?;
    let secret = user.map(|user| user.secret.clone());
    Ok(challenge(client, principal, secret, known.is_some()))
}

fn challenge(
    client: &Client,
    principal: Principal,
    secret: Option<Secret>,
    is_known: bool,
) -> Next {
    let challenge = Challenge {
        authid: &principal.authid,
        authrole: &principal.authrole,
        authprovider: principal.authprovider.name(),
        session: client.given.session(),
        nonce: &client.given.nonce(),
        timestamp: &client.given.timestamp(),
    };
    let challenge = challenge.to_string();
    let mut extra = vec![("challenge".to_owned(), Value::from(challenge.as_str()))];
    if let Some(secret) = &secret {
        secret.tell(&mut extra);
    }
    let expected = Expected {
        challenge,
        secret,
        is_known,
        principal,
    };
    Next::challenge(extra, |client, authenticate| {
        expected.handle_signature(client, authenticate.signature)
    })
}

impl Expected {
    fn handle_signature(self, client: &Client, signature: &str) -> Outcome {
        let secret = self.secret.as_ref();
        let is_right = secret.is_some_and(|s| s.verify(&self.challenge, signature));
        match secret.and_then(Secret::derivation) {
            Some(derivation) if !is_right => {
                let signature = signature.to_owned();
                Ok(Next::derive(
                    Derivation::Key(derivation),
                    move |client, key| {
                        let is_right = key.verify(&self.challenge, &signature);
                        self.conclude(client, is_right)
                    },
                ))
            }
            _ => self.conclude(client, is_right),
        }
    }

    /// Decides, after the signature has been checked.
    fn conclude(self, client: &Client, is_right: bool) -> Outcome {
        if is_right && self.is_known {
            return Ok(Next::accept(self.principal));
        }
        let cause = match self.is_known {
            true => Cause::WrongSignature,
            false => Cause::UnknownPrincipal,
        };
        Err(client.refusal(cause, "WAMP-CRA client signature is invalid"))
    }
}

/// Reads the secret in an authenticator's answer.
fn secret(value: &Value) -> Result<Secret, Refusal> {
    let answered = Answered::read(value)?;
    let secret = answered.need_text("secret")?;
    let salted = match answered.text("salt")? {
        None => None,
        Some(salt) => Some(Salted {
            salt: salt.to_owned(),
            iterations: answered.number("iterations")?.unwrap_or(Salted::ITERATIONS),
            key_bytes: answered.number("keylen")?.unwrap_or(Salted::KEY_BYTES),
        }),
    };
    Secret::underived(secret, salted).map_err(|e| {
        Refusal::of_authenticator(format!(
            "got a bad secret from the dynamic authenticator: {e}"
        ))
    })
}
