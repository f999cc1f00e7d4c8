//! Chooses the callee for a call's first INVOCATION.

use std::mem::ManuallyDrop;

use crosstie_wamp::{CallOptions, Disclosed, InvocationDetails, MatchPolicy, Message, RequestId};

use super::Dealer;
use super::callee_choice::pick;
use super::callees::{Callee, Callees, Slot, Turns};
use super::calls::{Call, Progressive, Rare, calls_bytes};
use super::new_call::{CALLEES_TRIED_MAX, NewCall, Placed, disclosed, too_long, unrepresentable};
use crate::context::{Context, deliver};
use crate::fault::{Fault, error};
use crate::features::is_passthru;
use crate::keys::RegistrationKey;
use crate::lent;
use crate::rendezvous::partition;
use crate::{ClientFeature, ClientFeatures, Refused};

impl Dealer {
    /// Offers a call to the callees of a registration, in their order. Nearly always the first one takes it: the other
    /// cases are out of line.
    #[inline(always)]
    pub(super) fn place<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationKey,
        new: &NewCall<'_>,
    ) -> Placed {
        match self.registrations[registration].across.is_none() {
            true => self.place_among_own(context, registration, new),
            false => self.place_anywhere(context, registration, *new),
        }
    }

    /// Offers it to the callees of this node.
    #[cold]
    #[inline(never)]
    pub(super) fn place_here<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationKey,
        new: &NewCall<'_>,
    ) -> Placed {
        self.place_among_own(context, registration, new)
    }

    #[inline(always)]
    fn place_among_own<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationKey,
        new: &NewCall<'_>,
    ) -> Placed {
        let callees = &self.registrations[registration].callees;
        let id = self.registrations[registration].id;
        let first = |callees: &Callees| pick(callees, id, context.sessions, new);
        let Some(turns) = callees.turns(context.random, first) else {
            return self.busy_or_left(context, registration);
        };
        let (place, mut refused) = (turns.place(0), None);
        let callee = callees[place];
        if callee.is_free()
            && !context.sessions[callee.session].closing
            && !new.tried.contains(&callee.number)
        {
            match self.invoke(context, registration, callee, new) {
                Ok(()) => {
                    self.registrations.invoked(registration, place);
                    return Placed::Invoked;
                }
                Err(uninvoked) => refused = Some(uninvoked),
            }
        }
        self.place_after(context, registration, turns, refused, new)
    }

    /// The same for a call that was kept.
    #[cold]
    #[inline(never)]
    pub(super) fn place_kept<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationKey,
        new: &NewCall<'_>,
    ) -> Placed {
        match partition(new.options) {
            Some(rkey) => self.place_in_shard(context, registration, *new, rkey),
            None => self.place(context, registration, new),
        }
    }

    /// Offers a call to the callees after the first one, which was skipped or refused it.
    #[cold]
    #[inline(never)]
    fn place_after<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationKey,
        turns: Turns,
        mut refused: Option<Uninvoked>,
        new: &NewCall<'_>,
    ) -> Placed {
        let (mut tried, mut attempt) = (0, 0);
        loop {
            match refused.take() {
                None => {}
                Some(uninvoked) => match uninvoked.fault() {
                    None => tried += 1,
                    Some(fault) => return Placed::Failed(fault),
                },
            }
            attempt += 1;
            if attempt == turns.callees || tried == CALLEES_TRIED_MAX {
                break;
            }
            let place = turns.place(attempt);
            let callee = self.registrations[registration].callees[place];
            if !callee.is_free()
                || context.sessions[callee.session].closing
                || new.tried.contains(&callee.number)
            {
                continue;
            }
            match self.invoke(context, registration, callee, new) {
                Ok(()) => {
                    self.registrations.invoked(registration, place);
                    return Placed::Invoked;
                }
                Err(uninvoked) => refused = Some(uninvoked),
            }
        }
        if tried == 0 {
            return self.busy_or_left(context, registration);
        }
        Placed::Failed(no_room(new.procedure))
    }

    /// A callee that has left but still has a part in the registration is not called.
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

    /// Sends the first INVOCATION of a call to one callee, and adds the call if it was sent.
    #[inline(always)]
    pub(super) fn invoke<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        callee: Callee,
        new: &NewCall<'_>,
    ) -> Result<(), Uninvoked> {
        let options = new.options;
        let session = &mut context.sessions[callee.session];
        let features = session.features;
        if options.progress || options.passthru.is_some() {
            check_callee(features, options).map_err(Uninvoked::Unsupported)?;
        }
        let invocation = RequestId(session.invocation_last + 1);
        let registration = &self.registrations[key];
        let is_pattern = registration.match_policy != MatchPolicy::Exact;
        // The specification also requires the callee to announce call_canceling before it gets `receive_progress`. The
        // most used JavaScript client does not announce it, and supports progress well.
        let receive_progress =
            options.receive_progress && features.has(ClientFeature::CalleeProgressiveCallResults);
        let forwards_timeout =
            callee.forward_timeout && features.has(ClientFeature::CalleeCallTimeout);
        let unit = context.config.call_timeout_unit;
        let (timeout_ms, forwarded) = if forwards_timeout {
            (0, new.timeout_left(unit, context.now))
        } else {
            (unit.milliseconds(options.timeout_ms), 0)
        };
        let message = ManuallyDrop::new(Message::Invocation {
            request: invocation,
            registration: registration.id,
            details: InvocationDetails {
                procedure: is_pattern.then(|| new.procedure.into()),
                caller: match new.disclosed {
                    true => disclosed(context.sessions, new.from, new.stranger()),
                    false => None,
                },
                timeout_ms: forwarded,
                receive_progress,
                progress: options.progress,
                passthru: options.passthru.clone(),
            },
            payload: new.payload,
        });
        let receiver = &context.sessions[callee.session];
        let sent = deliver(context.out, receiver, &message);
        if options.passthru.is_some() {
            lent::drop_owned(message);
        }
        sent.map_err(Uninvoked::Refused)?;

        context.sessions[callee.session].invocation_last = invocation.0;
        let mut call = Call::new(new.from, new.request, callee.session.into(), invocation);
        call.receive_progress = options.receive_progress;
        call.discloses_callee = callee.is_disclosed;
        call.timeout_ms = bounded(timeout_ms, context.config.limits.call_timeout_ms_max);
        if callee.is_rare() || options.progress {
            let told = (forwarded, receive_progress);
            call.rare = self.rare(context, key, callee, *new, told);
        }
        let more = self.calls.insert(call, new.since, context.sessions);
        if more > 0 {
            context.hold(new.from, calls_bytes(more));
        }
        Ok(())
    }

    /// State that few calls have: a callee's slot, further parts, rerouting.
    #[cold]
    #[inline(never)]
    fn rare<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        callee: Callee,
        new: NewCall<'_>,
        (timeout_ms, receive_progress): (u64, bool),
    ) -> Option<Box<Rare>> {
        if callee.is_sticky {
            self.registrations.keep_company(context, key, callee, &new);
        }
        let registration = &self.registrations[key];
        let slot = (callee.concurrency > 0).then_some(Slot {
            registration: registration.id,
            callee: callee.number,
        });
        let is_pattern = registration.match_policy != MatchPolicy::Exact;
        let progressive = new.options.progress.then(|| Progressive {
            registration: registration.id,
            procedure: is_pattern.then(|| new.procedure.into()),
            disclosed: new.disclosed,
            stranger: new.stranger().map(|who| Box::new(owned(who))),
            timeout_ms,
            receive_progress,
            passthru: new.options.passthru.clone(),
        });
        if let Some(progressive) = &progressive {
            context.hold(new.from, progressive.bytes());
        }
        let rare = Rare {
            slot,
            progressive,
            rerouting: self.rerouting(context, key, callee, new),
        };
        (!rare.is_empty()).then(|| Box::new(rare))
    }
}

