//! Decoding and validation of a token (RFC 7515, section 5.2; RFC 7519, section 7.2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, Value};

use super::keys::Verified;
use super::{Algorithm, Jwks, Rules};
use crate::wamp::Cause;

/// The claims of a token.
pub(super) struct Claims(Dict);

/// A token's header and claims, for display only: the signature is not verified.
pub fn unverified(token: &str) -> Option<[Dict; 2]> {
    let (head, rest) = token.split_once('.')?;
    let (claims, signature) = rest.split_once('.')?;
    decoded(signature).ok()?;
    Some([object(head).ok()?, object(claims).ok()?])
}

/// Tokens have one or two kilobytes.
pub(crate) const TOKEN_BYTES_MAX: usize = 16 << 10;

/// A token in its parts. Nothing is known to be true before [`Signed::claims`].
pub(crate) struct Signed<'t> {
    algorithm: Algorithm,
    /// The name of the key in the token.
    pub(crate) key: Option<String>,
    signed: &'t str,
    claims: &'t str,
    signature: Vec<u8>,
}

impl<'t> Signed<'t> {
    /// Reads a token with one of these algorithms.
    pub(crate) fn read(token: &'t str, algorithms: &[Algorithm]) -> Result<Self, Cause> {
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
        let algorithm = algorithm.filter(|algorithm| algorithms.contains(algorithm));
        // `crit` lists extensions that a reader must understand; none is supported.
        let Some(algorithm) = algorithm.filter(|_| find(&head, "crit").is_none()) else {
            return Err(Cause::MalformedToken);
        };
        let key = match find(&head, "kid") {
            None => None,
            Some(Value::String(id)) => Some(id.as_str().to_owned()),
            Some(_) => return Err(Cause::MalformedToken),
        };
        Ok(Self {
            algorithm,
            key,
            signed,
            claims,
            signature: decoded(signature)?,
        })
    }

    /// The claims, if one of the keys has made the signature.
    pub(crate) fn claims(&self, keys: &Jwks) -> Result<Dict, Cause> {
        let key = self.key.as_deref();
        match keys.verify(self.algorithm, key, self.signed.as_bytes(), &self.signature) {
            Verified::Right => object(self.claims),
            Verified::Wrong => Err(Cause::WrongSignature),
            Verified::NoKey => Err(Cause::UnknownKey),
        }
    }
}

impl Claims {
    /// The claims of a token that is valid at `now_s`, in seconds since 1970.
    pub(super) fn of(token: &str, keys: &Jwks, rules: &Rules, now_s: u64) -> Result<Self, Cause> {
        let claims = Self(Signed::read(token, &rules.algorithms)?.claims(keys)?);
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

    fn seconds(&self, name: &str) -> Result<Option<u64>, Cause> {
        seconds(&self.0, name)
    }
}

/// A time; fractions of a second are dropped.
pub(crate) fn seconds(claims: &Dict, name: &str) -> Result<Option<u64>, Cause> {
    match find(claims, name) {
        None => Ok(None),
        Some(Value::Float(seconds)) if *seconds >= 0.0 => Ok(Some(*seconds as u64)),
        Some(value) => value.as_u64().map(Some).ok_or(Cause::WrongClaims),
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, Cause> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    bytes.map_err(|_| Cause::MalformedToken)
}

/// A part that is an object without duplicate members: two readers must not see different values.
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

pub(crate) fn find<'d>(dict: &'d Dict, key: &str) -> Option<&'d Value> {
    let found = dict.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}

pub(crate) fn text<'d>(dict: &'d Dict, key: &str) -> Option<&'d str> {
    find(dict, key).and_then(Value::as_str)
}
