//! Users and permissions in the form in which logins and vhosts ask for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_auth::{Permissions, User, Users};
use crosstie_metadata::Metadata;

/// The users, with their permissions.
pub(crate) fn users(metadata: &Metadata) -> Users {
    let mut users = Users::new();
    for (name, user) in metadata.users() {
        users.insert(User {
            name: Arc::clone(name),
            password: user.password.clone(),
            tags: user.tags.clone(),
            is_remote_allowed: user.is_remote_allowed,
        });
    }
    let mut topics = topics(metadata);
    for ((vhost, user), permission) in metadata.permissions() {
        let of_user = topics.remove(&(&**vhost, &**user));
        let permissions = match of_user {
            None => Arc::clone(&permission.compiled),
            Some(topics) => {
                let permissions = Permissions::clone(&permission.compiled);
                Arc::new(permissions.with_topics(topics))
            }
        };
        users.grant(user, vhost, permissions);
    }
    users
}

/// Topic permissions by exchange, for each vhost and user.
type Topics<'m> = BTreeMap<(&'m str, &'m str), BTreeMap<Arc<str>, Permissions>>;

fn topics(metadata: &Metadata) -> Topics<'_> {
    let mut topics = Topics::new();
    for ((vhost, user, exchange), permission) in metadata.topic_permissions() {
        let compiled = permission.compile(user, vhost).unwrap_or_else(|error| {
            // The user's or the vhost's name makes it none.
            tracing::error!(
                "topic permission of user '{user}' for exchange '{exchange}' in vhost '{vhost}' allows nothing: {error}"
            );
            Permissions::none()
        });
        let of_user = topics.entry((&**vhost, &**user)).or_default();
        of_user.insert(Arc::clone(exchange), compiled);
    }
    topics
}