/// Why a callee was not invoked.
pub(super) enum Uninvoked {
    Refused(Refused),
    /// The callee does not support a feature of the call.
    Unsupported(Fault),
}

impl Uninvoked {
    /// The caller's fault, if no other callee could take the call either.
    pub(super) fn fault(self) -> Option<Fault> {
        match self {
            Self::Refused(Refused::Full | Refused::Gone) => None,
            Self::Refused(Refused::TooLong) => Some(too_long("callee")),
            Self::Refused(Refused::Unrepresentable(reason)) => Some(unrepresentable(reason)),
            Self::Unsupported(fault) => Some(fault),
        }
    }
}

pub(super) fn no_room(procedure: &str) -> Fault {
    let text = format!("{procedure} is registered, but its callee takes no more calls now");
    Fault::new(error::NO_AVAILABLE_CALLEE, text)
}

/// The shorter of two timeouts; 0 means no bound.
pub(super) fn bounded(timeout_ms: u64, timeout_ms_max: u64) -> u64 {
    match (timeout_ms, timeout_ms_max) {
        (0, bound) => bound,
        (asked, 0) => asked,
        (asked, bound) => asked.min(bound),
    }
}

/// Whether a callee supports the features that a call requires.
#[cold]
#[inline(never)]
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

fn owned(who: &Disclosed<'_>) -> Disclosed<'static> {
    Disclosed {
        session: who.session,
        authid: who.authid.to_string().into(),
        authrole: who.authrole.to_string().into(),
    }
}
