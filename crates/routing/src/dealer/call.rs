//! CALL: finding a callee and invoking it (WAMP advanced profile, "Progressive Call
//! Invocations", for the CALLs that continue one).

use crosstie_wamp::{
    CallOptions, Dict, InvocationDetails, MatchPolicy, Message, MessageType, Payload, RequestId,
    Value,
};

use super::Dealer;
use super::new_call::{NewCall, Placed, disclosed, too_long, unrepresentable};
use super::remote_calls::continue_across;
use crate::authz::Action;
use crate::context::{Context, deliver, is_own_procedure, none_left};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::keys::{CallKey, RegistrationKey};
use crate::rendezvous::check_unsharded;
use crate::session::Session;
use crate::weight::dict_bytes;
use crate::{ClientFeature, Refused, RoleLimit, Violation};

/// Maximum number of ended progressive calls that are remembered per session, because their CALLs may still arrive; the
/// latest are kept.
const UNFINISHED_MAX: usize = 64;

/// Why the dealer did not handle a CALL.
pub(crate) enum Uncalled {
    Violation(Violation),
    /// The caller may call it, but only the realm itself can serve it.
    Reserved(Fault),
}

impl From<Violation> for Uncalled {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl Dealer {
    pub(crate) fn call<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &CallOptions,
        procedure: &str,
        payload: Payload<'_>,
    ) -> Result<(), Uncalled> {
        let session = &mut context.sessions[from];
        if options.progress
            && !session
                .features
                .has(ClientFeature::CallerProgressiveCallInvocations)
        {
            return Err(Uncalled::Violation(Violation::new(format!(
                "CALL {request} has progress, but progressive_call_invocations was not announced"
            ))));
        }
        if session.is_beyond(request) {
            session.take_request(request, context.config.request_id_check)?;
        } else if self.continue_known(context, from, request, options, procedure, payload)? {
            return Ok(());
        } else {
            context.take_request(from, request)?;
        }
        let opened = loop {
            match self.open(context, from, request, options, procedure, payload) {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        if let Err(fault) = opened {
            if fault.is_asked() {
                return Ok(());
            }
            if options.progress {
                expect_continuations(&mut context.sessions[from], request);
            } else if fault.uri == error::NO_SUCH_PROCEDURE && is_own_procedure(procedure) {
                return Err(Uncalled::Reserved(fault));
            }
            context.refuse(from, MessageType::Call, request, &fault);
        }
        Ok(())
    }

    /// Handles a CALL whose id is not above all earlier ones: it may belong to an earlier call. Rare for clients that
    /// count their ids up; each call of a client with random ids comes here.
    #[inline(never)]
    fn continue_known<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &CallOptions,
        procedure: &str,
        payload: Payload<'_>,
    ) -> Result<bool, Violation> {
        if let Some(key) = context.sessions.call(from.into(), request) {
            self.continue_call(context, key, options, procedure, payload)?;
            return Ok(true);
        }
        if self.waiting_call(from, request).is_some() {
            return Err(not_progressive(request));
        }
        let session = &mut context.sessions[from];
        Ok(is_late_continuation(session, request, options.progress))
    }

    /// Refuses a CALL for its content. If it would have been the next part of an open call, that call ends: its callee
    /// would wait for the part.
    pub(crate) fn decline<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &CallOptions,
        fault: &Fault,
    ) -> Result<(), Violation> {
        if let Some(key) = context.sessions.call(from.into(), request) {
            if !options.progress {
                self.forget_progressive(context, key);
            }
            self.abandon(context, key, fault);
            return Ok(());
        }
        if let Some(key) = self.waiting_call(from, request) {
            self.end_waiting(context, key, fault);
            return Ok(());
        }
        let session = &mut context.sessions[from];
        if is_late_continuation(session, request, options.progress) {
            return Ok(());
        }
        session.take_request(request, context.config.request_id_check)?;
        if options.progress {
            expect_continuations(session, request);
        }
        context.refuse(from, MessageType::Call, request, fault);
        Ok(())
    }

