//! Calls between nodes: sends a call to another node, and handles that node's messages.

use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Message, MessageType, Payload, RegistrationId,
    RequestId, ResultDetails,
};

use super::Dealer;
use super::answer::untold;
use super::calls::{Call, Progressive, Rare, calls_bytes};
use super::course::Course;
use super::end::interrupt;
use super::new_call::disclosed;
use super::placement::bounded;
use crate::Refused;
use crate::across::{Called, Crossing, Journey};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::keys::{CallKey, RegistrationKey};
use crate::party::NeighbourIndex;

/// If another node applies the timeout of a call, this one ends the call that much later.
const GUARD_MS: u64 = 1_000;

impl Dealer {
    /// Sends a call to another node.
    pub(super) fn call_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        node: NeighbourIndex,
        course: &Course<'_>,
    ) -> Result<(), Refused> {
        let registration = &self.registrations[key];
        let new = &course.new;
        let options = new.options;
        let number = context.sessions.neighbours[node].invocation_last + 1;
        let invocation = RequestId(number);
        let message = new.crossing(invocation, context.config.call_timeout_unit, context.now);
        let neighbour = &context.sessions.neighbours[node];
        if neighbour.closing {
            return Err(Refused::Gone);
        }
        let journey = Journey {
            caller: match new.disclosed {
                true => disclosed(context.sessions, new.from, None),
                false => None,
            },
            asked: u32::try_from(course.asked()).unwrap_or(u32::MAX),
            ..course.journey.clone()
        };
        let crossing = Crossing::Call(Called {
            registration: registration.pattern(),
            journey: &journey,
            message: &message,
        });
        context.out.cross(neighbour.key, &crossing)?;
        let mut call = Call::new(new.from, new.request, node.into(), invocation);
        call.receive_progress = options.receive_progress;
        call.timeout_ms = guarded(context, options);
        if options.progress {
            let progressive = progressive(registration.id, options);
            context.hold(new.from, progressive.bytes());
            call.rare = Some(Box::new(Rare {
                slot: None,
                progressive: Some(progressive),
                rerouting: None,
            }));
        }
        context.sessions.neighbours[node].invocation_last = number;
        let more = self.calls.insert(call, new.since, context.sessions);
        if more > 0 {
            context.hold(new.from, calls_bytes(more));
        }
        Ok(())
    }

    /// Handles a message of another node.
    pub(crate) fn handle_crossing<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: NeighbourIndex,
        crossing: &Crossing<'_>,
    ) {
        match crossing {
            Crossing::Call(called) => self.called_across(context, from, called),
            Crossing::Bounce(called) => self.bounced(context, from, called),
            Crossing::Continue(Message::Call {
                request,
                options,
                procedure,
                payload,
            }) => {
                if let Some(key) = context.sessions.call(from.into(), *request) {
                    // Whether it is progressive, the other node decides; an invalid part is ignored.
                    let _ = self.continue_call(context, key, options, procedure, *payload);
                }
            }
            Crossing::Cancel(Message::Cancel { request, options }) => {
                self.cancelled_across(context, (from, *request), options.mode);
            }
            Crossing::Result(Message::Result {
                request,
                details,
                payload,
            }) => {
                if let Some(key) = context.sessions.invocation(from.into(), *request) {
                    self.pass_result(context, key, details, *payload);
                }
            }
            Crossing::Error(Message::Error {
                request,
                details,
                error,
                payload,
                ..
            }) => {
                if let Some(key) = context.sessions.invocation(from.into(), *request) {
                    self.pass_error(context, key, (details, error), *payload);
                }
            }
            Crossing::Offer(offer) => {
                let evicted = self.registrations.take_offer(context, from, offer);
                self.evict(evicted);
            }
            Crossing::Withdraw(pattern, untold) => {
                let withdrawn = (*pattern, *untold);
                self.registrations.withdraw(context, from, withdrawn);
            }
            Crossing::Revoke(pattern) => {
                let key = self
                    .registrations
                    .value(pattern.match_policy, pattern.topic);
                if let Some(key) = key {
                    self.registrations.revoke_here(context, key);
                }
            }
            Crossing::Ask(number) => {
                let _ = context.cross(from.into(), &Crossing::Known(*number));
            }
            Crossing::Known(number) => self.handle_known(context, from, *number),
            // Malformed crossings are ignored. The meta API handles questions and answers.
            _ => {}
        }
    }

    /// The other node has cancelled a call. Unless it waits for the outcome, it has ended the call already.
    fn cancelled_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        (from, request): (NeighbourIndex, RequestId),
        mode: CancelMode,
    ) {
        let Some(key) = context.sessions.call(from.into(), request) else {
            return self.cancelled_waiting(context, (from, request), mode);
        };
        let call = &self.calls[key];
        let (caller, request) = (call.caller, call.request);
        if mode == CancelMode::Kill {
            if call.interrupted || interrupt(context, call, mode, error::CANCELED) {
                self.calls[key].interrupted = true;
                return;
            }
            self.end(context, key);
            let fault = Fault::new(error::CANCELED, "the caller cancelled the call");
            return context.refuse(caller, MessageType::Call, request, &fault);
        }
        let call = self.end(context, key);
        if mode == CancelMode::KillNoWait && !call.interrupted {
            interrupt(context, &call, mode, error::CANCELED);
        }
    }

    /// The same for a call that waits here.
    fn cancelled_waiting<H>(
        &mut self,
        context: &mut Context<'_, H>,
        (from, request): (NeighbourIndex, RequestId),
        mode: CancelMode,
    ) {
        let Some(key) = self.waiting_call(from, request) else {
            return;
        };
        let fault = Fault::new(error::CANCELED, "the caller cancelled the call");
        match mode {
            CancelMode::Kill => self.end_waiting(context, key, &fault),
            CancelMode::KillNoWait | CancelMode::Skip => {
                self.forget_waiting(context, key);
            }
        }
    }

    /// A result of another node's callee.
    fn pass_result<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: CallKey,
        details: &ResultDetails<'_>,
        payload: Payload<'_>,
    ) {
        let call = &self.calls[key];
        let (caller, request) = (call.caller, call.request);
        let result = Message::Result {
            request,
            details: details.clone(),
            payload,
        };
        if details.progress {
            self.calls.restart_timeout(key, context.now);
            if self.calls[key].receive_progress
                && let Some(fault) = untold(context.answer(caller, &result))
            {
                self.abandon(context, key, &fault);
            }
            return;
        }
        self.end(context, key);
        if let Some(fault) = untold(context.answer(caller, &result)) {
            context.refuse(caller, MessageType::Call, request, &fault);
        }
    }
}

