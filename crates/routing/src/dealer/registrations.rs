//! Who serves which procedure (WAMP advanced profile, "Pattern-based Registrations" and "Shared
//! Registration").

use std::sync::Arc;

use crosstie_collections::GrowingMap;
use crosstie_wamp::{MatchPolicy, Message, RegisterOptions, RegistrationId, RequestId, Revoked};
use rustc_hash::FxBuildHasher;
use slab::Slab;

use super::callees::{Callee, Callees, Slot, may_share};
use super::calls::Calls;

use crate::authz::Action;
use crate::context::{Context, is_own_procedure, none_left, reserved_uri};
use crate::events::REGISTRATION;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::pattern::PatternMap;
use crate::random::Random;
use crate::session::Sessions;
use crate::{CallQueue, ClientFeature, RoleLimit, Time};

/// A registration's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegistrationKey(u32);

/// One (procedure, matching policy), and the callees that share it.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) id: RegistrationId,
    pub(super) procedure: Arc<str>,
    pub(super) match_policy: MatchPolicy,
    /// Never empty.
    pub(super) callees: Callees,
    /// Who first registered it, and has the procedure on its account for as long as it stays.
    payer: Option<SessionIndex>,
    pub(super) created: Time,
    /// Calls that may wait for a callee that is free.
    pub(super) calls_wait_max: u32,
}

impl Registration {
    /// What it takes in memory beside its callees, roughly: places in tables, and its procedure.
    fn bytes(&self) -> isize {
        REGISTRATION_BYTES + self.procedure.len() as isize
    }
}

const REGISTRATION_BYTES: isize = 640;

/// What a session's part in a registration takes in memory, roughly.
const CALLEE_BYTES: isize = 128;

/// To take a registration away (2 µs where a realm has a million of them), and to look through so many callees for one.
const STEPS_PER_REGISTRATION: u32 = 20;
const CALLEES_PER_STEP: usize = 64;

