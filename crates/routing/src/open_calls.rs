//! A stop that waits for open calls, and ends those that are not answered in time.

use crate::dealer::OpenCalls;
use crate::fault::{Fault, error};
use crate::{Outbox, Realm, Time};

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