    /// Returns whether the call is open. If not, the registration that was found had no callees left and is gone, and
    /// another may serve the call.
    fn open<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &CallOptions,
        procedure: &str,
        payload: Payload<'_>,
    ) -> Result<bool, Fault> {
        let registration = self.serving(context, procedure)?;
        let disclose = context.authorize(from, Action::Call, procedure, MatchPolicy::Exact)?;
        let disclosed = context.disclose(disclose.caller, options.disclose_me)?;
        let Some(registration) = registration else {
            if is_own_procedure(procedure) {
                check_unsharded(options)?;
            }
            return Err(Fault::new(
                error::NO_SUCH_PROCEDURE,
                format!("no callee registered for procedure <{procedure}>"),
            ));
        };
        let session = &context.sessions[from];
        let has = session.calls.len() + self.waiting_of(from);
        if has >= session.calls_max as usize {
            return Err(calls_max(context, from));
        }
        if options.progress {
            check_kept(options, context.config.limits.call_options_bytes_max)?;
        }
        let realm_max = context.config.limits.realm_calls_max;
        if !context.may_have_more(has, self.calls(), realm_max) {
            return Err(none_left(error::REALM_CALLS_MAX, "open calls", realm_max));
        }

        let new = NewCall {
            from: from.into(),
            request,
            options,
            procedure,
            disclosed,
            journey: None,
            payload,
            since: context.now,
            tried: &[],
        };
        if let Some(sharding) = options.sharding.as_deref()
            && self.is_partitioned(context, registration, sharding)?
        {
            return self.open_in_shard(context, registration, new);
        }
        if self.registrations[registration].calls_wait_max > 0
            && self.waiting.has(self.registrations[registration].id)
        {
            // Calls that wait already go first.
            return self.wait(context, registration, new).map(|()| true);
        }
        match self.place(context, registration, &new) {
            Placed::Invoked => Ok(true),
            Placed::Left => Ok(false),
            Placed::Busy => self.wait(context, registration, new).map(|()| true),
            Placed::Failed(fault) => Err(fault),
        }
    }

    /// The registration that serves a procedure.
    #[inline(always)]
    fn serving<H>(
        &self,
        context: &mut Context<'_, H>,
        procedure: &str,
    ) -> Result<Option<RegistrationKey>, Fault> {
        // The URI of an exact registration was checked when it began.
        if let Some(key) = self.registrations.exact(procedure) {
            return Ok(Some(key));
        }
        context.check_uri(Action::Call, procedure)?;
        // A broad pattern must not answer for the router.
        Ok(match is_own_procedure(procedure) {
            true => None,
            false => self.registrations.best_pattern(procedure, context.steps),
        })
    }

    /// Handles the last part of a progressive call.
    fn forget_progressive<H>(&mut self, context: &mut Context<'_, H>, key: CallKey) {
        let call = &mut self.calls[key];
        let Some(rare) = &mut call.rare else {
            return;
        };
        if let Some(progressive) = rare.progressive.take() {
            context.hold(call.caller, -progressive.bytes());
        }
        call.rare.take_if(|rare| rare.is_empty());
    }

    /// A CALL with the id of an open call: the next part of a progressive one. It is sent to the same callee, even if
    /// the registration has ended.
    pub(super) fn continue_call<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: CallKey,
        options: &CallOptions,
        procedure: &str,
        payload: Payload<'_>,
    ) -> Result<(), Violation> {
        let call = &mut self.calls[key];
        let progressive = call
            .rare
            .as_deref()
            .and_then(|rare| rare.progressive.as_ref());
        let Some(progressive) = progressive else {
            return Err(not_progressive(call.request));
        };
        // A callee that was interrupted gets no more parts.
        let outcome = if call.interrupted {
            Ok(())
        } else if let Some(callee) = call.callee.session() {
            let stranger = progressive.stranger.as_deref();
            let message = Message::Invocation {
                request: call.invocation,
                registration: progressive.registration,
                details: InvocationDetails {
                    procedure: progressive.procedure.as_deref().map(Into::into),
                    caller: match progressive.disclosed {
                        true => disclosed(context.sessions, call.caller, stranger),
                        false => None,
                    },
                    timeout_ms: progressive.timeout_ms,
                    receive_progress: progressive.receive_progress,
                    progress: options.progress,
                    passthru: attributes_of_part(
                        progressive.passthru.as_deref(),
                        options.passthru.as_deref(),
                    ),
                },
                payload,
            };
            deliver(context.out, &context.sessions[callee], &message)
        } else {
            continue_across(context, call, options, procedure, payload)
        };
        if !options.progress {
            self.forget_progressive(context, key);
        }
        let fault = match outcome {
            Ok(()) => return Ok(()),
            Err(Refused::Full | Refused::Gone) => Fault::new(
                error::NO_AVAILABLE_CALLEE,
                "the callee could not take the next part",
            ),
            Err(Refused::TooLong) => too_long("callee"),
            Err(Refused::Unrepresentable(reason)) => unrepresentable(reason),
        };
        self.abandon(context, key, &fault);
        Ok(())
    }
}

