//! The table of registrations (WAMP advanced profile, "Pattern-based Registrations" and "Shared Registration").

mod own_part;
mod removal;
mod revocation;

pub(super) use revocation::tell_revoked;

use std::mem;
use std::sync::Arc;

use crosstie_collections::GrowingMap;
use crosstie_wamp::{InvocationPolicy, MatchPolicy, RegisterOptions, RegistrationId};
use rustc_hash::FxBuildHasher;
use slab::Slab;

use super::callees::{Callee, Callees, Slot, may_share};
use super::calls::Calls;
use super::directory::NUMBER_MIN;
use super::parts::Parts;

use crate::across::{EndTold, Pattern};
use crate::authz::Action;
use crate::context::{Context, is_own_procedure, none_left, reserved_uri};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::keys::RegistrationKey;
use crate::pattern::PatternMap;
use crate::random::Random;
use crate::rendezvous::hash;
use crate::room::Room;
use crate::session::Sessions;
use crate::{CallQueue, ClientFeature, RoleLimit, Time};

/// One (procedure, matching policy), and the callees that share it.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) id: RegistrationId,
    pub(super) procedure: Arc<str>,
    pub(super) match_policy: MatchPolicy,
    /// Empty only if other nodes have callees, or one of this node is pending.
    pub(super) callees: Callees,
    /// Other nodes' parts, and pending callees.
    pub(super) across: Option<Box<Parts>>,
    /// The number of the callee with which this node's part began.
    pub(super) claim: u64,
    /// The session that registered first. The procedure stays on its account while it is a callee.
    payer: Option<SessionIndex>,
    pub(super) created: Time,
    /// Maximum number of calls that wait for a free callee.
    pub(super) calls_wait_max: u32,
}

/// The outcome of a REGISTER.
pub(super) struct Entered {
    pub(super) id: RegistrationId,
    /// The callee's number, if it is pending until other nodes know of it.
    pub(super) waits: Option<u64>,
}

impl Registration {
    /// Approximate memory beside its callees: places in tables, and its procedure.
    fn bytes(&self) -> isize {
        REGISTRATION_BYTES + self.procedure.len() as isize
    }
}

const REGISTRATION_BYTES: isize = 640;

/// Approximate memory of a session's part in a registration.
const CALLEE_BYTES: isize = 128;

/// Cost to remove a registration (2 µs if a realm has a million of them), and callees searched per step.
const STEPS_PER_REGISTRATION: u32 = 20;
const CALLEES_PER_STEP: usize = 64;

#[derive(Debug)]
pub(super) struct Registrations {
    slab: Slab<Registration>,
    room: Room,
    by_procedure: PatternMap<RegistrationKey>,
    by_id: GrowingMap<RegistrationId, RegistrationKey, FxBuildHasher>,
    /// Ids are not reused, so that a late INVOCATION cannot be taken for another procedure's.
    id_last: u64,
    callee_last: u64,
    /// The number of this node, and the base of registration ids in a cluster.
    pub(super) own: u64,
    pub(super) scope: u64,
    /// Whether a `single` callee is let in only after a grant.
    pub(super) is_strict: bool,
    /// Number of registrations with callees of this node.
    own_count: usize,
    /// Number of (registration, session) pairs.
    held: usize,
    /// Maximum number of queued calls, by URI or pattern of the registration.
    queues: PatternMap<u32>,
    /// Ended registrations that may have queued calls.
    ended: Vec<RegistrationId>,
}

impl Registrations {
    pub(super) fn new(queues: &[CallQueue], random: &mut Random) -> Self {
        let mut patterns = PatternMap::new(random.hash_keys());
        for queue in queues {
            let calls_max = u32::try_from(queue.calls_max).unwrap_or(u32::MAX);
            patterns.insert(queue.match_policy, queue.uri.as_str().into(), calls_max);
        }
        Self {
            queues: patterns,
            ended: Vec::new(),
            slab: Slab::new(),
            room: Room::default(),
            by_procedure: PatternMap::new(random.hash_keys()),
            by_id: GrowingMap::new(),
            id_last: 0,
            callee_last: NUMBER_MIN,
            own: 0,
            scope: 0,
            is_strict: false,
            own_count: 0,
            held: 0,
        }
    }

