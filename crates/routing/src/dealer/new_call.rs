//! A CALL that opens a call, and what becomes of it.

use crosstie_wamp::{CallOptions, Payload, RequestId};

use crate::Time;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;

/// A CALL that opens a call.
#[derive(Clone, Copy)]
pub(super) struct NewCall<'m> {
    pub(super) from: SessionIndex,
    pub(super) request: RequestId,
    pub(super) options: &'m CallOptions,
    pub(super) procedure: &'m str,
    pub(super) disclosed: bool,
    pub(super) payload: Payload<'m>,
    /// When it came: the time of one that has waited counts from then.
    pub(super) since: Time,
    /// The numbers of callees that it was given to, and that had another one asked.
    pub(super) tried: &'m [u64],
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