/// The state of a progressive call that another node's callee serves.
fn progressive(registration: RegistrationId, options: &CallOptions) -> Progressive {
    Progressive {
        registration,
        procedure: None,
        disclosed: false,
        stranger: None,
        timeout_ms: 0,
        receive_progress: options.receive_progress,
        passthru: options.passthru.clone(),
    }
}

/// How long this node waits for another node that applies the call's timeout.
fn guarded<H>(context: &Context<'_, H>, options: &CallOptions) -> u64 {
    let unit = context.config.call_timeout_unit;
    let timeout_ms = unit.milliseconds(options.timeout_ms);
    match bounded(timeout_ms, context.config.limits.call_timeout_ms_max) {
        0 => 0,
        ms => ms.saturating_add(GUARD_MS),
    }
}

/// Forwards the next part of a progressive call.
#[cold]
pub(super) fn continue_across<H>(
    context: &mut Context<'_, H>,
    call: &Call,
    options: &CallOptions,
    procedure: &str,
    payload: Payload<'_>,
) -> Result<(), Refused> {
    let message = Message::Call {
        request: call.invocation,
        options: CallOptions {
            progress: options.progress,
            passthru: options.passthru.clone(),
            ..CallOptions::default()
        },
        procedure: procedure.into(),
        payload,
    };
    context.cross(call.callee, &Crossing::Continue(&message))
}

/// Sends a cancellation to the callee's node; returns whether it was sent.
#[cold]
pub(super) fn cancel_across<H>(
    context: &mut Context<'_, H>,
    call: &Call,
    mode: CancelMode,
) -> bool {
    let message = Message::Cancel {
        request: call.invocation,
        options: CancelOptions { mode },
    };
    context
        .cross(call.callee, &Crossing::Cancel(&message))
        .is_ok()
}
