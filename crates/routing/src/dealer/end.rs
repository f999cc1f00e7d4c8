//! Calls that end without their callee's answer: cancelled, overdue, or left alone (WAMP advanced profile, "Call
//! Canceling" and "Call Timeouts"; basic profile, "Caller Leaving" and "Callee Leaving").

use crosstie_wamp::{CancelMode, InterruptOptions, Message, MessageType, RequestId};

use super::Dealer;
use super::call::expect_continuations;
use super::calls::Call;
use super::remote_calls::cancel_across;
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::keys::CallKey;
use crate::party::Party;
use crate::{CancelAnswers, ClientFeature};

impl Dealer {
    /// CANCEL. If the call is not open, it is ignored: a RESULT was on the way.
    pub(crate) fn cancel<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        mode: CancelMode,
    ) {
        let fault = Fault::new(error::CANCELED, "the caller cancelled the call");
        let is_answered = is_answered(context, from, mode);
        if let Some(key) = self.waiting_call(from, request) {
            match is_answered {
                true => self.end_waiting(context, key, &fault),
                false => _ = self.forget_waiting(context, key),
            }
            return;
        }
        let Some(key) = context.sessions.call(from.into(), request) else {
            return;
        };
        match mode {
            CancelMode::Skip | CancelMode::KillNoWait => {
                let call = self.end(context, key);
                if is_answered {
                    context.refuse(from, MessageType::Call, request, &fault);
                }
                // A callee's node is always told that its call has ended.
                let is_told = mode == CancelMode::KillNoWait || call.callee.session().is_none();
                if is_told && !(call.interrupted && mode == CancelMode::KillNoWait) {
                    interrupt(context, &call, mode, error::CANCELED);
                }
            }
            CancelMode::Kill => {
                let call = &self.calls[key];
                // A callee that cannot be interrupted, or not now, is not waited for.
                if call.interrupted || interrupt(context, call, CancelMode::Kill, error::CANCELED) {
                    self.calls[key].interrupted = true;
                } else {
                    self.end(context, key);
                    context.refuse(from, MessageType::Call, request, &fault);
                }
            }
        }
    }

    /// Ends calls whose timeout has expired, for that many steps; returns whether there were any.
    pub(crate) fn handle_timeout<H>(
        &mut self,
        context: &mut Context<'_, H>,
        steps_max: u32,
    ) -> bool {
        let mut steps = 0;
        while steps < steps_max
            && let Some(key) = self.calls.overdue(context.now)
        {
            steps += STEPS_PER_CALL;
            let timeout_ms = self.calls[key].timeout_ms;
            let text = format!("the callee did not answer within {timeout_ms} ms");
            self.abandon(context, key, &Fault::new(error::TIMEOUT, text));
        }
        while steps < steps_max
            && let Some(key) = self.waiting.overdue(context.now)
        {
            steps += STEPS_PER_CALL;
            let text = "no callee was free before the call's time was over";
            self.end_waiting(context, key, &Fault::new(error::TIMEOUT, text));
        }
        context.spend(steps);
        steps > 0
    }

    /// Ends the calls that a session made or serves, then removes its registrations, for that many steps; returns
    /// whether there were any. The session has left and is sent nothing.
    pub(crate) fn leave<H>(
        &mut self,
        context: &mut Context<'_, H>,
        index: SessionIndex,
        steps_max: u32,
    ) -> bool {
        let count_max = steps_max.div_ceil(STEPS_PER_CALL) as usize;
        if self.leave_waiting(context, index, count_max) {
            return true;
        }
        let mut made = context.sessions[index].calls.some(count_max);
        made.sort_unstable_by_key(|key| self.calls[*key].request);
        for key in &made {
            let call = self.calls.remove(*key, context.sessions);
            self.end_rare(context, &call, false);
            if !call.interrupted {
                interrupt(context, &call, CancelMode::KillNoWait, error::CANCELED);
            }
        }
        if !made.is_empty() {
            context.spend(made.len() as u32 * STEPS_PER_CALL);
            return true;
        }
        let mut served = context.sessions[index].invocations.some(count_max);
        served.sort_unstable_by_key(|key| self.calls[*key].invocation);
        let fault = Fault::new(
            error::CANCELED,
            "callee disconnected from in-flight request",
        );
        for key in &served {
            let call = self.end(context, *key);
            context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
        if !served.is_empty() {
            context.spend(served.len() as u32 * STEPS_PER_CALL);
            return true;
        }
        self.registrations.leave(context, index, steps_max)
    }

    /// Removes at most that many queued calls of a caller that has left; returns whether there were any.
    pub(super) fn leave_waiting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        caller: impl Into<Party>,
        count_max: usize,
    ) -> bool {
        let waiting = self.waiting.of_caller(caller.into());
        let waiting: Vec<_> = waiting.take(count_max).collect();
        for key in &waiting {
            self.forget_waiting(context, *key);
        }
        context.spend(waiting.len() as u32 * STEPS_PER_CALL);
        !waiting.is_empty()
    }

    /// Ends a call with an ERROR to its caller, and interrupts the callee.
    pub(super) fn abandon<H>(&mut self, context: &mut Context<'_, H>, key: CallKey, fault: &Fault) {
        let call = self.end(context, key);
        context.refuse(call.caller, MessageType::Call, call.request, fault);
        if !call.interrupted {
            interrupt(context, &call, CancelMode::KillNoWait, fault.uri);
        }
    }

    /// Removes a call from the table. Later messages of its callee are ignored, and so are further parts that its
    /// caller sends before it learns of the end.
    pub(super) fn end<H>(&mut self, context: &mut Context<'_, H>, key: CallKey) -> Call {
        let call = self.calls.remove(key, context.sessions);
        if call.rare.is_some() {
            self.end_rare(context, &call, true);
        }
        call
    }

    /// Finishes a call with uncommon state: frees its slot at the callee, and expects further parts from its caller, if
    /// that is present.
    #[cold]
    #[inline(never)]
    pub(super) fn end_rare<H>(
        &mut self,
        context: &mut Context<'_, H>,
        call: &Call,
        has_caller: bool,
    ) {
        let Some(rare) = &call.rare else {
            return;
        };
        if let Some(slot) = &rare.slot {
            self.registrations.release(slot);
            self.waiting.stir(slot.registration);
        }
        if let Some(rerouting) = &rare.rerouting {
            self.release_kept(context, call.caller, &rerouting.kept);
        }
        if let Some(progressive) = &rare.progressive {
            context.hold(call.caller, -progressive.bytes());
            if has_caller && let Some(caller) = call.caller.session() {
                expect_continuations(&mut context.sessions[caller], call.request);
            }
        }
    }
}

/// Whether CANCEL is answered.
fn is_answered<H>(context: &Context<'_, H>, caller: SessionIndex, mode: CancelMode) -> bool {
    let does_forget = || context.sessions[caller].features.is_forgetful();
    mode == CancelMode::Kill
        || match context.config.cancel_answers {
            CancelAnswers::ByClient => !does_forget(),
            CancelAnswers::Always => true,
            CancelAnswers::KillOnly => false,
        }
}

/// Cost to end a call and send a message about it: about 1 µs if a realm has a million of them.
pub(super) const STEPS_PER_CALL: u32 = 10;

/// Sends INTERRUPT, if the callee supports it; returns whether it was sent.
pub(super) fn interrupt<H>(
    context: &mut Context<'_, H>,
    call: &Call,
    mode: CancelMode,
    reason: &'static str,
) -> bool {
    let Some(callee) = call.callee.session() else {
        return cancel_across(context, call, mode);
    };
    if !context.sessions[callee]
        .features
        .has(ClientFeature::CalleeCallCanceling)
    {
        return false;
    }
    let message = Message::Interrupt {
        request: call.invocation,
        options: InterruptOptions {
            mode: Some(mode),
            reason: Some(reason.into()),
        },
    };
    context.send(callee, &message).is_ok()
}
