//! What comes into a realm from other nodes.

use std::sync::Arc;

use crosstie_fabric::event::Event;
use crosstie_routing::Position;
use crosstie_transport::Connection;
use crosstie_wamp::{Payload, Serializer};
use parking_lot::MutexGuard;

use crate::wamp::end_reason::EndReason;
use crate::wamp::outbox::RealmOutbox;
use crate::wamp::payload_encodings::{PayloadEncodings, Source};
use crate::wamp::realm::{RECEIVERS_SEEN_MAX, SharedRealm, TRANSCODE_OUTSIDE_BYTES_MIN, next_turn};

/// What is done of one read before others have the lock: about a tenth of a millisecond.
const STEPS_PER_TURN_MAX: u32 = 1_024;

impl SharedRealm {
    /// Tells other nodes what the realm wants, from now on.
    pub(crate) fn join_fabric(&self) {
        if self.link.is_some() {
            let mut encodings = PayloadEncodings::new(Payload::EMPTY);
            self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
                realm.join_fabric(outbox);
            });
        }
    }

    /// Takes the events of one read, in their order, under one taking of the lock unless they are many; how many
    /// of them no subscription matched.
    pub(crate) fn handle_across(&self, events: &[Event<'_>], from: &Arc<Connection>) -> u64 {
        let publications: Vec<_> = events.iter().filter_map(Event::publication).collect();
        let mut encodings: Vec<_> = publications
            .iter()
            .map(|publication| PayloadEncodings::new(publication.payload))
            .collect();
        for (publication, encodings) in publications.iter().zip(&mut encodings) {
            if publication.payload.len() >= TRANSCODE_OUTSIDE_BYTES_MIN {
                self.prepare_from_across(publication.topic, from, encodings);
            }
        }
        let now = self.now();
        let of_sessions = (&*self.session_messages, self.discloses_router);
        let mut overdelivered = 0;
        let mut realm = self.realm.lock();
        for (publication, encodings) in publications.iter().zip(&mut encodings) {
            let link = self.link.as_deref();
            let own = self.messages.own();
            let mut outbox = RealmOutbox::new(encodings, own, of_sessions, link, &self.kept);
            let is_wanted = realm.handle_publication(now, publication, &mut outbox);
            overdelivered += u64::from(!is_wanted);
            if realm.steps() > STEPS_PER_TURN_MAX {
                realm.take_steps();
                MutexGuard::unlock_fair(realm);
                realm = self.realm.lock();
            }
        }
        realm.take_steps();
        let next = next_turn(&realm);
        drop(realm);
        self.arm(next);
        overdelivered
    }

    /// Other nodes know what was wanted up to that position.
    pub(crate) fn handle_in_force(&self, reached: Position) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.handle_in_force(now, reached, outbox);
            realm.take_steps();
        });
    }

    /// Makes the encodings that the receivers will need, outside the lock.
    fn prepare_from_across(
        &self,
        topic: &str,
        connection: &Arc<Connection>,
        encodings: &mut PayloadEncodings<'_>,
    ) {
        let mut needed = [false; Serializer::ALL.len()];
        let mut seen = 0;
        self.realm.lock().receivers_from_across(topic, &mut |peer| {
            needed[peer.wire.serializer.index()] = true;
            seen += 1;
            seen < RECEIVERS_SEEN_MAX && needed.contains(&false)
        });
        let source = Source {
            connection,
            bytes: None,
        };
        for serializer in Serializer::ALL {
            if needed[serializer.index()] {
                encodings.prepare(serializer, source);
            }
        }
    }
}
