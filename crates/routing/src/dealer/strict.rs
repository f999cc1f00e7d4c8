//! Procedures with at most one callee across node failures: `single` is `strict`.
//!
//! The node of a registering session waits until all present nodes know of it, then claims the procedure. The session
//! is let in when the claim is granted. A node serves its grants while its lease lasts, which it renews. The granting side
//! waits longer than a lease before it grants the same to another node. After a lease that was not renewed in time the
//! node refuses calls of its grants, and serves them again after a late renewal. If none succeeds, its callees lose the
//! granted registrations.
//!
//! The realm's owner grants. [`crate::Outbox::claim`] and [`crate::Outbox::give_up`] are the requests;
//! [`crate::Realm::handle_lease`], [`crate::Realm::end_lease`] and [`crate::Realm::handle_claimed`] are the answers.

use std::collections::BTreeMap;

use crosstie_wamp::{InvocationPolicy, MatchPolicy, MessageType, RegistrationId};

use super::Dealer;
use super::across::Answer;
use super::registrations::Registrations;
use crate::Time;
use crate::across::Pattern;
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::keys::RegistrationKey;

/// A node's lease after a renewal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Until then no other node has a grant of this one.
    pub served_until: Time,
    /// The end of the registrations without another renewal.
    pub kept_until: Time,
}

#[derive(Debug, Default)]
pub(super) struct Strict {
    lease: Lease,
    /// The place of the registration that is examined next, while those granted under an expired lease are removed.
    losing: Option<u32>,
    claim_last: u64,
    claims: BTreeMap<u64, Claim>,
}

/// A callee that waits for its grant.
#[derive(Debug)]
struct Claim {
    answer: Answer,
    match_policy: MatchPolicy,
    procedure: Box<str>,
}

impl Strict {
    pub(super) fn is_losing(&self) -> bool {
        self.losing.is_some()
    }

    fn is_lost(&self, now: Time) -> bool {
        self.lease.kept_until <= now || self.is_losing()
    }
}

impl Registrations {
    /// Whether the pending callee needs a grant before it is let in.
    pub(super) fn is_to_be_claimed(&self, id: RegistrationId) -> bool {
        let key = self.of_id(id).filter(|_| self.is_strict);
        key.is_some_and(|key| {
            let registration = &self[key];
            let is_single = registration.callees.policy() == InvocationPolicy::Single;
            is_single && !registration.pending().is_empty()
        })
    }

    fn is_leased(&self, key: RegistrationKey) -> bool {
        let parts = self[key].across.as_deref();
        parts.is_some_and(|parts| parts.is_leased)
    }
}

impl Dealer {
    pub(crate) fn serve_singles_strictly(&mut self) {
        self.registrations.is_strict = true;
        if let Some(across) = &mut self.across {
            across.strict = Some(Strict::default());
        }
    }

    /// Extends the node's lease. A lost one is not revived: the registrations granted under it are removed.
    pub(crate) fn handle_lease(&mut self, now: Time, lease: Lease) {
        self.end_lease(now);
        if let Some(strict) = self.strict() {
            strict.lease = lease;
        }
    }

    /// Begins to remove granted registrations if the lease is lost.
    pub(crate) fn end_lease(&mut self, now: Time) {
        let Some(strict) = self.strict() else {
            return;
        };
        if strict.lease.kept_until <= now && strict.lease != Lease::default() {
            strict.lease = Lease::default();
            strict.losing = Some(0);
        }
    }

    pub(super) fn is_losing(&mut self) -> bool {
        self.strict().is_some_and(|strict| strict.is_losing())
    }

    pub(super) fn lose_some<H>(&mut self, context: &mut Context<'_, H>, count_max: usize) {
        let places = self.registrations.places();
        let Some(from) = self.strict().and_then(|strict| strict.losing) else {
            return;
        };
        let (mut place, mut lost) = (from, 0);
        while place < places && lost < count_max {
            let key = RegistrationKey(place);
            place += 1;
            if self.registrations.holds(key) && self.registrations.is_leased(key) {
                lost += 1;
                let evicted = self.registrations.lose(context, key);
                self.evict(evicted);
            }
        }
        context.spend(count_max as u32);
        if let Some(strict) = self.strict() {
            strict.losing = (place < places).then_some(place);
        }
    }

    /// Whether this node's callee may not be called any more, because its lease has expired.
    pub(super) fn is_lease_over(&self, now: Time, key: RegistrationKey) -> bool {
        let strict = self.across.as_deref().and_then(|a| a.strict.as_ref());
        let is_over = |strict: &Strict| strict.lease.served_until <= now || strict.is_losing();
        strict.is_some_and(is_over) && self.registrations.is_leased(key)
    }

    pub(super) fn claim<H>(&mut self, context: &mut Context<'_, H>, answer: Answer) {
        let now = context.now;
        let key = answer
            .registered
            .and_then(|(id, _)| self.registrations.of_id(id));
        let (Some(key), Some(strict)) = (key, self.across.as_deref_mut()) else {
            return;
        };
        let Some(strict) = &mut strict.strict else {
            return;
        };
        if strict.is_lost(now) {
            return self.refuse_claim(context, &answer);
        }
        let registration = &self.registrations[key];
        let pattern = registration.pattern();
        strict.claim_last += 1;
        let claim = Claim {
            answer,
            match_policy: pattern.match_policy,
            procedure: pattern.topic.into(),
        };
        strict.claims.insert(strict.claim_last, claim);
        context.out.claim(strict.claim_last, pattern);
    }

    /// Handles the answer to a claim.
    pub(crate) fn handle_claimed<H>(
        &mut self,
        context: &mut Context<'_, H>,
        claim: u64,
        is_granted: bool,
    ) {
        let now = context.now;
        let Some(strict) = self.strict() else {
            return;
        };
        let Some(claim) = strict.claims.remove(&claim) else {
            return;
        };
        let is_same = |other: &Claim| {
            (other.match_policy, &other.procedure) == (claim.match_policy, &claim.procedure)
        };
        let is_wanted = strict.claims.values().any(is_same);
        let is_granted = is_granted && !strict.is_lost(now);
        if !is_granted {
            return self.refuse_claim(context, &claim.answer);
        }
        let to = context.sessions.find(claim.answer.to);
        if let (Some(to), Some(entered)) = (to, claim.answer.registered) {
            self.let_in_or_refuse(context, (to, claim.answer.request), entered);
        }
        let pattern = Pattern {
            match_policy: claim.match_policy,
            topic: &claim.procedure,
        };
        let key = self
            .registrations
            .value(claim.match_policy, &claim.procedure);
        match key.filter(|key| !self.registrations[*key].callees.is_empty()) {
            Some(key) => {
                let id = self.registrations[key].id;
                self.registrations.note_leased(id);
            }
            // The callee left while the claim was pending.
            None if !is_wanted => context.out.give_up(pattern),
            None => {}
        }
    }

    /// Refuses a callee that was not granted its procedure.
    fn refuse_claim<H>(&mut self, context: &mut Context<'_, H>, answer: &Answer) {
        let Some(to) = context.sessions.find(answer.to) else {
            return;
        };
        if let Some((id, _)) = answer.registered {
            self.registrations.remove(context, to, id);
        }
        context.refuse(to, MessageType::Register, answer.request, &unclaimed());
    }

    fn strict(&mut self) -> Option<&mut Strict> {
        self.across.as_deref_mut()?.strict.as_mut()
    }
}

pub(super) fn unclaimed() -> Fault {
    let text = "this node cannot make sure that no other node has a callee of the procedure";
    Fault::new(error::NETWORK_FAILURE, text)
}
