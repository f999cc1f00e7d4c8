//! What sessions of a role may have, where that is less than what the realm lets anybody have.

use std::collections::HashMap;
use std::sync::Arc;

use crate::identity::Identity;
use crate::join_error::JoinError;
use crate::random::Random;

/// Bounds of a role. One that is not there is the realm's alone; of two the smaller counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleLimits {
    /// Sessions with the role; one more is refused at [`crate::Realm::join`].
    pub sessions_max: Option<usize>,
    /// Sessions with the role that have the same authid.
    pub authid_sessions_max: Option<usize>,
    /// Of one session, as in [`crate::Limits`].
    pub subscriptions_max: Option<usize>,
    pub registrations_max: Option<usize>,
    pub calls_max: Option<usize>,
    /// Messages and bytes that one session may send in a second, on average. The realm sees messages only; to read
    /// no faster is for the session's owner.
    pub messages_per_second_max: Option<u32>,
    pub bytes_per_second_max: Option<u32>,
}

/// A bound of a role that somebody has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoleLimit {
    Subscriptions,
    Registrations,
    Calls,
}

/// The bounds of a role, and what it has to count for them.
#[derive(Debug)]
pub(super) struct Limited {
    pub(super) limits: RoleLimits,
    /// Sessions by authid, where they have a bound.
    by_authid: Option<HashMap<Arc<str>, usize, ahash::RandomState>>,
}

impl Limited {
    /// `None` for a role without bounds, whose sessions need not be counted.
    pub(super) fn of(limits: RoleLimits, random: &mut Random) -> Option<Box<Self>> {
        if limits == RoleLimits::default() {
            return None;
        }
        let is_counted = limits.authid_sessions_max.is_some();
        Some(Box::new(Self {
            limits,
            by_authid: is_counted.then(|| HashMap::with_hasher(random.hash_keys())),
        }))
    }

    /// Whether one more may join, beside so many with the role.
    pub(super) fn check_room(&self, sessions: usize, who: &Identity) -> Result<(), JoinError> {
        let full = |max: &usize| sessions >= *max;
        if let Some(sessions_max) = self.limits.sessions_max.filter(full) {
            let authrole = who.authrole.as_ref().to_owned();
            return Err(JoinError::RoleSessionsMax {
                authrole,
                sessions_max,
            });
        }
        let counts = self.by_authid.as_ref();
        let of_authid = counts.and_then(|counts| counts.get(&who.authid).copied());
        let full = |max: &usize| of_authid.unwrap_or(0) >= *max;
        match self.limits.authid_sessions_max.filter(full) {
            Some(sessions_max) => Err(JoinError::AuthidSessionsMax { sessions_max }),
            None => Ok(()),
        }
    }

    pub(super) fn joined(&mut self, authid: &Arc<str>) {
        if let Some(counts) = &mut self.by_authid {
            *counts.entry(Arc::clone(authid)).or_default() += 1;
        }
    }

    pub(super) fn left(&mut self, authid: &str) {
        let Some(counts) = &mut self.by_authid else {
            return;
        };
        if let Some(count) = counts.get_mut(authid) {
            *count -= 1;
            if *count == 0 {
                counts.remove(authid);
            }
        }
    }

    /// How many sessions are counted; none where they are not.
    pub(super) fn counted(&self) -> Option<usize> {
        let counts = self.by_authid.as_ref()?;
        Some(counts.values().sum())
    }
}
