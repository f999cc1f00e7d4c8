//! YIELD and ERROR from a callee: RESULT and ERROR to the caller (WAMP advanced profile,
//! "Progressive Call Results").

use std::mem::ManuallyDrop;

use crosstie_wamp::uri::{self, UriCheck};
use crosstie_wamp::{
    Dict, Disclosed, Message, MessageType, Payload, RequestId, ResultDetails, Serializer,
    YieldOptions,
};

use super::Dealer;
use super::calls::Call;
use super::new_call::{too_long, unrepresentable};
use crate::context::Context;
use crate::fault::{Fault, error as uris};
use crate::identity::SessionIndex;
use crate::keys::CallKey;
use crate::lent;
use crate::{Refused, Violation};

impl Dealer {
    /// A result: final, unless its options say `progress`.
    pub(crate) fn handle_yield<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        invocation: RequestId,
        options: &YieldOptions,
        payload: Payload<'_>,
    ) -> Result<(), Violation> {
        if options.progress {
            return self.handle_progress(context, from, invocation, options, payload);
        }
        let sessions = &mut *context.sessions;
        let Some(call) = self
            .calls
            .remove_answered(from.into(), invocation, sessions)
        else {
            return was_sent(context, from, invocation, MessageType::Yield);
        };
        context.note_answered(call.caller, call.since);
        if call.rare.is_some() {
            self.end_rare(context, &call, true);
        }
        let result = ManuallyDrop::new(Message::Result {
            request: call.request,
            details: ResultDetails {
                progress: false,
                callee: call.discloses_callee.then(|| disclosed(context, from)),
                passthru: options.passthru.clone(),
            },
            payload,
        });
        if let Err(refused) = context.answer(call.caller, &result) {
            refuse_result(context, &call, refused);
        }
        if options.passthru.is_some() | call.discloses_callee {
            lent::drop_owned(result);
        }
        Ok(())
    }

    /// A progressive result.
    #[inline(never)]
    fn handle_progress<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        invocation: RequestId,
        options: &YieldOptions,
        payload: Payload<'_>,
    ) -> Result<(), Violation> {
        let Some(key) = context.sessions.invocation(from.into(), invocation) else {
            return was_sent(context, from, invocation, MessageType::Yield);
        };
        self.calls.restart_timeout(key, context.now);
        self.forget_rerouting(context, key);
        let call = &self.calls[key];
        // A caller that did not ask for progress could take this for its final result. A caller's node applies the same
        // timeout, so that it is sent progress in any case.
        if !call.receive_progress && call.caller.session().is_some() {
            return Ok(());
        }
        let result = Message::Result {
            request: call.request,
            details: ResultDetails {
                progress: true,
                callee: call.discloses_callee.then(|| disclosed(context, from)),
                passthru: options.passthru.clone(),
            },
            payload,
        };
        if let Some(fault) = untold(context.answer(call.caller, &result)) {
            self.abandon(context, key, &fault);
        }
        Ok(())
    }

    /// The callee failed, or stopped after an INTERRUPT.
    pub(crate) fn handle_error<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        invocation: RequestId,
        details: &Dict,
        error: &str,
        payload: Payload<'_>,
    ) -> Result<(), Violation> {
        let Some(key) = context.sessions.invocation(from.into(), invocation) else {
            return was_sent(context, from, invocation, MessageType::Error);
        };
        // Clients close a connection that brings them an error with an invalid URI.
        if let Some(reason) = uri::check(error, UriCheck::Loose) {
            return Err(Violation::new(format!("ERROR {error:?}: {reason}")));
        }
        if self.calls[key].interrupted {
            // The caller has cancelled the call, and callee libraries answer that with errors of their own.
            self.pass_error(context, key, (details, uris::CANCELED), payload);
            return Ok(());
        }
        if error == uris::UNAVAILABLE && self.is_rerouted(context, key) {
            self.reroute(context, key);
            return Ok(());
        }
        self.pass_error(context, key, (details, error), payload);
        Ok(())
    }

    /// Ends a call with its callee's error.
    pub(super) fn pass_error<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: CallKey,
        (details, error): (&Dict, &str),
        payload: Payload<'_>,
    ) {
        let call = self.end(context, key);
        context.note_answered(call.caller, call.since);
        // A callee may not speak for the router: details that the router sets are removed.
        let details: Dict = details
            .iter()
            .filter(|(key, _)| is_passed_on(key))
            .cloned()
            .collect();
        let message = |payload| Message::Error {
            request_type: MessageType::Call,
            request: call.request,
            details: details.clone(),
            error: error.into(),
            payload,
        };
        if let Some(fault) = untold(context.answer(call.caller, &message(payload))) {
            // The error URI matters more than its arguments.
            let arguments = fault.arguments();
            let payload = Payload::new(Serializer::Json, arguments.as_bytes(), &[]);
            let _ = context.answer(call.caller, &message(payload));
        }
    }
}

/// A callee answers a call that is not open. If the call has ended (cancelled, timed out, caller gone), that is no
/// fault; if it never existed, it is a violation.
#[cold]
fn was_sent<H>(
    context: &Context<'_, H>,
    from: SessionIndex,
    invocation: RequestId,
    kind: MessageType,
) -> Result<(), Violation> {
    let last = context.sessions[from].invocation_last;
    if invocation.0 <= last {
        return Ok(());
    }
    Err(Violation::new(format!(
        "{} for invocation {invocation}, which was never sent; the last one was {last}",
        kind.name()
    )))
}

/// The callee's identity, as its caller sees it.
#[cold]
fn disclosed<H>(context: &Context<'_, H>, callee: SessionIndex) -> Box<Disclosed<'static>> {
    let Disclosed {
        session,
        authid,
        authrole,
    } = context.sessions[callee].disclosed();
    Box::new(Disclosed {
        session,
        authid: authid.into_owned().into(),
        authrole: authrole.into_owned().into(),
    })
}

/// Ends a call whose RESULT the caller's queue did not take.
#[cold]
fn refuse_result<H>(context: &mut Context<'_, H>, call: &Call, refused: Refused) {
    if let Some(fault) = untold(Err(refused)) {
        context.refuse(call.caller, MessageType::Call, call.request, &fault);
    }
}

/// Whether an attribute is passed on unread, as the codec keeps those of other messages.
fn is_passed_on(key: &str) -> bool {
    ["ppt_", "enc_", "_"]
        .iter()
        .any(|prefix| key.starts_with(prefix))
}

/// The fault that replaces a RESULT or ERROR that could not be sent. A caller whose queue was full has been closed, and
/// one that is gone gets none.
pub(super) fn untold(outcome: Result<(), Refused>) -> Option<Fault> {
    match outcome {
        Ok(()) | Err(Refused::Full | Refused::Gone) => None,
        Err(Refused::TooLong) => Some(too_long("caller")),
        Err(Refused::Unrepresentable(reason)) => Some(unrepresentable(reason)),
    }
}
