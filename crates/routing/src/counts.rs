//! How much a realm holds.

use crate::Realm;

impl<H> Realm<H> {
    /// How much the realm holds.
    pub fn counts(&self) -> RealmCounts {
        RealmCounts {
            sessions: self.sessions.len(),
            subscriptions: self.broker.subscriptions(),
            registrations: self.dealer.registrations(),
            definitions: self.reflection.len(),
            calls: self.dealer.calls(),
            calls_waiting: self.dealer.calls_waiting(),
            kept_bytes: self.dealer.kept_bytes(),
            retained_events: self.broker.retained().events(),
            retained_bytes: self.broker.retained().bytes(),
            recorded_events: self.broker.recorded().0,
            recorded_bytes: self.broker.recorded().1,
            calls_across: self.sessions.neighbours.calls(),
            registrations_elsewhere: self.sessions.neighbours.offers(),
            questions: self.gatherings.len(),
            sessions_known: self.known.sessions(),
            testaments_entrusted: self.entrusted.len(),
        }
    }
}

/// What a realm holds at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealmCounts {
    pub sessions: usize,
    /// Different (topic, matching policy) pairs.
    pub subscriptions: usize,
    /// Different (procedure, matching policy) pairs.
    pub registrations: usize,
    /// What sessions have defined, of procedures, topics and errors.
    pub definitions: usize,
    /// Calls without their last answer.
    pub calls: usize,
    /// Those of them that no callee has been found for.
    pub calls_waiting: usize,
    /// Bytes of calls that are kept whole.
    pub kept_bytes: usize,
    pub retained_events: usize,
    /// Bytes of the retained events, with their topics and lists.
    pub retained_bytes: usize,
    /// Of histories.
    pub recorded_events: usize,
    pub recorded_bytes: usize,
    /// Calls that are open between this node and others.
    pub calls_across: usize,
    /// What other nodes have told of registrations.
    pub registrations_elsewhere: usize,
    /// What the meta API has asked other nodes, and waits for.
    pub questions: usize,
    /// Sessions of other nodes whose end somebody here is told of.
    pub sessions_known: usize,
    /// Testaments of other nodes' sessions.
    pub testaments_entrusted: usize,
}
