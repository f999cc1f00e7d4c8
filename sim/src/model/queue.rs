//! The naive model's record of a queued call.

use crosstie_wamp::CallOptions;

use crate::Name;

/// A CALL that opens a call.
#[derive(Clone, Debug)]
pub(crate) struct NewCall {
    pub(super) from: Name,
    pub(super) request: u64,
    pub(super) options: CallOptions,
    pub(super) procedure: String,
    pub(super) disclosed: bool,
    pub(super) payload: u64,
    pub(super) since_ms: u64,
    /// The order numbers of callees that it was given to before.
    pub(super) tried: Vec<u64>,
}

/// A call without a callee yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) caller: Name,
    pub(crate) request: u64,
    /// Of the registration.
    pub(super) born: u64,
    pub(super) round: u64,
    pub(super) order: u64,
    pub(super) new: NewCall,
    pub(super) timeout_ms: u64,
}

impl Waiting {
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        (self.timeout_ms > 0).then(|| self.new.since_ms + self.timeout_ms)
    }
}

/// Calls that wait for one registration.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) born: u64,
    pub(super) round: u64,
    /// The last round of each caller that has calls in it.
    pub(super) rounds: Vec<(Name, u64)>,
}
