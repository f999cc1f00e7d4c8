//! The open calls of a realm, for a stop that waits for them.

use std::cell::RefCell;
use std::sync::Arc;

use crosstie_front::connections::Connections;
use crosstie_front::end_reason::EndReason;
use crosstie_routing::OpenCalls;
use crosstie_transport::Connection;
use crosstie_wamp::Payload;

use crate::payload_encodings::PayloadEncodings;
use crate::realm::SharedRealm;

impl SharedRealm {
    /// The calls that are open now, of these connections' sessions or of all.
    pub fn open_calls(&self, of: Option<&Connections>) -> OpenCalls {
        let realm = self.realm.lock();
        realm.open_calls(|peer| of.is_none_or(|of| of.has(&peer.connection)))
    }

    /// The connections among these with open calls, as callers or as callees; perhaps several times.
    pub fn busy(&self, of: &Connections) -> Vec<Arc<Connection>> {
        let busy = RefCell::new(Vec::new());
        self.realm.lock().open_calls(|peer| {
            if of.has(&peer.connection) {
                busy.borrow_mut().push(Arc::clone(&peer.connection));
            }
            // Both parties of each call are looked at.
            false
        });
        busy.into_inner()
    }

    /// Removes answered calls from `open`.
    pub fn forget_answered(&self, open: &mut OpenCalls) {
        self.realm.lock().forget_answered(open);
    }

    /// Ends these calls with an ERROR to the caller, holding the lock no longer than a turn.
    pub fn end_open(&self, mut open: OpenCalls) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        while !open.is_empty() {
            self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
                realm.end_open(now, &mut open, UNANSWERED, outbox);
            });
        }
    }
}

const UNANSWERED: &str = "the router was stopped before the callee had answered";
