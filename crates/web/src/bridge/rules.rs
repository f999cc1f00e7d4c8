//! The checks of a bridge's requests, in their order.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, Method};

use super::query::Fields;
use super::signature;
use super::stamp;
use super::{Refusal, content, github};

/// The configured requirements of a bridge.
#[derive(Clone, Debug)]
pub struct Rules {
    pub purpose: Purpose,
    /// A key and its secret, if requests must be signed.
    pub key: Option<(String, String)>,
    pub require_tls: bool,
    /// Networks of allowed clients; any if empty.
    pub require_ip: Vec<(IpAddr, u8)>,
    pub body_bytes_max: usize,
    /// Maximum difference of a request's timestamp from the clock.
    pub timestamp_delta_max: Option<Duration>,
    pub github_secret: Option<String>,
}

/// The effect of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Call,
    Publication,
    /// An event of a fixed topic; the body may have any type.
    Hook,
}

/// A request's head, and its origin.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'r> {
    pub method: &'r Method,
    pub headers: &'r HeaderMap,
    /// Without the question mark.
    pub query: &'r str,
    /// `None` for clients without a network address.
    pub peer: Option<IpAddr>,
    pub is_tls: bool,
    /// Since 1970.
    pub now: Duration,
}

impl Rules {
    /// Checks the head before the body is read. Returns whether the body is needed; a browser's preflight request has
    /// none.
    pub fn admit(&self, asked: &Asked<'_>) -> Result<bool, Refusal> {
        match *asked.method {
            Method::POST | Method::PUT => {}
            Method::OPTIONS => return Ok(false),
            _ => return Err(Refusal::Method(asked.method.to_string())),
        }
        content::check_type(asked.headers, self.purpose != Purpose::Hook)?;
        if let Some(bytes) = content::said_length(asked.headers)?
            && bytes > self.body_bytes_max as u64
        {
            return Err(self.too_long(bytes));
        }
        Ok(true)
    }

    /// Checks the rest. Returns the signature, if one is required.
    pub fn check(&self, asked: &Asked<'_>, body: &[u8]) -> Result<Option<[u8; 32]>, Refusal> {
        if let Some(said_bytes) = content::said_length(asked.headers)?
            && said_bytes != body.len() as u64
        {
            let body_bytes = body.len();
            return Err(Refusal::LengthDiffers {
                body_bytes,
                said_bytes,
            });
        }
        if body.len() > self.body_bytes_max {
            return Err(self.too_long(body.len() as u64));
        }
        if let Some(secret) = &self.github_secret
            && !github::is_signed(asked.headers, secret.as_bytes(), body)
        {
            return Err(Refusal::GithubSignature);
        }
        let signature = self.check_signed(asked, body)?;
        if !self.require_ip.is_empty() && !asked.peer.is_some_and(|peer| self.is_near(peer)) {
            return Err(Refusal::Address);
        }
        if self.require_tls && !asked.is_tls {
            return Err(Refusal::NotTls);
        }
        match std::str::from_utf8(body) {
            Ok(_) => Ok(signature),
            Err(_) => Err(Refusal::NotUtf8),
        }
    }

    /// The refusal of a body that exceeds the maximum.
    pub fn too_long(&self, bytes: u64) -> Refusal {
        Refusal::TooLong {
            bytes,
            bytes_max: self.body_bytes_max,
        }
    }

    /// Fields in the query must be valid even if no signature is required.
    fn check_signed(&self, asked: &Asked<'_>, body: &[u8]) -> Result<Option<[u8; 32]>, Refusal> {
        if asked.query.is_empty() && self.key.is_none() {
            return Ok(None);
        }
        let fields = Fields::read(asked.query);
        let needed = |name, is_there: bool| match is_there || self.key.is_none() {
            true => Ok(()),
            false => Err(Refusal::Missing(name)),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        needed("key", fields.key.is_some())?;
        needed("timestamp", fields.timestamp.is_some())?;
        if let Some(given) = &fields.timestamp {
            let at = stamp::timestamp(given).ok_or_else(|| Refusal::BadTimestamp(text(given)))?;
            self.check_time(at, asked.now)?;
        }
        needed("seq", fields.seq.is_some())?;
        if let Some(given) = &fields.seq
            && !stamp::is_integer(given)
        {
            return Err(Refusal::BadSequence(text(given)));
        }
        needed("nonce", fields.nonce.is_some())?;
        if let Some(given) = &fields.nonce
            && !stamp::is_integer(given)
        {
            return Err(Refusal::BadNonce(text(given)));
        }
        needed("signature", fields.signature.is_some())?;
        let (
            Some((key, secret)),
            Some(given),
            Some(timestamp),
            Some(seq),
            Some(nonce),
            Some(signed),
        ) = (
            &self.key,
            &fields.key,
            &fields.timestamp,
            &fields.seq,
            &fields.nonce,
            &fields.signature,
        )
        else {
            return Ok(None);
        };
        if **given != *key.as_bytes() {
            return Err(Refusal::Key);
        }
        let parts = [&**given, &**timestamp, &**seq, &**nonce, body];
        let verified = signature::verify(secret.as_bytes(), parts, signed);
        verified.map(Some).ok_or(Refusal::Signature)
    }

    fn check_time(&self, at_us: i64, now: Duration) -> Result<(), Refusal> {
        let Some(delta_max) = self.timestamp_delta_max else {
            return Ok(());
        };
        let now_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        match u128::from(now_us.abs_diff(at_us)) > delta_max.as_micros() {
            true => Err(Refusal::Expired),
            false => Ok(()),
        }
    }

    fn is_near(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        let networks = self.require_ip.iter();
        networks
            .copied()
            .any(|(network, bits)| is_in(peer, network.to_canonical(), bits))
    }
}

fn is_in(peer: IpAddr, network: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (peer, network) {
        (IpAddr::V4(peer), IpAddr::V4(network)) => {
            let differs = peer.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= bits.min(32)
        }
        (IpAddr::V6(peer), IpAddr::V6(network)) => {
            let differs = peer.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= bits.min(128)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
