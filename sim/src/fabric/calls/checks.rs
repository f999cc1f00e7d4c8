//! The permitted results of a call, and the conditions at the end.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_wamp::InvocationPolicy;

use super::{ASKED_MAX, Call, Calls, PROCEDURES, Session, is_bounded};
use crate::Name;
use crate::fabric::node::{Node, QUEUED};

impl Calls {
    pub(super) fn judge_error(&self, call: &Call, error: &str) {
        let lasting = self.lasting(call).next().is_some();
        let is_shard = call.rkey.is_some();
        // Every permanent callee has been asked, or the maximum number.
        let all_asked = is_shard
            || is_bounded(call.place)
            || call.is_begun
            || call.asked.len() >= ASKED_MAX
            || self
                .lasting(call)
                .all(|holder| call.asked.iter().any(|(name, _)| *name == holder));
        let may_be = match error {
            "e.failed" => true,
            "wamp.error.no_available_callee" if !call.asked.is_empty() && all_asked => true,
            "crossbar.error.max_concurrency_reached" => is_bounded(call.place),
            "wamp.error.canceled" => true,
            // A callee that was interrupted has stopped.
            "wamp.error.unavailable" => call.is_cancelled,
            "wamp.error.timeout" => call.has_timeout,
            "wamp.error.no_such_procedure" | "wamp.error.no_available_callee" => {
                !lasting || self.cluster.setting.faults
            }
            "wamp.error.network_failure" => self.cluster.setting.faults,
            _ => false,
        };
        let is_cancelled = call.is_cancelled;
        let Call { number, place, .. } = call;
        let procedure = PROCEDURES[*place].1;
        assert!(
            may_be,
            "call {number} of {procedure}: {error}, cancelled: {is_cancelled}"
        );
    }

    /// The callees of a call's procedure that remained since it was made.
    fn lasting<'c>(&'c self, call: &'c Call) -> impl Iterator<Item = Name> + 'c {
        let lasting = call.holders.iter().filter(|(name, since)| {
            let session = self.sessions.get(name);
            session.is_some_and(|session| session.registered.values().any(|(_, s)| s == since))
        });
        lasting.map(|(name, _)| *name)
    }

    /// Checks a procedure with one callee.
    pub(super) fn check_alone(&self, name: Name, place: usize) {
        for (other, session) in &self.sessions {
            let has = session
                .registered
                .values()
                .any(|(known, _)| *known == place);
            assert!(!has || *other == name, "{name} and {other} have the same");
        }
    }

    /// Checks a procedure with one callee, whose node may still serve it.
    pub(super) fn check_leased_alone(&self, name: Name, place: usize) {
        for (other, session) in &self.sessions {
            let mut registered = session.registered.values();
            let has = registered.any(|(known, _)| *known == place);
            let until = self.cluster.nodes[&session.place.node].leased_until;
            let may_serve = has && *other != name && until > self.cluster.now;
            assert!(!may_serve, "{name} is granted what {other} has");
        }
    }

    /// Checks that no callee is invoked whose node has lost its grant.
    pub(super) fn check_leased(&self, name: Name, number: u64) {
        let calls = self.sessions.values().flat_map(|s| s.calls.values());
        let call = calls.into_iter().find(|call| call.number == number);
        let is_single =
            call.is_some_and(|call| PROCEDURES[call.place].2 == InvocationPolicy::Single);
        if let Some(session) = self.sessions.get(&name)
            && is_single
            && self.cluster.setting.strict
        {
            let until = self.cluster.nodes[&session.place.node].leased_until;
            assert!(until > self.cluster.now, "{name} is called without a lease");
        }
    }

    /// Checks that every open call has a callee that serves it, and the other way round.
    pub(super) fn check_quiet(&self) {
        let calls = self.sessions.values().flat_map(|s| s.calls.values());
        let calls: BTreeMap<_, _> = calls.map(|call| (call.number, call.place)).collect();
        let served = self.sessions.values().flat_map(|s| s.invocations.values());
        let served: BTreeSet<_> = served
            .filter(|invocation| !invocation.is_interrupted)
            .map(|invocation| invocation.number)
            .collect();
        for (number, place) in &calls {
            let all = self.sessions.values().flat_map(|s| s.invocations.values());
            let mut all = all.map(|invocation| invocation.number);
            // A call waits only if a callee exists.
            let mut registered = self.sessions.values().flat_map(|s| s.registered.values());
            let waits =
                PROCEDURES[*place].1 == QUEUED && registered.any(|(known, _)| known == place);
            let is_served = all.any(|other| other == *number);
            assert!(is_served || waits, "{number} is nobody's");
        }
        for number in &served {
            let is_open = calls.contains_key(number) || self.skipped.contains(number);
            assert!(is_open, "{number} is served for nobody");
        }
        for session in self.sessions.values() {
            let Session {
                registering,
                ending,
                place,
                ..
            } = session;
            let is_done = registering.is_empty() && ending.is_empty();
            assert!(is_done, "{place:?}: {registering:?} {ending:?} wait");
        }
    }

    /// All nodes know the same, and nothing that cannot be.
    pub(super) fn check_directories(&self) {
        let own = |node: &Node| node.realm.counts().registrations;
        let all: usize = self.cluster.nodes.values().map(own).sum();
        for node in self.cluster.nodes.values() {
            let counts = node.realm.counts();
            assert_eq!(counts.registrations + counts.registrations_elsewhere, all);
            assert_eq!(node.member.pairs(), self.cluster.setting.nodes - 1);
        }
        for (name, session) in &self.sessions {
            for (place, _) in session.registered.values() {
                if PROCEDURES[*place].2 == InvocationPolicy::Single {
                    self.check_alone(*name, *place);
                }
            }
        }
    }
}
