//! A CALL that opens a call, and what becomes of it.

use crosstie_wamp::{CallOptions, Disclosed, Message, Payload, RequestId, Seldom};

use crate::across::Journey;
use crate::fault::{Fault, error};
use crate::party::Party;
use crate::session::Sessions;
use crate::{CallTimeoutUnit, Time};

/// Callees of a shared registration that one CALL is offered to, when queues are full.
pub(super) const CALLEES_TRIED_MAX: usize = 8;

/// A CALL that opens a call.
#[derive(Clone, Copy)]
pub(super) struct NewCall<'m> {
    pub(super) from: Party,
    pub(super) request: RequestId,
    pub(super) options: &'m CallOptions,
    pub(super) procedure: &'m str,
    pub(super) disclosed: bool,
    /// What it has met on other nodes, and who calls from there.
    pub(super) journey: Option<&'m Journey<'m>>,
    pub(super) payload: Payload<'m>,
    /// When it came: the time of one that has waited counts from then.
    pub(super) since: Time,
    /// The numbers of callees that it was given to, and that had another one asked.
    pub(super) tried: &'m [u64],
}

impl<'m> NewCall<'m> {
    /// Who calls, where that is a session of another node and disclosed.
    pub(super) fn stranger(&self) -> Option<&'m Disclosed<'m>> {
        self.journey.and_then(|journey| journey.caller.as_ref())
    }

    /// The CALL that crosses to another node under this number.
    pub(super) fn crossing(
        &self,
        request: RequestId,
        unit: CallTimeoutUnit,
        now: Time,
    ) -> Message<'m> {
        let options = self.options;
        Message::Call {
            request,
            options: CallOptions {
                timeout_ms: self.timeout_left(unit, now),
                receive_progress: options.receive_progress,
                progress: options.progress,
                disclose_me: None,
                passthru: options.passthru.clone(),
                sharding: Seldom::NONE,
            },
            procedure: self.procedure.into(),
            payload: self.payload,
        }
    }

    /// What is left of a time that a callee keeps itself, in the unit that it was given in.
    pub(super) fn timeout_left(&self, unit: CallTimeoutUnit, now: Time) -> u64 {
        let timeout = self.options.timeout_ms;
        let waited_ms = (now.0 - self.since.0) / 1_000;
        if timeout == 0 || waited_ms == 0 {
            return timeout;
        }
        let waited = waited_ms / unit.milliseconds(1);
        timeout.saturating_sub(waited).max(1)
    }

    /// How many callees have had the next one asked.
    pub(super) fn asked(&self) -> usize {
        let before = self.journey.map_or(0, |journey| journey.asked as usize);
        before + self.tried.len()
    }
}

/// What became of a call that was to be given to a callee.
pub(super) enum Placed {
    Invoked,
    /// Every callee serves as many calls as it takes at a time.
    Busy,
    /// All who served the registration have left; it is gone now.
    Left,
    Failed(Fault),
}

/// What is told of a caller that is disclosed.
pub(super) fn disclosed<'m, H>(
    sessions: &'m Sessions<H>,
    caller: Party,
    stranger: Option<&'m Disclosed<'m>>,
) -> Option<Disclosed<'m>> {
    match caller.session() {
        Some(session) => Some(sessions[session].disclosed()),
        None => stranger.map(|stranger| Disclosed {
            session: stranger.session,
            authid: (&*stranger.authid).into(),
            authrole: (&*stranger.authrole).into(),
        }),
    }
}

/// A payload longer than the peer of `receiver` takes.
pub(crate) fn too_long(receiver: &str) -> Fault {
    Fault::new(
        error::PAYLOAD_SIZE_EXCEEDED,
        format!("the message is longer than the {receiver} takes"),
    )
}

/// A payload that the receiver's serializer has no form for.
pub(crate) fn unrepresentable(reason: &'static str) -> Fault {
    Fault::new(error::INVALID_ARGUMENT, reason)
}
