//! What a realm's store tells the realm, from its own thread.

use crosstie_routing::{Acknowledgement, Recalled, RetainedEvent};
use crosstie_wamp::Payload;

use crate::end_reason::EndReason;
use crate::wamp::event_store::Answers;
use crate::wamp::payload_encodings::PayloadEncodings;
use crate::wamp::realm::SharedRealm;

impl SharedRealm {
    /// Takes in what the store has kept of what was retained, before anybody finds the realm.
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
            // They are nobody's turn.
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
