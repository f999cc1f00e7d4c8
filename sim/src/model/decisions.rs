//! The decisions of authorizers, naively.

use crosstie_routing::{Action, Authorizer, CacheScope, Decision, Verdict, error};
use crosstie_wamp::MatchPolicy;

use crate::Name;

/// No error: nothing is answered, because an authorizer is asked.
pub(super) const ASKED: &str = "asked";

/// A decision that is kept; the least recently used is the first of all.
#[derive(Debug)]
struct Kept {
    authrole: String,
    /// The sessions that it applies to.
    whose: String,
    action: Action,
    policy: MatchPolicy,
    uri: String,
    decision: Decision,
    expires_ms: u64,
}

/// The decisions that are kept, of all roles.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    kept: Vec<Kept>,
    /// The authorizer's answer about the present message.
    pub(super) given: Option<Verdict>,
    /// The session that an authorizer is to be asked about, for the present operation.
    pub(super) asked: Option<Name>,
}

/// The session that wants to act.
pub(super) struct Asker<'m> {
    pub(super) name: Name,
    pub(super) authid: &'m str,
    pub(super) authrole: &'m str,
}

impl Decisions {
    /// A role is stopped and started again.
    pub(super) fn forget(&mut self, authrole: &str) {
        self.kept.retain(|kept| kept.authrole != authrole);
    }

    /// The decision about a session that may act, or why it may not.
    pub(super) fn ask(
        &mut self,
        now_ms: u64,
        asker: &Asker<'_>,
        authorizer: &Authorizer,
        subject: (Action, &str, MatchPolicy),
    ) -> Result<Decision, &'static str> {
        let decision = match self.given.clone() {
            Some(Verdict::Failed { .. }) => return Err(error::AUTHORIZATION_FAILED),
            Some(Verdict::Decided(decision)) => {
                if decision.cache {
                    self.keep(now_ms, asker, authorizer, subject, decision);
                }
                decision
            }
            None => {
                let kept = self.take(asker, authorizer, subject);
                let Some(kept) = kept.filter(|kept| kept.expires_ms > now_ms) else {
                    self.asked = Some(asker.name);
                    return Err(ASKED);
                };
                let decision = kept.decision;
                self.kept.push(kept);
                decision
            }
        };
        match decision.allow {
            true => Ok(decision),
            false => Err(error::NOT_AUTHORIZED),
        }
    }

    fn keep(
        &mut self,
        now_ms: u64,
        asker: &Asker<'_>,
        authorizer: &Authorizer,
        subject: (Action, &str, MatchPolicy),
        decision: Decision,
    ) {
        self.take(asker, authorizer, subject);
        if self.kept.len() >= authorizer.cache.entries_max {
            self.kept.remove(0);
        }
        let expiry_ms = match authorizer.cache.expiry_ms {
            0 => u64::MAX / 2,
            expiry_ms => expiry_ms,
        };
        let (action, uri, policy) = subject;
        self.kept.push(Kept {
            authrole: asker.authrole.to_owned(),
            whose: applies_to(asker, authorizer),
            action,
            policy,
            uri: uri.to_owned(),
            decision,
            expires_ms: now_ms + expiry_ms,
        });
    }

    fn take(
        &mut self,
        asker: &Asker<'_>,
        authorizer: &Authorizer,
        subject: (Action, &str, MatchPolicy),
    ) -> Option<Kept> {
        let whose = applies_to(asker, authorizer);
        let found = self.kept.iter().position(|kept| {
            kept.authrole == asker.authrole
                && kept.whose == whose
                && (kept.action, &*kept.uri, kept.policy) == subject
        });
        found.map(|place| self.kept.remove(place))
    }
}

fn applies_to(asker: &Asker<'_>, authorizer: &Authorizer) -> String {
    match authorizer.cache.scope {
        // There is one role that is asked about.
        CacheScope::Uri | CacheScope::Role => String::new(),
        CacheScope::Authid => asker.authid.to_owned(),
        CacheScope::Session => asker.name.to_string(),
    }
}
