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

#[derive(Clone, Debug, Default)]
struct Known {
    /// `None`: only another node has the user.
    user: Option<Arc<User>>,
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
        let known = self.by_name.entry(user.name.clone()).or_default();
        known.user = Some(user);
    }

    /// Sets a user's permissions in a vhost. Returns whether the user exists; otherwise they are those of a user that only
    /// another node has, and that cannot log in here.
    pub fn grant(
        &mut self,
        user: &str,
        vhost: &str,
        permissions: impl Into<Arc<Permissions>>,
    ) -> bool {
        let known = match self.by_name.get_mut(user) {
            Some(known) => known,
            None => self.by_name.entry(user.into()).or_default(),
        };
        known.permissions.insert(vhost.into(), permissions.into());
        known.user.is_some()
    }

    /// Authenticates a user by password. One hash is computed whether or not the user exists.
    pub fn authenticate(
        &self,
        name: &str,
        password: &[u8],
        is_loopback: bool,
    ) -> Result<Arc<User>, Refused> {
        let known = self.by_name.get(name);
        let user = known.and_then(|known| known.user.as_ref());
        let hash = user.and_then(|user| user.password.as_ref());
        let is_right = hash.unwrap_or(&self.decoy).verify(password);
        let Some(user) = user else {
            return Err(Refused::Unknown { name: name.into() });
        };
        if hash.is_none() {
            return Err(Refused::NoPassword { name: name.into() });
        }
        // RabbitMQ accepts no empty password, whatever the hash.
        if password.is_empty() || !is_right {
            return Err(Refused::WrongPassword { name: name.into() });
        }
        admit(user, is_loopback)
    }

    /// Authenticates a user by a name that a certificate has proven.
    pub fn authenticate_external(
        &self,
        name: &str,
        is_loopback: bool,
    ) -> Result<Arc<User>, Refused> {
        match self.find(name) {
            Some(user) => admit(user, is_loopback),
            None => Err(Refused::Unknown { name: name.into() }),
        }
    }

    pub fn find(&self, name: &str) -> Option<&Arc<User>> {
        self.by_name.get(name)?.user.as_ref()
    }

    /// The permissions of a user in a vhost, also of one that only another node has. `None`: the user may not even open
    /// it.
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
        self.by_name
            .values()
            .filter_map(|known| known.user.as_ref())
    }
}

impl Default for Users {
    fn default() -> Self {
        Self::new()
    }
}

fn admit(user: &Arc<User>, is_loopback: bool) -> Result<Arc<User>, Refused> {
    if is_loopback || user.is_remote_allowed {
        return Ok(Arc::clone(user));
    }
    Err(Refused::LoopbackOnly {
        name: user.name.as_ref().into(),
    })
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
