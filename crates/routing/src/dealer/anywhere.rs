//! Calls of this node's sessions in a cluster: the registration's policy chooses among the callees of all nodes.

use crosstie_wamp::{InvocationPolicy, RegistrationId};

use super::Dealer;
use super::course::Course;
use super::new_call::{NewCall, Placed, too_long, unrepresentable};
use super::node_choice::Chosen;
use super::reroute::none_available;
use super::strict::unclaimed;
use crate::Refused;
use crate::across::{Journey, Locality, Stretch};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::keys::RegistrationKey;
use crate::party::NeighbourIndex;
use crate::rendezvous::partition;

impl Dealer {
    /// Offers a call to the callees of this node and of others, except those that were tried.
    #[cold]
    #[inline(never)]
    pub(super) fn place_anywhere<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: NewCall<'_>,
    ) -> Placed {
        // A call from another node is served here or not at all: no call crosses two nodes.
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

    /// The same for policies that weigh nodes by their callees or load. `None` if no callee takes it.
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

    /// Sends a call to another node; `None` if the connection has no room for it now.
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

    /// Handles a call that no callee takes now.
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
            // A callee may have become free by now; otherwise the call waits here.
            (true, false) if !callees.is_empty() => self.place_here(context, key, new),
            (true, false) => self.wait_elsewhere(context, key, course),
        }
    }

    /// Has a call wait at a node with callees, if this node has none. Each node is asked once more for that: one whose
    /// callees are pending or gone returns the call.
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

    /// Continues with a call that a callee of this node rerouted.
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

/// Whether the policy orders the callees of all nodes.
fn is_ordered(policy: InvocationPolicy) -> bool {
    matches!(policy, InvocationPolicy::First | InvocationPolicy::Last)
}
