//! Roles whose permissions are asked for: a procedure of the realm is called, and decides.
//!
//! The realm itself calls nobody. It has its owner ask ([`crate::Outbox::ask`]), as if the message had
//! not come, and is given the message again together with what was said
//! ([`crate::Realm::handle_judged`]).

use std::iter;
use std::sync::Arc;

use super::cache::Cache;
use super::permission::Disclose;
use super::question::{Asker, Authorizer, Given, Question, Subject};
use super::verdict::{RefusalCause, Verdict};
use crate::Time;
use crate::random::Random;

/// What comes of asking a role that has more than permissions.
pub(crate) enum Judged {
    Allowed(Disclose),
    Refused(RefusalCause),
    Failed { cause: RefusalCause, text: String },
    Unknown(Box<Question>),
}

/// An authorizer with what it said.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) procedure: Arc<str>,
    timeout_ms: u64,
    pub(super) cache: Cache,
}

impl Asked {
    pub(super) fn new(authorizer: &Authorizer, random: &mut Random) -> Self {
        Self {
            procedure: authorizer.procedure.as_str().into(),
            timeout_ms: authorizer.timeout_ms,
            cache: Cache::new(authorizer.cache, random),
        }
    }

    pub(super) fn judge(
        &mut self,
        now: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
        given: Option<&Given>,
        hits: &mut u64,
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
                if decision.cache && question.epoch == self.cache.epoch {
                    self.cache.keep(now, asker, subject, *decision);
                }
                *decision
            }
            None => match self.cache.find(now, asker, subject) {
                Some(decision) => {
                    *hits += 1;
                    decision
                }
                None => return Judged::Unknown(Box::new(self.question(asker, subject, given))),
            },
        };
        match decision.allow {
            true => Judged::Allowed(decision.disclose()),
            false => Judged::Refused(RefusalCause::AuthorizerDenied),
        }
    }

    fn question(
        &self,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
        earlier: Option<&Given>,
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
            epoch: self.cache.epoch,
        }
    }
}
