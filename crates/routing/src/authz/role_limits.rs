//! Bounds of sessions by role, realm or listener, where these are lower than the node's.

use std::collections::HashMap;
use std::sync::Arc;

use crate::identity::Identity;
use crate::join_error::JoinError;
use crate::random::Random;

/// Bounds of sessions of one role, of all roles of a realm, or of a listener. An absent bound does not restrict; of
/// several the smallest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleLimits {
    /// Maximum number of sessions with the role. [`crate::Realm::join`] refuses another. A realm's bound is in
    /// [`crate::Limits`].
    pub sessions_max: Option<usize>,
    /// Maximum number of sessions with the same authid, in the role or in the realm.
    pub authid_sessions_max: Option<usize>,
    /// Bounds of one session, as in [`crate::Limits`].
    pub subscriptions_max: Option<usize>,
    pub registrations_max: Option<usize>,
    pub calls_max: Option<usize>,
    /// Messages and bytes that one session may send per second, on average. The session's owner enforces this by
    /// reading no faster: the realm sees only messages.
    pub messages_per_second_max: Option<u32>,
    pub bytes_per_second_max: Option<u32>,
    /// Bytes of one message from the session, and bytes queued for it. The session's owner enforces these.
    pub message_bytes_max: Option<usize>,
    pub queue_bytes_max: Option<usize>,
    /// How events for a slow session are treated. The first of role, realm and listener that sets it decides.
    pub slow_consumer: Option<SlowConsumer>,
}

/// How events are treated if a session receives them more slowly than they are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowConsumer {
    /// Drop the new event.
    #[default]
    DropNew,
    /// Drop the oldest queued events to make room.
    DropOldest,
    /// End the session.
    Disconnect,
    /// Slow the publishers down before the queue is full.
    BackPressure,
}

impl RoleLimits {
    /// The smaller of each pair of bounds; for other values `self`'s if it is set.
    pub fn least(self, other: Self) -> Self {
        Self {
            sessions_max: least(self.sessions_max, other.sessions_max),
            authid_sessions_max: least(self.authid_sessions_max, other.authid_sessions_max),
            subscriptions_max: least(self.subscriptions_max, other.subscriptions_max),
            registrations_max: least(self.registrations_max, other.registrations_max),
            calls_max: least(self.calls_max, other.calls_max),
            messages_per_second_max: least(
                self.messages_per_second_max,
                other.messages_per_second_max,
            ),
            bytes_per_second_max: least(self.bytes_per_second_max, other.bytes_per_second_max),
            message_bytes_max: least(self.message_bytes_max, other.message_bytes_max),
            queue_bytes_max: least(self.queue_bytes_max, other.queue_bytes_max),
            slow_consumer: self.slow_consumer.or(other.slow_consumer),
        }
    }
}

fn least<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// A bound of a role, realm or listener that a session has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoleLimit {
    Subscriptions,
    Registrations,
    Calls,
}

/// The bounds of a role or realm, and the counts for them.
#[derive(Debug)]
pub(super) struct Limited {
    pub(super) limits: RoleLimits,
    /// Session counts by authid, if these have a bound.
    by_authid: Option<HashMap<Arc<str>, usize, ahash::RandomState>>,
}

impl Limited {
    /// `None` if there are no bounds, so that sessions need not be counted.
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

    /// Whether one more session may join; `sessions` is the number with the role.
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

    /// Number of counted sessions; `None` if they are not counted.
    pub(super) fn counted(&self) -> Option<usize> {
        let counts = self.by_authid.as_ref()?;
        Some(counts.values().sum())
    }
}
