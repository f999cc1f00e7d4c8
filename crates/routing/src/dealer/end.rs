//! Calls that end otherwise than by their callee's answer: cancelled, overdue, or left alone
//! (WAMP advanced profile, "Call Canceling" and "Call Timeouts"; basic profile, "Caller Leaving"
//! and "Callee Leaving").

use crosstie_wamp::{CancelMode, InterruptOptions, Message, MessageType, RequestId};

use super::call::expect_continuations;
use super::calls::Call;
use super::{CallKey, Dealer};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::session::{Session, SessionIndex};

impl Dealer {
    /// CANCEL. One for a call that is not open is ignored: its RESULT was on the way.
    pub(crate) fn cancel<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        mode: CancelMode,
    ) {
        let Some(key) = self.calls.of_caller(from, request) else {
            return;
        };
        let fault = Fault::new(error::CANCELED, "the caller cancelled the call");
        match mode {
            CancelMode::Skip => {
                self.end(context, key);
                context.refuse(from, MessageType::Call, request, &fault);
            }
            CancelMode::KillNoWait => self.abandon(context, key, &fault),
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

    /// Ends the calls whose time is over.
    pub(crate) fn handle_timeout<H>(&mut self, context: &mut Context<'_, H>) {
        while let Some(key) = self.calls.overdue(context.now) {
            let timeout_ms = self.calls[key].timeout_ms;
            let text = format!("the callee did not answer within {timeout_ms} ms");
            self.abandon(context, key, &Fault::new(error::TIMEOUT, text));
        }
    }

    /// Ends the calls that a leaving session made or serves. It is sent nothing itself.
    pub(crate) fn leave<H>(&mut self, context: &mut Context<'_, H>, index: SessionIndex) {
        let mut made = context.sessions[index].calls.clone();
        made.sort_unstable_by_key(|key| self.calls[*key].request);
        for key in made {
            let call = self.take(context, key);
            if !call.interrupted {
                interrupt(context, &call, CancelMode::KillNoWait, error::CANCELED);
            }
        }
        let mut served = context.sessions[index].invocations.clone();
        served.sort_unstable_by_key(|key| self.calls[*key].invocation);
        let fault = Fault::new(
            error::CANCELED,
            "callee disconnected from in-flight request",
        );
        for key in served {
            let call = self.end(context, key);
            context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
    }

    /// Forgets the registrations of a session that has left.
    pub(crate) fn forget<H>(&mut self, index: SessionIndex, session: &mut Session<H>) {
        self.registrations.leave(index, session);
    }

    /// Ends a call with an ERROR to its caller, and tells the callee not to go on.
    pub(super) fn abandon<H>(&mut self, context: &mut Context<'_, H>, key: CallKey, fault: &Fault) {
        let call = self.end(context, key);
        context.refuse(call.caller, MessageType::Call, call.request, fault);
        if !call.interrupted {
            interrupt(context, &call, CancelMode::KillNoWait, fault.uri);
        }
    }

    /// Takes a call out of the table. What its callee still says of it is ignored from now on,
    /// and so are further parts that its caller sends before it learns of the end.
    pub(super) fn end<H>(&mut self, context: &mut Context<'_, H>, key: CallKey) -> Call {
        let call = self.take(context, key);
        if call.progressive.is_some() {
            expect_continuations(&mut context.sessions[call.caller], call.request);
        }
        call
    }

    /// Takes a call out of the table, and frees the place that it took at its callee.
    #[inline]
    fn take<H>(&mut self, context: &mut Context<'_, H>, key: CallKey) -> Call {
        let call = self.calls.remove(key, context.sessions);
        if let Some(slot) = &call.slot {
            self.registrations.release(slot);
        }
        call
    }
}

/// Sends INTERRUPT, if the callee understands it; whether it was sent.
fn interrupt<H>(
    context: &mut Context<'_, H>,
    call: &Call,
    mode: CancelMode,
    reason: &'static str,
) -> bool {
    if !context.sessions[call.callee].features.callee_call_canceling {
        return false;
    }
    let message = Message::Interrupt {
        request: call.invocation,
        options: InterruptOptions {
            mode: Some(mode),
            reason: Some(reason.into()),
        },
    };
    context.send(call.callee, &message).is_ok()
}
