//! Users with their secrets, and the decoys for unknown ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Key, Secret};
use crate::wamp::SigningKey;
use crate::wamp::decoys::Decoys;
use crate::wamp::mac::{hmac, optional};
use crate::wamp::source;

/// Users with a secret.
#[derive(Clone, Default, PartialEq)]
pub struct Users {
    by_authid: BTreeMap<String, User>,
    decoys: Decoys<User>,
}

#[derive(Clone, PartialEq)]
pub(super) struct User {
    pub(super) secret: Secret,
    pub(super) role: Option<Arc<str>>,
}

impl Users {
    /// Adds a user. Without a role it has the method's default role.
    pub fn insert(&mut self, authid: &str, secret: Secret, role: Option<&str>) {
        let role = role.map(Arc::from);
        let user = User { secret, role };
        self.decoys.insert(authid, &user.secret.as_it_is.0, &user);
        self.by_authid.insert(authid.to_owned(), user);
    }

    /// Checks a password for the operator; `None` if the user does not exist.
    pub fn is_right(&self, authid: &str, password: &str) -> Option<bool> {
        let user = self.by_authid.get(authid)?;
        Some(user.secret.is_of(password))
    }

    pub(super) fn find(&self, authid: &str) -> Option<&User> {
        self.by_authid.get(authid)
    }

    /// The decoy of an unknown user, the same each time for an authid: one of the users, with another salt and a random
    /// secret.
    pub(super) fn decoy(&self, authid: &str, key: Option<&SigningKey>) -> Option<User> {
        let (mut decoy, seed) = self.decoys.find("wampcra", authid, key)?;
        decoy.secret.as_it_is = Key::new(hmac(&seed, b"secret"));
        if let Some(salted) = &mut decoy.secret.salted {
            salted.salt = alike(&salted.salt, &seed);
            decoy.secret.derived = Some(Key::new(STANDARD.encode(hmac(&seed, b"derived"))));
        }
        Some(decoy)
    }
}

impl source::Principals for Users {
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Option<&str>)> + '_> {
        let entries = self.by_authid.iter();
        Box::new(entries.map(|(authid, known)| (authid.as_str(), known.role.as_deref())))
    }

    fn credential(&self, authid: &str) -> Option<Vec<Vec<u8>>> {
        let User { secret, role } = self.by_authid.get(authid)?;
        let salt = secret.salted.as_ref().map(|salted| salted.salt.as_str());
        let secret = secret.as_it_is.0.clone();
        Some(vec![optional(role.as_deref()), optional(salt), secret])
    }
}

/// A salt that resembles `salt`: letters and digits in the places of letters and digits.
fn alike(salt: &str, seed: &[u8; 32]) -> String {
    let mut block = hmac(seed, b"salt");
    let mut left = block.len();
    let mut next = || {
        if left == 0 {
            block = hmac(seed, &block);
            left = block.len();
        }
        left -= 1;
        block[left]
    };
    let characters = salt.chars().map(|character| {
        let of = |first: u8, count: u8, byte: u8| char::from(first + byte % count);
        match character {
            '0'..='9' => of(b'0', 10, next()),
            'a'..='f' if is_hex(salt) => of(b'a', 6, next()),
            'a'..='z' => of(b'a', 26, next()),
            'A'..='Z' => of(b'A', 26, next()),
            other => other,
        }
    });
    characters.collect()
}

fn is_hex(salt: &str) -> bool {
    salt.bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = self.by_authid.iter();
        let users = users.map(|(authid, u)| (authid, (&u.secret, &u.role)));
        f.debug_map().entries(users).finish()
    }
}
