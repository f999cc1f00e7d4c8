//! What a session is told, against what it said.

use crosstie_wamp::{InvocationPolicy, MessageType, RequestId};

use super::{Calls, Invocation, PROCEDURES};
use crate::Name;
use crate::fabric::node::Heard;

impl Calls {
    /// Judges what a session was told.
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
        if let Some(caller) = caller {
            let last = session.last.insert(caller, number);
            let is_ordered = last < Some(number);
            assert!(is_ordered || bounced > 0, "a caller's calls are in order");
        }
    }
}
