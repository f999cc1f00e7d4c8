//! Changes, applied to all that they touch.

use std::sync::Arc;

use crosstie_auth::PasswordHash;
use serde_json::{Value as Json, json};

use crate::key::{Key, Stored};
use crate::layered::Removed;
use crate::limits::{LimitKind, Limits, kind};
use crate::metadata::{Applied, Effect, Outcome, UserOnExchange};
use crate::permission::{Permission, TopicPermission};
use crate::user::{NewPassword, NewUser, User};
use crate::vhost::VhostAbout;
use crate::{Change, Entry, Metadata, Refusal, RefusalKind};

/// Bytes of the salt of a hash.
type Salt = [u8; 4];

impl Metadata {
    /// The state after a change, with the records to be stored and the effects to be carried out. `salt` gives
    /// unpredictable bytes for the hash of a password.
    pub fn apply(
        &self,
        change: Change,
        salt: &mut dyn FnMut() -> Salt,
    ) -> Result<(Self, Applied), Refusal> {
        let mut draft = Draft {
            state: self.clone(),
            records: Vec::new(),
            effects: Vec::new(),
            salt,
        };
        let outcome = draft.change(change)?;
        let Draft {
            state,
            records,
            effects,
            ..
        } = draft;
        let applied = Applied {
            outcome,
            records,
            effects,
        };
        Ok((state, applied))
    }
}

/// A state that is being changed.
struct Draft<'s> {
    state: Metadata,
    records: Vec<Stored>,
    effects: Vec<Effect>,
    salt: &'s mut dyn FnMut() -> Salt,
}

