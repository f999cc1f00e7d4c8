//! Calls between nodes: which node's callees take one, and what both nodes say of it.

use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Message, MessageType, Payload, RequestId,
    ResultDetails, Seldom,
};

use super::Dealer;
use super::answer::untold;
use super::calls::{Call, Progressive, Rare, calls_bytes};
use super::choosing::Chosen;
use super::end::interrupt;
use super::new_call::{NewCall, Placed, disclosed, too_long, unrepresentable};
use super::placing::{bounded, left};
use super::strict::unclaimed;
use crate::Refused;
use crate::across::{Called, Crossing};
use crate::context::{Context, none_left};
use crate::fault::{Fault, error};
use crate::keys::{CallKey, RegistrationKey};
use crate::party::{NeighbourIndex, Party};

/// Nodes that one call is sent to at most.
const NODES_TRIED_MAX: usize = 3;

/// Who keeps the time of a call is another node: this one ends it so much later.
const GUARD_MS: u64 = 1_000;

impl Dealer {
    /// Offers a call to callees of this node and of others, as the policy says; to none of those that were tried.
    #[cold]
    #[inline(never)]
    pub(super) fn place_anywhere<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: NewCall<'_>,
        tried: &[u64],
    ) -> Placed {
        let new = &new;
        let mut tried = tried.to_vec();
        let mut here = None;
        // A node's own callees are its last word to another node: nothing goes through two.
        let is_ours = new.from.session().is_some();
        loop {
            let may_be_here = here.is_none();
            match self.choose(context, key, may_be_here, &tried) {
                Some(Chosen::Here) if self.is_lease_over(context.now, key) => {
                    return Placed::Failed(unclaimed());
                }
                Some(Chosen::Here) => match self.place_here(context, key, new) {
                    Placed::Left if !self.registrations.holds(key) => return Placed::Left,
                    placed @ (Placed::Busy | Placed::Left) => here = Some(placed),
                    placed => return placed,
                },
                Some(Chosen::Node(node)) if is_ours && tried.len() < NODES_TRIED_MAX => {
                    match self.call_across(context, key, node, new, &tried) {
                        Ok(()) => return Placed::Invoked,
                        Err(Refused::TooLong) => return Placed::Failed(too_long("other node")),
                        Err(Refused::Unrepresentable(reason)) => {
                            return Placed::Failed(unrepresentable(reason));
                        }
                        Err(Refused::Full | Refused::Gone) => {
                            let neighbour = &context.sessions.neighbours[node];
                            tried.push(neighbour.key.incarnation);
                        }
                    }
                }
                _ => break,
            }
        }
        if let Some(Placed::Busy) = here {
            return Placed::Busy;
        }
        let procedure = new.procedure;
        Placed::Failed(Fault::new(
            error::NO_AVAILABLE_CALLEE,
            format!("{procedure} is registered, but no node's callee takes the call now"),
        ))
    }

    /// Gives a call to another node.
    fn call_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        node: NeighbourIndex,
        new: &NewCall<'_>,
        tried: &[u64],
    ) -> Result<(), Refused> {
        let registration = &self.registrations[key];
        let options = new.options;
        let unit = context.config.call_timeout_unit;
        let number = context.sessions.neighbours[node].invocation_last + 1;
        let invocation = RequestId(number);
        let message = Message::Call {
            request: invocation,
            options: CallOptions {
                timeout_ms: left(options.timeout_ms, unit, context.now, new.since),
                receive_progress: options.receive_progress,
                progress: options.progress,
                disclose_me: None,
                passthru: options.passthru.clone(),
                sharding: Seldom::NONE,
            },
            procedure: new.procedure.into(),
            payload: new.payload,
        };
        let neighbour = &context.sessions.neighbours[node];
        if neighbour.closing {
            return Err(Refused::Gone);
        }
        let crossing = Crossing::Call(Called {
            registration: registration.pattern(),
            caller: match new.disclosed {
                true => disclosed(context.sessions, new.from, new.stranger),
                false => None,
            },
            tried,
            message: &message,
        });
        context.out.cross(neighbour.key, &crossing)?;
        let mut call = Call::new(new.from, new.request, node.into(), invocation);
        call.receive_progress = options.receive_progress;
        call.timeout_ms = guarded(context, options);
        if options.progress {
            let progressive = Progressive {
                registration: registration.id,
                procedure: None,
                disclosed: false,
                stranger: None,
                timeout_ms: 0,
                receive_progress: options.receive_progress,
                passthru: options.passthru.clone(),
            };
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

    /// Takes what another node has said.
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
                if let Some(key) = self.calls.of_caller(from.into(), *request) {
                    // It is progressive where the other node says so; a node that errs has it ignored.
                    let _ = self.continue_call(context, key, options, procedure, *payload);
                }
            }
            Crossing::Cancel(Message::Cancel { request, options }) => {
                if let Some(key) = self.calls.of_caller(from.into(), *request) {
                    self.cancelled_across(context, key, options.mode);
                }
            }
            Crossing::Result(Message::Result {
                request,
                details,
                payload,
            }) => {
                if let Some(key) = self.calls.of_callee(from.into(), *request) {
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
                if let Some(key) = self.calls.of_callee(from.into(), *request) {
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
            // They have other messages in them than they should; questions and answers are the meta API's.
            _ => {}
        }
    }

    /// A call of another node's session, for callees of this one.
    fn called_across<H>(
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
        if self.calls.of_caller(caller, *request).is_some() {
            return;
        }
        let has = context.sessions.neighbours[from].calls.len();
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
            disclosed: called.caller.is_some(),
            stranger: called.caller.as_ref(),
            payload: *payload,
            since: context.now,
            tried: &[],
        };
        let pattern = called.registration;
        let key = self
            .registrations
            .value(pattern.match_policy, pattern.topic)
            .filter(|key| !self.registrations[*key].callees.is_empty());
        let placed = key.map(|key| match self.is_lease_over(context.now, key) {
            true => Placed::Failed(unclaimed()),
            false => self.place_here(context, key, &new),
        });
        match placed {
            Some(Placed::Invoked) => {}
            Some(Placed::Failed(fault)) => {
                context.refuse(caller, MessageType::Call, *request, &fault);
            }
            Some(Placed::Busy | Placed::Left) | None => {
                let _ = context.cross(caller, &Crossing::Bounce(called.clone()));
            }
        }
    }

    /// Another node had nobody for a call: one more is tried. What was found before may be gone.
    fn bounced<H>(
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
        let Some(key) = self.calls.of_callee(from.into(), *request) else {
            return;
        };
        if self.calls[key].rare.is_some() || options.progress || self.calls[key].interrupted {
            let fault = match self.calls[key].interrupted {
                true => Fault::new(error::CANCELED, "the caller cancelled the call"),
                // Further parts may have gone the same way.
                false => Fault::new(
                    error::NO_AVAILABLE_CALLEE,
                    "the callee's node could not take the call",
                ),
            };
            let call = self.end(context, key);
            return context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
        let call = self.calls.remove(key, context.sessions);
        let incarnation = context.sessions.neighbours[from].key.incarnation;
        let tried: Vec<_> = called.tried.iter().copied().chain([incarnation]).collect();
        let new = NewCall {
            from: call.caller,
            request: call.request,
            options,
            procedure,
            disclosed: called.caller.is_some(),
            stranger: None,
            payload: *payload,
            since: context.now,
            tried: &[],
        };
        if let Err(fault) = self.place_again(context, &new, &tried) {
            context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
    }

    fn place_again<H>(
        &mut self,
        context: &mut Context<'_, H>,
        new: &NewCall<'_>,
        tried: &[u64],
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
            match self.place_anywhere(context, key, *new, tried) {
                Placed::Invoked => return Ok(()),
                Placed::Failed(fault) => return Err(fault),
                Placed::Busy => return self.wait(context, key, *new),
                Placed::Left => {}
            }
        }
    }

    /// The other node has ended a call already, unless it waits for how this one ends it.
    fn cancelled_across<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: CallKey,
        mode: CancelMode,
    ) {
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

    /// A result that another node's callee has given.
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

/// How long this node waits for another one that keeps a call's time.
fn guarded<H>(context: &Context<'_, H>, options: &CallOptions) -> u64 {
    let unit = context.config.call_timeout_unit;
    let timeout_ms = unit.milliseconds(options.timeout_ms);
    match bounded(timeout_ms, context.config.limits.call_timeout_ms_max) {
        0 => 0,
        ms => ms.saturating_add(GUARD_MS),
    }
}

/// Sends the next part of a progressive call on.
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

/// Tells the callee's node that a call is cancelled; whether that was sent.
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
