//! Checks each message to a session against its requests.

use crosstie_wamp::{InvocationPolicy, MessageType, RequestId};

use super::{ASKED_MAX, Calls, Invocation, PROCEDURES, SHARDED};
use crate::Name;
use crate::fabric::node::{Heard, QUEUED};

impl Calls {
    /// Checks a message to a session.
    pub(super) fn judge_heard(&mut self, name: Name, heard: Heard) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        match heard {
            Heard::Registered(request, id) => {
                let place = session.registering.remove(&request);
                let place = place.expect("it asked for that, once");
                let since = session.registered.get(&id).map_or(request, |known| known.1);
                session.registered.insert(id, (place, since));
                self.changes[place] += 1;
                let is_single = PROCEDURES[place].2 == InvocationPolicy::Single;
                match (self.cluster.setting.faults, self.cluster.setting.strict) {
                    _ if !is_single => {}
                    (false, _) => self.check_alone(name, place),
                    (true, true) => self.check_leased_alone(name, place),
                    (true, false) => {}
                }
            }
            Heard::Unregistered(request) => {
                session.ending.remove(&request).expect("it asked for that");
                self.changes.iter_mut().for_each(|changes| *changes += 1);
            }
            Heard::Revoked(id) => {
                assert!(self.cluster.setting.faults, "nobody loses a registration");
                session.registered.remove(&id);
            }
            Heard::Goodbye => {
                assert!(self.cluster.setting.faults, "nobody is sent away");
                self.sessions.remove(&name);
            }
            Heard::Invocation(request, number) => self.judge_invocation(name, request, number),
            Heard::Interrupt(request) => {
                if let Some(invocation) = session.invocations.get_mut(&request) {
                    invocation.is_interrupted = true;
                }
            }
            Heard::Result(request, number, progress) => {
                let call = session.calls.get_mut(&request);
                let call = call.expect("a result is of an open call");
                assert_eq!(number / 1_000, call.number, "a result is its call's");
                assert!(number % 1_000 > call.progress, "results are in order");
                call.progress = number % 1_000;
                if !progress {
                    session.calls.remove(&request);
                    self.answered_across += 1;
                }
            }
            Heard::Error(MessageType::Call, request, error) => {
                let call = session.calls.remove(&request);
                let call = call.expect("an error is of an open call");
                self.judge_error(&call, &error);
            }
            Heard::Error(MessageType::Register, request, _) => {
                let asked = session.registering.remove(&request);
                asked.expect("it asked for that");
            }
            Heard::Error(_, request, _) => {
                assert!(self.cluster.setting.faults, "what it ends was its own");
                session.ending.remove(&request).expect("it asked for that");
            }
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn judge_invocation(&mut self, name: Name, request: RequestId, number: u64) {
        self.check_leased(name, number);
        let caller = self.caller(number);
        let bounced = self.bounced();
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let invocation = Invocation {
            number,
            progress: 0,
            is_interrupted: false,
        };
        let known = session.invocations.insert(request, invocation);
        assert!(known.is_none(), "an invocation comes once");
        let last = caller.map(|caller| (caller, session.last.insert(caller, number)));
        let may_be_late = self.judge_given(name, number);
        if let Some((_, last)) = last {
            let is_ordered = last < Some(number);
            let may_be = is_ordered || bounced > 0 || may_be_late;
            assert!(may_be, "a caller's calls are in order");
        }
    }

    /// Checks that a call reaches the same callees as others of its kind, on whichever node they were made, and each
    /// once. Returns whether a callee was asked before, or the call may have been queued.
    fn judge_given(&mut self, name: Name, number: u64) -> bool {
        let faults = self.cluster.setting.faults;
        let Some(place) = self.call_of(number).map(|call| call.place) else {
            return false;
        };
        // A callee that registers again may be asked again.
        let session = self.sessions.get(&name);
        let mut registered = session.into_iter().flat_map(|s| s.registered.values());
        let its = registered.find(|(known, _)| *known == place);
        let asked = (name, its.map(|(_, since)| *since));
        let Some(call) = self.call_of(number) else {
            return false;
        };
        assert!(
            !call.asked.contains(&asked),
            "{asked:?} is asked twice for {place}"
        );
        call.asked.push(asked);
        let (place, since, rkey, asked) = (call.place, call.since, call.rkey, call.asked.len());
        assert!(asked <= ASKED_MAX, "call {number} goes round");
        let is_ordered = matches!(PROCEDURES[place].1, "f" | "l" | SHARDED);
        // Until REGISTERED arrives, nodes may disagree about the shard of a callee that has one already.
        let mut registering = self.sessions.values().flat_map(|s| s.registering.values());
        let is_known = !registering.any(|known| *known == place);
        if !faults && is_ordered && is_known && self.changes[place] == since {
            let given = self
                .given
                .entry((place, since, rkey, asked))
                .or_insert(name);
            assert_eq!(*given, name, "call {number}, {rkey:?}, asked {asked}");
        }
        asked > 1 || PROCEDURES[place].1 == QUEUED
    }
}
