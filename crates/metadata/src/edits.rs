//! Changes of each kind of entry.

use std::sync::Arc;

use crosstie_auth::PasswordHash;
use crosstie_queues::policy::{Policy, PolicyKind};
use serde_json::{Value as Json, json};

use crate::Refusal;
use crate::draft::{Draft, check_not_configured};
use crate::key::Key;
use crate::limits::{LimitKind, Limits, UserLimit, VhostLimit, kind};
use crate::metadata::{Effect, Outcome, UserOnExchange};
use crate::permission::{Permission, TopicPermission};
use crate::policies;
use crate::user::{NewPassword, NewUser, User};
use crate::vhost::VhostAbout;

/// The user that logs in from the node's own machine alone, unless the configuration lets it in from others.
const LOOPBACK_USER: &str = "guest";

impl Draft<'_> {
    pub(crate) fn put_user(&mut self, name: Arc<str>, new: NewUser) -> Result<Outcome, Refusal> {
        let key = Key::User(Arc::clone(&name));
        check_not_configured(&key, self.state.users.configured(&name))?;
        let former = self.state.users.find(&name);
        let is_new = former.is_none();
        // RabbitMQ's `loopback_users` restricts a user by its name, whoever makes it.
        let is_remote_allowed =
            former.map_or(*name != *LOOPBACK_USER, |former| former.is_remote_allowed);
        let password = match new.password {
            NewPassword::Hash(hash) => Some(hash),
            NewPassword::Text(text) => Some(PasswordHash::of(text.as_bytes(), (self.salt)())),
            NewPassword::None if is_new => Some(PasswordHash::of(b"", (self.salt)())),
            NewPassword::None | NewPassword::EmptyHash => None,
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
            self.put_user_limits(name, limits)?;
        }
        Ok(created(is_new))
    }

    pub(crate) fn delete_user(&mut self, name: &Arc<str>) -> Result<(), Refusal> {
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

    pub(crate) fn put_vhost(
        &mut self,
        name: Arc<str>,
        about: VhostAbout,
        by: Option<Arc<str>>,
    ) -> Result<Outcome, Refusal> {
        self.check_here(&name)?;
        let is_new = self.state.vhosts.find(&name).is_none();
        if is_new {
            self.state.vhosts.put(Arc::clone(&name), ());
            self.effects.push(Effect::Vhost(Arc::clone(&name)));
        }
        let key = Key::About(Arc::clone(&name));
        if about == self.state.about(&name) {
            // Also if the configuration has it.
        } else if let Some(by) = self.state.abouts.configured(&name) {
            check_not_configured(&key, Some(by))?;
        } else if about == VhostAbout::default() {
            let removed = self.state.abouts.remove(&name);
            self.forget(&key, removed);
        } else {
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

    pub(crate) fn delete_vhost(&mut self, name: &Arc<str>) -> Result<(), Refusal> {
        let what = format!("vhost '{name}'");
        check_not_configured(&what, self.state.vhosts.configured(name))?;
        let removed = self.state.vhosts.remove(name);
        removed.ok_or_else(Refusal::absent)?;
        self.is_vhost_deleted = true;
        self.effects.push(Effect::Vhost(Arc::clone(name)));
        let removed = self.state.abouts.remove(name);
        self.forget(&Key::About(Arc::clone(name)), removed);
        let removed = self.state.vhost_limits.remove(name);
        self.forget(&Key::VhostLimits(Arc::clone(name)), removed);
        self.forget_permissions(|vhost, _| vhost == name);
        for kind in [PolicyKind::User, PolicyKind::Operator] {
            let policies = self.state.policies_of(kind).iter();
            let of_vhost = policies.filter(|((vhost, _), _)| vhost == name);
            let of_vhost: Vec<_> = of_vhost.map(|(place, _)| place.clone()).collect();
            for place in of_vhost {
                let removed = self.state.policies_of_mut(kind).remove(&place);
                self.forget(&Key::of_policy(kind, name, &place.1), removed);
            }
        }
        Ok(())
    }

    pub(crate) fn put_policy(
        &mut self,
        kind: PolicyKind,
        vhost: Arc<str>,
        policy: Policy,
    ) -> Result<Outcome, Refusal> {
        if self.state.vhosts.find(&vhost).is_none() {
            return Err(Refusal::no_vhost());
        }
        self.check_here(&vhost)?;
        let place = (Arc::clone(&vhost), Arc::clone(policy.name()));
        let key = Key::of_policy(kind, &vhost, policy.name());
        check_not_configured(&key, self.state.policies_of(kind).configured(&place))?;
        self.keep(&key, &Json::Object(policies::to_json(&policy)));
        let is_new = !self.state.policies_of_mut(kind).put(place, policy);
        self.effects.push(Effect::Policies(vhost));
        Ok(created(is_new))
    }

    pub(crate) fn put_permission(
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

    pub(crate) fn put_topic_permission(
        &mut self,
        vhost: Arc<str>,
        user: Arc<str>,
        exchange: Arc<str>,
        permission: &TopicPermission,
    ) -> Result<Outcome, Refusal> {
        let place = (Arc::clone(&vhost), Arc::clone(&user), Arc::clone(&exchange));
        let key = Key::TopicPermission(place.0.clone(), place.1.clone(), exchange);
        check_not_configured(&key, self.state.topic_permissions.configured(&place))?;
        self.keep(&key, &permission.stored());
        let is_new = !self.state.topic_permissions.put(place, permission.clone());
        self.effects.push(Effect::Permissions { vhost, user });
        Ok(created(is_new))
    }

    pub(crate) fn delete_topic_permissions(
        &mut self,
        vhost: &Arc<str>,
        user: &Arc<str>,
        exchange: Option<&str>,
    ) -> Result<(), Refusal> {
        self.check_here(vhost)?;
        let places = self.state.topic_permissions.iter().map(|(place, _)| place);
        let of_user = places.filter(|place| place.0 == *vhost && place.1 == *user);
        let gone: Vec<_> = of_user
            .filter(|place| exchange.is_none_or(|exchange| *place.2 == *exchange))
            .cloned()
            .collect();
        if gone.is_empty() {
            return Err(Refusal::absent());
        }
        for place in &gone {
            let (vhost, user, exchange) = place.clone();
            let key = Key::TopicPermission(vhost, user, exchange);
            check_not_configured(&key, self.state.topic_permissions.configured(place))?;
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
    pub(crate) fn forget_permissions(&mut self, is_gone: impl Fn(&Arc<str>, &Arc<str>) -> bool) {
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

    pub(crate) fn forget_topic_permission(&mut self, place: UserOnExchange) {
        let removed = self.state.topic_permissions.remove(&place);
        let (vhost, user, exchange) = place;
        self.forget(&Key::TopicPermission(vhost, user, exchange), removed);
    }

    /// The limits of a vhost, to be changed.
    pub(crate) fn vhost_limits(&self, vhost: &Arc<str>) -> Result<Limits<VhostLimit>, Refusal> {
        if self.state.vhosts.find(vhost).is_none() {
            return Err(Refusal::no_vhost());
        }
        self.check_here(vhost)?;
        let limits = self.state.vhost_limits.find(vhost).cloned();
        Ok(limits.unwrap_or_else(Limits::none))
    }

    pub(crate) fn put_vhost_limits(
        &mut self,
        vhost: Arc<str>,
        limits: Limits<VhostLimit>,
    ) -> Result<Outcome, Refusal> {
        let key = Key::VhostLimits(Arc::clone(&vhost));
        check_not_configured(&key, self.state.vhost_limits.configured(&vhost))?;
        if limits.is_empty() {
            let removed = self.state.vhost_limits.remove(&vhost);
            self.forget(&key, removed);
        } else {
            self.keep(&key, &limits.to_json());
            self.state.vhost_limits.put(Arc::clone(&vhost), limits);
        }
        self.effects.push(Effect::VhostLimits(vhost));
        Ok(Outcome::Replaced)
    }

    /// The limits of a user, to be changed.
    pub(crate) fn user_limits(&self, user: &Arc<str>) -> Result<Limits<UserLimit>, Refusal> {
        if self.state.users.find(user).is_none() {
            return Err(Refusal::invalid(format!("no_such_user: {user}")));
        }
        let limits = self.state.user_limits.find(user).cloned();
        Ok(limits.unwrap_or_else(Limits::none))
    }

    pub(crate) fn put_user_limits(
        &mut self,
        user: Arc<str>,
        limits: Limits<UserLimit>,
    ) -> Result<Outcome, Refusal> {
        let key = Key::UserLimits(Arc::clone(&user));
        check_not_configured(&key, self.state.user_limits.configured(&user))?;
        if limits.is_empty() {
            let removed = self.state.user_limits.remove(&user);
            self.forget(&key, removed);
        } else {
            self.keep(&key, &limits.to_json());
            self.state.user_limits.put(Arc::clone(&user), limits);
        }
        self.effects.push(Effect::UserLimits(user));
        Ok(Outcome::Replaced)
    }

    pub(crate) fn put_global_parameter(
        &mut self,
        name: Arc<str>,
        value: Json,
    ) -> Result<Outcome, Refusal> {
        let key = Key::GlobalParameter(Arc::clone(&name));
        let configured = self.state.global_parameters.configured(&name);
        check_not_configured(&key, configured)?;
        self.keep(&key, &json!({"value": value}));
        let is_new = !self.state.global_parameters.put(Arc::clone(&name), value);
        self.effects.push(Effect::GlobalParameter(name));
        Ok(created(is_new))
    }
}

/// Clears one limit, or all. Clearing an unknown one changes nothing, as in RabbitMQ.
pub(crate) fn clear<L: LimitKind>(limits: &mut Limits<L>, name: Option<&str>) {
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
