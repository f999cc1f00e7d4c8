//! The callees that share one registration: their turns, and which are busy (WAMP advanced profile, "Shared
//! Registration"; the bound on invocations is Crossbar.io's `concurrency`).

use std::collections::BTreeMap;
use std::ops;

use crosstie_wamp::{InvocationPolicy, RegistrationId};

use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::random::Random;
use crate::rendezvous::rank;

/// One session's part in a registration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callee {
    pub(super) session: SessionIndex,
    /// Counted up over all registrations: it identifies the callee after others have gone.
    pub(super) number: u64,
    /// It applies the timeout of its calls itself.
    pub(super) forward_timeout: bool,
    /// It is disclosed to its callers.
    pub(super) is_disclosed: bool,
    /// It may reroute a call to another callee.
    pub(super) may_reroute: bool,
    /// Its callers are assigned to it (sticky).
    pub(super) is_sticky: bool,
    /// Maximum number of concurrent invocations; 0 means no bound.
    pub(super) concurrency: u32,
    /// Its open invocations, counted if there is a bound.
    pub(super) in_flight: u32,
}

impl Callee {
    /// Whether it may be given another invocation.
    pub(super) fn is_free(&self) -> bool {
        self.concurrency == 0 || self.in_flight < self.concurrency
    }

    /// Whether its calls need state that most calls do not.
    pub(super) fn is_rare(&self) -> bool {
        (self.concurrency != 0) | self.may_reroute | self.is_sticky
    }
}

/// A slot that a call takes at a callee with a bound.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) registration: RegistrationId,
    pub(super) callee: u64,
}

/// The order in which one call is offered to the callees of a registration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// Number of callees; each of them has one turn.
    pub(super) callees: usize,
    first: usize,
    step: usize,
}

impl Turns {
    #[inline]
    pub(super) fn place(self, attempt: usize) -> usize {
        match self.first + attempt * self.step {
            // One callee, or the first attempt: the usual case needs no division.
            place if place < self.callees => place,
            place => place % self.callees,
        }
    }
}

/// The callees, in the order of registration, which is the order of their numbers.
#[derive(Debug)]
pub(super) struct Callees {
    policy: InvocationPolicy,
    list: Vec<Callee>,
    /// The place in `list` that is next in turn; past the end, the first one is.
    turn: usize,
    /// Number of busy callees, so that a call that finds all of them busy costs nothing.
    busy: usize,
    /// Hashes of the callees' node keys, by callee number.
    node_keys: BTreeMap<u64, u64>,
}

impl Callees {
    pub(super) fn new(policy: InvocationPolicy) -> Self {
        Self {
            policy,
            list: Vec::new(),
            turn: 0,
            busy: 0,
            node_keys: BTreeMap::new(),
        }
    }

    /// Adds a callee. A callee of the same session keeps its place and its open invocations, and takes the new options.
    pub(super) fn enter(&mut self, new: Callee) {
        match self
            .list
            .iter()
            .position(|callee| callee.session == new.session)
        {
            None => self.list.push(new),
            Some(place) => self.change(place, |callee| {
                *callee = Callee {
                    number: callee.number,
                    in_flight: callee.in_flight,
                    ..new
                };
            }),
        }
    }

    pub(super) fn leave(&mut self, session: SessionIndex) {
        let place = self
            .list
            .iter()
            .position(|callee| callee.session == session);
        if let Some(place) = place {
            let callee = self.list.remove(place);
            self.node_keys.remove(&callee.number);
            self.busy -= usize::from(!callee.is_free());
            if place < self.turn {
                self.turn -= 1;
            }
        }
    }

    /// Sets the shard of a callee, which may be pending; `None` makes it a shard of its own. Returns whether the shard
    /// changed.
    pub(super) fn set_node_key(&mut self, number: u64, node_key: Option<u64>) -> bool {
        let before = match node_key {
            Some(node_key) => self.node_keys.insert(number, node_key),
            None => self.node_keys.remove(&number),
        };
        before != node_key
    }

    /// The shard of a callee: all callees with its node key, or the callee alone.
    pub(super) fn shard_of(&self, callee: &Callee) -> u64 {
        let node_key = self.node_keys.get(&callee.number).copied();
        node_key.unwrap_or(callee.number)
    }

    /// The first callee of the resource's shard, among those that `is_there` admits.
    pub(super) fn first_in_shard(
        &self,
        rkey: u64,
        is_there: impl Fn(&Callee) -> bool,
    ) -> Option<usize> {
        let there = (0..self.list.len()).filter(|place| is_there(&self.list[*place]));
        // Of several with the same rank this returns the last one.
        there
            .rev()
            .max_by_key(|place| rank(rkey, self.shard_of(&self.list[*place])))
    }

    /// Notes that the callee at `place` was given a call: the next callee's turn begins.
    #[inline]
    pub(super) fn invoked(&mut self, place: usize) {
        self.turn = place + 1;
        if self.list[place].concurrency > 0 {
            self.change(place, |callee| callee.in_flight += 1);
        }
    }

    /// Frees a slot of the callee with that number, which may be gone.
    pub(super) fn release(&mut self, number: u64) {
        if let Some(place) = self.place_of(number) {
            self.change(place, |callee| callee.in_flight -= 1);
        }
    }

