//! The calls that were open at one moment: a stop waits for them, and ends the rest.

use crosstie_wamp::RequestId;

use super::Dealer;
use super::end::STEPS_PER_CALL;
use crate::context::Context;
use crate::fault::Fault;
use crate::party::Party;
use crate::session::Sessions;

/// The calls that were open at one moment ([`crate::Realm::open_calls`]).
#[derive(Debug, Default)]
pub struct OpenCalls {
    calls: Vec<(Party, RequestId)>,
}

impl OpenCalls {
    /// Number of calls that may still be open.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

impl Dealer {
    /// The open calls whose caller or callee `is_meant` selects. A call that waits for a callee has none.
    pub(crate) fn open_calls(&self, is_meant: impl Fn(Party) -> bool) -> OpenCalls {
        let calls = self.calls.iter();
        let calls = calls.filter(|call| is_meant(call.caller) || is_meant(call.callee));
        let calls = calls.map(|call| (call.caller, call.request));
        let waiting = self.waiting.iter();
        let waiting = waiting.filter(|call| is_meant(call.caller));
        let waiting = waiting.map(|call| (call.caller, call.request));
        OpenCalls {
            calls: calls.chain(waiting).collect(),
        }
    }

    /// Forgets answered calls from the end of the list; earlier ones are examined after these.
    pub(crate) fn forget_answered<H>(&self, sessions: &Sessions<H>, open: &mut OpenCalls) {
        while let Some((caller, request)) = open.calls.last().copied() {
            if self.has_call(sessions, caller, request) {
                return;
            }
            open.calls.pop();
        }
    }

    /// Whether a caller has an open call with that request id, or one that waits.
    pub(crate) fn has_call<H>(
        &self,
        sessions: &Sessions<H>,
        caller: impl Into<Party>,
        request: RequestId,
    ) -> bool {
        let caller = caller.into();
        sessions.call(caller, request).is_some() || self.waiting_call(caller, request).is_some()
    }

    /// Ends some of these calls with an ERROR to the caller, for that many steps.
    pub(crate) fn end_open<H>(
        &mut self,
        context: &mut Context<'_, H>,
        open: &mut OpenCalls,
        fault: &Fault,
        steps_max: u32,
    ) {
        let count = steps_max.div_ceil(STEPS_PER_CALL) as usize;
        let rest = open.calls.len().saturating_sub(count);
        let mut ended = open.calls.split_off(rest);
        context.spend(ended.len() as u32 * STEPS_PER_CALL);
        ended.sort_unstable();
        for (caller, request) in ended {
            if let Some(key) = self.waiting_call(caller, request) {
                self.end_waiting(context, key, fault);
            } else if let Some(key) = context.sessions.call(caller, request) {
                self.abandon(context, key, fault);
            }
        }
    }
}
