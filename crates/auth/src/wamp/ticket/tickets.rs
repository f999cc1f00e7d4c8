//! Principals identified by a ticket.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use super::TicketHash;
use crate::wamp::mac::{hmac, optional};
use crate::wamp::source;

/// Principals identified by a ticket, of which only a hash is stored.
#[derive(Clone, Default, PartialEq)]
pub struct Tickets {
    by_authid: BTreeMap<String, Known>,
    /// Hashes of some principals, which take as long to compare. They stand in for those of unknown principals.
    samples: Vec<TicketHash>,
}

#[derive(Clone, PartialEq)]
pub(super) struct Known {
    hash: TicketHash,
    pub(super) role: Option<Arc<str>>,
}

/// A principal, or the stand-in for an unknown one.
pub(super) enum Found<'t> {
    Known(&'t Known),
    Nobody(&'t TicketHash),
}

impl Tickets {
    /// Adds a principal. Without a role it has the method's default role.
    pub fn insert(&mut self, authid: &str, ticket: &str, role: Option<&str>) {
        // Hashes have one length: the comparison does not reveal the length of a ticket.
        self.insert_hash(authid, TicketHash::sha256(ticket), role);
    }

    /// Adds a principal by the hash of its ticket.
    pub fn insert_hash(&mut self, authid: &str, hash: TicketHash, role: Option<&str>) {
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(hash.clone());
        }
        let role = role.map(Arc::from);
        self.by_authid
            .insert(authid.to_owned(), Known { hash, role });
    }

    pub(super) fn has(&self, authid: &str) -> bool {
        self.by_authid.contains_key(authid)
    }

    pub(super) fn find(&self, authid: &str) -> Found<'_> {
        static NOBODYS: LazyLock<TicketHash> = LazyLock::new(|| TicketHash::sha256(""));
        // The choice is made for known principals, too, so that both cases take the same time.
        let [first, second, ..] = hmac(b"sample", authid.as_bytes());
        let choice = usize::from(u16::from_be_bytes([first, second]));
        let sample = self.samples.get(choice % self.samples.len().max(1));
        match self.by_authid.get(authid) {
            Some(known) => Found::Known(known),
            None => Found::Nobody(sample.unwrap_or(&NOBODYS)),
        }
    }

    /// Checks a ticket for the operator; `None` if the principal does not exist. Takes as long as a login.
    pub fn is_right(&self, authid: &str, ticket: &str) -> Option<bool> {
        let known = self.by_authid.get(authid)?;
        Some(known.hash.verify(ticket))
    }
}

impl source::Principals for Tickets {
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Option<&str>)> + '_> {
        let entries = self.by_authid.iter();
        Box::new(entries.map(|(authid, known)| (authid.as_str(), known.role.as_deref())))
    }

    fn credential(&self, authid: &str) -> Option<Vec<Vec<u8>>> {
        let Known { hash, role } = self.by_authid.get(authid)?;
        let [salt, hash] = hash.parts().map(<[u8]>::to_vec);
        Some(vec![optional(role.as_deref()), salt, hash])
    }
}

const SAMPLES_MAX: usize = 256;

impl Found<'_> {
    pub(super) fn hash(&self) -> &TicketHash {
        match self {
            Self::Known(known) => &known.hash,
            Self::Nobody(sample) => sample,
        }
    }
}

/// Omits the hashes: a short ticket could be found from its hash.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles = self.by_authid.iter().map(|(authid, k)| (authid, &k.role));
        f.debug_map().entries(roles).finish()
    }
}
