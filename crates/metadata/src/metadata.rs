//! All entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosstie_queues::policy::{Policies, Policy, PolicyKind};
use serde_json::Value as Json;

use crate::key::Stored;
use crate::layered::{Layered, Origin};
use crate::limits::{Limits, UserLimit, VhostLimit};
use crate::permission::{Permission, TopicPermission};
use crate::user::User;
use crate::vhost::VhostAbout;

/// A vhost and a user.
pub type UserInVhost = (Arc<str>, Arc<str>);

/// A vhost and a name in it.
pub(crate) type NameInVhost = (Arc<str>, Arc<str>);

/// A vhost, a user and an exchange.
pub type UserOnExchange = (Arc<str>, Arc<str>, Arc<str>);

/// All entries, from all layers.
#[derive(Clone, Debug)]
pub struct Metadata {
    pub(crate) users: Layered<Arc<str>, User>,
    pub(crate) vhosts: Layered<Arc<str>, ()>,
    /// Vhosts whose journal several nodes share.
    pub(crate) replicated: BTreeSet<Arc<str>>,
    /// Those whose entries of run time are here, because this node owns them, each with the number of the term.
    pub(crate) terms: BTreeMap<Arc<str>, u64>,
    pub(crate) abouts: Layered<Arc<str>, VhostAbout>,
    pub(crate) permissions: Layered<UserInVhost, Permission>,
    pub(crate) topic_permissions: Layered<UserOnExchange, TopicPermission>,
    pub(crate) vhost_limits: Layered<Arc<str>, Limits<VhostLimit>>,
    pub(crate) user_limits: Layered<Arc<str>, Limits<UserLimit>>,
    pub(crate) global_parameters: Layered<Arc<str>, Json>,
    pub(crate) policies: Layered<NameInVhost, Policy>,
    pub(crate) operator_policies: Layered<NameInVhost, Policy>,
}

/// The layers below and above the entries that are made at run time.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    pub users: Vec<Configured<Arc<str>, User>>,
    /// Those of run time, too: their owner makes and stores them.
    pub vhosts: Vec<Configured<Arc<str>, ()>>,
    pub replicated: BTreeSet<Arc<str>>,
    pub abouts: Vec<Configured<Arc<str>, VhostAbout>>,
    pub permissions: Vec<Configured<UserInVhost, Permission>>,
    pub topic_permissions: Vec<Configured<UserOnExchange, TopicPermission>>,
    pub vhost_limits: Vec<Configured<Arc<str>, Limits<VhostLimit>>>,
    pub user_limits: Vec<Configured<Arc<str>, Limits<UserLimit>>>,
    pub global_parameters: Vec<Configured<Arc<str>, Json>>,
    /// By vhost and name.
    pub policies: Vec<Configured<NameInVhost, Policy>>,
    pub operator_policies: Vec<Configured<NameInVhost, Policy>>,
}

/// A key and a value of the configuration, or of the defaults.
pub type Configured<K, V> = (K, V, Origin);

/// A change that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub outcome: Outcome,
    /// To be stored before the change counts.
    pub records: Vec<Stored>,
    /// To be carried out once the change counts, in this order.
    pub effects: Vec<Effect>,
}

/// The outcome of a change, which the HTTP API tells by 201 or 204.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Replaced,
    Deleted,
}

/// An entry that has changed. It may be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    GlobalParameter(Arc<str>),
    /// Permissions of any kind.
    Permissions {
        vhost: Arc<str>,
        user: Arc<str>,
    },
    User(Arc<str>),
    /// Policies of either kind.
    Policies(Arc<str>),
    UserLimits(Arc<str>),
    Vhost(Arc<str>),
    VhostAbout(Arc<str>),
    VhostLimits(Arc<str>),
}

