//! Input to a realm from other nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_fabric::{Change, Input};
use crosstie_front::end_reason::EndReason;
use crosstie_routing::{Lease, Locality, Outbox, Pattern, Position, Publication, Realm, Time};
use crosstie_transport::Connection;
use crosstie_wamp::{Payload, Serializer};

use crate::fabric::port::FabricPort;
use crate::payload_encodings::{PayloadEncodings, Source};
use crate::peer::Peer;
use crate::realm::{RECEIVERS_SEEN_MAX, SharedRealm, TRANSCODE_OUTSIDE_BYTES_MIN};

impl SharedRealm {
    /// Starts to announce the realm's subscriptions and registrations to other nodes.
    pub(crate) fn join_fabric(&self) {
        if let Some(port) = &self.port {
            let locality = match port.settings.is_own_preferred {
                true => Locality::Prefer,
                false => Locality::Spread,
            };
            let mut encodings = PayloadEncodings::new(Payload::EMPTY);
            self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
                realm.join_fabric(port.incarnation, locality, outbox);
                if port.settings.strict_replicas.is_some() {
                    realm.serve_singles_strictly();
                }
            });
        }
    }

    /// Passes changes of the reachable nodes to the realm.
    pub(crate) fn handle_changes(&self) {
        let Some(port) = &self.port else {
            return;
        };
        if !port.has_changes() {
            return;
        }
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            change(now, realm, port.take_changes(), outbox);
        });
    }

    /// Handles the inputs of one read, in order. Returns the number of events that no subscription matched.
    pub(crate) fn handle_across(&self, inputs: &[Input<'_>], from: &Arc<Connection>) -> u64 {
        let now = self.now();
        let mut overdelivered = 0;
        for input in inputs {
            let publication = match input {
                Input::Event(_, event) => event.publication(),
                Input::Crossing(..) => None,
            };
            let payload = match (input, &publication) {
                (Input::Crossing(_, came), _) => came.payload(),
                (Input::Event(..), Some(publication)) => publication.payload,
                (Input::Event(..), None) => Payload::EMPTY,
            };
            let mut encodings = PayloadEncodings::new(payload);
            if let Some(publication) = &publication
                && publication.payload.len() >= TRANSCODE_OUTSIDE_BYTES_MIN
            {
                self.prepare_from_across(publication.topic, from, &mut encodings);
            }
            let is_wanted = self.enter(&mut encodings, EndReason::Closed, |realm, outbox| {
                let changes = self.port.as_deref().map(FabricPort::take_changes);
                change(now, realm, changes.unwrap_or_default(), outbox);
                let is_wanted = take(now, realm, input, publication.as_ref(), outbox);
                // No session's turn pays for these steps.
                realm.take_steps();
                is_wanted
            });
            overdelivered += u64::from(!is_wanted);
        }
        overdelivered
    }

    /// Other nodes know this node's interests up to that position.
    pub(crate) fn handle_in_force(&self, reached: Position) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.handle_in_force(now, reached, outbox);
            realm.take_steps();
        });
    }

    /// Extends the lease of this node's grants: for those times from that moment it serves them, and keeps them.
    pub(crate) fn handle_lease(&self, from: Instant, (serves, keeps): (Duration, Duration)) {
        let lease = Lease {
            served_until: self.time(from + serves),
            kept_until: self.time(from + keeps),
        };
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.end_lease(now, outbox);
            realm.handle_lease(now, lease);
        });
    }

    /// Ends the lease if it has expired, and with it the grants.
    pub(crate) fn end_lease(&self) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.end_lease(now, outbox);
            realm.take_steps();
        });
    }

    /// The answer to a claim on a single-callee procedure.
    pub(crate) fn handle_claimed(&self, claim: u64, is_granted: bool) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.handle_claimed(now, claim, is_granted, outbox);
            realm.take_steps();
        });
    }

    /// Refuses requests that wait for data which this node lacks the permission to receive.
    pub(crate) fn handle_denied(&self) {
        let Some(port) = &self.port else {
            return;
        };
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            let mut is_denied = |pattern: Pattern<'_>| port.is_denied(pattern);
            realm.handle_denied(now, &mut is_denied, outbox);
            realm.take_steps();
        });
    }

    /// Makes the receivers' encodings outside the lock.
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
            len: 0,
        };
        for serializer in Serializer::ALL {
            if needed[serializer.index()] {
                encodings.prepare(serializer, source);
            }
        }
    }
}

/// Passes one input to the realm. Returns whether any session wanted it.
fn take(
    now: Time,
    realm: &mut Realm<Peer>,
    input: &Input<'_>,
    publication: Option<&Publication<'_>>,
    out: &mut dyn Outbox<Peer>,
) -> bool {
    match (input, publication) {
        (Input::Event(from, _), Some(publication)) => {
            realm.handle_publication(now, *from, publication, out)
        }
        (Input::Event(..), None) => false,
        (Input::Crossing(from, came), _) => {
            if let Some(crossing) = came.crossing() {
                realm.handle_crossing(now, *from, &crossing, out);
            }
            true
        }
    }
}

fn change(now: Time, realm: &mut Realm<Peer>, changes: Vec<Change>, out: &mut dyn Outbox<Peer>) {
    for change in changes {
        match change {
            Change::Joined(key) => realm.join_neighbour(now, key, out),
            Change::Left(key) => realm.leave_neighbour(now, key, out),
            Change::GivenUp { node, has_ended } => {
                realm.give_up_neighbour(now, (node, has_ended), out);
            }
            Change::Dead { node, is_missed } => {
                realm.handle_death(now, (node, is_missed), out);
            }
        }
    }
}
