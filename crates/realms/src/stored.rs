//! Reports of a realm's store to the realm, on the store's thread.

use crosstie_front::end_reason::EndReason;
use crosstie_routing::{Acknowledgement, Recalled, RetainedEvent};
use crosstie_wamp::Payload;

use crate::event_store::Answers;
use crate::payload_encodings::PayloadEncodings;
use crate::realm::SharedRealm;

impl SharedRealm {
    /// Restores retained events from the store before the realm is reachable.
    pub(crate) fn restore_retained(&self, events: Vec<RetainedEvent>) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.restore_retained(now, events, outbox);
        });
    }
}

impl Answers for SharedRealm {
    fn handle_stored(&self, acknowledgements: Vec<Acknowledgement>, outcome: Result<(), &str>) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            for acknowledgement in acknowledgements {
                realm.handle_stored(now, acknowledgement, outcome, outbox);
            }
            // No session's turn pays for these steps.
            realm.take_steps();
        });
    }

    fn handle_recalled(&self, recalled: Recalled) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.handle_recalled(now, recalled, outbox);
            realm.take_steps();
        });
    }
}
