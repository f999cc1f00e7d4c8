//! Queues of calls that wait for a free callee of their registration (Crossbar.io's `call-queue`).
//!
//! The callers of one registration are served in turn, each one's calls in order: a caller with a thousand queued calls
//! delays another's first one by one call. A caller's next call is a round later than its last one, and the earliest
//! round is next.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_wamp::{RegistrationId, RequestId};

use super::kept::Kept;
use crate::Time;
use crate::party::Party;

/// Counted up over all calls that were ever queued, so that it gives the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WaitingKey(u64);

/// A call without a callee yet.
#[derive(Debug)]
pub(super) struct WaitingCall {
    pub(super) caller: Party,
    pub(super) request: RequestId,
    pub(super) registration: RegistrationId,
    pub(super) kept: Box<Kept>,
    /// The timeout in milliseconds; 0 means no bound.
    pub(super) timeout_ms: u64,
    round: u64,
}

impl WaitingCall {
    pub(super) fn new(
        caller: Party,
        request: RequestId,
        registration: RegistrationId,
        kept: Box<Kept>,
        timeout_ms: u64,
    ) -> Self {
        Self {
            caller,
            request,
            registration,
            kept,
            timeout_ms,
            round: 0,
        }
    }

    /// Its timeout counts from its arrival.
    fn deadline(&self) -> Option<Time> {
        (self.timeout_ms > 0).then(|| self.kept.since.after_ms(self.timeout_ms))
    }
}

/// The calls that wait for the callees of one registration.
#[derive(Debug, Default)]
struct Queue {
    /// By rounds.
    calls: BTreeSet<(u64, WaitingKey)>,
    callers: BTreeMap<Party, Share>,
    /// The round of the call that was taken last.
    round: u64,
}

/// One caller's calls in a queue.
#[derive(Debug, Default)]
struct Share {
    calls: usize,
    round_last: u64,
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    calls: BTreeMap<WaitingKey, WaitingCall>,
    by_request: BTreeMap<(Party, RequestId), WaitingKey>,
    /// Number of calls of each caller, over all queues.
    of_callers: BTreeMap<Party, usize>,
    deadlines: BTreeSet<(Time, WaitingKey)>,
    /// No queue is empty. A registration may have ended: its calls then look for another one.
    queues: BTreeMap<RegistrationId, Queue>,
    /// Queues from which a call may be taken now.
    stirred: BTreeSet<RegistrationId>,
    number_last: u64,
}

impl Waiting {
    pub(super) fn insert(&mut self, mut call: WaitingCall) {
        self.number_last += 1;
        let key = WaitingKey(self.number_last);
        let queue = self.queues.entry(call.registration).or_default();
        let share = queue.callers.entry(call.caller).or_default();
        call.round = share.round_last.max(queue.round) + 1;
        share.round_last = call.round;
        share.calls += 1;
        queue.calls.insert((call.round, key));
        self.by_request.insert((call.caller, call.request), key);
        *self.of_callers.entry(call.caller).or_default() += 1;
        self.deadlines.extend(call.deadline().map(|due| (due, key)));
        self.calls.insert(key, call);
    }

    pub(super) fn remove(&mut self, key: WaitingKey) -> Option<WaitingCall> {
        let call = self.calls.remove(&key)?;
        self.by_request.remove(&(call.caller, call.request));
        if let Some(calls) = self.of_callers.get_mut(&call.caller) {
            *calls -= 1;
            if *calls == 0 {
                self.of_callers.remove(&call.caller);
            }
        }
        if let Some(due) = call.deadline() {
            self.deadlines.remove(&(due, key));
        }
        if let Some(queue) = self.queues.get_mut(&call.registration) {
            queue.calls.remove(&(call.round, key));
            if let Some(share) = queue.callers.get_mut(&call.caller) {
                share.calls -= 1;
                if share.calls == 0 {
                    queue.callers.remove(&call.caller);
                }
            }
            if queue.calls.is_empty() {
                self.queues.remove(&call.registration);
            }
        }
        Some(call)
    }

