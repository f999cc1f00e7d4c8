//! The users of a broker and their permissions, which a reload replaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crosstie_auth::{Permissions, User, Users};
use crosstie_config as model;
use parking_lot::RwLock;

/// The present users.
pub(crate) struct LiveUsers {
    now: RwLock<Arc<Users>>,
    /// They are not those of the start any more.
    were_put: AtomicBool,
}

impl LiveUsers {
    pub(crate) fn new(users: Users) -> Self {
        Self {
            now: RwLock::new(Arc::new(users)),
            were_put: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Arc<Users> {
        Arc::clone(&self.now.read())
    }

    /// Replaces them. Returns the former ones.
    pub(crate) fn put(&self, users: Arc<Users>) -> Arc<Users> {
        let mut now = self.now.write();
        self.were_put.store(true, Ordering::Release);
        std::mem::replace(&mut now, users)
    }

    pub(crate) fn were_put(&self) -> bool {
        self.were_put.load(Ordering::Acquire)
    }
}

/// The users of a configuration, with their permissions.
pub(crate) fn users(amqp: &model::Amqp) -> Result<Users, String> {
    let mut users = Users::new();
    for user in &amqp.users {
        users.insert(User {
            name: user.name.as_str().into(),
            password: user.password.clone(),
            tags: user.tags.clone(),
            is_remote_allowed: user.is_remote_allowed,
        });
    }
    for vhost in &amqp.vhosts {
        for permission in &vhost.permissions {
            let model::AmqpPermission {
                user,
                configure,
                write,
                read,
            } = permission;
            let permissions = Permissions::parse(configure, write, read).map_err(|e| {
                format!(
                    "the permissions of user '{user}' in vhost '{}': {e}",
                    vhost.name
                )
            })?;
            users.grant(user, &vhost.name, permissions);
        }
    }
    Ok(users)
}
