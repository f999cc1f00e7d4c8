//! Policies with one order over the callees of all nodes: `first`, `last`, and the callees of a shard.
//!
//! A node lists its callees to the others, by their numbers, which count over all nodes. The caller's node tries one
//! stretch of callees after the other, each on one node. Another node offers a call to the callees of its stretch, and
//! returns it if none of them takes it.

use crosstie_wamp::InvocationPolicy;

use super::Dealer;
use super::callees::Callee;
use super::course::Course;
use super::new_call::{CALLEES_TRIED_MAX, NewCall, Placed};
use super::parts::is_conflict;
use crate::across::{LISTED_MAX, Resource, Stretch};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::keys::RegistrationKey;
use crate::party::NeighbourIndex;
use crate::rendezvous::{partition, rank};

/// Callees that are examined per step.
const CALLEES_PER_STEP: usize = 16;

/// A callee's place in the order of all nodes: its number, and its node in case two nodes use the same number.
type Place = (u64, u64);

/// The node of a callee; `None` is this node.
type Owner = Option<NeighbourIndex>;

impl Dealer {
    /// Offers a call to the callees that are next in order; `None` if none takes it.
    pub(super) fn place_in_order<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        course: &mut Course<'_>,
        resource: Option<Resource>,
    ) -> Option<Placed> {
        let own = self.registrations.own;
        let is_last = self.is_last_first(key, resource);
        let mut after = course.place(is_last);
        if resource.is_none() && after.is_none() && self.prefers_own() {
            match self.place_here(context, key, &course.new) {
                Placed::Busy => course.journey.is_busy = true,
                Placed::Left => {}
                placed => return Some(placed),
            }
        }
        let is_own_done = resource.is_none() && self.prefers_own();
        while course.may_go_on() {
            let all = self.in_order(context, key, resource, is_own_done);
            let (place, owner) = next(&all, is_last, after)?;
            // Up to the next callee of another node.
            let others: Vec<_> = all.into_iter().filter(|(_, of)| *of != owner).collect();
            let end = next(&others, is_last, Some(place)).map(|(place, _)| place);
            let stretch = stretch(place, end, is_last, resource);
            let incarnation = match owner {
                None => own,
                Some(node) => context.sessions.neighbours[node].key.incarnation,
            };
            let placed = match owner {
                None => match self.place_in_stretch(context, key, &course.new, &stretch) {
                    Placed::Busy => {
                        course.journey.is_busy = true;
                        None
                    }
                    Placed::Left => None,
                    placed => Some(placed),
                },
                Some(node) => self.place_across(context, key, node, course, Some(stretch)),
            };
            if placed.is_some() {
                return placed;
            }
            after = Some((
                if is_last { stretch.low } else { stretch.high },
                incarnation,
            ));
        }
        None
    }

    /// Offers a call to the shard of its resource. A shard owner callees have gone does not own resources any more.
    pub(super) fn place_in_shards<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        course: &mut Course<'_>,
        rkey: u64,
    ) -> Option<Placed> {
        let is_listed = |callees: u32, listed: usize| callees as usize == listed;
        let mut elsewhere = self.registrations[key].elsewhere().iter();
        if !elsewhere.all(|part| is_listed(part.callees, part.listed.len())) {
            let text =
                "another node has more callees than it can list, so that a shard cannot be found";
            return Some(Placed::Failed(Fault::new(error::OPTION_NOT_ALLOWED, text)));
        }
        let before = course.journey.stretch.and_then(|stretch| stretch.resource);
        if let Some(resource) = before {
            let placed = self.place_in_order(context, key, course, before);
            if placed.is_some() || course.journey.is_busy || course.asked() > 0 {
                return placed;
            }
            course.journey.gone.to_mut().push(resource.shard);
        }
        course.journey.stretch = None;
        let own = self.registrations[key].callees.iter();
        let own = own.filter(|callee| !context.sessions[callee.session].closing);
        let own = own.map(|callee| self.registrations[key].callees.shard_of(callee));
        let listed = self.registrations[key].elsewhere().iter();
        let listed = listed.filter(|part| !context.sessions.neighbours[part.node].closing);
        let listed = listed.flat_map(|part| part.listed.iter().map(|callee| callee.shard));
        let gone = &course.journey.gone;
        let all = own.chain(listed).filter(|shard| !gone.contains(shard));
        let shard = all.max_by_key(|shard| (rank(rkey, *shard), *shard))?;
        self.place_in_order(context, key, course, Some(Resource { rkey, shard }))
    }

    /// Offers a call to this node's callees of a stretch. `Left` if none of them can serve it any more.
    pub(super) fn place_in_stretch<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: &NewCall<'_>,
        stretch: &Stretch,
    ) -> Placed {
        let callees = &self.registrations[key].callees;
        context.spend((callees.len() / CALLEES_PER_STEP) as u32);
        let is_in = |callee: &&Callee| {
            (stretch.low..=stretch.high).contains(&callee.number)
                && (stretch.resource).is_none_or(|of| of.shard == callees.shard_of(callee))
                && !context.sessions[callee.session].closing
                && !new.tried.contains(&callee.number)
        };
        let mut found: Vec<_> = callees.iter().filter(is_in).map(|c| c.number).collect();
        if self.is_last_first(key, stretch.resource) {
            found.reverse();
        }
        self.offer_in_turn(context, key, new, &found)
    }

    /// Offers a call to callees with these numbers, one after the other. `Busy` if the present ones are at their
    /// bounds, `Left` if none of them can serve it any more.
    pub(super) fn offer_in_turn<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: &NewCall<'_>,
        numbers: &[u64],
    ) -> Placed {
        let (mut tried, mut is_busy) = (0, false);
        for &number in numbers {
            let callees = &self.registrations[key].callees;
            let Some(place) = callees.place_of(number) else {
                continue;
            };
            let callee = callees[place];
            if !callee.is_free() {
                is_busy = true;
                continue;
            }
            match self.invoke(context, key, callee, new) {
                Ok(()) => {
                    self.registrations.invoked(key, place);
                    return Placed::Invoked;
                }
                Err(uninvoked) => match uninvoked.fault() {
                    None => tried += 1,
                    Some(fault) => return Placed::Failed(fault),
                },
            }
            if tried == CALLEES_TRIED_MAX {
                break;
            }
        }
        match is_busy && tried == 0 {
            true => Placed::Busy,
            false => Placed::Left,
        }
    }

    /// The shard of the callee of this node that last got a call for a shard.
    pub(super) fn resource_of(
        &self,
        key: RegistrationKey,
        number: u64,
        new: &NewCall<'_>,
    ) -> Option<Resource> {
        let before = new.journey.and_then(|journey| journey.stretch);
        if let Some(before) = before.and_then(|stretch| stretch.resource) {
            return Some(before);
        }
        let rkey = partition(new.options)?;
        let callees = &self.registrations[key].callees;
        let place = callees.place_of(number);
        let shard = place.map_or(number, |place| callees.shard_of(&callees[place]));
        Some(Resource { rkey, shard })
    }

    /// Whether the order begins with the last callee.
    fn is_last_first(&self, key: RegistrationKey, resource: Option<Resource>) -> bool {
        resource.is_none() && self.registrations[key].policy() == InvocationPolicy::Last
    }

    /// The callees of all nodes in order, or those of a shard.
    fn in_order<H>(
        &self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        resource: Option<Resource>,
        is_own_done: bool,
    ) -> Vec<(Place, Owner)> {
        let own = self.registrations.own;
        let registration = &self.registrations[key];
        let (policy, claim) = (registration.policy(), registration.claim);
        let is_own = registration.is_own();
        let is_in = |shard: u64| resource.is_none_or(|resource| resource.shard == shard);
        let (sessions, callees) = (&*context.sessions, &registration.callees);
        let known_max = resource.map_or(LISTED_MAX, |_| usize::MAX);
        let here = callees.some(known_max, policy == InvocationPolicy::Last);
        let here = here.iter().filter(|callee| {
            !is_own_done && !sessions[callee.session].closing && is_in(callees.shard_of(callee))
        });
        let mut all: Vec<(Place, Owner)> = here.map(|c| ((c.number, own), None)).collect();
        for part in registration.elsewhere() {
            let yields = is_own && is_conflict(policy, part.policy);
            let wins = (part.claim, part.incarnation) < (claim, own);
            // A part that yields to this node's callees is about to be withdrawn.
            if sessions.neighbours[part.node].closing
                || (yields && !wins)
                || (!is_own && part.policy != policy)
            {
                continue;
            }
            let listed = part.listed.iter().filter(|callee| is_in(callee.shard));
            all.extend(listed.map(|c| ((c.number, part.incarnation), Some(part.node))));
        }
        context.spend((all.len() / CALLEES_PER_STEP) as u32);
        all
    }
}

/// The callee after a place.
fn next(all: &[(Place, Owner)], is_last: bool, after: Option<Place>) -> Option<(Place, Owner)> {
    let is_behind = |place: Place| match (after, is_last) {
        (None, _) => true,
        (Some(after), false) => place > after,
        (Some(after), true) => place < after,
    };
    let behind = all.iter().filter(|(place, _)| is_behind(*place)).copied();
    match is_last {
        false => behind.min_by_key(|(place, _)| *place),
        true => behind.max_by_key(|(place, _)| *place),
    }
}

/// From a callee up to, and without, the next one of another node, which may have the same number.
fn stretch(
    (number, incarnation): Place,
    end: Option<Place>,
    is_last: bool,
    resource: Option<Resource>,
) -> Stretch {
    let (low, high) = match (end, is_last) {
        (None, false) => (number, u64::MAX),
        (None, true) => (0, number),
        (Some((end, other)), false) if incarnation < other => (number, end),
        (Some((end, _)), false) => (number, end.saturating_sub(1).max(number)),
        (Some((end, other)), true) if incarnation > other => (end, number),
        (Some((end, _)), true) => (end.saturating_add(1).min(number), number),
    };
    Stretch {
        low,
        high,
        resource,
    }
}
