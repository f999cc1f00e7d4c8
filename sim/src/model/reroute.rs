//! Calls that another callee is asked about, naively.

use crosstie_routing::{ClientFeature, ClientFeatures, error};

use super::queue::NewCall;
use super::shards::is_for_one_shard;
use super::{Entry, Model};
use crate::Name;
use crate::operation::callee_error;

impl Model {
    /// A callee's ERROR; whether it is a violation.
    pub(super) fn fail(
        &mut self,
        from: Name,
        invocation: u64,
        is_unavailable: bool,
        payload: u64,
    ) -> bool {
        let rerouted = is_unavailable && self.reroute(from, invocation);
        let is_interrupted = self
            .calls
            .iter()
            .any(|call| call.callee == from && call.invocation == invocation && call.interrupted);
        let uri = match is_interrupted {
            true => error::CANCELED,
            false => callee_error(is_unavailable),
        };
        let failed = Err((payload, uri));
        !rerouted && self.answer(from, invocation, false, failed)
    }

    /// A callee says that it is not available; whether that is not for the caller.
    fn reroute(&mut self, from: Name, invocation: u64) -> bool {
        let features = self.member(from).features;
        let of_it = |call: &super::Call| {
            call.callee == from && call.invocation == invocation && !call.interrupted
        };
        let Some(place) = self.calls.iter().position(of_it) else {
            return false;
        };
        if !features.has(ClientFeature::CalleeCallReroute) {
            return false;
        }
        let call = self.end(place);
        let outcome = match call.kept {
            None => Err(error::NO_AVAILABLE_CALLEE),
            Some((id, new)) => {
                let of_it = |entry: &&Entry| entry.id == id;
                let group: Vec<Entry> = self.callees.iter().filter(of_it).cloned().collect();
                let timeout_ms = self.timeout_ms(new.options.timeout_ms);
                if timeout_ms > 0 && new.since_ms + timeout_ms <= self.now_ms {
                    Err(error::TIMEOUT)
                } else if group.is_empty() {
                    Err(error::NO_AVAILABLE_CALLEE)
                } else if is_for_one_shard(&new.options) {
                    let outcome = self.invoke_in_shard(&group, &new);
                    outcome.map_err(|uri| match uri {
                        error::MAX_CONCURRENCY_REACHED => error::NO_AVAILABLE_CALLEE,
                        uri => uri,
                    })
                } else {
                    self.invoke(&group, &new)
                }
            }
        };
        if let Err(uri) = outcome {
            self.refuse(call.caller, "CALL", call.request, uri);
        }
        true
    }
}

/// Keeps the call and its registration, if another callee may follow `chosen`.
pub(super) fn keep(
    group: &[Entry],
    new: &NewCall,
    chosen: &Entry,
    features: ClientFeatures,
) -> Option<(u64, NewCall)> {
    let mut new = new.clone();
    new.tried.push(chosen.order);
    let may_be = new.tried.len() < group.len().min(8) && !new.options.progress;
    (may_be && features.has(ClientFeature::CalleeCallReroute)).then_some((chosen.id, new))
}
