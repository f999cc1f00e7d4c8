//! Principals identified by their public keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Parsed, PublicKey};
use crate::wamp::Cause;
use crate::wamp::mac::optional;
use crate::wamp::source;

/// Principals identified by their public keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyHolders {
    by_authid: BTreeMap<String, KeyHolder>,
    by_key: BTreeMap<PublicKey, Holders>,
}

/// The principals that share one key.
#[derive(Clone, Debug, Default, PartialEq)]
struct Holders {
    authids: Vec<String>,
    parsed: Parsed,
}

/// A principal of a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyHolder {
    pub keys: Vec<PublicKey>,
    pub role: Option<Arc<str>>,
    /// The realm of its sessions, whatever realm they ask for.
    pub realm: Option<String>,
}

impl KeyHolders {
    /// Adds a principal. Without a role it has the method's default role.
    pub fn insert(&mut self, authid: &str, holder: KeyHolder) {
        for key in &holder.keys {
            let of_key = &mut self.by_key.entry(*key).or_default().authids;
            if of_key.iter().all(|known| known != authid) {
                of_key.push(authid.to_owned());
            }
        }
        self.by_authid.insert(authid.to_owned(), holder);
    }

    /// The realms that principals are assigned to.
    pub fn realms(&self) -> impl Iterator<Item = &str> {
        self.by_authid.values().filter_map(|p| p.realm.as_deref())
    }

    /// The cached point of a principal's key.
    pub(super) fn parsed(&self, key: &PublicKey) -> Option<&Parsed> {
        Some(&self.by_key.get(key)?.parsed)
    }

    /// The principal `authid` if the key is one of its keys; without an authid the only principal of the key.
    pub(in crate::wamp) fn find(
        &self,
        authid: Option<&str>,
        key: &PublicKey,
    ) -> Result<(&str, &KeyHolder), Cause> {
        let of_key = self.by_key.get(key).map(|holders| &*holders.authids);
        let authid = match (authid, of_key) {
            (Some(authid), _) => authid,
            (None, Some([authid])) => authid,
            (None, Some([_, _, ..])) => return Err(Cause::AmbiguousKey),
            (None, _) => return Err(Cause::UnknownKey),
        };
        match self.by_authid.get_key_value(authid) {
            None => Err(Cause::UnknownPrincipal),
            Some((_, holder)) if !holder.keys.contains(key) => Err(Cause::UnknownKey),
            Some((authid, holder)) => Ok((authid, holder)),
        }
    }
}

impl source::Principals for KeyHolders {
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Option<&str>)> + '_> {
        let entries = self.by_authid.iter();
        Box::new(entries.map(|(authid, known)| (authid.as_str(), known.role.as_deref())))
    }

    fn credential(&self, authid: &str) -> Option<Vec<Vec<u8>>> {
        let KeyHolder { keys, role, realm } = self.by_authid.get(authid)?;
        let mut keys = keys.clone();
        keys.sort_unstable();
        let texts = [role.as_deref(), realm.as_deref()].map(optional);
        let keys = keys.iter().map(|key| key.0.to_vec());
        Some(texts.into_iter().chain(keys).collect())
    }
}
