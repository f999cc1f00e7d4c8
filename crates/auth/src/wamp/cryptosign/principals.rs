//! Principals that are known by their keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::PublicKey;
use crate::wamp::Cause;

/// Principals that are known by their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyHolders {
    by_authid: BTreeMap<String, KeyHolder>,
    /// Each key once for each principal that has it.
    by_key: BTreeMap<PublicKey, Vec<String>>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyHolder {
    pub keys: Vec<PublicKey>,
    pub role: Option<Arc<str>>,
    /// Where its sessions go, whatever they ask for.
    pub realm: Option<String>,
}

impl KeyHolders {
    /// One more principal; without a role the method's default counts.
    pub fn insert(&mut self, authid: &str, holder: KeyHolder) {
        for key in &holder.keys {
            let of_key = self.by_key.entry(*key).or_default();
            if of_key.iter().all(|known| known != authid) {
                of_key.push(authid.to_owned());
            }
        }
        self.by_authid.insert(authid.to_owned(), holder);
    }

    /// The roles of all principals.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.by_authid.values().filter_map(|p| p.role.as_deref())
    }

    /// The realms that principals are led to.
    pub fn realms(&self) -> impl Iterator<Item = &str> {
        self.by_authid.values().filter_map(|p| p.realm.as_deref())
    }

    /// The principal of that name, if the key is one of its keys; without a name the one that has it.
    pub(in crate::wamp) fn find(
        &self,
        authid: Option<&str>,
        key: &PublicKey,
    ) -> Result<(&str, &KeyHolder), Cause> {
        let authid = match (authid, self.by_key.get(key).map(Vec::as_slice)) {
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
