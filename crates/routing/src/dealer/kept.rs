//! CALLs that the dealer keeps whole, and their memory.

use std::collections::BTreeMap;

use crosstie_wamp::{CallOptions, Payload, RegistrationId, RequestId, Serializer, Sharding};

use super::new_call::NewCall;
use crate::Time;
use crate::across::Journey;
use crate::party::Party;
use crate::weight::dict_bytes;

/// Approximate memory of a kept CALL beside its bytes.
const KEPT_BYTES: usize = 512;

/// A CALL to be sent to a callee later.
#[derive(Debug)]
pub(super) struct Kept {
    options: CallOptions,
    pub(super) procedure: Box<str>,
    disclosed: bool,
    journey: Option<Box<Journey<'static>>>,
    serializer: Serializer,
    /// Arguments, then keyword arguments.
    payload: Box<[u8]>,
    args_bytes: usize,
    /// When it arrived.
    pub(super) since: Time,
    /// Its weight against the bounds.
    pub(super) bytes: usize,
}

/// The state to offer an open call to another callee.
#[derive(Debug)]
pub(super) struct Rerouting {
    pub(super) registration: RegistrationId,
    pub(super) kept: Box<Kept>,
    /// The callees that were offered it, the present one included.
    pub(super) tried: Vec<u64>,
}

/// The bytes of all kept CALLs, and by caller.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    bytes: usize,
    of_callers: BTreeMap<Party, usize>,
}

impl Keeping {
    /// Keeps a CALL.
    pub(super) fn keep(&mut self, from: Party, new: &NewCall<'_>) -> Box<Kept> {
        let kept = Box::new(Kept::new(new));
        self.bytes += kept.bytes;
        *self.of_callers.entry(from).or_default() += kept.bytes;
        kept
    }

    /// Releases a caller's CALL.
    pub(super) fn release(&mut self, caller: Party, kept: &Kept) {
        self.bytes -= kept.bytes;
        if let Some(bytes) = self.of_callers.get_mut(&caller) {
            *bytes -= kept.bytes;
            if *bytes == 0 {
                self.of_callers.remove(&caller);
            }
        }
    }

    /// The bytes of one caller's kept CALLs.
    pub(super) fn bytes_of(&self, caller: Party) -> usize {
        self.of_callers.get(&caller).copied().unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asserts that the sums match the kept CALLs.
    pub(super) fn check_invariants<'k>(&self, all: impl Iterator<Item = (Party, &'k Kept)>) {
        let mut of_callers: BTreeMap<Party, usize> = BTreeMap::new();
        for (caller, kept) in all {
            *of_callers.entry(caller).or_default() += kept.bytes;
        }
        assert_eq!(of_callers.values().sum::<usize>(), self.bytes);
        assert_eq!(of_callers, self.of_callers);
    }
}

impl Kept {
    fn new(new: &NewCall<'_>) -> Self {
        let payload = new.payload;
        Self {
            options: new.options.clone(),
            procedure: new.procedure.into(),
            disclosed: new.disclosed,
            journey: (new.journey).map(|journey| Box::new(journey.clone().into_owned())),
            serializer: payload.serializer,
            payload: [payload.args, payload.kwargs].concat().into(),
            args_bytes: payload.args.len(),
            since: new.since,
            bytes: weight(new),
        }
    }

    /// The call as it arrived from `from` with that id.
    pub(super) fn as_new(&self, from: impl Into<Party>, request: RequestId) -> NewCall<'_> {
        let (args, kwargs) = self.payload.split_at(self.args_bytes);
        NewCall {
            from: from.into(),
            request,
            options: &self.options,
            procedure: &self.procedure,
            disclosed: self.disclosed,
            journey: self.journey.as_deref(),
            payload: Payload::new(self.serializer, args, kwargs),
            since: self.since,
            tried: &[],
        }
    }
}

/// The weight of a kept CALL.
pub(super) fn weight(new: &NewCall<'_>) -> usize {
    let passthru = new.options.passthru.as_deref().map_or(0, dict_bytes);
    let sharding = new.options.sharding.as_deref().map_or(0, Sharding::bytes);
    let journey = new.journey.map_or(0, Journey::bytes);
    KEPT_BYTES + new.procedure.len() + passthru + sharding + journey + new.payload.len()
}
