//! Entries of definitions: a layer of the configuration at the start, changes at run time.

use crate::user::{NewPassword, NewUser, User};
use crate::{Change, Layers, Metadata, Origin};

impl Layers {
    /// Adds the entry that a change puts, and replaces an earlier one of its key. Returns whether it is of a kind that
    /// definitions have; users and permissions join the configuration elsewhere.
    pub fn add(&mut self, change: Change, origin: Origin) -> bool {
        match change {
            Change::PutGlobalParameter { name, value } => {
                self.global_parameters.push((name, value, origin));
            }
            Change::PutPolicy {
                kind,
                vhost,
                policy,
            } => {
                let of_kind = match kind {
                    crate::PolicyKind::Operator => &mut self.operator_policies,
                    crate::PolicyKind::User => &mut self.policies,
                };
                let name = policy.name().clone();
                of_kind.push(((vhost, name), policy, origin));
            }
            Change::PutTopicPermission {
                vhost,
                user,
                exchange,
                permission,
            } => {
                let place = (vhost, user, exchange);
                self.topic_permissions.push((place, permission, origin));
            }
            Change::PutUserLimits { user, limits } => self.user_limits.push((user, limits, origin)),
            Change::PutVhost { name, about, .. } => self.abouts.push((name, about, origin)),
            Change::PutVhostLimits { vhost, limits } => {
                self.vhost_limits.push((vhost, limits, origin));
            }
            _ => return false,
        }
        true
    }
}

impl Metadata {
    /// Whether a change puts what is there already.
    pub fn has(&self, change: &Change) -> bool {
        match change {
            Change::PutGlobalParameter { name, value } => {
                self.global_parameters.find(name) == Some(value)
            }
            Change::PutPermission {
                vhost,
                user,
                permission,
            } => {
                let pair = (vhost.clone(), user.clone());
                self.permissions.find(&pair) == Some(permission)
            }
            Change::PutPolicy {
                kind,
                vhost,
                policy,
            } => {
                let place = (vhost.clone(), policy.name().clone());
                self.policies_of(*kind).find(&place) == Some(policy)
            }
            Change::PutTopicPermission {
                vhost,
                user,
                exchange,
                permission,
            } => {
                let place = (vhost.clone(), user.clone(), exchange.clone());
                self.topic_permissions.find(&place) == Some(permission)
            }
            Change::PutUser { name, user } => {
                let found = self.users.find(name);
                let is_configured = self.users.configured(name).is_some();
                found.is_some_and(|found| is_same(found, user, is_configured))
            }
            Change::PutUserLimits { user, limits } => match self.user_limits.find(user) {
                Some(found) => found == limits,
                None => limits.is_empty(),
            },
            Change::PutVhost { name, about, .. } => {
                self.vhosts.find(name).is_some() && self.about(name) == *about
            }
            Change::PutVhostLimits { vhost, limits } => match self.vhost_limits.find(vhost) {
                Some(found) => found == limits,
                None => limits.is_empty(),
            },
            _ => false,
        }
    }
}

/// Whether a user is as an import has it. An export leaves out the passwords of the configuration.
fn is_same(found: &User, user: &NewUser, is_configured: bool) -> bool {
    let has_password = match &user.password {
        NewPassword::Hash(hash) => found.password.as_ref() == Some(hash),
        NewPassword::None | NewPassword::EmptyHash => found.password.is_none() || is_configured,
        NewPassword::Text(text) => {
            let hash = found.password.as_ref();
            hash.is_some_and(|hash| hash.verify(text.as_bytes()))
        }
    };
    has_password && found.tags == user.tags && user.limits.is_none()
}
