//! Validity of remembered logins: one holds as long as the configuration has the principal with the same credentials
//! and role.

use super::cookie::{Remembered, Stamp};
use super::{Method, Methods};
use crate::wamp::mac::hmac;

/// The state of a principal in the configuration.
enum Standing {
    /// An authenticator or an issuer vouches for principals.
    Elsewhere,
    Unknown,
    Known(Stamp),
}

impl Methods {
    /// The stamp of a principal of the configuration or one of its files.
    pub fn stamp(&self, method: Method, authid: &str) -> Option<Stamp> {
        match self.standing(method, authid) {
            Standing::Known(stamp) => Some(stamp),
            Standing::Elsewhere | Standing::Unknown => None,
        }
    }

    /// Whether a remembered login is still valid. A login from before stamps were stored has none.
    pub fn vouches_for(&self, who: &Remembered) -> bool {
        self.has(who.authmethod)
            && match self.standing(who.authmethod, &who.authid) {
                Standing::Elsewhere => true,
                Standing::Unknown => false,
                Standing::Known(stamp) => who.stamp.is_none_or(|of_login| of_login == stamp),
            }
    }

    /// The principals that `newer` lacks, or has with other credentials or another role.
    pub fn revoked_by(&self, newer: &Self) -> Vec<(Method, String)> {
        let mut revoked = Vec::new();
        for method in Method::ALL {
            // Methods with two names share their principals; sessions have either name.
            for authid in self.authids(method) {
                if self.stamp(method, authid) != newer.stamp(method, authid) {
                    revoked.push((method, authid.to_owned()));
                }
            }
        }
        revoked
    }

    fn standing(&self, method: Method, authid: &str) -> Standing {
        let Some((principals, _)) = self.configured(method) else {
            return Standing::Elsewhere;
        };
        let credential = principals.credential(authid);
        credential.map_or(Standing::Unknown, |parts| {
            let [first, second, third, ..] = hmac(b"standing", &joined(&parts));
            Standing::Known([first, second, third])
        })
    }

    fn authids(&self, method: Method) -> Vec<&str> {
        let configured = self.configured(method).into_iter();
        let entries = configured.flat_map(|(principals, _)| principals.entries());
        entries.map(|(authid, _)| authid).collect()
    }
}

/// Joins parts so that different parts never give the same octets.
fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_be_bytes());
        joined.extend_from_slice(part);
    }
    joined
}
