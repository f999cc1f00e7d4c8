//! The content of a token that fulfils the requirements.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_wamp::Dict;

use super::claims;
use super::flaw::Flaw;
use super::grants::Grants;
use super::rules::Rules;
use super::scope::{AccessScope, Scope};
use crate::wamp::jwt::Jwks;
use crate::wamp::jwt::token::{Signed, seconds};

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub user: Arc<str>,
    pub tags: Vec<String>,
    /// The time in seconds since 1970 from which on the token counts no more.
    pub expires_s: Option<u64>,
    scopes: Vec<AccessScope>,
}

/// Tolerated difference to the issuer's clock at the beginning of a token, in seconds. The end has none, as in RabbitMQ.
const BEGINNING_SKEW_S: u64 = 60;

impl Rules {
    /// Reads a token that a client of that name sends. Its signature is verified; it may have ended.
    pub fn read(&self, token: &str, name: &str, keys: &Jwks, now_s: u64) -> Result<Token, Flaw> {
        let mut signed = Signed::read(token, &self.algorithms)?;
        if signed.key.is_none() {
            signed.key = Some(self.default_key.clone().ok_or(Flaw::NoKey)?);
        }
        self.content(&signed.claims(keys)?, name, now_s)
    }

    /// Reads claims whose signature is verified.
    pub fn content(&self, claims: &Dict, name: &str, now_s: u64) -> Result<Token, Flaw> {
        let time = |name| seconds(claims, name).map_err(|_| Flaw::claim(name));
        if time("nbf")?.is_some_and(|begins_s| begins_s > now_s.saturating_add(BEGINNING_SKEW_S)) {
            return Err(Flaw::Early);
        }
        let all = claims::scopes(claims, self)?;
        claims::check_audience(claims, &self.resource_server_id)?;
        let mut tags = BTreeSet::new();
        let mut scopes = Vec::new();
        for text in all.iter().filter_map(|text| self.without_prefix(text)) {
            match Scope::parse(text) {
                Ok(Scope::Tag(tag)) => {
                    tags.insert(tag);
                }
                Ok(Scope::Access(scope)) => scopes.push(scope),
                // A scope of another meaning.
                Err(_) => {}
            }
        }
        Ok(Token {
            user: claims::user(claims, name)?.into(),
            tags: tags.into_iter().collect(),
            expires_s: time("exp")?,
            scopes,
        })
    }

    /// A scope of this broker, without the prefix.
    fn without_prefix<'s>(&self, scope: &'s str) -> Option<&'s str> {
        match &*self.resource_server_id {
            "" => Some(scope),
            id => scope.strip_prefix(id)?.strip_prefix('.'),
        }
    }
}

impl Token {
    /// Whether the token counts no more.
    pub fn is_expired(&self, now_s: u64) -> bool {
        self.expires_s.is_some_and(|expires_s| expires_s <= now_s)
    }

    /// Whether the user may open a vhost.
    pub fn opens(&self, vhost: &str) -> bool {
        self.scopes.iter().any(|scope| scope.is_in(vhost))
    }

    /// The rights in a vhost. `None`: the user may not open it.
    pub fn grants(&self, vhost: &str) -> Option<Grants> {
        Grants::of(&self.scopes, vhost)
    }
}
