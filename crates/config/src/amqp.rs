//! Defaults of AMQP, and the merging of imported definitions into a configuration.

use crosstie_auth::PasswordHash;

use crate::model::{Amqp, AmqpPermission, AmqpUser, AmqpVhost, Definitions, Skipped};

/// The default user, as in RabbitMQ.
pub(crate) const GUEST: &str = "guest";

/// The vhost of clients that name none.
const DEFAULT_VHOST: &str = "/";

impl Default for Amqp {
    /// The broker of a worker without the key.
    fn default() -> Self {
        crate::build::standard_amqp()
    }
}

impl Amqp {
    /// Adds the users, vhosts and permissions of definitions. Skips and returns permissions of users that do
    /// not exist. A name that is known here already keeps its meaning.
    pub fn import(&mut self, definitions: &Definitions) -> Vec<Skipped> {
        let own: Vec<String> = self.users.iter().map(|user| user.name.clone()).collect();
        for user in &definitions.users {
            if !own.contains(&user.name) {
                self.users.push(user.clone());
            }
        }
        let mut skipped = Vec::new();
        for imported in &definitions.vhosts {
            let mut imported = imported.clone();
            imported.permissions.retain(|permission| {
                let is_there = self.users.iter().any(|user| user.name == permission.user);
                if !is_there {
                    skipped.push(nobodys(permission, &imported.name));
                }
                is_there
            });
            let known = self.vhosts.iter_mut();
            let mut known = known.filter(|vhost| vhost.name == imported.name);
            match known.next() {
                Some(vhost) => join(&mut vhost.permissions, &imported.permissions),
                None => self.vhosts.push(imported),
            }
        }
        if self.vhosts.is_empty() && definitions.names_users {
            // The default vhost is for the configuration's own users: the file gives its users no permissions.
            self.vhosts.push(everything_for(&own));
        }
        // Skipped users of a file are not replaced by the default user.
        if !(self.users.is_empty() && definitions.names_users) {
            complete(self);
        }
        skipped
    }

    /// Missing users that permissions name, each with the vhost.
    pub fn unknown_users(&self) -> Vec<(&str, &str)> {
        let permissions = self.vhosts.iter().flat_map(|vhost| {
            let permissions = vhost.permissions.iter();
            permissions.map(|permission| (permission.user.as_str(), vhost.name.as_str()))
        });
        permissions
            .filter(|(name, _)| self.users.iter().all(|user| user.name != *name))
            .collect()
    }
}

/// Adds the default users, vhosts and permissions that the configuration does not name.
pub(crate) fn complete(amqp: &mut Amqp) {
    if amqp.users.is_empty() {
        amqp.users.push(AmqpUser {
            name: GUEST.into(),
            password: Some(hash(GUEST, GUEST)),
            tags: vec!["administrator".into()],
            is_remote_allowed: false,
            is_default: true,
        });
    }
    if amqp.vhosts.is_empty() {
        let names: Vec<String> = amqp.users.iter().map(|user| user.name.clone()).collect();
        amqp.vhosts.push(everything_for(&names));
    }
}

/// The hash of a password. The salt follows from the user's name, so that equal files give equal configurations; the
/// hash never leaves the process.
pub(crate) fn hash(user: &str, password: &str) -> PasswordHash {
    /// FNV-1a of 32 bits, by its published constants.
    const OFFSET: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let salt = user.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(PRIME)
    });
    PasswordHash::of(password.as_bytes(), salt.to_be_bytes())
}

fn everything_for(users: &[String]) -> AmqpVhost {
    let all = || ".*".to_owned();
    let permissions = users.iter().map(|user| AmqpPermission {
        user: user.clone(),
        configure: all(),
        write: all(),
        read: all(),
    });
    AmqpVhost {
        name: DEFAULT_VHOST.into(),
        permissions: permissions.collect(),
        replicated: None,
        is_default: true,
    }
}

fn nobodys(permission: &AmqpPermission, vhost: &str) -> Skipped {
    let user = &permission.user;
    Skipped {
        what: format!("permission of user '{user}' in vhost '{vhost}'"),
        why: format!("there is no user '{user}'"),
        is_wider: false,
    }
}

fn join(own: &mut Vec<AmqpPermission>, imported: &[AmqpPermission]) {
    let named: Vec<String> = own.iter().map(|own| own.user.clone()).collect();
    let new = imported
        .iter()
        .filter(|permission| !named.contains(&permission.user));
    own.extend(new.cloned());
}
