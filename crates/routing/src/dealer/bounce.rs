//! Calls from other nodes for this node's callees, and calls that another node returned because no callee took them.

use crosstie_wamp::{MatchPolicy, Message, MessageType};

use super::Dealer;
use super::new_call::{NewCall, Placed};
use super::strict::unclaimed;
use crate::across::{Called, Crossing, Journey, Pattern};
use crate::context::{Context, none_left};
use crate::fault::{Fault, error};
use crate::keys::RegistrationKey;
use crate::party::{NeighbourIndex, Party};

impl Dealer {
    /// A call of another node's session for this node's callees.
    pub(super) fn called_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: NeighbourIndex,
        called: &Called<'_>,
    ) {
        let Message::Call {
            request,
            options,
            procedure,
            payload,
        } = called.message
        else {
            return;
        };
        let caller = Party::from(from);
        let is_known = context.sessions.call(caller, *request).is_some();
        if is_known || self.waiting_call(caller, *request).is_some() {
            return;
        }
        let has = context.sessions.neighbours[from].calls.len() + self.waiting_of(caller);
        let realm_max = context.config.limits.realm_calls_max;
        if !context.may_have_more(has, self.calls(), realm_max) {
            let fault = none_left(error::REALM_CALLS_MAX, "open calls", realm_max);
            return context.refuse(caller, MessageType::Call, *request, &fault);
        }
        let new = NewCall {
            from: caller,
            request: *request,
            options,
            procedure,
            disclosed: called.journey.caller.is_some(),
            journey: Some(called.journey),
            payload: *payload,
            since: context.now,
            tried: &[],
        };
        let pattern = called.registration;
        let key = self
            .registrations
            .value(pattern.match_policy, pattern.topic);
        // Calls that wait already go first.
        let is_next = key.is_none_or(|key| !self.waiting.has(self.registrations[key].id));
        if let Err(fault) = self.place_for_neighbour(context, key, &new, is_next) {
            context.refuse(caller, MessageType::Call, *request, &fault);
        }
    }

    /// Offers another node's call to this node's callees if it is next; else queues it if it may wait, or returns it.
    pub(super) fn place_for_neighbour<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: Option<RegistrationKey>,
        new: &NewCall<'_>,
        is_next: bool,
    ) -> Result<(), Fault> {
        let key = key.filter(|key| !self.registrations[*key].callees.is_empty());
        let Some(key) = key else {
            Self::bounce(context, new, false);
            return Ok(());
        };
        if self.is_lease_over(context.now, key) {
            return Err(unclaimed());
        }
        let (stretch, waits) = new.journey.map_or((None, false), |journey| {
            (journey.stretch, journey.waits && new.asked() == 0)
        });
        let placed = match stretch {
            Some(stretch) => self.place_in_stretch(context, key, new, &stretch),
            None if !is_next => Placed::Busy,
            None => self.place_here(context, key, new),
        };
        match placed {
            Placed::Invoked => {}
            Placed::Busy if waits => match self.wait(context, key, *new) {
                // Another node's queue may have room.
                Err(fault) if fault.uri == error::MAX_CONCURRENCY_REACHED => {
                    Self::bounce(context, new, true);
                }
                waiting => return waiting,
            },
            Placed::Busy => Self::bounce(context, new, true),
            Placed::Left => Self::bounce(context, new, false),
            Placed::Failed(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Returns a call to its caller's node.
    fn bounce<H>(context: &mut Context<'_, H>, new: &NewCall<'_>, is_busy: bool) {
        let message = new.crossing(new.request, context.config.call_timeout_unit, context.now);
        let mut journey = new.journey.cloned().unwrap_or_default();
        journey.asked = u32::try_from(new.asked()).unwrap_or(u32::MAX);
        journey.is_busy |= is_busy;
        let crossing = Crossing::Bounce(Called {
            // The registration by which the call was found may have ended.
            registration: Pattern {
                match_policy: MatchPolicy::Exact,
                topic: new.procedure,
            },
            journey: &journey,
            message: &message,
        });
        // A refusal ends the connection between the two nodes.
        let _ = context.cross(new.from, &crossing);
    }

    /// Another node has returned a call: the next node is tried. The registration may have ended in the meantime.
    pub(super) fn bounced<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: NeighbourIndex,
        called: &Called<'_>,
    ) {
        let Message::Call {
            request,
            options,
            procedure,
            payload,
        } = called.message
        else {
            return;
        };
        let Some(key) = context.sessions.invocation(from.into(), *request) else {
            return;
        };
        if self.calls[key].rare.is_some() || options.progress || self.calls[key].interrupted {
            let fault = match self.calls[key].interrupted {
                true => Fault::new(error::CANCELED, "the caller cancelled the call"),
                // Further parts may have been sent to the node that returned it.
                false => Fault::new(
                    error::NO_AVAILABLE_CALLEE,
                    "the callee's node could not take the call",
                ),
            };
            let call = self.end(context, key);
            return context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
        let call = self.calls.remove(key, context.sessions);
        let mut journey = Journey {
            caller: None,
            ..called.journey.clone()
        };
        let incarnation = context.sessions.neighbours[from].key.incarnation;
        journey.tried.to_mut().push(incarnation);
        let new = NewCall {
            from: call.caller,
            request: call.request,
            options,
            procedure,
            disclosed: called.journey.caller.is_some(),
            journey: Some(&journey),
            payload: *payload,
            since: context.now,
            tried: &[],
        };
        if let Err(fault) = self.place_again(context, &new) {
            context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
    }

    fn place_again<H>(
        &mut self,
        context: &mut Context<'_, H>,
        new: &NewCall<'_>,
    ) -> Result<(), Fault> {
        loop {
            let exact = self.registrations.exact(new.procedure);
            let best = exact.or_else(|| {
                self.registrations
                    .best_pattern(new.procedure, context.steps)
            });
            let Some(key) = best else {
                let text = format!("no callee registered for procedure <{}>", new.procedure);
                return Err(Fault::new(error::NO_SUCH_PROCEDURE, text));
            };
            match self.place_anywhere(context, key, *new) {
                Placed::Invoked => return Ok(()),
                Placed::Failed(fault) => return Err(fault),
                Placed::Busy => return self.wait(context, key, *new),
                Placed::Left => {}
            }
        }
    }
}