    /// Takes the next call of a registration.
    pub(super) fn take_next(&mut self, registration: RegistrationId) -> Option<WaitingCall> {
        let queue = self.queues.get_mut(&registration)?;
        let (round, key) = queue.calls.first().copied()?;
        queue.round = round;
        self.remove(key)
    }

    /// Marks a registration's queue: a callee may be free, or the last one has gone.
    pub(super) fn stir(&mut self, registration: RegistrationId) {
        if self.queues.contains_key(&registration) {
            self.stirred.insert(registration);
        }
    }

    /// Unmarks a queue: no call can be taken from it now.
    pub(super) fn settle(&mut self, registration: RegistrationId) {
        self.stirred.remove(&registration);
    }

    /// A queue from which a call may be taken.
    pub(super) fn stirred(&self) -> Option<RegistrationId> {
        self.stirred.first().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether calls wait for the callees of that registration.
    pub(super) fn has(&self, registration: RegistrationId) -> bool {
        self.queues.contains_key(&registration)
    }

    /// Whether a caller may add a call to a queue of that bound. The last quarter is for callers with less than their
    /// share.
    pub(super) fn has_room(
        &self,
        registration: RegistrationId,
        caller: Party,
        calls_max: usize,
    ) -> bool {
        let Some(queue) = self.queues.get(&registration) else {
            return calls_max > 0;
        };
        let all = queue.calls.len();
        let share = queue.callers.get(&caller);
        let callers = queue.callers.len() + usize::from(share.is_none());
        let has = share.map_or(0, |share| share.calls);
        all < calls_max - calls_max / 4 || (all < calls_max && has < calls_max / callers)
    }

    pub(super) fn of_request(&self, caller: Party, request: RequestId) -> Option<WaitingKey> {
        self.by_request.get(&(caller, request)).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &WaitingCall> {
        self.calls.values()
    }

    pub(super) fn calls_of(&self, caller: Party) -> usize {
        self.of_callers.get(&caller).copied().unwrap_or(0)
    }

    /// A caller's calls, in the order of their ids.
    pub(super) fn of_caller(&self, caller: Party) -> impl Iterator<Item = WaitingKey> + use<'_> {
        let all = (caller, RequestId(0))..=(caller, RequestId(u64::MAX));
        self.by_request.range(all).map(|(_, key)| *key)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A call whose deadline has passed, the earliest first.
    pub(super) fn overdue(&self, now: Time) -> Option<WaitingKey> {
        let first = self.deadlines.first()?;
        (first.0 <= now).then_some(first.1)
    }

    /// The kept CALLs, with their callers.
    pub(super) fn kept(&self) -> impl Iterator<Item = (Party, &Kept)> {
        self.calls.values().map(|call| (call.caller, &*call.kept))
    }

    /// The queues from which no call can be taken now.
    pub(super) fn blocked(&self) -> impl Iterator<Item = RegistrationId> {
        let queues = self.queues.keys().copied();
        queues.filter(|id| !self.stirred.contains(id))
    }

    /// Asserts that the tables agree. Walks everything.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.by_request.len(), self.calls.len());
        assert_eq!(self.of_callers.values().sum::<usize>(), self.calls.len());
        let with_deadline = self.calls.values().filter(|call| call.timeout_ms > 0);
        assert_eq!(self.deadlines.len(), with_deadline.count());
        for (key, call) in &self.calls {
            assert_eq!(self.of_request(call.caller, call.request), Some(*key));
            let queue = &self.queues[&call.registration];
            assert!(queue.calls.contains(&(call.round, *key)));
        }
        let queued: usize = self.queues.values().map(|queue| queue.calls.len()).sum();
        assert_eq!(queued, self.calls.len());
        for queue in self.queues.values() {
            assert!(!queue.calls.is_empty());
            let shares: usize = queue.callers.values().map(|share| share.calls).sum();
            assert_eq!(shares, queue.calls.len());
        }
    }
}
