//! The callees that share one registration: whose turn it is, and who is busy (WAMP advanced
//! profile, "Shared Registration"; the bound on invocations is Crossbar.io's `concurrency`).

use std::collections::BTreeMap;
use std::ops;

use crosstie_wamp::{InvocationPolicy, RegistrationId};

use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::random::Random;
use crate::sharding::rank;

/// One session's part in a registration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callee {
    pub(super) session: SessionIndex,
    /// Counted up over all registrations: it finds the callee when others have gone.
    pub(super) number: u64,
    /// It keeps the time of its calls itself.
    pub(super) forward_timeout: bool,
    /// Its callers are told who it is.
    pub(super) is_disclosed: bool,
    /// It may say of a call that another callee is to be asked.
    pub(super) may_reroute: bool,
    /// Its callers are remembered to be its own.
    pub(super) is_sticky: bool,
    /// Invocations that it serves at a time; 0 means as many as come.
    pub(super) concurrency: u32,
    /// Those that it serves now, counted where there is a bound.
    pub(super) in_flight: u32,
}

impl Callee {
    /// Whether it may be given one more invocation.
    pub(super) fn is_free(&self) -> bool {
        self.concurrency == 0 || self.in_flight < self.concurrency
    }

    /// Whether its calls have something that most have not.
    pub(super) fn is_rare(&self) -> bool {
        (self.concurrency != 0) | self.may_reroute | self.is_sticky
    }
}

/// A place that a call takes at a callee with a bound.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) registration: RegistrationId,
    pub(super) callee: u64,
}

/// The places of the callees of a registration, in the order in which one call is offered to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// Each of them has one turn.
    pub(super) callees: usize,
    first: usize,
    step: usize,
}

impl Turns {
    #[inline]
    pub(super) fn place(self, attempt: usize) -> usize {
        match self.first + attempt * self.step {
            // One callee, or the first one tried: the usual case needs no division.
            place if place < self.callees => place,
            place => place % self.callees,
        }
    }
}

/// In the order of registration, which is the order of their numbers.
#[derive(Debug)]
pub(super) struct Callees {
    policy: InvocationPolicy,
    list: Vec<Callee>,
    /// The place in `list` that is next in turn; past the end, the first one is.
    turn: usize,
    /// Callees that are not free, so that a call that finds none of them free costs nothing.
    busy: usize,
    /// Hashes of the node keys that some have, by their numbers.
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

    /// Adds a callee. One of the same session keeps its place and what it serves, and has the
    /// options of the new one.
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

    /// Says which shard a callee serves, which may be pending; `None` is one of its own. Whether it was another one before.
    pub(super) fn set_node_key(&mut self, number: u64, node_key: Option<u64>) -> bool {
        let before = match node_key {
            Some(node_key) => self.node_keys.insert(number, node_key),
            None => self.node_keys.remove(&number),
        };
        before != node_key
    }

    /// The shard that a callee serves: its own, or that of all callees with its node key.
    pub(super) fn shard_of(&self, callee: &Callee) -> u64 {
        let node_key = self.node_keys.get(&callee.number).copied();
        node_key.unwrap_or(callee.number)
    }

    /// The first callee of the shard that a resource has among those that `is_there` says are.
    pub(super) fn first_in_shard(
        &self,
        rkey: u64,
        is_there: impl Fn(&Callee) -> bool,
    ) -> Option<usize> {
        let there = (0..self.list.len()).filter(|place| is_there(&self.list[*place]));
        // Of several with the same rank it finds the last one.
        there
            .rev()
            .max_by_key(|place| rank(rkey, self.shard_of(&self.list[*place])))
    }

    /// The callee at `place` was given a call: the turn is the next one's.
    #[inline]
    pub(super) fn invoked(&mut self, place: usize) {
        self.turn = place + 1;
        if self.list[place].concurrency > 0 {
            self.change(place, |callee| callee.in_flight += 1);
        }
    }

    /// A call of the callee with that number has ended. The callee may be gone.
    pub(super) fn release(&mut self, number: u64) {
        if let Some(place) = self.place_of(number) {
            self.change(place, |callee| callee.in_flight -= 1);
        }
    }

    /// The place of the callee with that number, if it is there.
    pub(super) fn place_of(&self, number: u64) -> Option<usize> {
        let place = self
            .list
            .binary_search_by_key(&number, |callee| callee.number);
        place.ok()
    }

    /// The places of so many callees at most: in the order of registration, and where there are more of them, in turn.
    pub(super) fn compared(&self, callees_max: usize) -> impl Iterator<Item = usize> {
        let callees = self.list.len();
        let first = if callees > callees_max { self.turn } else { 0 };
        (first..first + callees.min(callees_max)).map(move |place| place % callees)
    }

    pub(super) fn policy(&self) -> InvocationPolicy {
        self.policy
    }

    /// The first ones, so many, or the last ones.
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

    /// The order in which callees are asked to serve one call; the busy ones among them are to be passed over.
    /// `None` if all are busy. `pick` says who is the first one where it is not by order or chance.
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
        let whose = match self.policy {
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
            format!("maximum concurrency {concurrency} of {whose} registration)"),
        )
    }

    fn change(&mut self, place: usize, change: impl FnOnce(&mut Callee)) {
        let callee = &mut self.list[place];
        self.busy -= usize::from(!callee.is_free());
        change(callee);
        self.busy += usize::from(!callee.is_free());
    }

    /// Asserts what the fields promise each other; `slots` are the places that open calls take.
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

/// Whether one more callee may share a registration that has callees with the policy `has`.
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
