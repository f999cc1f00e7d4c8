//! Roles with an authorizer: a procedure of the realm decides what their sessions may do.
//!
//! The realm itself makes no calls. It requests the decision from its owner ([`crate::Outbox::ask`]), as if the message
//! had not arrived. The owner passes the message again together with the answer ([`crate::Realm::handle_judged`]).

use std::iter;
use std::sync::Arc;

use super::cache::Cache;
use super::caches::{CachePlace, Caches};
use super::permission::Disclose;
use super::question::{Asker, Authorizer, CacheOptions, Given, Question, Subject};
use super::verdict::{Decision, RefusalCause, Verdict};
use crate::Time;
use crate::random::Random;

/// The outcome of judging a role that has more than permissions.
pub(crate) enum Judged {
    Allowed(Disclose),
    Refused(RefusalCause),
    Failed { cause: RefusalCause, text: String },
    Unknown(Box<Question>),
}

/// A role's authorizer.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) procedure: Arc<str>,
    timeout_ms: u64,
    options: CacheOptions,
    /// The cache of its decisions.
    pub(super) cache: CachePlace,
}

impl Asked {
    pub(super) fn new(authorizer: &Authorizer, caches: &mut Caches, random: &mut Random) -> Self {
        let procedure: Arc<str> = authorizer.procedure.as_str().into();
        Self {
            cache: caches.begin(&procedure, authorizer.cache, random),
            procedure,
            timeout_ms: authorizer.timeout_ms,
            options: authorizer.cache,
        }
    }

    pub(super) fn judge(
        &self,
        now: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
        given: Option<&Given>,
        caches: &mut Caches,
    ) -> Judged {
        let mut answers = iter::successors(given, |given| given.question.earlier.as_deref());
        let answer = answers.find(|given| given.question.is_about(asker, subject));
        let decision = match answer.map(|given| (&given.question, &given.verdict)) {
            Some((_, Verdict::Failed { cause, text })) => {
                return Judged::Failed {
                    cause: *cause,
                    text: text.clone(),
                };
            }
            Some((question, Verdict::Decided(decision))) => {
                if decision.cache && question.epoch == caches.epoch(self.cache) {
                    let expires = match self.options.expiry_ms {
                        0 => Time(u64::MAX),
                        expiry_ms => now.after_ms(expiry_ms),
                    };
                    let keep = |cache: &mut Cache| cache.keep(expires, asker, subject, *decision);
                    caches.change(self.cache, keep);
                }
                *decision
            }
            None => match caches.find(self.cache, now, asker, subject) {
                Some(decision) => decision,
                None => {
                    let epoch = caches.epoch(self.cache);
                    return Judged::Unknown(Box::new(self.question(asker, subject, given, epoch)));
                }
            },
        };
        match decision.allow {
            true => Judged::Allowed(decision.disclose()),
            false => Judged::Refused(RefusalCause::AuthorizerDenied),
        }
    }

    /// The decision, if it has been made.
    pub(super) fn decision(
        &self,
        now: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
        given: Option<&Given>,
        caches: &Caches,
    ) -> Option<Decision> {
        let mut answers = iter::successors(given, |given| given.question.earlier.as_deref());
        let answer = answers.find(|given| given.question.is_about(asker, subject));
        match answer.map(|given| &given.verdict) {
            Some(Verdict::Decided(decision)) => Some(*decision),
            Some(Verdict::Failed { .. }) => None,
            None => caches.peek(self.cache, now, asker, subject),
        }
    }

    fn question(
        &self,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
        earlier: Option<&Given>,
        epoch: u64,
    ) -> Question {
        Question {
            procedure: Arc::clone(&self.procedure),
            timeout_ms: self.timeout_ms,
            session: asker.id,
            identity: asker.identity.clone(),
            action: subject.action,
            uri: subject.uri.to_owned(),
            match_policy: subject.match_policy,
            earlier: earlier.map(|given| Box::new(given.clone())),
            epoch,
        }
    }
}
