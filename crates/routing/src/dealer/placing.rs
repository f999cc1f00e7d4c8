//! A call's first INVOCATION: which callee takes it.

use crosstie_wamp::{CallOptions, InvocationDetails, MatchPolicy, Message, RequestId};

use super::Dealer;
use super::callees::{Callee, Slot};
use super::calls::{Call, Progressive, calls_bytes};
use super::new_call::{NewCall, Placed, too_long, unrepresentable};
use super::registrations::RegistrationKey;
use crate::context::{Context, deliver};
use crate::fault::{Fault, error};
use crate::features::is_passthru;
use crate::{CallTimeoutUnit, ClientFeature, ClientFeatures, Refused, Time};

/// Callees of a shared registration that one CALL is offered to, when queues are full.
const CALLEES_TRIED_MAX: usize = 8;

impl Dealer {
    /// Offers a call to the callees of a registration, in their order.
    #[inline]
    pub(super) fn place<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationKey,
        new: &NewCall<'_>,
    ) -> Placed {
        let callees = &self.registrations[registration].callees;
        let Some(candidates) = callees.candidates(context.random) else {
            return self.busy_or_left(context, registration);
        };
        let mut tried = 0;
        for place in candidates {
            let callee = self.registrations[registration].callees[place];
            if !callee.is_free() || context.sessions[callee.session].closing {
                continue;
            }
            if tried == CALLEES_TRIED_MAX {
                break;
            }
            tried += 1;
            match self.invoke(context, registration, callee, new) {
                Ok(Ok(())) => {
                    self.registrations.invoked(registration, place);
                    return Placed::Invoked;
                }
                Ok(Err(Refused::Full | Refused::Gone)) => {}
                Ok(Err(Refused::TooLong)) => return Placed::Failed(too_long("callee")),
                Ok(Err(Refused::Unrepresentable(reason))) => {
                    return Placed::Failed(unrepresentable(reason));
                }
                Err(fault) => return Placed::Failed(fault),
            }
        }
        if tried == 0 {
            return self.busy_or_left(context, registration);
        }
        let procedure = new.procedure;
        Placed::Failed(Fault::new(
            error::NO_AVAILABLE_CALLEE,
            format!("{procedure} is registered, but its callee takes no more calls now"),
        ))
    }

    /// Whoever has left and still has a part in the registration serves it no more.
    #[cold]
    fn busy_or_left<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationKey,
    ) -> Placed {
        match self.registrations.is_left(context, registration) {
            true => Placed::Left,
            false => Placed::Busy,
        }
    }

    /// Sends the first INVOCATION of a call to one callee, and keeps the call if it was taken.
    fn invoke<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        callee: Callee,
        new: &NewCall<'_>,
    ) -> Result<Result<(), Refused>, Fault> {
        let options = new.options;
        let session = &context.sessions[callee.session];
        let features = session.features;
        check_callee(features, options)?;
        let registration = &self.registrations[key];
        let is_pattern = registration.match_policy != MatchPolicy::Exact;
        // The specification would also have the callee announce call_canceling before it is told
        // of `receive_progress`; the most used JavaScript client does not, and serves it well.
        let receive_progress =
            options.receive_progress && features.has(ClientFeature::CalleeProgressiveCallResults);
        let forwards_timeout =
            callee.forward_timeout && features.has(ClientFeature::CalleeCallTimeout);
        let unit = context.config.call_timeout_unit;
        let (timeout_ms, forwarded) = if forwards_timeout {
            (0, left(options.timeout_ms, unit, context.now, new.since))
        } else {
            (unit.milliseconds(options.timeout_ms), 0)
        };
        let invocation = RequestId(session.invocation_last + 1);
        let message = Message::Invocation {
            request: invocation,
            registration: registration.id,
            details: InvocationDetails {
                procedure: is_pattern.then(|| new.procedure.into()),
                caller: new
                    .disclosed
                    .then(|| context.sessions[new.from].disclosed()),
                timeout_ms: forwarded,
                receive_progress,
                progress: options.progress,
                passthru: options.passthru.clone(),
            },
            payload: new.payload,
        };
        if let Err(refused) = deliver(context.out, session, &message) {
            return Ok(Err(refused));
        }

        context.sessions[callee.session].invocation_last = invocation.0;
        let mut call = Call::new(new.from, new.request, callee.session, invocation);
        call.receive_progress = options.receive_progress;
        call.discloses_callee = callee.is_disclosed;
        if callee.concurrency > 0 {
            call.slot = Some(Box::new(Slot {
                registration: registration.id,
                callee: callee.number,
            }));
        }
        call.timeout_ms = bounded(timeout_ms, context.config.limits.call_timeout_ms_max);
        if options.progress {
            let progressive = Progressive {
                registration: registration.id,
                procedure: is_pattern.then(|| new.procedure.into()),
                disclosed: new.disclosed,
                timeout_ms: forwarded,
                receive_progress,
                passthru: options.passthru.clone(),
            };
            context.hold(new.from, progressive.bytes());
            call.progressive = Some(Box::new(progressive));
        }
        let room = context.sessions[new.from].calls.capacity();
        self.calls.insert(call, new.since, context.sessions);
        let more = context.sessions[new.from].calls.capacity() - room;
        if more > 0 {
            context.hold(new.from, calls_bytes(more));
        }
        Ok(Ok(()))
    }
}

/// The shorter of two times, where 0 means for ever.
pub(super) fn bounded(timeout_ms: u64, timeout_ms_max: u64) -> u64 {
    match (timeout_ms, timeout_ms_max) {
        (0, bound) => bound,
        (asked, 0) => asked,
        (asked, bound) => asked.min(bound),
    }
}

/// What is left of a time that a callee keeps itself, in the unit that it was given in.
fn left(timeout: u64, unit: CallTimeoutUnit, now: Time, since: Time) -> u64 {
    let waited_ms = (now.0 - since.0) / 1_000;
    if timeout == 0 || waited_ms == 0 {
        return timeout;
    }
    let waited = waited_ms / unit.milliseconds(1);
    timeout.saturating_sub(waited).max(1)
}

/// Whether a callee supports what a call asks of it.
fn check_callee(features: ClientFeatures, options: &CallOptions) -> Result<(), Fault> {
    let missing = |what| Err(Fault::new(error::FEATURE_NOT_SUPPORTED, what));
    if options.progress
        && !(features.has(ClientFeature::CalleeProgressiveCallInvocations)
            && features.has(ClientFeature::CalleeCallCanceling))
    {
        return missing(
            "the callee does not support progressive call invocations with call canceling",
        );
    }
    if let Some(attributes) = options.passthru.as_deref()
        && is_passthru(attributes)
        && !features.has(ClientFeature::CalleePayloadPassthruMode)
    {
        return missing("the callee does not support payload passthru mode");
    }
    Ok(())
}