impl Draft<'_> {
    fn change(&mut self, change: Change) -> Result<Outcome, Refusal> {
        match change {
            Change::All(changes) => {
                let mut outcome = Outcome::Replaced;
                for change in changes {
                    if self.change(change)? == Outcome::Created {
                        outcome = Outcome::Created;
                    }
                }
                Ok(outcome)
            }
            Change::Delete(entry) => self.delete(entry).map(|()| Outcome::Deleted),
            Change::PutGlobalParameter { name, value } => self.put_global_parameter(name, value),
            Change::PutPermission {
                vhost,
                user,
                permission,
            } => {
                self.check_home(&vhost, &user)?;
                self.put_permission(vhost, user, permission)
            }
            Change::PutTopicPermission {
                vhost,
                user,
                exchange,
                permission,
            } => {
                self.check_home(&vhost, &user)?;
                Ok(self.put_topic_permission(vhost, user, exchange, &permission))
            }
            Change::PutUser { name, user } => self.put_user(name, user),
            Change::PutUserLimit { user, limit, value } => {
                let mut limits = self.user_limits(&user)?;
                limits.set(limit, value);
                Ok(self.put_user_limits(user, limits))
            }
            Change::PutUserLimits { user, limits } => {
                self.user_limits(&user)?;
                Ok(self.put_user_limits(user, limits))
            }
            Change::PutVhost { name, about, by } => self.put_vhost(name, about, by),
            Change::PutVhostLimit {
                vhost,
                limit,
                value,
            } => {
                let mut limits = self.vhost_limits(&vhost)?;
                limits.set(limit, value);
                Ok(self.put_vhost_limits(vhost, limits))
            }
            Change::PutVhostLimits { vhost, limits } => {
                self.vhost_limits(&vhost)?;
                Ok(self.put_vhost_limits(vhost, limits))
            }
        }
    }

    fn delete(&mut self, entry: Entry) -> Result<(), Refusal> {
        match entry {
            Entry::User(name) => self.delete_user(&name),
            Entry::Vhost(name) => self.delete_vhost(&name),
            Entry::Permission { vhost, user } => {
                let key = Key::Permission(Arc::clone(&vhost), Arc::clone(&user));
                let pair = (Arc::clone(&vhost), Arc::clone(&user));
                check_not_configured(&key, self.state.permissions.configured(&pair))?;
                let removed = self.state.permissions.remove(&pair);
                self.forget(&key, removed).ok_or_else(Refusal::absent)?;
                self.effects.push(Effect::Permissions { vhost, user });
                Ok(())
            }
            Entry::TopicPermission {
                vhost,
                user,
                exchange,
            } => self.delete_topic_permissions(&vhost, &user, exchange.as_deref()),
            Entry::VhostLimits { vhost, name } => {
                let mut limits = self.vhost_limits(&vhost)?;
                clear(&mut limits, name.as_deref());
                self.put_vhost_limits(vhost, limits);
                Ok(())
            }
            Entry::UserLimits { user, name } => {
                let mut limits = self.user_limits(&user)?;
                clear(&mut limits, name.as_deref());
                self.put_user_limits(user, limits);
                Ok(())
            }
            Entry::GlobalParameter(name) => {
                let key = Key::GlobalParameter(Arc::clone(&name));
                let configured = self.state.global_parameters.configured(&name);
                check_not_configured(&key, configured)?;
                let removed = self.state.global_parameters.remove(&name);
                self.forget(&key, removed).ok_or_else(Refusal::absent)?;
                self.effects.push(Effect::GlobalParameter(name));
                Ok(())
            }
        }
    }

    fn put_user(&mut self, name: Arc<str>, new: NewUser) -> Result<Outcome, Refusal> {
        let key = Key::User(Arc::clone(&name));
        check_not_configured(&key, self.state.users.configured(&name))?;
        let former = self.state.users.find(&name);
        let is_new = former.is_none();
        let is_remote_allowed = former.is_none_or(|former| former.is_remote_allowed);
        let password = match new.password {
            NewPassword::Hash(hash) => Some(hash),
            NewPassword::Text(text) => Some(PasswordHash::of(text.as_bytes(), (self.salt)())),
            NewPassword::None if is_new => Some(PasswordHash::of(b"", (self.salt)())),
            NewPassword::None => None,
        };
        let user = User {
            password,
            tags: new.tags,
            is_remote_allowed,
        };
        self.keep(&key, &user.stored());
        self.state.users.put(Arc::clone(&name), user);
        self.effects.push(Effect::User(Arc::clone(&name)));
        if let Some(limits) = new.limits {
            self.put_user_limits(name, limits);
        }
        Ok(created(is_new))
    }

    fn delete_user(&mut self, name: &Arc<str>) -> Result<(), Refusal> {
        let key = Key::User(Arc::clone(name));
        check_not_configured(&key, self.state.users.configured(name))?;
        let removed = self.state.users.remove(name);
        self.forget(&key, removed).ok_or_else(Refusal::absent)?;
        self.effects.push(Effect::User(Arc::clone(name)));
        let removed = self.state.user_limits.remove(name);
        self.forget(&Key::UserLimits(Arc::clone(name)), removed);
        self.forget_permissions(|_, user| user == name);
        Ok(())
    }

    fn put_vhost(
        &mut self,
        name: Arc<str>,
        about: VhostAbout,
        by: Option<Arc<str>>,
    ) -> Result<Outcome, Refusal> {
        let is_new = self.state.vhosts.find(&name).is_none();
        if is_new {
            self.keep(&Key::Vhost(Arc::clone(&name)), &json!({}));
            self.state.vhosts.put(Arc::clone(&name), ());
            self.effects.push(Effect::Vhost(Arc::clone(&name)));
        }
        let key = Key::About(Arc::clone(&name));
        if about == VhostAbout::default() {
            let removed = self.state.abouts.remove(&name);
            self.forget(&key, removed);
        } else {
            self.check_not_replicated(&name)?;
            self.keep(&key, &about.stored());
            self.state.abouts.put(Arc::clone(&name), about);
        }
        self.effects.push(Effect::VhostAbout(Arc::clone(&name)));
        let by = by.filter(|by| is_new && self.state.users.find(by).is_some());
        if let Some(by) = by {
            self.put_permission(name, by, Permission::all())?;
        }
        Ok(created(is_new))
    }

    fn delete_vhost(&mut self, name: &Arc<str>) -> Result<(), Refusal> {
        let key = Key::Vhost(Arc::clone(name));
        check_not_configured(&key, self.state.vhosts.configured(name))?;
        let removed = self.state.vhosts.remove(name);
        self.forget(&key, removed).ok_or_else(Refusal::absent)?;
        self.effects.push(Effect::Vhost(Arc::clone(name)));
        let removed = self.state.abouts.remove(name);
        self.forget(&Key::About(Arc::clone(name)), removed);
        let removed = self.state.vhost_limits.remove(name);
        self.forget(&Key::VhostLimits(Arc::clone(name)), removed);
        self.forget_permissions(|vhost, _| vhost == name);
        Ok(())
    }

    fn put_permission(
        &mut self,
        vhost: Arc<str>,
        user: Arc<str>,
        permission: Permission,
    ) -> Result<Outcome, Refusal> {
        let key = Key::Permission(Arc::clone(&vhost), Arc::clone(&user));
        let pair = (Arc::clone(&vhost), Arc::clone(&user));
        check_not_configured(&key, self.state.permissions.configured(&pair))?;
        self.keep(&key, &permission.stored());
        let is_new = !self.state.permissions.put(pair, permission);
        self.effects.push(Effect::Permissions { vhost, user });
        Ok(created(is_new))
    }

    fn put_topic_permission(
        &mut self,
        vhost: Arc<str>,
        user: Arc<str>,
        exchange: Arc<str>,
        permission: &TopicPermission,
    ) -> Outcome {
        let place = (Arc::clone(&vhost), Arc::clone(&user), Arc::clone(&exchange));
        let key = Key::TopicPermission(place.0.clone(), place.1.clone(), exchange);
        self.keep(&key, &permission.stored());
        let is_new = !self.state.topic_permissions.put(place, permission.clone());
        self.effects.push(Effect::Permissions { vhost, user });
        created(is_new)
    }

    fn delete_topic_permissions(
        &mut self,
        vhost: &Arc<str>,
        user: &Arc<str>,
        exchange: Option<&str>,
    ) -> Result<(), Refusal> {
        let places = self.state.topic_permissions.iter().map(|(place, _)| place);
        let of_user = places.filter(|place| place.0 == *vhost && place.1 == *user);
        let gone: Vec<_> = of_user
            .filter(|place| exchange.is_none_or(|exchange| *place.2 == *exchange))
            .cloned()
            .collect();
        if gone.is_empty() {
            return Err(Refusal::absent());
        }
        for place in gone {
            self.forget_topic_permission(place);
        }
        self.effects.push(Effect::Permissions {
            vhost: Arc::clone(vhost),
            user: Arc::clone(user),
        });
        Ok(())
    }

    /// Removes the permissions of a user or vhost that is gone.
    fn forget_permissions(&mut self, is_gone: impl Fn(&Arc<str>, &Arc<str>) -> bool) {
        let pairs = self.state.permissions.iter().map(|(pair, _)| pair);
        let pairs: Vec<_> = pairs
            .filter(|(vhost, user)| is_gone(vhost, user))
            .cloned()
            .collect();
        for pair in pairs {
            let removed = self.state.permissions.remove(&pair);
            self.forget(&Key::Permission(pair.0, pair.1), removed);
        }
        let places = self.state.topic_permissions.iter().map(|(place, _)| place);
        let places: Vec<_> = places
            .filter(|(vhost, user, _)| is_gone(vhost, user))
            .cloned()
            .collect();
        for place in places {
            self.forget_topic_permission(place);
        }
    }

    fn forget_topic_permission(&mut self, place: UserOnExchange) {
        let removed = self.state.topic_permissions.remove(&place);
        let (vhost, user, exchange) = place;
        self.forget(&Key::TopicPermission(vhost, user, exchange), removed);
    }

    /// The limits of a vhost, to be changed.
    fn vhost_limits(&self, vhost: &Arc<str>) -> Result<Limits<crate::VhostLimit>, Refusal> {
        if self.state.vhosts.find(vhost).is_none() {
            return Err(Refusal::no_vhost());
        }
        self.check_not_replicated(vhost)?;
        let limits = self.state.vhost_limits.find(vhost).cloned();
        Ok(limits.unwrap_or_else(Limits::none))
    }

    fn put_vhost_limits(&mut self, vhost: Arc<str>, limits: Limits<crate::VhostLimit>) -> Outcome {
        let key = Key::VhostLimits(Arc::clone(&vhost));
        if limits.is_empty() {
            let removed = self.state.vhost_limits.remove(&vhost);
            self.forget(&key, removed);
        } else {
            self.keep(&key, &limits.to_json());
            self.state.vhost_limits.put(Arc::clone(&vhost), limits);
        }
        self.effects.push(Effect::VhostLimits(vhost));
        Outcome::Replaced
    }

    /// The limits of a user, to be changed.
    fn user_limits(&self, user: &Arc<str>) -> Result<Limits<crate::UserLimit>, Refusal> {
        if self.state.users.find(user).is_none() {
            return Err(Refusal::invalid(format!("no_such_user: {user}")));
        }
        let limits = self.state.user_limits.find(user).cloned();
        Ok(limits.unwrap_or_else(Limits::none))
    }

    fn put_user_limits(&mut self, user: Arc<str>, limits: Limits<crate::UserLimit>) -> Outcome {
        let key = Key::UserLimits(Arc::clone(&user));
        if limits.is_empty() {
            let removed = self.state.user_limits.remove(&user);
            self.forget(&key, removed);
        } else {
            self.keep(&key, &limits.to_json());
            self.state.user_limits.put(Arc::clone(&user), limits);
        }
        self.effects.push(Effect::UserLimits(user));
        Outcome::Replaced
    }

    fn put_global_parameter(&mut self, name: Arc<str>, value: Json) -> Result<Outcome, Refusal> {
        let key = Key::GlobalParameter(Arc::clone(&name));
        let configured = self.state.global_parameters.configured(&name);
        check_not_configured(&key, configured)?;
        self.keep(&key, &json!({"value": value}));
        let is_new = !self.state.global_parameters.put(Arc::clone(&name), value);
        self.effects.push(Effect::GlobalParameter(name));
        Ok(created(is_new))
    }

    /// Checks that a permission's vhost and user exist.
    fn check_home(&self, vhost: &Arc<str>, user: &Arc<str>) -> Result<(), Refusal> {
        let has_vhost = self.state.vhosts.find(vhost).is_some();
        if !has_vhost || self.state.users.find(user).is_none() {
            return Err(Refusal::invalid("vhost_or_user_not_found"));
        }
        self.check_not_replicated(vhost)
    }

    /// A replicated vhost has the same settings on each of its nodes, and these are in their configurations.
    fn check_not_replicated(&self, vhost: &Arc<str>) -> Result<(), Refusal> {
        if !self.state.replicated.contains(vhost) {
            return Ok(());
        }
        let reason = format!(
            "vhost '{vhost}' is replicated: its permissions are those of the configuration of each node, and it has no \
             limits and no description"
        );
        Err(Refusal::new(RefusalKind::Unsupported, reason))
    }

    fn keep(&mut self, key: &Key, value: &Json) {
        self.records.push(key.stored(Some(value)));
    }

    /// Records a removal; `None` if there was nothing to remove.
    fn forget(&mut self, key: &Key, removed: Option<Removed>) -> Option<()> {
        let record = match removed? {
            Removed::DefaultDeleted => key.stored(Some(&Json::Null)),
            Removed::Forgotten => key.stored(None),
        };
        self.records.push(record);
        Some(())
    }
}

/// Clears one limit, or all. Clearing an unknown one changes nothing, as in RabbitMQ.
fn clear<L: LimitKind>(limits: &mut Limits<L>, name: Option<&str>) {
    match name {
        None => *limits = Limits::none(),
        Some(name) => {
            if let Some(kind) = kind(name) {
                limits.clear(kind);
            }
        }
    }
}

fn created(is_new: bool) -> Outcome {
    match is_new {
        true => Outcome::Created,
        false => Outcome::Replaced,
    }
}

fn check_not_configured(key: &Key, configured: Option<&'static str>) -> Result<(), Refusal> {
    match configured {
        None => Ok(()),
        Some(by) => {
            let reason = format!(
                "{key} is read-only: the configuration has it under \"{by}\"; change it there and reload the node"
            );
            Err(Refusal::new(RefusalKind::Configured, reason))
        }
    }
}