/// Remembers that `session` may still send CALLs for a progressive call that has ended.
pub(super) fn expect_continuations<H>(session: &mut Session<H>, request: RequestId) {
    let rare = session.rare.get_or_insert_default();
    let unfinished = rare.unfinished.get_or_insert_default();
    if unfinished.len() == UNFINISHED_MAX {
        unfinished.pop_front();
    }
    unfinished.push_back(request);
}

/// Whether this CALL belongs to a progressive call that has ended. Its caller could not know, so that the CALL is
/// ignored; the last part ends the memory of the call (WAMP advanced profile, "Continuations on Completed Calls").
fn is_late_continuation<H>(session: &mut Session<H>, request: RequestId, progress: bool) -> bool {
    let Some(rare) = &mut session.rare else {
        return false;
    };
    let Some(unfinished) = &mut rare.unfinished else {
        return false;
    };
    let Some(place) = unfinished.iter().position(|known| *known == request) else {
        return false;
    };
    if !progress {
        unfinished.remove(place);
        rare.unfinished.take_if(|left| left.is_empty());
        session.tidy();
    }
    true
}

#[cold]
fn not_progressive(request: RequestId) -> Violation {
    Violation::new(format!(
        "CALL {request} has the id of an open call that is not progressive"
    ))
}

/// Checks the attributes that are kept while a progressive call is open.
#[cold]
fn check_kept(options: &CallOptions, bytes_max: usize) -> Result<(), Fault> {
    let bytes = options.passthru.as_deref().map_or(0, dict_bytes);
    if bytes <= bytes_max {
        return Ok(());
    }
    let text = format!(
        "the attributes that a progressive call passes on may have {bytes_max} bytes; these have \
         {bytes}"
    );
    Err(Fault::new(error::CALL_OPTIONS_BYTES_MAX, text))
}

/// The attributes that are passed on with a further part. The first part's attributes hold for all, but the payload's
/// encoding is given with each part.
fn attributes_of_part(first: Option<&Dict>, part: Option<&Dict>) -> Option<Box<Dict>> {
    let is_encoding = |(key, _): &&(String, Value)| key.starts_with("enc_");
    let frozen = first
        .into_iter()
        .flatten()
        .filter(|entry| !is_encoding(entry));
    let own = part.into_iter().flatten().filter(is_encoding);
    let attributes: Dict = frozen.chain(own).cloned().collect();
    (!attributes.is_empty()).then(|| Box::new(attributes))
}

/// The fault of a session that has too many open calls.
#[cold]
fn calls_max<H>(context: &mut Context<'_, H>, from: SessionIndex) -> Fault {
    let realm_max = context.config.limits.calls_max;
    let calls_max = context.role_bound(from, RoleLimit::Calls, realm_max);
    calls_max.reached(context, error::CALLS_MAX, "open calls")
}
