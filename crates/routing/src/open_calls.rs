//! A stop waits for the calls that are open, and ends those that are not answered in time.

use crate::dealer::OpenCalls;
use crate::fault::{Fault, error};
use crate::{Outbox, Realm, Time};

/// Calls that end under one taking of the realm, in steps.
const STEPS_MAX: u32 = 10_240;

impl<H> Realm<H> {
    /// The calls that are open now and that a session has made or serves whose handle is meant. Calls between other
    /// nodes and sessions here count by the session. Looks at every open call: for a stop, not for a message.
    pub fn open_calls(&self, is_meant: impl Fn(&H) -> bool) -> OpenCalls {
        self.dealer.open_calls(|party| {
            party
                .session()
                .is_some_and(|session| is_meant(&self.sessions[session].handle))
        })
    }

    /// Forgets calls among these that have been answered. It is empty as soon as all have been.
    pub fn forget_answered(&self, open: &mut OpenCalls) {
        self.dealer.forget_answered(open);
    }

    /// Ends some of these calls with an ERROR to the caller. To be called until there are none, in turns between which
    /// others have theirs.
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