#[derive(Debug)]
pub(super) struct Registrations {
    slab: Slab<Registration>,
    by_procedure: PatternMap<RegistrationKey>,
    by_id: GrowingMap<RegistrationId, RegistrationKey, FxBuildHasher>,
    /// Ids are not used twice, so that a late INVOCATION cannot be taken for another procedure's.
    id_last: u64,
    callee_last: u64,
    /// Sessions' parts in them, all together.
    held: usize,
    /// How many calls may wait for what is registered, by its URI or pattern.
    queues: PatternMap<u32>,
    /// Registrations that calls may have waited for, and that have ended.
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
            by_procedure: PatternMap::new(random.hash_keys()),
            by_id: GrowingMap::new(),
            id_last: 0,
            callee_last: 0,
            held: 0,
        }
    }

    /// Adds a callee; one that is there already has its options replaced.
    pub(super) fn enter<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        options: &RegisterOptions,
        procedure: &str,
    ) -> Result<RegistrationId, Fault> {
        let policy = options.match_policy;
        context.check_pattern(Action::Register, procedure, policy)?;
        if is_own_procedure(procedure) {
            return Err(reserved_uri(Action::Register, procedure));
        }
        let disclose = context.authorize(from, Action::Register, procedure, policy)?;
        context.check_options(options.unsupported)?;
        let mut known = self.by_procedure.value(policy, procedure);
        if known.is_some_and(|key| self.is_left(context, key)) {
            known = None;
        }
        let is_mine = |key: &RegistrationKey| context.sessions[from].registrations.contains(key);
        let is_again = !options.force_reregister && known.as_ref().is_some_and(is_mine);
        if let Some(key) = known.filter(|_| !options.force_reregister) {
            may_share(self[key].callees.policy(), options.invoke, procedure)?;
        }
        let registrations_max = context.config.limits.registrations_max;
        let registrations_max =
            context.role_bound(from, RoleLimit::Registrations, registrations_max);
        // Which may be one too many only until it loses the one that it has.
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
            && let Some(key) = known.take()
        {
            self.revoke(context, key);
        }
        let is_new = known.is_none();
        let key = known.unwrap_or_else(|| self.create(context.now, options, procedure));
        self.callee_last += 1;
        let features = context.sessions[from].features;
        let registration = &mut self.slab[key.0 as usize];
        registration.callees.enter(Callee {
            session: from,
            number: self.callee_last,
            forward_timeout: options.forward_timeout,
            is_disclosed: disclose.callee,
            may_reroute: features.has(ClientFeature::CalleeCallReroute),
            concurrency: options.concurrency,
            in_flight: 0,
        });
        if !is_again {
            context.sessions[from].registrations.insert(key);
            self.held += 1;
            let mut bytes = CALLEE_BYTES;
            if is_new {
                registration.payer = Some(from);
                bytes += registration.bytes();
            }
            context.hold(from, bytes);
            let session = context.sessions[from].id;
            context
                .events
                .entered(&REGISTRATION, session, &registration.entry(), is_new);
        }
        Ok(registration.id)
    }

    /// Removes a callee; whether it was one.
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

    /// Takes away registrations of a session that has left, so many steps' worth; whether there were
    /// any.
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

    /// Whether all who serve a registration have left; then it is gone, too.
    #[cold]
    pub(super) fn is_left<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
    ) -> bool {
        let has_left = |callee: &Callee| context.sessions[callee.session].closing;
        if !self[key].callees.iter().all(has_left) {
            return false;
        }
        self.take_from_all(context, key);
        true
    }

    /// Whether any have ended that calls may wait for.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    pub(super) fn take_ended(&mut self) -> Vec<RegistrationId> {
        std::mem::take(&mut self.ended)
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Registration> {
        self.slab.iter().map(|(_, registration)| registration)
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

    /// The one pattern that serves a procedure without an exact registration (WAMP advanced
    /// profile, "Calls matching multiple registrations").
    pub(super) fn best_pattern(&self, procedure: &str, steps: &mut u32) -> Option<RegistrationKey> {
        let prefix = self.by_procedure.longest_prefix(procedure);
        prefix.or_else(|| self.by_procedure.best_wildcard(procedure, steps))
    }

    /// The sessions that share a registration.
    pub(super) fn callees(&self, key: RegistrationKey) -> impl Iterator<Item = SessionIndex> {
        self[key].callees.iter().map(|callee| callee.session)
    }

    /// A call went to the callee at `place`.
    #[inline]
    pub(super) fn invoked(&mut self, key: RegistrationKey, place: usize) {
        self.slab[key.0 as usize].callees.invoked(place);
    }

    /// A call has ended that took a place at a callee with a bound. Callee and registration may be
    /// gone.
    pub(super) fn release(&mut self, slot: &Slot) {
        if let Some(RegistrationKey(key)) = self.by_id.get(&slot.registration) {
            self.slab[*key as usize].callees.release(slot.callee);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    fn create(&mut self, now: Time, options: &RegisterOptions, procedure: &str) -> RegistrationKey {
        self.id_last += 1;
        let id = RegistrationId(self.id_last);
        let queue = self.queues.exact(procedure);
        let queue = queue.or_else(|| self.queues.longest_prefix(procedure));
        let queue = queue.or_else(|| self.queues.best_wildcard(procedure, &mut 0));
        let procedure: Arc<str> = procedure.into();
        let key = RegistrationKey(self.slab.insert(Registration {
            id,
            procedure: Arc::clone(&procedure),
            match_policy: options.match_policy,
            callees: Callees::new(options.invoke),
            payer: None,
            created: now,
            calls_wait_max: queue.unwrap_or(0),
        }) as u32);
        self.by_procedure
            .insert(options.match_policy, procedure, key);
        self.by_id.insert(id, key);
        key
    }

    fn remove_callee<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        session: SessionIndex,
    ) {
        let registration = &mut self.slab[key.0 as usize];
        registration.callees.leave(session);
        let is_payer = registration.payer == Some(session);
        if is_payer {
            registration.payer = None;
        }
        let bytes = registration.bytes();
        let is_gone = registration.callees.is_empty();
        let what = (registration.id.0, &*registration.procedure);
        let id = context.sessions[session].id;
        context.events.exited(&REGISTRATION, id, what, is_gone);
        if is_gone {
            self.delete(key);
        }
        self.refund(context, session, is_payer.then_some(bytes));
    }

    /// A session has no part in a registration any more, which was on its account or not.
    fn refund<H>(
        &mut self,
        context: &mut Context<'_, H>,
        session: SessionIndex,
        paid: Option<isize>,
    ) {
        self.held -= 1;
        context.hold(session, -(CALLEE_BYTES + paid.unwrap_or(0)));
    }

    fn delete(&mut self, key: RegistrationKey) -> Registration {
        let registration = self.slab.remove(key.0 as usize);
        self.by_procedure
            .remove(registration.match_policy, &registration.procedure);
        self.by_id.remove(&registration.id);
        if registration.calls_wait_max > 0 {
            self.ended.push(registration.id);
        }
        registration
    }

    /// Takes a registration from all its callees, who are not told.
    fn take_from_all<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
    ) -> Registration {
        let registration = self.delete(key);
        let mut left = registration.callees.len();
        for callee in registration.callees.iter() {
            left -= 1;
            let what = (registration.id.0, &*registration.procedure);
            let id = context.sessions[callee.session].id;
            context.events.exited(&REGISTRATION, id, what, left == 0);
            context.sessions[callee.session].registrations.remove(&key);
            let is_payer = registration.payer == Some(callee.session);
            self.refund(
                context,
                callee.session,
                is_payer.then(|| registration.bytes()),
            );
        }
        context.spend(registration.callees.len() as u32);
        registration
    }

    /// Takes a registration from all its callees. Those who understand it are told; calls that are
    /// open under it stay open until they are answered.
    fn revoke<H>(&mut self, context: &mut Context<'_, H>, key: RegistrationKey) {
        let registration = self.take_from_all(context, key);
        for callee in registration.callees.iter() {
            let reason = Some(error::UNREGISTERED);
            tell_revoked(context, callee.session, registration.id, reason);
        }
    }

    /// Takes a registration from one of its callees, as an UNREGISTER of its own would; whether it was
    /// one.
    pub(super) fn revoke_from<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationId,
        callee: SessionIndex,
        reason: Option<&str>,
    ) -> bool {
        let was_there = self.remove(context, callee, registration);
        if was_there {
            tell_revoked(context, callee, registration, reason);
        }
        was_there
    }

    /// Asserts that tables and sessions say the same. Walks everything.
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
                .check_invariants(slots.map(|slot| slot.callee));
            for callee in registration.callees.iter() {
                assert!(sessions[callee.session].registrations.contains(&key));
            }
            memberships += registration.callees.iter().count();
        }
        let held: usize = sessions
            .iter()
            .map(|(_, session)| session.registrations.len())
            .sum();
        assert_eq!((held, self.held), (memberships, memberships));
    }
}

/// Tells a callee what it has lost, if it understands it: another client would take the message for a
/// violation.
fn tell_revoked<H>(
    context: &mut Context<'_, H>,
    callee: SessionIndex,
    registration: RegistrationId,
    reason: Option<&str>,
) {
    let features = context.sessions[callee].features;
    if !features.has(ClientFeature::CalleeRegistrationRevocation) {
        return;
    }
    let unregistered = Message::Unregistered {
        request: RequestId(0),
        revoked: Some(Revoked {
            id: registration,
            reason: reason.map(Into::into),
        }),
    };
    let _ = context.reply(callee, &unregistered);
}

impl std::ops::Index<RegistrationKey> for Registrations {
    type Output = Registration;

    fn index(&self, key: RegistrationKey) -> &Registration {
        &self.slab[key.0 as usize]
    }
}
