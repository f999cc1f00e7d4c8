//! A stop that waits for open calls, and ends those that are not answered in time.

use crosstie_wamp::RequestId;

use crate::dealer::OpenCalls;
use crate::fault::{Fault, error};
use crate::{Outbox, Realm, SessionKey, Time};

/// Maximum steps for ending calls while the realm's lock is held.
const STEPS_MAX: u32 = 10_240;

impl<H> Realm<H> {
    /// The open calls whose caller or callee `is_meant` selects by its handle. Calls between other nodes and local
    /// sessions count by the session. Examines every open call: for a stop, not for a message.
    pub fn open_calls(&self, is_meant: impl Fn(&H) -> bool) -> OpenCalls {
        self.dealer.open_calls(|party| {
            party
                .session()
                .is_some_and(|session| is_meant(&self.sessions[session].handle))
        })
    }

    /// Whether a session has an open call with that request id. A call of a meta procedure that other nodes are asked for
    /// is none.
    pub fn has_call(&self, key: SessionKey, request: RequestId) -> bool {
        self.sessions
            .find(key)
            .is_some_and(|caller| self.dealer.has_call(&self.sessions, caller, request))
    }

    /// Forgets answered calls among these. The list is empty as soon as all are answered.
    pub fn forget_answered(&self, open: &mut OpenCalls) {
        self.dealer.forget_answered(&self.sessions, open);
    }

    /// Ends some of these calls with an ERROR to the caller. To be called until none is left, in turns between which
    /// other sessions have theirs.
    pub fn end_open(
        &mut self,
        now: Time,
        open: &mut OpenCalls,
        text: &'static str,
        out: &mut dyn Outbox<H>,
    ) {
        let fault = Fault::new(error::CANCELED, text);
        let (_, dealer, mut context) = self.split(now, out);
        dealer.end_open(&mut context, open, &fault, STEPS_MAX);
        self.work(now, self.steps_at_once_max, out);
    }
}