impl Metadata {
    /// The configuration's entries and the defaults.
    pub fn new(layers: Layers) -> Self {
        Self {
            users: Layered::new(layers.users),
            vhosts: Layered::new(layers.vhosts),
            replicated: layers.replicated,
            terms: BTreeMap::new(),
            abouts: Layered::new(layers.abouts),
            permissions: Layered::new(layers.permissions),
            topic_permissions: Layered::new(layers.topic_permissions),
            vhost_limits: Layered::new(layers.vhost_limits),
            user_limits: Layered::new(layers.user_limits),
            global_parameters: Layered::new(layers.global_parameters),
            policies: Layered::new(layers.policies),
            operator_policies: Layered::new(layers.operator_policies),
        }
    }

    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.find(&name.into())
    }

    pub fn users(&self) -> impl Iterator<Item = (&Arc<str>, &User)> {
        self.users.iter()
    }

    pub fn has_vhost(&self, name: &str) -> bool {
        self.vhosts.find(&name.into()).is_some()
    }

    pub fn vhosts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.vhosts.iter().map(|(name, ())| name)
    }

    pub fn is_replicated(&self, vhost: &str) -> bool {
        self.replicated.contains(vhost)
    }

    /// Whether the vhost is replicated, and this node does not own it.
    pub fn is_elsewhere(&self, vhost: &str) -> bool {
        self.is_replicated(vhost) && !self.terms.contains_key(vhost)
    }

    /// Description, tags and default type of queues of a vhost.
    pub fn about(&self, vhost: &str) -> VhostAbout {
        self.abouts.find(&vhost.into()).cloned().unwrap_or_default()
    }

    /// Permissions by vhost and user.
    pub fn permissions(&self) -> impl Iterator<Item = (&UserInVhost, &Permission)> {
        self.permissions.iter()
    }

    /// Topic permissions by vhost, user and exchange.
    pub fn topic_permissions(&self) -> impl Iterator<Item = (&UserOnExchange, &TopicPermission)> {
        self.topic_permissions.iter()
    }

    pub fn vhost_limits(&self) -> impl Iterator<Item = (&Arc<str>, &Limits<VhostLimit>)> {
        self.vhost_limits.iter()
    }

    pub fn user_limits(&self) -> impl Iterator<Item = (&Arc<str>, &Limits<UserLimit>)> {
        self.user_limits.iter()
    }

    pub fn vhost_limit(&self, vhost: &str, limit: VhostLimit) -> Option<usize> {
        self.vhost_limits.find(&vhost.into())?.max(limit)
    }

    pub fn user_limit(&self, user: &str, limit: UserLimit) -> Option<usize> {
        self.user_limits.find(&user.into())?.max(limit)
    }

    pub fn global_parameters(&self) -> impl Iterator<Item = (&Arc<str>, &Json)> {
        self.global_parameters.iter()
    }

    /// The policies of a vhost.
    pub fn policies(&self, vhost: &str) -> Policies {
        let [user, operator] = [&self.policies, &self.operator_policies].map(|policies| {
            let policies = policies.iter();
            let policies = policies.filter(|((of, _), _)| **of == *vhost);
            policies
                .map(|(_, policy)| policy.clone())
                .collect::<Vec<_>>()
        });
        Policies::new(user, operator)
    }

    pub(crate) fn policies_of(&self, kind: PolicyKind) -> &Layered<NameInVhost, Policy> {
        match kind {
            PolicyKind::Operator => &self.operator_policies,
            PolicyKind::User => &self.policies,
        }
    }

    pub(crate) fn policies_of_mut(
        &mut self,
        kind: PolicyKind,
    ) -> &mut Layered<NameInVhost, Policy> {
        match kind {
            PolicyKind::Operator => &mut self.operator_policies,
            PolicyKind::User => &mut self.policies,
        }
    }

    /// The layer that a user is from.
    pub fn user_origin(&self, name: &str) -> Option<Origin> {
        self.users.origin(&name.into())
    }

    /// Whether a user has a password of the configuration, which is not listed.
    pub fn hides_password(&self, name: &str) -> bool {
        let has_password = self.user(name).is_some_and(|user| user.password.is_some());
        has_password && self.users.configured(&name.into()) == Some("amqp.users")
    }

    /// The layer that a vhost is from.
    pub fn vhost_origin(&self, name: &str) -> Option<Origin> {
        self.vhosts.origin(&name.into())
    }
}
