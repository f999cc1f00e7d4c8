//! Queued calls: how they are given to a callee, or end without one.

use crosstie_wamp::{MessageType, RegistrationId, RequestId};

use super::Dealer;
use super::call_queue::{WaitingCall, WaitingKey};
use super::end::STEPS_PER_CALL;
use super::kept::{Kept, weight};
use super::new_call::{NewCall, Placed};
use super::placement::bounded;
use crate::context::{Context, none_left};
use crate::fault::{Fault, error};
use crate::keys::RegistrationKey;
use crate::party::Party;

impl Dealer {
    /// Queues a call that no callee is free for, if its registration has a queue.
    #[cold]
    #[inline(never)]
    pub(super) fn wait<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: NewCall<'_>,
    ) -> Result<(), Fault> {
        let registration = &self.registrations[key];
        let from = self.may_wait(key, &new)?;
        let id = registration.id;
        let kept = self.keep(context, from, &new)?;
        let timeout_ms = context
            .config
            .call_timeout_unit
            .milliseconds(new.options.timeout_ms);
        let timeout_ms = bounded(timeout_ms, context.config.limits.call_timeout_ms_max);
        let call = WaitingCall::new(from, new.request, id, kept, timeout_ms);
        self.waiting.insert(call);
        Ok(())
    }

    /// The caller, if the call may be queued.
    fn may_wait(&self, key: RegistrationKey, new: &NewCall<'_>) -> Result<Party, Fault> {
        let registration = &self.registrations[key];
        let calls_max = registration.calls_wait_max as usize;
        let mut fault = registration.callees.all_busy();
        let from = new.from;
        if calls_max == 0 {
            return Err(fault);
        }
        // Its further parts would have to be queued with it.
        if new.options.progress {
            fault.text = format!("{}, and a progressive call does not wait", fault.text).into();
            return Err(fault);
        }
        if !self.waiting.has_room(registration.id, from, calls_max) {
            let text = format!("{}, and {calls_max} calls may wait", fault.text);
            fault.text = text.into();
            return Err(fault);
        }
        Ok(from)
    }

    /// Whether a queued call may have a callee now.
    #[inline]
    pub(crate) fn has_stirred(&self) -> bool {
        self.waiting.stirred().is_some() || self.registrations.has_ended()
    }

    /// Gives queued calls to free callees, for that many steps; returns whether there were any.
    pub(crate) fn start_waiting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        steps_max: u32,
    ) -> bool {
        for id in self.registrations.take_ended() {
            self.waiting.stir(id);
        }
        let mut steps = 0;
        // A session that was closed by one of them leaves before the next.
        while steps < steps_max
            && !context.sessions.has_doomed()
            && let Some(id) = self.waiting.stirred()
        {
            steps += STEPS_PER_CALL;
            if !self.start_next(context, id) {
                self.waiting.settle(id);
            }
        }
        context.spend(steps);
        steps > 0
    }

    /// Returns whether a call was taken from the queue of a registration, which may have ended.
    fn start_next<H>(&mut self, context: &mut Context<'_, H>, id: RegistrationId) -> bool {
        let key = self.registrations.of_id(id);
        if let Some(key) = key
            && !self.is_any_free(context, key)
        {
            return false;
        }
        let Some(call) = self.waiting.take_next(id) else {
            return false;
        };
        self.release_kept(context, call.caller, &call.kept);
        let new = call.kept.as_new(call.caller, call.request);
        let outcome = match key {
            // Its node finds other callees.
            _ if new.from.session().is_none() => self.place_for_neighbour(context, key, &new, true),
            Some(key) => self.start(context, key, new, &call),
            None => self.start_elsewhere(context, new, &call),
        };
        if let Err(fault) = outcome {
            context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
        true
    }

    fn is_any_free<H>(&self, context: &Context<'_, H>, key: RegistrationKey) -> bool {
        let callees = &self.registrations[key].callees;
        // Callees of other nodes may be free.
        callees.is_empty()
            || callees
                .iter()
                .any(|callee| callee.is_free() && !context.sessions[callee.session].closing)
    }

    fn start<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: NewCall<'_>,
        call: &WaitingCall,
    ) -> Result<(), Fault> {
        match self.place_kept(context, key, &new) {
            Placed::Invoked => Ok(()),
            Placed::Busy => self.wait(context, key, new),
            Placed::Left => self.start_elsewhere(context, new, call),
            Placed::Failed(fault) => Err(fault),
        }
    }

    /// The registration of a queued call has ended. The call was permitted, whichever registration serves it.
    fn start_elsewhere<H>(
        &mut self,
        context: &mut Context<'_, H>,
        new: NewCall<'_>,
        call: &WaitingCall,
    ) -> Result<(), Fault> {
        let exact = self.registrations.exact(new.procedure);
        let best = exact.or_else(|| {
            self.registrations
                .best_pattern(new.procedure, context.steps)
        });
        let Some(key) = best else {
            let text = format!("nobody serves procedure <{}> any more", new.procedure);
            return Err(Fault::new(error::NO_SUCH_PROCEDURE, text));
        };
        if self.waiting.has(self.registrations[key].id) {
            return self.wait(context, key, new);
        }
        self.start(context, key, new, call)
    }

    /// Ends a queued call with an ERROR to its caller.
    pub(super) fn end_waiting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: WaitingKey,
        fault: &Fault,
    ) {
        if let Some(call) = self.forget_waiting(context, key) {
            context.refuse(call.caller, MessageType::Call, call.request, fault);
        }
    }

    pub(super) fn forget_waiting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: WaitingKey,
    ) -> Option<WaitingCall> {
        let call = self.waiting.remove(key)?;
        self.release_kept(context, call.caller, &call.kept);
        Some(call)
    }

    /// Keeps a CALL, on its caller's account.
    pub(super) fn keep<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: Party,
        new: &NewCall<'_>,
    ) -> Result<Box<Kept>, Fault> {
        let limits = &context.config.limits;
        let bytes = weight(new);
        if bytes > limits.kept_call_bytes_max {
            let text = format!(
                "a call that waits may have {} bytes with its options; this one has {bytes}",
                limits.kept_call_bytes_max
            );
            return Err(Fault::new(error::KEPT_CALL_BYTES_MAX, text));
        }
        let bytes_max = limits.kept_calls_bytes_max;
        let has = self.keeping.bytes_of(from) + bytes - 1;
        if !context.may_have_more(has, self.keeping.bytes() + bytes - 1, bytes_max) {
            let fault = none_left(error::KEPT_CALLS_BYTES_MAX, "bytes of calls", bytes_max);
            return Err(fault);
        }
        context.hold(from, bytes as isize);
        Ok(self.keeping.keep(from, new))
    }

    /// Releases a caller's CALL.
    pub(super) fn release_kept<H>(
        &mut self,
        context: &mut Context<'_, H>,
        caller: impl Into<Party>,
        kept: &Kept,
    ) {
        let caller = caller.into();
        self.keeping.release(caller, kept);
        context.hold(caller, -(kept.bytes as isize));
    }

    /// The call of that id, if it is queued.
    #[inline]
    pub(super) fn waiting_call(
        &self,
        caller: impl Into<Party>,
        request: RequestId,
    ) -> Option<WaitingKey> {
        if self.waiting.is_empty() {
            return None;
        }
        self.waiting.of_request(caller.into(), request)
    }

    /// Number of queued calls of a session or another node.
    #[inline]
    pub(crate) fn waiting_of(&self, caller: impl Into<Party>) -> usize {
        if self.waiting.is_empty() {
            return 0;
        }
        self.waiting.calls_of(caller.into())
    }
}
