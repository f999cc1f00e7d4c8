//! Policies: settings of queues and exchanges that an operator chooses by patterns over their names.
//!
//! ```text
//! Policy::parse (RabbitMQ's texts) ─▶ Policies ─▶ apply (a name, a type) ─▶ Applied: a policy, an operator policy
//!                                                                              └▶ definition: both merged
//! ```
//!
//! Pure: a queue's arguments are merged with the result elsewhere (`QueueArguments::under`). A vhost walks through its
//! queues and exchanges when its policies have changed ([`CurrentPolicies`]). *Never:* a vhost, a store.

mod current;
mod definition;
mod keys;
mod pattern;
mod settings;
mod syntax;
mod value;

use std::sync::Arc;

use crate::topology::QueueKind;

pub(crate) use self::current::{CurrentPolicies, Walk};
pub(crate) use self::settings::PolicySettings;

pub use self::definition::{ApplyTo, Definition, Policy, PolicyKind, PolicyParts};
pub use self::keys::is_without_effect;
pub use self::pattern::NamePattern;
pub use self::value::PolicyValue;

/// The policies of a vhost, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    user: Vec<Arc<Policy>>,
    operator: Vec<Arc<Policy>>,
}

/// The policies that apply to one queue or exchange, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    user: Option<Arc<Policy>>,
    operator: Option<Arc<Policy>>,
    definition: Definition,
    settings: PolicySettings,
}

/// A queue or exchange that policies may apply to.
#[derive(Clone, Copy, Debug)]
pub enum PolicySubject<'a> {
    Exchange(&'a str),
    Queue(&'a str, QueueKind),
}

impl Policies {
    pub fn new(
        user: impl IntoIterator<Item = Policy>,
        operator: impl IntoIterator<Item = Policy>,
    ) -> Self {
        Self {
            user: in_order(user.into_iter().collect()),
            operator: in_order(operator.into_iter().collect()),
        }
    }

    pub fn of(&self, kind: PolicyKind) -> &[Arc<Policy>] {
        match kind {
            PolicyKind::User => &self.user,
            PolicyKind::Operator => &self.operator,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.user.is_empty() && self.operator.is_empty()
    }

    /// The policies that apply to a queue or exchange: of each kind the first one that is for such objects, has no key
    /// that a queue of this type does not know, and whose pattern matches the name.
    pub fn apply(&self, subject: PolicySubject<'_>) -> Applied {
        let (user, operator) = self.find(subject);
        self.applied(user, operator)
    }

    /// The number of all policies.
    pub(crate) fn len(&self) -> usize {
        self.user.len() + self.operator.len()
    }

    /// The same, by their places.
    fn find(&self, subject: PolicySubject<'_>) -> (Option<usize>, Option<usize>) {
        let find = |policies: &[Arc<Policy>]| policies.iter().position(|p| is_for(p, subject));
        (find(&self.user), find(&self.operator))
    }

    fn applied(&self, user: Option<usize>, operator: Option<usize>) -> Applied {
        let user = user.map(|place| Arc::clone(&self.user[place]));
        let operator = operator.map(|place| Arc::clone(&self.operator[place]));
        Applied::new(user, operator)
    }
}

impl Applied {
    fn new(user: Option<Arc<Policy>>, operator: Option<Arc<Policy>>) -> Self {
        let definitions = [&user, &operator].map(|policy| {
            let policy = policy.as_ref();
            policy.map_or(&[][..], |policy| policy.definition())
        });
        let definition = merge(definitions[0], definitions[1]);
        Self {
            user,
            operator,
            settings: PolicySettings::of(&definition),
            definition,
        }
    }

    pub(crate) fn settings(&self) -> &PolicySettings {
        &self.settings
    }

    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.user.as_ref()
    }

    pub fn operator_policy(&self) -> Option<&Arc<Policy>> {
        self.operator.as_ref()
    }

    /// RabbitMQ's `effective_policy_definition`: the keys of both policies, without the arguments of the queue.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    pub fn is_empty(&self) -> bool {
        self.user.is_none() && self.operator.is_none()
    }
}

/// The keys of both; of two values the smaller one.
fn merge(user: &[(Arc<str>, PolicyValue)], operator: &[(Arc<str>, PolicyValue)]) -> Definition {
    let mut merged = user.to_vec();
    for (key, value) in operator {
        match merged.iter_mut().find(|(name, _)| name == key) {
            None => merged.push((key.clone(), value.clone())),
            Some((_, merged)) => {
                if value.as_integer() < merged.as_integer() {
                    *merged = value.clone();
                }
            }
        }
    }
    merged.sort_by(|(one, _), (other, _)| one.cmp(other));
    merged
}

fn in_order(policies: Vec<Policy>) -> Vec<Arc<Policy>> {
    let mut policies: Vec<_> = policies.into_iter().map(Arc::new).collect();
    policies.sort_by(|one, other| one.precedence(other));
    policies
}

fn is_for(policy: &Policy, subject: PolicySubject<'_>) -> bool {
    match (policy.apply_to(), subject) {
        (ApplyTo::All | ApplyTo::Exchanges, PolicySubject::Exchange(name)) => policy.matches(name),
        (ApplyTo::All | ApplyTo::Queues, PolicySubject::Queue(name, kind)) => {
            is_known(policy, kind) && policy.matches(name)
        }
        (ApplyTo::Exchanges | ApplyTo::Queues, _) => false,
    }
}

/// Whether a queue of that type knows all keys of the policy.
fn is_known(policy: &Policy, kind: QueueKind) -> bool {
    let mut keys = policy.definition().iter();
    keys.all(|(name, _)| {
        keys::find(PolicyKind::User, name).is_some_and(|key| !key.unknown_to.contains(&kind))
    })
}
