//! Entries as the records of a store. The value of a key is JSON; `null` says that a default is deleted.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crosstie_queues::policy::PolicyKind;
use serde_json::{Value as Json, json};

use crate::key::Key;
use crate::limits::Limits;
use crate::metadata::{Layers, Metadata};
use crate::permission::{Permission, TopicPermission};
use crate::policies;
use crate::user::User;
use crate::vhost::VhostAbout;

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub key: String,
}

impl Metadata {
    /// The same entries of run time under another configuration. Also returns those that the configuration names now,
    /// and those whose user or vhost is gone: their records are to be deleted.
    pub fn reconfigured(&self, layers: Layers) -> (Self, Vec<Key>, Vec<Key>) {
        let mut new = Self::new(layers);
        // Which vhosts are replicated changes with a restart.
        new.replicated.clone_from(&self.replicated);
        new.terms.clone_from(&self.terms);
        let mut overridden = Vec::new();
        for (key, value) in self.stored() {
            if let Ok(false) = new.restore_value(&key, value) {
                overridden.push(key);
            }
        }
        let orphans = new.forget_orphans();
        (new, overridden, orphans)
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

    /// The same with other vhosts, if these are not the present ones. Also returns the keys of entries that are gone with
    /// their vhosts.
    pub fn with_vhosts(&self, vhosts: &BTreeSet<Arc<str>>) -> Option<(Self, Vec<Key>)> {
        if self.vhosts().eq(vhosts) {
            return None;
        }
        let mut next = self.clone();
        next.vhosts.set_keys(vhosts, &());
        let forgotten = next.forget_orphans();
        Some((next, forgotten))
    }

    /// Removes what names a user or a vhost that does not exist; returns the keys. Called once all records are restored.
    pub fn forget_orphans(&mut self) -> Vec<Key> {
        let before = self.stored();
        self.retain_known();
        let after: BTreeSet<Key> = self.stored().into_iter().map(|(key, _)| key).collect();
        let keys = before.into_iter().map(|(key, _)| key);
        keys.filter(|key| !after.contains(key)).collect()
    }

    fn retain_known(&mut self) {
        let Self {
            users,
            vhosts,
            replicated,
            abouts,
            permissions,
            topic_permissions,
            vhost_limits,
            user_limits,
            policies,
            operator_policies,
            ..
        } = self;
        let has_user = |user: &Arc<str>| users.find(user).is_some();
        let has_vhost = |vhost: &Arc<str>| vhosts.find(vhost).is_some();
        // In a vhost that moves, a user of another node keeps its permissions.
        let has_place = |vhost: &Arc<str>, user: &Arc<str>| {
            has_vhost(vhost) && (has_user(user) || replicated.contains(vhost))
        };
        abouts.retain(|vhost| has_vhost(vhost));
        permissions.retain(|(vhost, user)| has_place(vhost, user));
        topic_permissions.retain(|(vhost, user, _)| has_place(vhost, user));
        vhost_limits.retain(|vhost| has_vhost(vhost));
        user_limits.retain(|user| has_user(user));
        policies.retain(|(vhost, _)| has_vhost(vhost));
        operator_policies.retain(|(vhost, _)| has_vhost(vhost));
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
            Key::Promise(_) => return Err(()),
            Key::User(name) => self
                .users
                .restore(Arc::clone(name), read(value, User::restored)?),
            Key::UserLimits(user) => {
                let value = read(value, |json| Limits::parse(json).ok())?;
                self.user_limits.restore(Arc::clone(user), value)
            }
            Key::OperatorPolicy(vhost, name) | Key::Policy(vhost, name) => {
                let kind = match key {
                    Key::OperatorPolicy(..) => PolicyKind::Operator,
                    _ => PolicyKind::User,
                };
                let value = read(value, |json| policies::parse(kind, name, json).ok())?;
                let place = (Arc::clone(vhost), Arc::clone(name));
                self.policies_of_mut(kind).restore(place, value)
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
        for kind in [PolicyKind::User, PolicyKind::Operator] {
            for ((vhost, name), policy) in self.policies_of(kind).stored() {
                let key = Key::of_policy(kind, vhost, name);
                push(
                    key,
                    policy.map(|policy| Json::Object(policies::to_json(policy))),
                );
            }
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
