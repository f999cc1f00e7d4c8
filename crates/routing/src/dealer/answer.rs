//! YIELD and ERROR from a callee: RESULT and ERROR to the caller (WAMP advanced profile,
//! "Progressive Call Results").

use crosstie_wamp::uri::{self, UriCheck};
use crosstie_wamp::{
    Dict, Disclosed, Message, MessageType, Payload, RequestId, ResultDetails, Serializer,
    YieldOptions,
};

use super::new_call::{too_long, unrepresentable};
use super::{CallKey, Dealer};
use crate::context::Context;
use crate::fault::Fault;
use crate::identity::SessionIndex;
use crate::{Refused, Violation};

impl Dealer {
    /// A result: the last one, unless it says that it is not.
    pub(crate) fn handle_yield<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        invocation: RequestId,
        options: &YieldOptions,
        payload: Payload<'_>,
    ) -> Result<(), Violation> {
        let Some(key) = self.answered(context, from, invocation, MessageType::Yield)? else {
            return Ok(());
        };
        let call = &self.calls[key];
        let (caller, request) = (call.caller, call.request);
        let callee = call.discloses_callee.then(|| {
            let Disclosed {
                session,
                authid,
                authrole,
            } = context.sessions[from].disclosed();
            Box::new(Disclosed {
                session,
                authid: authid.into_owned().into(),
                authrole: authrole.into_owned().into(),
            })
        });
        let result = Message::Result {
            request,
            details: ResultDetails {
                progress: options.progress,
                callee,
                passthru: options.passthru.clone(),
            },
            payload,
        };
        if options.progress {
            self.calls.restart_timeout(key, context.now);
            // A caller that did not ask for progress could take this for its result.
            if self.calls[key].receive_progress
                && let Some(fault) = untold(context.reply(caller, &result))
            {
                self.abandon(context, key, &fault);
            }
            return Ok(());
        }
        self.end(context, key);
        if let Some(fault) = untold(context.reply(caller, &result)) {
            context.refuse(caller, MessageType::Call, request, &fault);
        }
        Ok(())
    }

    /// The callee failed, or gave way to an INTERRUPT.
    pub(crate) fn handle_error<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        invocation: RequestId,
        details: &Dict,
        error: &str,
        payload: Payload<'_>,
    ) -> Result<(), Violation> {
        let Some(key) = self.answered(context, from, invocation, MessageType::Error)? else {
            return Ok(());
        };
        // Clients close a connection that brings them an error without a proper name.
        if let Some(reason) = uri::check(error, UriCheck::Loose) {
            return Err(Violation::new(format!("ERROR {error:?}: {reason}")));
        }
        let call = self.end(context, key);
        // Nor may a callee speak with the router's voice: what it says about the call, it says
        // in attributes of its own.
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
        if let Some(fault) = untold(context.reply(call.caller, &message(payload))) {
            // Which error it was matters more than its arguments.
            let arguments = fault.arguments();
            let payload = Payload {
                serializer: Serializer::Json,
                args: arguments.as_bytes(),
                kwargs: &[],
            };
            let _ = context.reply(call.caller, &message(payload));
        }
        Ok(())
    }

    /// The open call that a callee speaks of. One that has ended meanwhile (cancelled, timed out,
    /// its caller gone) is no fault of the callee's; one that never was is.
    fn answered<H>(
        &self,
        context: &Context<'_, H>,
        from: SessionIndex,
        invocation: RequestId,
        kind: MessageType,
    ) -> Result<Option<CallKey>, Violation> {
        let known = self.calls.of_callee(from, invocation);
        let last = context.sessions[from].invocation_last;
        if known.is_none() && invocation.0 > last {
            return Err(Violation::new(format!(
                "{} for invocation {invocation}, which was never sent; the last one was {last}",
                kind.name()
            )));
        }
        Ok(known)
    }
}

/// Whether an attribute is passed on unread, as the codec keeps them of other messages.
fn is_passed_on(key: &str) -> bool {
    ["ppt_", "enc_", "_"]
        .iter()
        .any(|prefix| key.starts_with(prefix))
}

/// What the caller is told in place of a RESULT or ERROR that it could not be sent. One whose
/// queue was full has been closed, and one that is gone needs nothing.
fn untold(outcome: Result<(), Refused>) -> Option<Fault> {
    match outcome {
        Ok(()) | Err(Refused::Full | Refused::Gone) => None,
        Err(Refused::TooLong) => Some(too_long("caller")),
        Err(Refused::Unrepresentable(reason)) => Some(unrepresentable(reason)),
    }
}
