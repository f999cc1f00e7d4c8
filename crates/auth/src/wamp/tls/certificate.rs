//! Client certificates as principals' credentials.

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use crate::wamp::hexadecimal;
use crate::wamp::mac::optional;
use crate::wamp::source;

/// The parts of a client's certificate that identify a principal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    pub sha1: [u8; 20],
    pub sha256: [u8; 32],
    /// The attributes of its subject, by short name in lower case: `cn`, `o`.
    pub subject: Vec<(String, String)>,
    /// The subject's alternative names, with their kinds: `DNS:www.example.com`.
    pub alternatives: Vec<String>,
}

/// A principal's certificate. All properties that are given must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CertificateHolder {
    pub sha1: Option<[u8; 20]>,
    pub sha256: Option<[u8; 32]>,
    pub subject: Vec<(String, String)>,
    pub alternative: Option<String>,
    pub role: Option<Arc<str>>,
}

/// Principals identified by their certificates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CertificateHolders {
    by_authid: BTreeMap<String, CertificateHolder>,
}

impl Certificate {
    /// A certificate in DER, and the names that the caller has read from it.
    pub fn new(der: &[u8], subject: Vec<(String, String)>, alternatives: Vec<String>) -> Self {
        let mut certificate = Self {
            subject,
            alternatives,
            ..Self::default()
        };
        let sha1 = digest(&SHA1_FOR_LEGACY_USE_ONLY, der);
        certificate.sha1.copy_from_slice(sha1.as_ref());
        let sha256 = digest(&SHA256, der);
        certificate.sha256.copy_from_slice(sha256.as_ref());
        certificate
    }
}

impl CertificateHolder {
    /// Whether the certificate matches. An attribute that occurs twice matches nothing.
    fn is_known_by(&self, certificate: &Certificate) -> bool {
        let says = |(name, value): &(String, String)| {
            let mut said = certificate.subject.iter().filter(|(of, _)| of == name);
            said.next().is_some_and(|(_, said)| said == value) && said.next().is_none()
        };
        let is_fingerprint = self.sha1.is_none_or(|sha1| sha1 == certificate.sha1)
            && self
                .sha256
                .is_none_or(|sha256| sha256 == certificate.sha256);
        let alternative = self.alternative.as_ref();
        let is_name = self.subject.iter().all(says)
            && alternative.is_none_or(|name| certificate.alternatives.contains(name));
        let says_something = self.sha1.is_some()
            || self.sha256.is_some()
            || !self.subject.is_empty()
            || self.alternative.is_some();
        says_something && is_fingerprint && is_name
    }
}

impl CertificateHolders {
    /// Adds a principal. Without a role it has the method's default role.
    pub fn insert(&mut self, authid: &str, holder: CertificateHolder) {
        self.by_authid.insert(authid.to_owned(), holder);
    }

    /// The principals whose certificate it is.
    pub(super) fn of<'s>(
        &'s self,
        certificate: &'s Certificate,
    ) -> impl Iterator<Item = (&'s str, &'s CertificateHolder)> {
        let known = self.by_authid.iter();
        known
            .filter(|(_, holder)| holder.is_known_by(certificate))
            .map(|(authid, holder)| (authid.as_str(), holder))
    }
}

impl source::Principals for CertificateHolders {
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Option<&str>)> + '_> {
        let entries = self.by_authid.iter();
        Box::new(entries.map(|(authid, known)| (authid.as_str(), known.role.as_deref())))
    }

    fn credential(&self, authid: &str) -> Option<Vec<Vec<u8>>> {
        let holder = self.by_authid.get(authid)?;
        let texts = [holder.role.as_deref(), holder.alternative.as_deref()].map(optional);
        let prints = [
            holder.sha1.map(Vec::from).unwrap_or_default(),
            holder.sha256.map(Vec::from).unwrap_or_default(),
        ];
        let subject = holder.subject.iter();
        let subject = subject.map(|(name, value)| format!("{name}={value}").into_bytes());
        Some(texts.into_iter().chain(prints).chain(subject).collect())
    }
}

/// Reads a fingerprint: hexadecimal digits in either case, with or without colons between the bytes.
pub fn fingerprint<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    if text.len() == 2 * BYTES {
        return hexadecimal::decode(text);
    }
    let mut bytes = [0; BYTES];
    let mut pairs = text.split(':');
    for byte in &mut bytes {
        let [of_pair] = hexadecimal::decode(pairs.next()?)?;
        *byte = of_pair;
    }
    pairs.next().is_none().then_some(bytes)
}