    /// The place of the callee with that number, if it is present.
    pub(super) fn place_of(&self, number: u64) -> Option<usize> {
        let place = self
            .list
            .binary_search_by_key(&number, |callee| callee.number);
        place.ok()
    }

    /// The places of at most that many callees: in the order of registration, or in turn if there are more.
    pub(super) fn compared(&self, callees_max: usize) -> impl Iterator<Item = usize> {
        let callees = self.list.len();
        let first = if callees > callees_max { self.turn } else { 0 };
        (first..first + callees.min(callees_max)).map(move |place| place % callees)
    }

    pub(super) fn policy(&self) -> InvocationPolicy {
        self.policy
    }

    /// The first callees, at most that many, or the last ones.
    pub(super) fn some(&self, callees_max: usize, are_last: bool) -> &[Callee] {
        let callees = self.list.len();
        match are_last {
            false => &self.list[..callees.min(callees_max)],
            true => &self.list[callees.saturating_sub(callees_max)..],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Callee> {
        self.list.iter()
    }

    /// The order in which callees are offered one call; the busy ones among them are to be skipped. `None` if all are
    /// busy. `pick` chooses the first one if neither order nor chance does.
    #[inline]
    pub(super) fn turns(
        &self,
        random: &mut Random,
        pick: impl FnOnce(&Self) -> usize,
    ) -> Option<Turns> {
        let callees = self.list.len();
        if self.busy == callees {
            return None;
        }
        let (first, step) = match self.policy {
            InvocationPolicy::Single | InvocationPolicy::First => (0, 1),
            InvocationPolicy::Last => (callees - 1, callees - 1),
            InvocationPolicy::RoundRobin => (self.turn, 1),
            InvocationPolicy::Random => (random.below(callees), 1),
            InvocationPolicy::LeastBusy | InvocationPolicy::Sticky => (pick(self), 1),
        };
        Some(Turns {
            callees,
            first,
            step,
        })
    }

    /// In Crossbar.io's words.
    #[cold]
    pub(super) fn all_busy(&self) -> Fault {
        let len = self.list.len();
        if len == 0 {
            let text = "maximum concurrency of all callees of all nodes reached";
            return Fault::new(error::MAX_CONCURRENCY_REACHED, text);
        }
        let concurrency = self.list[(self.turn + len - 1) % len].concurrency;
        let callees = match self.policy {
            InvocationPolicy::Single => "callee/endpoint reached (on non-shared/single",
            InvocationPolicy::First => "all callee/endpoints reached (on first",
            InvocationPolicy::Last => "all callee/endpoints reached (on last",
            InvocationPolicy::RoundRobin => "all callee/endpoints reached (on round-robin",
            InvocationPolicy::Random => "all callee/endpoints reached (on random",
            InvocationPolicy::LeastBusy => "all callee/endpoints reached (on least-busy",
            InvocationPolicy::Sticky => "all callee/endpoints reached (on sticky",
        };
        Fault::new(
            error::MAX_CONCURRENCY_REACHED,
            format!("maximum concurrency {concurrency} of {callees} registration)"),
        )
    }

    fn change(&mut self, place: usize, change: impl FnOnce(&mut Callee)) {
        let callee = &mut self.list[place];
        self.busy -= usize::from(!callee.is_free());
        change(callee);
        self.busy += usize::from(!callee.is_free());
    }

    /// Asserts the invariants of the fields; `slots` are the slots that open calls take.
    pub(super) fn check_invariants(&self, slots: impl Iterator<Item = u64>, pending: &[Callee]) {
        let slots: Vec<u64> = slots.collect();
        assert!(self.turn <= self.list.len());
        assert!(self.policy != InvocationPolicy::Single || self.list.len() <= 1);
        assert!(self.list.is_sorted_by_key(|callee| callee.number));
        let is_pending = |number: u64| pending.iter().any(|callee| callee.number == number);
        let mut keyed = self.node_keys.keys();
        assert!(keyed.all(|number| self.place_of(*number).is_some() || is_pending(*number)));
        let busy = self.list.iter().filter(|callee| !callee.is_free());
        assert_eq!(busy.count(), self.busy);
        for callee in &self.list {
            let taken = slots.iter().filter(|number| **number == callee.number);
            assert_eq!(taken.count(), callee.in_flight as usize);
        }
    }
}

impl ops::Index<usize> for Callees {
    type Output = Callee;

    fn index(&self, place: usize) -> &Callee {
        &self.list[place]
    }
}

/// Whether another callee may share a registration callees callees have the policy `has`.
pub(super) fn may_share(
    has: InvocationPolicy,
    requested: InvocationPolicy,
    procedure: &str,
) -> Result<(), Fault> {
    let taken = format!("register for already registered procedure '{procedure}'");
    if has == InvocationPolicy::Single {
        return Err(Fault::new(error::PROCEDURE_ALREADY_EXISTS, taken));
    }
    if has == requested {
        return Ok(());
    }
    let (has, requested) = (has.name(), requested.name());
    Err(Fault::new(
        error::PROCEDURE_EXISTS_WITH_DIFFERENT_POLICY,
        format!(
            "{taken} with conflicting invocation policy (has {has} and {requested} was requested)"
        ),
    ))
}
