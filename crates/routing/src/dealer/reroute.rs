//! Calls that are rerouted to another callee, because the first one is not available (WAMP advanced profile, "Call
//! Re-Routing").
//!
//! The CALL is kept while its callee may reroute it: that callee has announced `call_reroute`, and shares the
//! registration. Each callee is asked once. The number of callees asked is bounded over all nodes. A CALL that cannot
//! be kept is offered to one callee alone.

use crosstie_wamp::{MessageType, RegistrationId};

use super::Dealer;
use super::callees::Callee;
use super::kept::Rerouting;
use super::new_call::{CALLEES_TRIED_MAX, NewCall, Placed};
use super::placement::bounded;
use crate::ClientFeature;
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::keys::{CallKey, RegistrationKey};

impl Dealer {
    /// The state kept to reroute a call from `callee`, if another callee may follow.
    pub(super) fn rerouting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        callee: Callee,
        new: NewCall<'_>,
    ) -> Option<Rerouting> {
        let registration = &self.registrations[key];
        let elsewhere = registration.elsewhere().iter();
        let elsewhere: usize = elsewhere.map(|part| part.callees as usize).sum();
        let callees = registration.callees.len() + elsewhere;
        let is_last = new.asked() + 1 >= callees.min(CALLEES_TRIED_MAX);
        // Its parts would have to be kept with it.
        if !callee.may_reroute || is_last || new.options.progress {
            return None;
        }
        Some(Rerouting {
            registration: registration.id,
            kept: self.keep(context, new.from, &new).ok()?,
            tried: [new.tried, &[callee.number]].concat(),
        })
    }

    /// Whether the dealer handles a callee's `unavailable` error, instead of the caller. A callee that was interrupted
    /// has stopped.
    pub(super) fn is_rerouted<H>(&self, context: &Context<'_, H>, key: CallKey) -> bool {
        let call = &self.calls[key];
        let callee = call.callee.session();
        let features = callee.map(|callee| context.sessions[callee].features);
        features.is_some_and(|features| features.has(ClientFeature::CalleeCallReroute))
            && !call.interrupted
    }

    /// Offers a call to the next callee that may serve it.
    pub(super) fn reroute<H>(&mut self, context: &mut Context<'_, H>, key: CallKey) {
        let mut call = self.calls.remove(key, context.sessions);
        let rare = call.rare.as_mut();
        let rerouting = rare.and_then(|rare| rare.rerouting.take());
        self.end_rare(context, &call, true);
        let fault = match rerouting {
            None => none_available(),
            Some(rerouting) => {
                self.release_kept(context, call.caller, &rerouting.kept);
                let mut new = rerouting.kept.as_new(call.caller, call.request);
                new.tried = &rerouting.tried;
                match self.place_elsewhere(context, rerouting.registration, new) {
                    Ok(()) => return,
                    Err(fault) => fault,
                }
            }
        };
        context.refuse(call.caller, MessageType::Call, call.request, &fault);
    }

    fn place_elsewhere<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationId,
        new: NewCall<'_>,
    ) -> Result<(), Fault> {
        // The realm did not apply the timeout, because the callee does so itself.
        let unit = context.config.call_timeout_unit;
        let asked_ms = unit.milliseconds(new.options.timeout_ms);
        let timeout_ms = bounded(asked_ms, context.config.limits.call_timeout_ms_max);
        if timeout_ms > 0 && new.since.after_ms(timeout_ms) <= context.now {
            let text = "no callee was available before the call's time was over";
            return Err(Fault::new(error::TIMEOUT, text));
        }
        if new.from.session().is_none() {
            let key = self.registrations.of_id(registration);
            return self.place_for_neighbour(context, key, &new, true);
        }
        match self.place_further(context, registration, new) {
            Placed::Invoked => Ok(()),
            Placed::Busy | Placed::Left => Err(none_available()),
            Placed::Failed(fault) => Err(fault),
        }
    }

    /// A callee that has sent a progressive result must send the final one, too.
    pub(super) fn forget_rerouting<H>(&mut self, context: &mut Context<'_, H>, key: CallKey) {
        let call = &mut self.calls[key];
        let Some(rare) = &mut call.rare else {
            return;
        };
        let Some(rerouting) = rare.rerouting.take() else {
            return;
        };
        call.rare.take_if(|rare| rare.is_empty());
        let caller = call.caller;
        self.release_kept(context, caller, &rerouting.kept);
    }
}

pub(super) fn none_available() -> Fault {
    let text = "no callee of the procedure is available for this call";
    Fault::new(error::NO_AVAILABLE_CALLEE, text)
}
