//! Calls of this node's sessions where other nodes have callees, too: whose take one, as the policy says over all of them.

use crosstie_wamp::{InvocationPolicy, RegistrationId};

use super::Dealer;
use super::choosing::Chosen;
use super::course::Course;
use super::new_call::{NewCall, Placed, too_long, unrepresentable};
use super::rerouting::none_available;
use super::strict::unclaimed;
use crate::Refused;
use crate::across::{Journey, Locality, Stretch};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::keys::RegistrationKey;
use crate::party::NeighbourIndex;
use crate::sharding::partition;

impl Dealer {
    /// Offers a call to callees of this node and of others; to none of those that were tried.
    #[cold]
    #[inline(never)]
    pub(super) fn place_anywhere<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: NewCall<'_>,
    ) -> Placed {
        // A node's own callees are its last word to another node: nothing goes through two.
        if new.from.session().is_none() {
            return self.place_here(context, key, &new);
        }
        let journey = new.journey.cloned().unwrap_or_default().into_owned();
        let stretch = journey.stretch;
        let mut course = Course { new, journey };
        let resource = stretch.and_then(|stretch| stretch.resource);
        let rkey = partition(new.options).or_else(|| resource.map(|of| of.rkey));
        let placed = match rkey {
            Some(rkey) => self.place_in_shards(context, key, &mut course, rkey),
            None if is_ordered(self.registrations[key].policy()) => {
                self.place_in_order(context, key, &mut course, None)
            }
            None => self.place_in_turn(context, key, &mut course),
        };
        match placed {
            Some(placed) => placed,
            None => self.place_nowhere(context, key, &course, rkey.is_some()),
        }
    }

    /// The same where a node counts as often as it has callees, or by what it serves. Nothing where nobody takes it.
    fn place_in_turn<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        course: &mut Course<'_>,
    ) -> Option<Placed> {
        let own = self.registrations.own;
        let mut may_be_here = !course.journey.tried.contains(&own);
        while course.may_go_on() {
            match self.choose(context, key, may_be_here, &course.journey.tried)? {
                Chosen::Here if self.is_lease_over(context.now, key) => {
                    return Some(Placed::Failed(unclaimed()));
                }
                Chosen::Here => match self.place_here(context, key, &course.new) {
                    Placed::Left if !self.registrations.holds(key) => return Some(Placed::Left),
                    Placed::Busy => {
                        course.journey.is_busy = true;
                        may_be_here = false;
                    }
                    Placed::Left => may_be_here = false,
                    placed => return Some(placed),
                },
                Chosen::Node(node) => {
                    if let Some(placed) = self.place_across(context, key, node, course, None) {
                        return Some(placed);
                    }
                }
            }
        }
        None
    }

    /// Gives a call to another node; nothing where that has no room for it now.
    pub(super) fn place_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        node: NeighbourIndex,
        course: &mut Course<'_>,
        stretch: Option<Stretch>,
    ) -> Option<Placed> {
        course.journey.stretch = stretch;
        let refused = match self.call_across(context, key, node, course) {
            Ok(()) => return Some(Placed::Invoked),
            Err(refused) => refused,
        };
        match refused {
            Refused::TooLong => Some(Placed::Failed(too_long("other node"))),
            Refused::Unrepresentable(reason) => Some(Placed::Failed(unrepresentable(reason))),
            Refused::Full | Refused::Gone => {
                let incarnation = context.sessions.neighbours[node].key.incarnation;
                course.journey.tried.to_mut().push(incarnation);
                None
            }
        }
    }

    /// What becomes of a call that nobody takes now.
    fn place_nowhere<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        course: &Course<'_>,
        is_for_shard: bool,
    ) -> Placed {
        let new = &course.new;
        if course.asked() > 0 {
            return Placed::Failed(none_available());
        }
        let callees = &self.registrations[key].callees;
        match (course.journey.is_busy, is_for_shard) {
            (false, _) => Placed::Failed(Fault::new(
                error::NO_AVAILABLE_CALLEE,
                format!(
                    "{} is registered, but no node's callee takes the call now",
                    new.procedure
                ),
            )),
            (true, true) => Placed::Failed(callees.all_busy()),
            // One may be free by now; if none is, it waits here.
            (true, false) if !callees.is_empty() => self.place_here(context, key, new),
            (true, false) => self.wait_elsewhere(context, key, course),
        }
    }

    /// Has a call wait at a node that has callees, where this one has none. All nodes are asked once more for that, none of them
    /// twice: one whose callees are not let in yet, or have gone, gives it back.
    fn wait_elsewhere<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        course: &Course<'_>,
    ) -> Placed {
        let registration = &self.registrations[key];
        let mut fault = registration.callees.all_busy();
        if registration.calls_wait_max == 0 || course.journey.waits {
            return Placed::Failed(fault);
        }
        if course.new.options.progress {
            fault.text = format!("{}, and a progressive call does not wait", fault.text).into();
            return Placed::Failed(fault);
        }
        let Some(Chosen::Node(node)) = self.choose(context, key, false, &[]) else {
            return Placed::Failed(fault);
        };
        let mut waiting = Course {
            new: course.new,
            journey: Journey {
                waits: true,
                ..Journey::default()
            },
        };
        let placed = self.place_across(context, key, node, &mut waiting, None);
        placed.unwrap_or(Placed::Failed(fault))
    }

    /// Goes on with a call that a callee of this node has had another one asked about.
    pub(super) fn place_further<H>(
        &mut self,
        context: &mut Context<'_, H>,
        id: RegistrationId,
        new: NewCall<'_>,
    ) -> Placed {
        let Some(key) = self.registrations.of_id(id) else {
            return Placed::Failed(none_available());
        };
        let registration = &self.registrations[key];
        if registration.across.is_none() && new.journey.is_none() {
            return self.place_kept(context, key, &new);
        }
        let mut journey = new.journey.cloned().unwrap_or_default().into_owned();
        let last = new.tried.last().copied().unwrap_or(0);
        let is_for_shard = partition(new.options).is_some() || journey.stretch.is_some();
        if is_for_shard || is_ordered(registration.policy()) {
            let resource = self.resource_of(key, last, &new);
            journey.stretch = Some(Stretch {
                low: last,
                high: last,
                resource,
            });
        } else {
            match self.place_here(context, key, &new) {
                Placed::Busy => {}
                Placed::Left if self.registrations.holds(key) => {}
                placed => return placed,
            }
        }
        journey.tried.to_mut().push(self.registrations.own);
        let further = NewCall {
            journey: Some(&journey),
            ..new
        };
        self.place_anywhere(context, key, further)
    }

    pub(super) fn prefers_own(&self) -> bool {
        let across = self.across.as_deref();
        across.is_some_and(|across| across.locality == Locality::Prefer)
    }
}

/// Whether callees of all nodes have one order.
fn is_ordered(policy: InvocationPolicy) -> bool {
    matches!(policy, InvocationPolicy::First | InvocationPolicy::Last)
}
