//! The open calls, found by caller, by callee and by deadline.

use std::collections::BTreeSet;

use crosstie_wamp::{Dict, Disclosed, RegistrationId, RequestId};
use slab::Slab;

use super::callees::Slot;
use super::kept::{Kept, Rerouting};
use crate::Time;
use crate::call_table::COUNTED;
use crate::keys::CallKey;
use crate::party::Party;
use crate::random::Random;
use crate::session::Sessions;
use crate::weight::dict_bytes;

/// A call that has an invocation, and no final answer yet.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) caller: Party,
    /// The caller's id for it, in CALL and RESULT.
    pub(super) request: RequestId,
    pub(super) callee: Party,
    /// The callee's id for it, in INVOCATION and YIELD.
    pub(super) invocation: RequestId,
    /// The caller accepts progressive results.
    pub(super) receive_progress: bool,
    /// The callee is disclosed to the caller.
    pub(super) discloses_callee: bool,
    /// The callee was interrupted, and its answer is still forwarded (mode `kill`).
    pub(super) interrupted: bool,
    pub(super) rare: Option<Box<Rare>>,
    /// Maximum time between two messages of the callee, in milliseconds; 0 means no bound.
    pub(super) timeout_ms: u64,
    /// When the timeout expires, if there is one. Written only by [`Calls`].
    deadline: Time,
    /// When its CALL arrived. Written only by [`Calls`].
    pub(super) since: Time,
}

/// State that few calls have; one word for the others.
#[derive(Debug)]
pub(super) struct Rare {
    /// The slot that it takes at a callee with a concurrency bound.
    pub(super) slot: Option<Slot>,
    /// State for further INVOCATIONs; present until the caller's last CALL.
    pub(super) progressive: Option<Progressive>,
    /// Present while its callee may reroute it.
    pub(super) rerouting: Option<Rerouting>,
}

impl Rare {
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            slot,
            progressive,
            rerouting,
        } = self;
        slot.is_none() && progressive.is_none() && rerouting.is_none()
    }
}

/// A progressive call's INVOCATION as it began: the options of its first CALL hold for all (WAMP advanced profile,
/// "Freezing of Options in Progressive Call Invocations").
#[derive(Debug)]
pub(super) struct Progressive {
    pub(super) registration: RegistrationId,
    /// Set if the registration is a pattern.
    pub(super) procedure: Option<Box<str>>,
    pub(super) disclosed: bool,
    /// The caller, if it is a disclosed session of another node.
    pub(super) stranger: Option<Box<Disclosed<'static>>>,
    pub(super) timeout_ms: u64,
    pub(super) receive_progress: bool,
    pub(super) passthru: Option<Box<Dict>>,
}

impl Progressive {
    /// Approximate memory.
    pub(super) fn bytes(&self) -> isize {
        let procedure = self.procedure.as_deref().map_or(0, str::len);
        let passthru = self.passthru.as_deref().map_or(0, dict_bytes);
        (size_of::<Self>() + procedure + passthru) as isize
    }
}

/// Approximate memory of that capacity for open calls of a session. Its account holds the capacity, because that
/// changes seldom.
pub(crate) fn calls_bytes(room: usize) -> isize {
    room as isize * 256
}

impl Call {
    pub(super) fn new(
        caller: Party,
        request: RequestId,
        callee: Party,
        invocation: RequestId,
    ) -> Self {
        Self {
            caller,
            request,
            callee,
            invocation,
            receive_progress: false,
            discloses_callee: false,
            interrupted: false,
            rare: None,
            timeout_ms: 0,
            deadline: Time(0),
            since: Time(0),
        }
    }
}

#[derive(Debug)]
pub(super) struct Calls {
    slab: Slab<Call>,
    /// The factor of callers' tables: they choose their request ids.
    secret: u64,
    deadlines: BTreeSet<(Time, CallKey)>,
}

impl Calls {
    pub(super) fn new(random: &mut Random) -> Self {
        Self {
            slab: Slab::new(),
            secret: random.hash_keys().hash_one(0) | 1,
            deadlines: BTreeSet::new(),
        }
    }

    /// Adds a call. Neither id may be that of another open call of the same session: a CALL with one continues that
    /// call, and invocations are counted up. Returns by how many calls the caller's capacity has grown.
    #[inline]
    pub(super) fn insert<H>(
        &mut self,
        mut call: Call,
        now: Time,
        sessions: &mut Sessions<H>,
    ) -> usize {
        let entry = self.slab.vacant_entry();
        let key = CallKey(entry.key() as u32);
        sessions
            .invocations_of(call.callee)
            .insert(call.invocation, key, COUNTED);
        let calls = sessions.calls_of(call.caller);
        let room = calls.room();
        calls.insert(call.request, key, self.secret);
        call.since = now;
        if call.timeout_ms > 0 {
            call.deadline = now.after_ms(call.timeout_ms);
            self.deadlines.insert((call.deadline, key));
        }
        entry.insert(call);
        calls.room() - room
    }

