//! Changes, applied to all that they touch.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::draft::{Draft, Salt, check_not_configured};
use crate::edits::clear;
use crate::key::{Key, Stored};
use crate::metadata::{Applied, Effect, Metadata, Outcome};
use crate::{Change, Entry, Refusal, RefusalKind};

/// Bytes of an entry, with its names.
const RECORD_BYTES_MAX: usize = 64 << 10;

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
            is_vhost_deleted: false,
            salt,
        };
        let outcome = draft.change(change)?;
        let Draft {
            state,
            records,
            effects,
            is_vhost_deleted,
            ..
        } = draft;
        if is_vhost_deleted {
            check_alone(&effects)?;
        }
        let records = last_of_each(records);
        if let Some(long) = records
            .iter()
            .find(|record| record.bytes() > RECORD_BYTES_MAX)
        {
            return Err(Refusal::invalid(format!(
                "{}: expected at most {RECORD_BYTES_MAX} bytes, got {}",
                long.key,
                long.bytes()
            )));
        }
        let applied = Applied {
            outcome,
            records,
            effects,
        };
        Ok((state, applied))
    }
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
            Change::PutPolicy {
                kind,
                vhost,
                policy,
            } => self.put_policy(kind, vhost, policy),
            Change::PutTopicPermission {
                vhost,
                user,
                exchange,
                permission,
            } => {
                self.check_home(&vhost, &user)?;
                self.put_topic_permission(vhost, user, exchange, &permission)
            }
            Change::PutUser { name, user } => self.put_user(name, user),
            Change::PutUserLimit { user, limit, value } => {
                let mut limits = self.user_limits(&user)?;
                limits.set(limit, value);
                self.put_user_limits(user, limits)
            }
            Change::PutUserLimits { user, limits } => {
                self.user_limits(&user)?;
                self.put_user_limits(user, limits)
            }
            Change::PutVhost {
                name, about, by, ..
            } => self.put_vhost(name, about, by),
            Change::PutVhostLimit {
                vhost,
                limit,
                value,
            } => {
                let mut limits = self.vhost_limits(&vhost)?;
                limits.set(limit, value);
                self.put_vhost_limits(vhost, limits)
            }
            Change::PutVhostLimits { vhost, limits } => {
                self.vhost_limits(&vhost)?;
                self.put_vhost_limits(vhost, limits)
            }
        }
    }

    fn delete(&mut self, entry: Entry) -> Result<(), Refusal> {
        match entry {
            Entry::User(name) => self.delete_user(&name),
            Entry::Vhost(name) => self.delete_vhost(&name),
            Entry::Permission { vhost, user } => {
                self.check_here(&vhost)?;
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
                self.put_vhost_limits(vhost, limits).map(drop)
            }
            Entry::UserLimits { user, name } => {
                let mut limits = self.user_limits(&user)?;
                clear(&mut limits, name.as_deref());
                self.put_user_limits(user, limits).map(drop)
            }
            Entry::Policy { kind, vhost, name } => {
                self.check_here(&vhost)?;
                let key = Key::of_policy(kind, &vhost, &name);
                let place = (Arc::clone(&vhost), name);
                let configured = self.state.policies_of(kind).configured(&place);
                check_not_configured(&key, configured)?;
                let removed = self.state.policies_of_mut(kind).remove(&place);
                self.forget(&key, removed).ok_or_else(Refusal::absent)?;
                self.effects.push(Effect::Policies(vhost));
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
}

/// The deletion of a vhost is a commit of its own, which a later failure does not undo.
fn check_alone(effects: &[Effect]) -> Result<(), Refusal> {
    let mut vhosts = effects.iter().filter_map(|effect| match effect {
        Effect::Vhost(name) => Some(name),
        _ => None,
    });
    let (Some(first), Some(second)) = (vhosts.next(), vhosts.next()) else {
        return Ok(());
    };
    let reason = format!(
        "a change that deletes a vhost changes no other, and this one changes '{first}' and then '{second}'"
    );
    Err(Refusal::new(RefusalKind::Unsupported, reason))
}

/// Of several records of a key the last one counts.
fn last_of_each(records: Vec<Stored>) -> Vec<Stored> {
    let mut seen = BTreeSet::new();
    let records = records.into_iter().rev();
    let mut last: Vec<_> = records
        .filter(|record| seen.insert(record.key.clone()))
        .collect();
    last.reverse();
    last
}
