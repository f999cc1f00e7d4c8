//! Principals that are known by a ticket.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Principals that are known by a ticket.
#[derive(Clone, Default, PartialEq)]
pub struct Tickets {
    by_authid: BTreeMap<String, Known>,
}

#[derive(Clone, PartialEq)]
struct Known {
    /// Hashes have one length: what is compared says nothing about how long a ticket is.
    hash: Hash,
    role: Option<Arc<str>>,
}

type Hash = [u8; 32];

impl Tickets {
    /// One more principal; without a role the method's default counts.
    pub fn insert(&mut self, authid: &str, ticket: &str, role: Option<&str>) {
        let known = Known {
            hash: hash(ticket),
            role: role.map(Arc::from),
        };
        self.by_authid.insert(authid.to_owned(), known);
    }

    pub(in crate::wamp) fn has(&self, authid: &str) -> bool {
        self.by_authid.contains_key(authid)
    }

    /// The role of the principal whose ticket that is; `None` if it is another's or nobody's, which takes
    /// as long to find out.
    pub(in crate::wamp) fn verify(&self, authid: &str, ticket: &str) -> Option<&Option<Arc<str>>> {
        let known = self.by_authid.get(authid);
        let expected = known.map_or(&[0; 32], |known| &known.hash);
        let is_right = bool::from(hash(ticket).ct_eq(expected));
        known.filter(|_| is_right).map(|known| &known.role)
    }

    /// The roles of all principals.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.by_authid.values().filter_map(|k| k.role.as_deref())
    }
}

fn hash(ticket: &str) -> Hash {
    Sha256::digest(ticket).into()
}

/// Without the hashes: a short ticket could be found by its hash.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles = self.by_authid.iter().map(|(authid, k)| (authid, &k.role));
        f.debug_map().entries(roles).finish()
    }
}
