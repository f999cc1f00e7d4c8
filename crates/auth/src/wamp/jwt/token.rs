//! A token, read and looked at (RFC 7515, section 5.2; RFC 7519, section 7.2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, Value};

use super::keys::Verified;
use super::{Algorithm, Jwks, Rules};
use crate::wamp::Cause;

/// What an issuer says of a client.
pub(super) struct Claims(Dict);

/// What stands in a token, its head and its claims, for a person to read: nobody has looked whether its issuer said so.
pub fn unverified(token: &str) -> Option<[Dict; 2]> {
    let (head, rest) = token.split_once('.')?;
    let (claims, signature) = rest.split_once('.')?;
    decoded(signature).ok()?;
    Some([object(head).ok()?, object(claims).ok()?])
}

/// Tokens have one or two kilobytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

impl Claims {
    /// The claims of a token that holds at `now_s`, seconds since 1970.
    pub(super) fn of(token: &str, keys: &Jwks, rules: &Rules, now_s: u64) -> Result<Self, Cause> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Cause::MalformedToken);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Cause::MalformedToken)?;
        let (head, claims) = signed.split_once('.').ok_or(Cause::MalformedToken)?;
        if claims.contains('.') {
            return Err(Cause::MalformedToken);
        }
        let head = object(head)?;
        let algorithm = text(&head, "alg").and_then(Algorithm::parse);
        let algorithm = algorithm.filter(|algorithm| rules.algorithms.contains(algorithm));
        // What is critical is what a reader must understand, and nothing of it is understood.
        let Some(algorithm) = algorithm.filter(|_| find(&head, "crit").is_none()) else {
            return Err(Cause::MalformedToken);
        };
        let id = match find(&head, "kid") {
            None => None,
            Some(Value::String(id)) => Some(id.as_str()),
            Some(_) => return Err(Cause::MalformedToken),
        };
        let signature = decoded(signature)?;
        match keys.verify(algorithm, id, signed.as_bytes(), &signature) {
            Verified::Right => {}
            Verified::Wrong => return Err(Cause::WrongSignature),
            Verified::NoKey => return Err(Cause::UnknownKey),
        }
        let claims = Self(object(claims)?);
        claims.check(rules, now_s)?;
        Ok(claims)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        text(&self.0, name).filter(|text| !text.is_empty())
    }

    fn check(&self, rules: &Rules, now_s: u64) -> Result<(), Cause> {
        let expires_s = self.seconds("exp")?.ok_or(Cause::WrongClaims)?;
        let begins_s = self.seconds("nbf")?.unwrap_or(0);
        if now_s >= expires_s.saturating_add(rules.clock_skew_s) {
            return Err(Cause::ExpiredToken);
        }
        if begins_s > now_s.saturating_add(rules.clock_skew_s) {
            return Err(Cause::EarlyToken);
        }
        let is_issuer = rules.issuer.as_deref();
        let is_issuer = is_issuer.is_none_or(|issuer| text(&self.0, "iss") == Some(issuer));
        let is_audience = rules.audience.as_deref();
        let is_audience = is_audience.is_none_or(|audience| match find(&self.0, "aud") {
            Some(Value::String(text)) => text == audience,
            Some(Value::List(of)) => of.iter().any(|value| value.as_str() == Some(audience)),
            _ => false,
        });
        match is_issuer && is_audience {
            true => Ok(()),
            false => Err(Cause::WrongClaims),
        }
    }

    /// A time; parts of a second are left out.
    fn seconds(&self, name: &str) -> Result<Option<u64>, Cause> {
        match find(&self.0, name) {
            None => Ok(None),
            Some(Value::Float(seconds)) if *seconds >= 0.0 => Ok(Some(*seconds as u64)),
            Some(value) => value.as_u64().map(Some).ok_or(Cause::WrongClaims),
        }
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, Cause> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    bytes.map_err(|_| Cause::MalformedToken)
}

/// A part that is an object, no member of which is there twice: two readers must not see two different ones.
fn object(part: &str) -> Result<Dict, Cause> {
    let value = codec::decode_value(Serializer::Json, &decoded(part)?, &Limits::default());
    let Ok(Value::Dict(dict)) = value else {
        return Err(Cause::MalformedToken);
    };
    let mut names: Vec<&str> = dict.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(Cause::MalformedToken),
        false => Ok(dict),
    }
}

fn find<'d>(dict: &'d Dict, key: &str) -> Option<&'d Value> {
    let found = dict.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}

fn text<'d>(dict: &'d Dict, key: &str) -> Option<&'d str> {
    find(dict, key).and_then(Value::as_str)
}
