//! A CALL that opens a call, and its outcome.

use crosstie_wamp::{CallOptions, Disclosed, Message, Payload, RequestId, Seldom};

use crate::across::Journey;
use crate::fault::{Fault, error};
use crate::party::Party;
use crate::session::Sessions;
use crate::{CallTimeoutUnit, Time};

/// Maximum number of callees of a shared registration that one CALL is offered to, if queues are full.
pub(super) const CALLEES_TRIED_MAX: usize = 8;

/// A CALL that opens a call.
#[derive(Clone, Copy)]
pub(super) struct NewCall<'m> {
    pub(super) from: Party,
    pub(super) request: RequestId,
    pub(super) options: &'m CallOptions,
    pub(super) procedure: &'m str,
    pub(super) disclosed: bool,
    /// Its way through other nodes, with the caller if disclosed.
    pub(super) journey: Option<&'m Journey<'m>>,
    pub(super) payload: Payload<'m>,
    /// When it arrived: the timeout of a queued call counts from then.
    pub(super) since: Time,
    /// The numbers of callees that rerouted it.
    pub(super) tried: &'m [u64],
}

impl<'m> NewCall<'m> {
    /// The caller, if it is a disclosed session of another node.
    pub(super) fn stranger(&self) -> Option<&'m Disclosed<'m>> {
        self.journey.and_then(|journey| journey.caller.as_ref())
    }

    /// The CALL that is sent to another node under this number.
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

    /// The rest of a timeout that the callee applies itself, in the unit of the CALL.
    pub(super) fn timeout_left(&self, unit: CallTimeoutUnit, now: Time) -> u64 {
        let timeout = self.options.timeout_ms;
        let waited_ms = (now.0 - self.since.0) / 1_000;
        if timeout == 0 || waited_ms == 0 {
            return timeout;
        }
        let waited = waited_ms / unit.milliseconds(1);
        timeout.saturating_sub(waited).max(1)
    }

    /// How many callees rerouted it.
    pub(super) fn asked(&self) -> usize {
        let before = self.journey.map_or(0, |journey| journey.asked as usize);
        before + self.tried.len()
    }
}

/// The outcome of offering a call to callees.
pub(super) enum Placed {
    Invoked,
    /// Every callee is at its concurrency bound.
    Busy,
    /// All callees of the registration have left; it is gone now.
    Left,
    Failed(Fault),
}

/// The disclosed identity of a caller.
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

/// The fault of a payload that exceeds the message size limit of `receiver`'s peer.
pub(crate) fn too_long(receiver: &str) -> Fault {
    Fault::new(
        error::PAYLOAD_SIZE_EXCEEDED,
        format!("the message is longer than the {receiver} takes"),
    )
}

/// The fault of a payload that the receiver's serializer cannot represent.
pub(crate) fn unrepresentable(reason: &'static str) -> Fault {
    Fault::new(error::INVALID_ARGUMENT, reason)
}
