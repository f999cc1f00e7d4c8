//! Authorizers, and the questions they are asked.

use std::sync::Arc;

use crosstie_wamp::{MatchPolicy, SessionId};

use super::permission::Action;
use super::verdict::Verdict;
use crate::identity::{Identity, SessionKey};

/// The procedure that decides for the sessions of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorizer {
    pub procedure: String,
    /// Timeout of the call to the authorizer, in milliseconds. The realm's owner applies it.
    pub timeout_ms: u64,
    pub cache: CacheOptions,
}

/// Bounds of the cache of an authorizer's decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    pub scope: CacheScope,
    /// Time after which a decision expires, in milliseconds; 0 means never.
    pub expiry_ms: u64,
    /// Maximum number of cached decisions. Beyond, the least recently used is evicted.
    pub entries_max: usize,
    /// Maximum approximate bytes of cached decisions. Beyond, the least recently used is evicted.
    pub bytes_max: usize,
}

/// The sessions that a cached decision applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// All sessions of all roles that have the same authorizer and this scope.
    Uri,
    /// All sessions of the role, as in Crossbar.io.
    #[default]
    Role,
    /// All sessions of the role with the same authid.
    Authid,
    /// The session that it was made for.
    Session,
}

impl Authorizer {
    pub const TIMEOUT_MS: u64 = 5_000;

    /// An authorizer with defaults for everything else.
    pub fn new(procedure: &str) -> Self {
        Self {
            procedure: procedure.to_owned(),
            timeout_ms: Self::TIMEOUT_MS,
            cache: CacheOptions::default(),
        }
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            scope: CacheScope::default(),
            expiry_ms: 0,
            entries_max: 10_000,
            bytes_max: 4 * 1024 * 1024,
        }
    }
}

/// A question for an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub procedure: Arc<str>,
    pub timeout_ms: u64,
    /// The session that wants to act.
    pub session: SessionId,
    pub identity: Identity,
    pub action: Action,
    pub uri: String,
    /// If not exact, the URI is a pattern.
    pub match_policy: MatchPolicy,
    /// The earlier question about the same message, with its answer: a call may act on a second URI, which is judged
    /// separately.
    pub(super) earlier: Option<Box<Given>>,
    /// Number of cache invalidations at the time of the question.
    pub(super) epoch: u64,
}

/// The answer to a question, valid while its message is handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) question: Question,
    pub(super) verdict: Verdict,
}

/// The session that wants to act.
pub(crate) struct Asker<'s> {
    pub(crate) key: SessionKey,
    pub(crate) id: SessionId,
    pub(crate) identity: &'s Identity,
}

/// The subject of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject<'s> {
    pub(crate) action: Action,
    pub(crate) uri: &'s str,
    /// If not exact, the URI is a pattern.
    pub(crate) match_policy: MatchPolicy,
}

impl Question {
    pub(super) fn is_about(&self, asker: &Asker<'_>, subject: &Subject<'_>) -> bool {
        let own = Subject {
            action: self.action,
            uri: &self.uri,
            match_policy: self.match_policy,
        };
        self.session == asker.id && own == *subject
    }
}
