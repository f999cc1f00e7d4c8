//! The users of a broker, and the permissions of each by vhost.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{PasswordHash, Permissions};

/// A user: a name and perhaps a password.
#[derive(Clone, Debug)]
pub struct User {
    pub name: Arc<str>,
    /// `None`: the user cannot log in with a password, only with a certificate.
    pub password: Option<PasswordHash>,
    /// RabbitMQ's `administrator`, `monitoring`, …
    pub tags: Vec<String>,
    /// Whether the user may log in from other machines. RabbitMQ's `guest` may not.
    pub is_remote_allowed: bool,
}

/// All users, and their permissions.
#[derive(Clone, Debug)]
pub struct Users {
    by_name: BTreeMap<Arc<str>, Known>,
    /// Stands in for an unknown user's hash, so that the response time does not reveal which names exist.
    decoy: PasswordHash,
}

/// The reason for a refused login, for the log. The client gets the same answer in each case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    LoopbackOnly { name: String },
    NoPassword { name: String },
    Unknown { name: String },
    WrongPassword { name: String },
}

#[derive(Clone, Debug)]
struct Known {
    user: Arc<User>,
    permissions: BTreeMap<Arc<str>, Arc<Permissions>>,
}

impl Users {
    pub fn new() -> Self {
        Self {
            by_name: BTreeMap::new(),
            decoy: PasswordHash::decoy(),
        }
    }

    /// Adds a user, or replaces the one of that name; its permissions stay.
    pub fn insert(&mut self, user: User) {
        let user = Arc::new(user);
        if let Some(password) = &user.password {
            self.decoy = password.decoy_alike();
        }
        match self.by_name.get_mut(&user.name) {
            Some(known) => known.user = user,
            None => {
                let name = user.name.clone();
                let permissions = BTreeMap::new();
                self.by_name.insert(name, Known { user, permissions });
            }
        }
    }

    /// Sets a user's permissions in a vhost. Returns whether the user exists.
    pub fn grant(
        &mut self,
        user: &str,
        vhost: &str,
        permissions: impl Into<Arc<Permissions>>,
    ) -> bool {
        let known = self.by_name.get_mut(user);
        known.is_some_and(|known| {
            known.permissions.insert(vhost.into(), permissions.into());
            true
        })
    }

    /// Authenticates a user by password. One hash is computed whether or not the user exists.
    pub fn authenticate(
        &self,
        name: &str,
        password: &[u8],
        is_loopback: bool,
    ) -> Result<Arc<User>, Refused> {
        let known = self.by_name.get(name);
        let hash = known.and_then(|known| known.user.password.as_ref());
        let is_right = hash.unwrap_or(&self.decoy).verify(password);
        let Some(known) = known else {
            return Err(Refused::Unknown { name: name.into() });
        };
        if hash.is_none() {
            return Err(Refused::NoPassword { name: name.into() });
        }
        // RabbitMQ accepts no empty password, whatever the hash.
        if password.is_empty() || !is_right {
            return Err(Refused::WrongPassword { name: name.into() });
        }
        known.admit(is_loopback)
    }

    /// Authenticates a user by a name that a certificate has proven.
    pub fn authenticate_external(
        &self,
        name: &str,
        is_loopback: bool,
    ) -> Result<Arc<User>, Refused> {
        match self.by_name.get(name) {
            Some(known) => known.admit(is_loopback),
            None => Err(Refused::Unknown { name: name.into() }),
        }
    }

    pub fn find(&self, name: &str) -> Option<&Arc<User>> {
        self.by_name.get(name).map(|known| &known.user)
    }

    /// The permissions of a user in a vhost. `None`: the user may not even open it.
    pub fn permissions(&self, user: &str, vhost: &str) -> Option<&Arc<Permissions>> {
        self.by_name.get(user)?.permissions.get(vhost)
    }

    /// The permissions of a user, by vhost.
    pub fn permissions_of(
        &self,
        user: &str,
    ) -> impl Iterator<Item = (&Arc<str>, &Arc<Permissions>)> + use<'_> {
        let known = self.by_name.get(user).into_iter();
        known.flat_map(|known| known.permissions.iter())
    }

    /// All users, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<User>> {
        self.by_name.values().map(|known| &known.user)
    }
}

impl Default for Users {
    fn default() -> Self {
        Self::new()
    }
}

impl Known {
    fn admit(&self, is_loopback: bool) -> Result<Arc<User>, Refused> {
        if is_loopback || self.user.is_remote_allowed {
            return Ok(self.user.clone());
        }
        Err(Refused::LoopbackOnly {
            name: self.user.name.as_ref().into(),
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoopbackOnly { name } => {
                write!(f, "user '{name}' can only connect via localhost")
            }
            Self::NoPassword { name } => {
                write!(f, "user '{name}' has no password to log in with")
            }
            Self::Unknown { name } => write!(f, "there is no user '{name}'"),
            Self::WrongPassword { name } => write!(f, "user '{name}' - invalid credentials"),
        }
    }
}

impl std::error::Error for Refused {}
