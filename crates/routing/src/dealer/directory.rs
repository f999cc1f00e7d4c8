//! The directory of registrations: announces this node's part to others, and keeps theirs.
//!
//! A node's part in a registration ends with the node: a node that joins is sent all parts, then each change. So no
//! entry outlives its node. Of two parts that exclude each other the one with the earlier claim stays. Both nodes
//! determine that by themselves, and the other one removes the registration from its callees.

use crosstie_wamp::InvocationPolicy;

use super::callees::Callee;
use super::parts::{Elsewhere, Parts, is_conflict};
use super::registrations::{Registration, Registrations, tell_revoked};
use crate::ClientFeature;
use crate::across::{Crossing, EndTold, LISTED_MAX, Listed, Offer, Pattern};
use crate::authz::Action;
use crate::context::{Context, is_own_procedure};
use crate::events::REGISTRATION;
use crate::fault::error;
use crate::identity::SessionIndex;
use crate::keys::RegistrationKey;
use crate::party::NeighbourIndex;

/// Approximate memory of a node's part beside its procedure.
const PART_BYTES: usize = 768;

/// Claims are numbered from here, so that a claim can be placed before all others; no node has counted this far.
pub(super) const NUMBER_MIN: u64 = 1 << 32;
const NUMBER_MAX: u64 = 1 << 60;

impl Registration {
    pub(super) fn pattern(&self) -> Pattern<'_> {
        Pattern {
            match_policy: self.match_policy,
            topic: &self.procedure,
        }
    }

    pub(super) fn pending(&self) -> &[Callee] {
        self.across.as_deref().map_or(&[], |parts| &parts.pending)
    }

    pub(super) fn elsewhere(&self) -> &[Elsewhere] {
        self.across.as_deref().map_or(&[], |parts| &parts.elsewhere)
    }

    /// Whether this node has callees of it, pending ones included.
    pub(super) fn is_own(&self) -> bool {
        !self.callees.is_empty() || !self.pending().is_empty()
    }

    /// Whether this node or another one has callees that can be called.
    pub(super) fn is_served(&self) -> bool {
        !self.callees.is_empty() || !self.elsewhere().is_empty()
    }

    /// The policy that another callee must have.
    pub(super) fn policy(&self) -> InvocationPolicy {
        let winner = self.across.as_deref().and_then(Parts::winner);
        match winner.filter(|_| !self.is_own()) {
            Some(winner) => winner.policy,
            None => self.callees.policy(),
        }
    }

    /// The offer that other nodes are sent; borrows the list.
    fn offer<'o>(&'o self, listed: &'o mut Vec<Listed>) -> Option<Offer<'o>> {
        let own = self.callees.iter().chain(self.pending());
        let of = |callee: &Callee| Listed {
            number: callee.number,
            shard: self.callees.shard_of(callee),
        };
        listed.clear();
        listed.extend(own.map(of));
        listed.sort_unstable();
        let callees = listed.len();
        let (first, last) = (listed.first()?.number, listed.last()?.number);
        match self.callees.policy() {
            InvocationPolicy::Last => listed.drain(..callees.saturating_sub(LISTED_MAX)),
            _ => listed.drain(callees.min(LISTED_MAX)..),
        };
        Some(Offer {
            registration: self.pattern(),
            policy: self.callees.policy(),
            callees: callees as u32,
            claim: self.claim,
            first,
            last,
            listed,
        })
    }

    /// Drops empty state.
    pub(super) fn tidy(&mut self) {
        self.across.take_if(|parts| parts.is_empty());
    }
}

impl Registrations {
    /// Announces a change to all other nodes. If this node has no part any more, `told` says whether its end was
    /// announced.
    #[inline]
    pub(super) fn tell_others<H>(
        &self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        told: EndTold,
    ) {
        if context.sessions.neighbours.is_any_there() {
            self.tell_all(context, key, told);
        }
    }

    #[cold]
    fn tell_all<H>(&self, context: &mut Context<'_, H>, key: RegistrationKey, told: EndTold) {
        let registration = &self[key];
        let pattern = registration.pattern();
        let mut listed = Vec::new();
        let said = registration
            .offer(&mut listed)
            .map_or(Crossing::Withdraw(pattern, told), Crossing::Offer);
        let there: Vec<_> = context.sessions.neighbours.there().collect();
        for neighbour in there {
            // A refusal ends the connection between the two nodes.
            let _ = context.cross(neighbour.into(), &said);
        }
    }

    /// Announces the registrations from a place of the table on to one node; returns the next place, if any.
    pub(super) fn tell_some<H>(
        &self,
        context: &mut Context<'_, H>,
        neighbour: NeighbourIndex,
        from: u32,
        count_max: usize,
    ) -> Option<u32> {
        let mut count = 0;
        let mut listed = Vec::new();
        for place in from..self.places() {
            if count == count_max {
                return Some(place);
            }
            let registration = self.at(place);
            let Some(offer) = registration.and_then(|known| known.offer(&mut listed)) else {
                continue;
            };
            count += 1;
            if context
                .cross(neighbour.into(), &Crossing::Offer(offer))
                .is_err()
            {
                return None;
            }
        }
        None
    }

