//! Authorizers, and what they are asked.

use std::sync::Arc;

use crosstie_wamp::{MatchPolicy, SessionId};

use super::permission::Action;
use super::verdict::Verdict;
use crate::identity::{Identity, SessionKey};

/// The procedure that decides what the sessions of a role may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorizer {
    pub procedure: String,
    /// For its owner, who asks: how long that waits for the answer.
    pub timeout_ms: u64,
    pub cache: CacheOptions,
}

/// How decisions are kept that an authorizer lets be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    pub scope: CacheScope,
    /// After so long it is asked again; 0 means never.
    pub expiry_ms: u64,
    /// Beyond, the decision goes that has not been used for the longest time.
    pub entries_max: usize,
    /// The same of their bytes, roughly.
    pub bytes_max: usize,
}

/// Whom a decision that is kept counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// All sessions of all roles with the same authorizer of which that is said.
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

    /// One with the defaults of everything.
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

/// What an authorizer is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub procedure: Arc<str>,
    pub timeout_ms: u64,
    /// Who wants to do it.
    pub session: SessionId,
    pub identity: Identity,
    pub action: Action,
    pub uri: String,
    /// The URI is a pattern, unless this is exact.
    pub match_policy: MatchPolicy,
    /// What was asked about the same message before, with the answer: a call may be for something that is
    /// judged by itself.
    pub(super) earlier: Option<Box<Given>>,
    /// The times that decisions had been taken out when it was asked.
    pub(super) epoch: u64,
}

/// The answer to a question, while the message is handled that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) question: Question,
    pub(super) verdict: Verdict,
}

/// The session that wants to do something.
pub(crate) struct Asker<'s> {
    pub(crate) key: SessionKey,
    pub(crate) id: SessionId,
    pub(crate) identity: &'s Identity,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject<'s> {
    pub(crate) action: Action,
    pub(crate) uri: &'s str,
    /// The URI is a pattern, unless this is exact.
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
