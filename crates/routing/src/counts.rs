//! Gauges of a realm.

use std::collections::BTreeMap;

use crosstie_collections::Histogram;

use crate::Realm;

impl<H> Realm<H> {
    /// Microseconds from CALL to the callee's answer, by the caller's role, of calls from this node.
    pub fn call_times(&self) -> BTreeMap<String, Histogram> {
        let mut by_role: BTreeMap<String, Histogram> = BTreeMap::new();
        for (role, times) in self.roles.answered() {
            by_role.entry(role.to_owned()).or_default().add(times);
        }
        by_role
    }

    /// Returns the realm's gauges.
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
            questions: self.queries.len(),
            sessions_known: self.remote_index.sessions(),
            testaments_entrusted: self.held_testaments.len(),
        }
    }
}

/// The present size of a realm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealmCounts {
    pub sessions: usize,
    /// Different (topic, matching policy) pairs.
    pub subscriptions: usize,
    /// Different (procedure, matching policy) pairs.
    pub registrations: usize,
    /// Definitions of procedures, topics and errors by sessions.
    pub definitions: usize,
    /// Calls without their final answer.
    pub calls: usize,
    /// The calls among them that wait for a callee.
    pub calls_waiting: usize,
    /// Bytes of calls that are kept whole.
    pub kept_bytes: usize,
    pub retained_events: usize,
    /// Bytes of the retained events, with their topics and lists.
    pub retained_bytes: usize,
    /// Events in histories.
    pub recorded_events: usize,
    pub recorded_bytes: usize,
    /// Open calls between this node and others.
    pub calls_across: usize,
    /// Registrations announced by other nodes.
    pub registrations_elsewhere: usize,
    /// Meta API questions to other nodes that are open.
    pub questions: usize,
    /// Sessions of other nodes whose end will be announced here.
    pub sessions_known: usize,
    /// Testaments held for other nodes.
    pub testaments_entrusted: usize,
}