    /// Removes the open call that `callee` was invoked for with that id.
    #[inline]
    pub(super) fn remove_answered<H>(
        &mut self,
        callee: Party,
        invocation: RequestId,
        sessions: &mut Sessions<H>,
    ) -> Option<Call> {
        let key = sessions.invocations_of(callee).remove(invocation)?;
        Some(self.take(key, sessions))
    }

    #[inline(never)]
    pub(super) fn remove<H>(&mut self, key: CallKey, sessions: &mut Sessions<H>) -> Call {
        let call = &self[key];
        let served = sessions.invocations_of(call.callee);
        served.remove(call.invocation);
        self.take(key, sessions)
    }

    /// Removes a call that is not in its callee's table any more. Inlined, so that nothing is moved that its caller does
    /// not read.
    #[inline(always)]
    fn take<H>(&mut self, key: CallKey, sessions: &mut Sessions<H>) -> Call {
        let call = self.slab.remove(key.0 as usize);
        if call.timeout_ms > 0 {
            self.deadlines.remove(&(call.deadline, key));
        }
        sessions.calls_of(call.caller).remove(call.request);
        call
    }

    /// Restarts the timeout.
    pub(super) fn restart_timeout(&mut self, key: CallKey, now: Time) {
        let call = &mut self.slab[key.0 as usize];
        if call.timeout_ms == 0 {
            return;
        }
        self.deadlines.remove(&(call.deadline, key));
        call.deadline = now.after_ms(call.timeout_ms);
        self.deadlines.insert((call.deadline, key));
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A call whose deadline has passed, the earliest first.
    pub(super) fn overdue(&self, now: Time) -> Option<CallKey> {
        self.deadlines
            .first()
            .filter(|(deadline, _)| *deadline <= now)
            .map(|(_, key)| *key)
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.slab.iter().map(|(_, call)| call)
    }

    /// The slots that open calls take at callees with a bound.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slab
            .iter()
            .filter_map(|(_, call)| call.rare.as_deref()?.slot.as_ref())
    }

    /// The kept CALLs of calls that may be rerouted, with their callers.
    pub(super) fn kept(&self) -> impl Iterator<Item = (Party, &Kept)> {
        self.slab.iter().filter_map(|(_, call)| {
            let rerouting = call.rare.as_deref()?.rerouting.as_ref()?;
            Some((call.caller, &*rerouting.kept))
        })
    }

    /// Asserts that tables and sessions agree. Walks everything.
    pub(super) fn check_invariants<H>(&self, sessions: &Sessions<H>) {
        let mut deadlines = 0;
        for (index, call) in &self.slab {
            let key = CallKey(index as u32);
            assert_eq!(sessions.call(call.caller, call.request), Some(key));
            let found = sessions.invocation(call.callee, call.invocation);
            assert_eq!(found, Some(key));
            assert!(call.invocation.0 <= invocation_last(sessions, call.callee));
            if call.timeout_ms > 0 {
                assert!(self.deadlines.contains(&(call.deadline, key)));
                deadlines += 1;
            }
        }
        assert_eq!(self.deadlines.len(), deadlines);
        let all = || sessions.iter().map(|(_, session)| session);
        let neighbours = || sessions.neighbours.iter().map(|(_, neighbour)| neighbour);
        let made: usize = all().map(|session| session.calls.len()).sum();
        let made = made + neighbours().map(|node| node.calls.len()).sum::<usize>();
        let served: usize = all().map(|session| session.invocations.len()).sum();
        let served = served
            + neighbours()
                .map(|node| node.invocations.len())
                .sum::<usize>();
        assert_eq!((made, served), (self.slab.len(), self.slab.len()));
    }
}

impl std::ops::Index<CallKey> for Calls {
    type Output = Call;

    fn index(&self, key: CallKey) -> &Call {
        &self.slab[key.0 as usize]
    }
}

impl std::ops::IndexMut<CallKey> for Calls {
    fn index_mut(&mut self, key: CallKey) -> &mut Call {
        &mut self.slab[key.0 as usize]
    }
}

fn invocation_last<H>(sessions: &Sessions<H>, party: Party) -> u64 {
    match (party.session(), party.neighbour()) {
        (Some(session), _) => sessions[session].invocation_last,
        (None, Some(neighbour)) => sessions.neighbours[neighbour].invocation_last,
        (None, None) => 0,
    }
}
