//! Entries as the records of a store. The value of a key is JSON; `null` says that a default is deleted.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::key::Key;
use crate::limits::Limits;
use crate::metadata::{Layers, Metadata};
use crate::permission::{Permission, TopicPermission};
use crate::user::User;
use crate::vhost::VhostAbout;

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub key: String,
}

impl Metadata {
    /// The same entries of run time under another configuration. Also returns those that the configuration names now:
    /// they are gone, and their records are to be deleted.
    pub fn reconfigured(&self, layers: Layers) -> (Self, Vec<Key>) {
        let mut new = Self::new(layers);
        let mut overridden = Vec::new();
        for (key, value) in self.stored() {
            if let Ok(false) = new.restore_value(&key, value) {
                overridden.push(key);
            }
        }
        new.forget_orphans();
        (new, overridden)
    }

    /// Takes a record from a store. Returns the key if the configuration has that entry, which counts: the record is to
    /// be deleted.
    pub fn restore(&mut self, key: &str, value: &str) -> Result<Option<Key>, Unreadable> {
        let unreadable = || Unreadable {
            key: key.to_owned(),
        };
        let key = Key::parse(key).ok_or_else(unreadable)?;
        let value = serde_json::from_str(value).map_err(|_| unreadable())?;
        match self.restore_value(&key, value) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(key)),
            Err(()) => Err(unreadable()),
        }
    }

    /// Removes what names a user or a vhost that does not exist. Called once all records are restored.
    pub fn forget_orphans(&mut self) {
        let Self {
            users,
            vhosts,
            abouts,
            permissions,
            topic_permissions,
            vhost_limits,
            user_limits,
            ..
        } = self;
        let has_user = |user: &Arc<str>| users.find(user).is_some();
        let has_vhost = |vhost: &Arc<str>| vhosts.find(vhost).is_some();
        abouts.retain(|vhost| has_vhost(vhost));
        permissions.retain(|(vhost, user)| has_vhost(vhost) && has_user(user));
        topic_permissions.retain(|(vhost, user, _)| has_vhost(vhost) && has_user(user));
        vhost_limits.retain(|vhost| has_vhost(vhost));
        user_limits.retain(|user| has_user(user));
    }

    /// Whether the entry counts; an error if the value is none of its kind.
    pub(crate) fn restore_value(&mut self, key: &Key, value: Json) -> Result<bool, ()> {
        let value = (!value.is_null()).then_some(value);
        fn read<V>(value: Option<Json>, of: impl Fn(&Json) -> Option<V>) -> Result<Option<V>, ()> {
            value.map(|value| of(&value).ok_or(())).transpose()
        }
        let is_configured = match key {
            Key::About(vhost) => {
                let value = read(value, |json| VhostAbout::parse(json).ok())?;
                self.abouts.restore(Arc::clone(vhost), value)
            }
            Key::GlobalParameter(name) => {
                let value = read(value, |json| json.get("value").cloned())?;
                self.global_parameters.restore(Arc::clone(name), value)
            }
            Key::Permission(vhost, user) => {
                let value = read(value, |json| Permission::parse(json).ok())?;
                let pair = (Arc::clone(vhost), Arc::clone(user));
                self.permissions.restore(pair, value)
            }
            Key::TopicPermission(vhost, user, exchange) => {
                let text = |json: &Json, key| json.get(key)?.as_str().map(str::to_owned);
                let value = read(value, |json| {
                    let (write, read) = (text(json, "write")?, text(json, "read")?);
                    Some(TopicPermission { write, read })
                })?;
                let place = (Arc::clone(vhost), Arc::clone(user), Arc::clone(exchange));
                self.topic_permissions.restore(place, value)
            }
            Key::User(name) => self
                .users
                .restore(Arc::clone(name), read(value, User::restored)?),
            Key::UserLimits(user) => {
                let value = read(value, |json| Limits::parse(json).ok())?;
                self.user_limits.restore(Arc::clone(user), value)
            }
            Key::Vhost(name) => {
                let value = read(value, |_| Some(()))?;
                self.vhosts.restore(Arc::clone(name), value)
            }
            Key::VhostLimits(vhost) => {
                let value = read(value, |json| Limits::parse(json).ok())?;
                self.vhost_limits.restore(Arc::clone(vhost), value)
            }
        };
        Ok(!is_configured)
    }

    /// All records of a store, and their values.
    pub(crate) fn stored(&self) -> Vec<(Key, Json)> {
        let mut stored = Vec::new();
        let mut push = |key, value: Option<Json>| stored.push((key, value.unwrap_or(Json::Null)));
        for (name, user) in self.users.stored() {
            push(Key::User(Arc::clone(name)), user.map(User::stored));
        }
        for (name, there) in self.vhosts.stored() {
            push(Key::Vhost(Arc::clone(name)), there.map(|()| json!({})));
        }
        for (vhost, about) in self.abouts.stored() {
            push(Key::About(Arc::clone(vhost)), about.map(VhostAbout::stored));
        }
        for ((vhost, user), permission) in self.permissions.stored() {
            let key = Key::Permission(Arc::clone(vhost), Arc::clone(user));
            push(key, permission.map(Permission::stored));
        }
        for ((vhost, user, exchange), permission) in self.topic_permissions.stored() {
            let (vhost, user) = (Arc::clone(vhost), Arc::clone(user));
            let key = Key::TopicPermission(vhost, user, Arc::clone(exchange));
            push(key, permission.map(TopicPermission::stored));
        }
        for (vhost, limits) in self.vhost_limits.stored() {
            let key = Key::VhostLimits(Arc::clone(vhost));
            push(key, limits.map(Limits::to_json));
        }
        for (user, limits) in self.user_limits.stored() {
            let key = Key::UserLimits(Arc::clone(user));
            push(key, limits.map(Limits::to_json));
        }
        for (name, value) in self.global_parameters.stored() {
            let key = Key::GlobalParameter(Arc::clone(name));
            push(key, value.map(|value| json!({"value": value})));
        }
        stored
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the entry {} cannot be read: a later version may have written it",
            self.key
        )
    }
}

impl std::error::Error for Unreadable {}
