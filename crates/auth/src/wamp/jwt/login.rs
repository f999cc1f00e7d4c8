//! The steps of a handshake by token.

use std::sync::Arc;

use crosstie_wamp::Dict;

use super::token::Claims;
use super::{Jwks, KeysUrl, Rules};
use crate::wamp::answer::Assigned;
use crate::wamp::client::Client;
use crate::wamp::next::{Next, Outcome};
use crate::wamp::{Cause, Provider};

/// The issuer whose tokens are accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Jwt {
    pub keys: Arc<Jwks>,
    pub rules: Arc<Rules>,
    /// The URL of the issuer's current keys.
    pub url: Option<Arc<KeysUrl>>,
}

impl Jwt {
    /// The roles that the configuration assigns.
    pub(in crate::wamp) fn roles(&self) -> Vec<&str> {
        self.rules.default_role.as_deref().into_iter().collect()
    }

    /// Handles HELLO: requests a token.
    pub(in crate::wamp) fn begin(&self) -> Outcome {
        let Self { keys, rules, url } = self.clone();
        Ok(Next::challenge(Dict::new(), move |client, authenticate| {
            let token = authenticate.signature;
            match claims(client, &keys, &rules, token) {
                // The issuer may have made a new key since its keys were fetched.
                Err(Cause::UnknownKey) if url.is_some() => {
                    let token = token.to_owned();
                    Ok(Next::fetch(move |client, keys| {
                        let claims = claims(client, &keys, &rules, &token);
                        accept(client, &rules, claims)
                    }))
                }
                claims => accept(client, &rules, claims),
            }
        }))
    }
}

const TRUSTED: &str = "trusted";

fn claims(client: &Client, keys: &Jwks, rules: &Rules, token: &str) -> Result<Claims, Cause> {
    Claims::of(token, keys, rules, client.given.unix_ms / 1_000)
}

fn accept(client: &Client, rules: &Rules, claims: Result<Claims, Cause>) -> Outcome {
    let refuse = |cause| client.refusal(cause, "token is invalid");
    let claims = claims.map_err(refuse)?;
    let authid = claims.text(&rules.authid_claim);
    let authid = authid.ok_or_else(|| refuse(Cause::WrongClaims))?;
    // A HELLO with another authid means another principal's token, or a mistake.
    if client.authid.as_deref().is_some_and(|said| said != authid) {
        return Err(refuse(Cause::WrongClaims));
    }
    let role = claims.text(&rules.role_claim);
    // Every realm has this role, and it permits everything: an issuer cannot assign it.
    if role == Some(TRUSTED) {
        return Err(refuse(Cause::WrongClaims));
    }
    let assigned = Assigned {
        authid: Some(authid.to_owned()),
        role: role.map(Arc::from),
        ..Assigned::default()
    };
    let principal = client.assign(assigned, rules.default_role.as_ref(), Provider::Static)?;
    Ok(Next::accept(principal))
}