    /// Adds a callee, or replaces the options of one. In a cluster it is pending until other nodes know of it.
    pub(super) fn enter<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        options: &RegisterOptions,
        procedure: &str,
    ) -> Result<Entered, Fault> {
        let policy = options.match_policy;
        context.check_pattern(Action::Register, procedure, policy)?;
        if is_own_procedure(procedure) {
            return Err(reserved_uri(Action::Register, procedure));
        }
        let disclose = context.authorize(from, Action::Register, procedure, policy)?;
        context.check_asked(from, options.is_forwarded, options.unsupported)?;
        self.check_sharing(options)?;
        let mut known = self.by_procedure.value(policy, procedure);
        if known.is_some_and(|key| self.is_left(context, key)) {
            known = None;
        }
        let is_mine = |key: &RegistrationKey| context.sessions[from].registrations.contains(key);
        let is_again = !options.force_reregister && known.as_ref().is_some_and(is_mine);
        if let Some(key) = known.filter(|_| !options.force_reregister) {
            may_share(self[key].policy(), options.invoke, procedure)?;
        }
        let registrations_max = context.config.limits.registrations_max;
        let registrations_max =
            context.role_bound(from, RoleLimit::Registrations, registrations_max);
        // A replaced registration may exceed the bound until the session loses the old one.
        let is_replaced = options.force_reregister && known.as_ref().is_some_and(is_mine);
        let held = context.sessions[from].registrations.len() - usize::from(is_replaced);
        if !is_again && held >= registrations_max.value {
            let fault =
                registrations_max.reached(context, error::REGISTRATIONS_MAX, "registrations");
            return Err(fault);
        }
        let realm_max = context.config.limits.realm_registrations_max;
        if !is_again && !context.may_have_more(held, self.held, realm_max) {
            return Err(none_left(
                error::REALM_REGISTRATIONS_MAX,
                "registrations",
                realm_max,
            ));
        }
        if known.is_none() {
            let shapes_max = context.config.limits.wildcard_shapes_max;
            self.by_procedure
                .check_room(policy, procedure, shapes_max)?;
        }
        if options.force_reregister
            && let Some(key) = known
        {
            self.revoke(context, key);
            known = known.filter(|key| self.holds(*key));
        }
        let is_new = known.is_none_or(|key| !self[key].is_own());
        let key =
            known.unwrap_or_else(|| self.create(context.now, policy, options.invoke, procedure));
        self.callee_last += 1;
        let features = context.sessions[from].features;
        let callee = Callee {
            session: from,
            number: self.callee_last,
            forward_timeout: options.forward_timeout,
            is_disclosed: disclose.callee,
            is_sticky: options.invoke == InvocationPolicy::Sticky,
            may_reroute: features.has(ClientFeature::CalleeCallReroute),
            concurrency: options.concurrency,
            in_flight: 0,
        };
        let registration = &mut self.slab[key.0 as usize];
        if is_new {
            registration.begin(options.invoke, callee.number);
        }
        let waits = match is_again {
            true => registration.replace(callee),
            false => (context.sessions.neighbours.is_any_there()
                || !registration.pending().is_empty()
                || (self.is_strict && options.invoke == InvocationPolicy::Single))
                .then_some(callee.number),
        };
        let id = registration.id;
        if !is_again {
            context.sessions[from].registrations.insert(key);
            self.held += 1;
            let mut bytes = CALLEE_BYTES;
            if is_new {
                registration.payer = Some(from);
                bytes += registration.bytes();
            }
            context.hold(from, bytes);
            match waits {
                Some(_) => registration
                    .across
                    .get_or_insert_default()
                    .pending
                    .push(callee),
                None => self.let_in(context, key, callee),
            }
        }
        let node_key = options.nkey.as_deref().map(hash);
        let number = self[key].number_of(from).unwrap_or(callee.number);
        let is_moved = self[key].callees.set_node_key(number, node_key);
        if !is_again || is_moved {
            self.tell_others(context, key, EndTold::Yes);
        }
        // A change of shard is announced to other nodes.
        let is_said = is_moved && context.sessions.neighbours.is_any_there();
        let waits = waits.or_else(|| is_said.then_some(number));
        Ok(Entered { id, waits })
    }

    /// Continues above a number that another node has used.
    pub(super) fn note_number(&mut self, number: u64) {
        self.callee_last = self.callee_last.max(number);
    }

    /// Whether there is room for another pattern.
    pub(super) fn has_room<H>(&self, context: &Context<'_, H>, pattern: Pattern<'_>) -> bool {
        let shapes_max = context.config.limits.wildcard_shapes_max;
        let room = self
            .by_procedure
            .check_room(pattern.match_policy, pattern.topic, shapes_max);
        room.is_ok()
    }

    /// Removes a callee; returns whether it was one.
    pub(super) fn remove<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        registration: RegistrationId,
    ) -> bool {
        let key = self.by_id.get(&registration).copied();
        let key = key.filter(|key| context.sessions[from].registrations.remove(key));
        key.is_some_and(|key| {
            self.remove_callee(context, key, from);
            true
        })
    }

    /// Removes registrations of a session that has left, for that many steps; returns whether there were any.
    pub(super) fn leave<H>(
        &mut self,
        context: &mut Context<'_, H>,
        index: SessionIndex,
        steps_max: u32,
    ) -> bool {
        let count_max = steps_max.div_ceil(STEPS_PER_REGISTRATION) as usize;
        let mut steps = 0;
        for key in context.sessions[index].registrations.some(count_max) {
            if steps >= steps_max {
                break;
            }
            steps += STEPS_PER_REGISTRATION + (self[key].callees.len() / CALLEES_PER_STEP) as u32;
            context.sessions[index].registrations.remove(&key);
            self.remove_callee(context, key, index);
        }
        context.spend(steps);
        steps > 0
    }

    /// Whether registrations with queued calls have ended.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    pub(super) fn take_ended(&mut self) -> Vec<RegistrationId> {
        mem::take(&mut self.ended)
    }

    /// All registrations with callees of this node.
    pub(super) fn all(&self) -> impl Iterator<Item = &Registration> {
        let all = self.slab.iter().map(|(_, registration)| registration);
        all.filter(|registration| !registration.callees.is_empty())
    }

    pub(super) fn of_id(&self, id: RegistrationId) -> Option<RegistrationKey> {
        self.by_id.get(&id).copied()
    }

    /// The registration of that very pattern.
    pub(super) fn value(&self, policy: MatchPolicy, procedure: &str) -> Option<RegistrationKey> {
        self.by_procedure.value(policy, procedure)
    }

    /// The registration of exactly that procedure.
    #[inline]
    pub(super) fn exact(&self, procedure: &str) -> Option<RegistrationKey> {
        self.by_procedure.exact(procedure)
    }

    /// The one pattern that serves a procedure without an exact registration (WAMP advanced profile, "Calls matching
    /// multiple registrations").
    pub(super) fn best_pattern(&self, procedure: &str, steps: &mut u32) -> Option<RegistrationKey> {
        let prefix = self.by_procedure.longest_prefix(procedure);
        prefix.or_else(|| self.by_procedure.best_wildcard(procedure, steps))
    }

    /// The sessions that share a registration.
    pub(super) fn callees(&self, key: RegistrationKey) -> impl Iterator<Item = SessionIndex> {
        self[key].callees.iter().map(|callee| callee.session)
    }

    /// Notes a call to the callee at `place`.
    #[inline]
    pub(super) fn invoked(&mut self, key: RegistrationKey, place: usize) {
        self.slab[key.0 as usize].callees.invoked(place);
    }

    /// Frees a slot of a callee with a bound. Callee and registration may be gone.
    pub(super) fn release(&mut self, slot: &Slot) {
        if let Some(RegistrationKey(key)) = self.by_id.get(&slot.registration) {
            self.slab[*key as usize].callees.release(slot.callee);
        }
    }

    /// Number of registrations with callees of this node.
    pub(super) fn len(&self) -> usize {
        self.own_count
    }

    pub(super) fn create(
        &mut self,
        now: Time,
        match_policy: MatchPolicy,
        invoke: InvocationPolicy,
        procedure: &str,
    ) -> RegistrationKey {
        let id = self.new_id(match_policy, procedure);
        let queue = self.queues.exact(procedure);
        let queue = queue.or_else(|| self.queues.longest_prefix(procedure));
        let queue = queue.or_else(|| self.queues.best_wildcard(procedure, &mut 0));
        let procedure: Arc<str> = procedure.into();
        let key = RegistrationKey(self.slab.insert(Registration {
            id,
            procedure: Arc::clone(&procedure),
            match_policy,
            callees: Callees::new(invoke),
            across: None,
            claim: 0,
            payer: None,
            created: now,
            calls_wait_max: queue.unwrap_or(0),
        }) as u32);
        self.by_procedure.insert(match_policy, procedure, key);
        self.by_id.insert(id, key);
        key
    }

    pub(super) fn delete(&mut self, key: RegistrationKey) -> Registration {
        let registration = self.slab.remove(key.0 as usize);
        self.room.shrink(&mut self.slab);
        self.by_procedure
            .remove(registration.match_policy, &registration.procedure);
        self.by_id.remove(&registration.id);
        registration
    }

    /// Asserts that tables and sessions agree. Walks everything.
    pub(super) fn check_invariants<H>(&self, sessions: &Sessions<H>, calls: &Calls) {
        assert_eq!(self.by_procedure.len(), self.slab.len());
        assert_eq!(self.by_id.len(), self.slab.len());
        let mut memberships = 0;
        for (index, registration) in &self.slab {
            let key = RegistrationKey(index as u32);
            let (policy, procedure) = (registration.match_policy, &registration.procedure);
            assert_eq!(self.by_procedure.value(policy, procedure), Some(key));
            assert_eq!(self.by_id.get(&registration.id), Some(&key));
            let of_this = |slot: &&Slot| slot.registration == registration.id;
            let slots = calls.slots().filter(of_this);
            registration
                .callees
                .check_invariants(slots.map(|slot| slot.callee), registration.pending());
            for callee in registration.callees.iter() {
                assert!(sessions[callee.session].registrations.contains(&key));
            }
            memberships += registration.callees.iter().count() + registration.pending().len();
            assert!(registration.is_own() || !registration.elsewhere().is_empty());
            assert!(
                registration
                    .across
                    .as_deref()
                    .is_none_or(|parts| !parts.is_empty())
            );
            for part in registration.elsewhere() {
                let node = &sessions.neighbours[part.node];
                assert!(node.offers.contains(&key));
            }
        }
        let held: usize = sessions
            .iter()
            .map(|(_, session)| session.registrations.len())
            .sum();
        assert_eq!((held, self.held), (memberships, memberships));
        assert_eq!(self.all().count(), self.own_count);
    }
}

impl std::ops::IndexMut<RegistrationKey> for Registrations {
    fn index_mut(&mut self, key: RegistrationKey) -> &mut Registration {
        &mut self.slab[key.0 as usize]
    }
}

impl std::ops::Index<RegistrationKey> for Registrations {
    type Output = Registration;

    fn index(&self, key: RegistrationKey) -> &Registration {
        &self.slab[key.0 as usize]
    }
}