    /// Takes another node's part; returns this node's callees that lost theirs to it and do not understand
    /// UNREGISTERED.
    pub(super) fn take_offer<H>(
        &mut self,
        context: &mut Context<'_, H>,
        node: NeighbourIndex,
        offer: &Offer<'_>,
    ) -> Vec<SessionIndex> {
        let Pattern {
            match_policy,
            topic: procedure,
        } = offer.registration;
        let numbers = [offer.claim, offer.first, offer.last];
        let known = self.value(match_policy, procedure);
        let is_wrong = offer.callees == 0
            || numbers.iter().any(|number| *number > NUMBER_MAX)
            || is_own_procedure(procedure)
            || context
                .check_pattern(Action::Register, procedure, match_policy)
                .is_err()
            || (known.is_none() && !self.has_room(context, offer.registration));
        let neighbour = &context.sessions.neighbours[node];
        let incarnation = neighbour.key.incarnation;
        let has_all = neighbour.offers.len() >= context.config.limits.realm_registrations_max;
        let is_new = known.is_none_or(|key| !neighbour.offers.contains(&key));
        if is_wrong || (is_new && has_all) {
            context.out.note(crate::Note::OfferRefused, 1);
            return Vec::new();
        }
        let mut listed = offer.listed.to_vec();
        listed.truncate(LISTED_MAX);
        listed.retain(|callee| (offer.first..=offer.last).contains(&callee.number));
        listed.sort_unstable();
        listed.dedup_by_key(|callee| callee.number);
        self.note_number(offer.claim.max(offer.last));
        let key = known
            .unwrap_or_else(|| self.create(context.now, match_policy, offer.policy, procedure));
        let registration = &mut self[key];
        let parts = registration.across.get_or_insert_default();
        parts.is_told = false;
        let list_bytes = |listed: &[Listed]| size_of_val(listed) as isize;
        let more = list_bytes(&listed);
        let before = parts.put(Elsewhere {
            node,
            incarnation,
            policy: offer.policy,
            callees: offer.callees,
            claim: offer.claim,
            first: offer.first,
            last: offer.last,
            listed: listed.into(),
        });
        let before = before.map_or(0, |part| list_bytes(&part.listed));
        context.out.hold_across(more - before);
        if is_new {
            context.sessions.neighbours[node].offers.insert(key);
            context.out.hold_across(part_bytes(procedure));
        }
        let loses = registration.is_own()
            && is_conflict(registration.callees.policy(), offer.policy)
            && (offer.claim, incarnation) < (registration.claim, self.own);
        match loses {
            true => self.lose(context, key),
            false => Vec::new(),
        }
    }

    /// Removes another node's part. If the last parts of several nodes are withdrawn at the same moment, none of these
    /// nodes sees its own as the last one. Then each node tells its own subscribers that the registration has ended.
    pub(super) fn withdraw<H>(
        &mut self,
        context: &mut Context<'_, H>,
        node: NeighbourIndex,
        (pattern, told): (Pattern<'_>, EndTold),
    ) {
        let Some(key) = self.value(pattern.match_policy, pattern.topic) else {
            return;
        };
        let id = self[key].id;
        let parts = self[key].across.as_deref();
        let (was_told, mut untold) = parts.map_or((false, None), |p| (p.is_told, p.untold));
        let is_told = was_told || told == EndTold::Yes;
        if let EndTold::No(session) = told {
            untold = Some(session);
        }
        self.remove_part(context, node, key);
        if self.holds(key) {
            let registration = &mut self[key];
            let serves = !registration.callees.is_empty();
            if let Some(parts) = registration.across.as_deref_mut().filter(|_| !serves) {
                parts.is_told = is_told;
                parts.untold = untold.filter(|_| !is_told);
            }
        } else if let Some(session) = untold.filter(|_| !is_told) {
            let what = (id.0, pattern.topic);
            context.events.ended_elsewhere(&REGISTRATION, session, what);
        }
    }

    /// Removes parts of a node that has gone, at most that many; returns whether there were any.
    pub(super) fn leave_neighbour<H>(
        &mut self,
        context: &mut Context<'_, H>,
        node: NeighbourIndex,
        count_max: usize,
    ) -> bool {
        let offers = &context.sessions.neighbours[node].offers;
        let some: Vec<_> = offers.iter().copied().take(count_max).collect();
        for key in &some {
            self.remove_part(context, node, *key);
        }
        !some.is_empty()
    }

    fn remove_part<H>(
        &mut self,
        context: &mut Context<'_, H>,
        node: NeighbourIndex,
        key: RegistrationKey,
    ) {
        if !context.sessions.neighbours[node].offers.remove(&key) {
            return;
        }
        let registration = &mut self[key];
        let mut bytes = part_bytes(&registration.procedure);
        if let Some(parts) = &mut registration.across
            && let Some(place) = parts.elsewhere.iter().position(|part| part.node == node)
        {
            bytes += size_of_val(&*parts.elsewhere.remove(place).listed) as isize;
        }
        registration.tidy();
        if !registration.is_own() && registration.across.is_none() {
            self.delete(key);
        }
        context.out.hold_across(-bytes);
    }

    /// Removes a registration from all callees of this node. Tells those that understand it; returns the others.
    pub(super) fn lose<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
    ) -> Vec<SessionIndex> {
        let id = self[key].id;
        let entered = self.take_from_all(context, key);
        let mut evicted = Vec::new();
        for session in entered {
            let features = context.sessions[session].features;
            match features.has(ClientFeature::CalleeRegistrationRevocation) {
                true => tell_revoked(context, session, id, Some(error::UNREGISTERED)),
                false => evicted.push(session),
            }
        }
        evicted
    }
}

fn part_bytes(procedure: &str) -> isize {
    (PART_BYTES + procedure.len()) as isize
}
