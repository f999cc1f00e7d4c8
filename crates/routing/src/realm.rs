//! The realm: receives every input, and dispatches it to the part that handles it.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;

use crosstie_wamp::{Message, SessionId};

use crate::across::NeighbourKey;
use crate::authz::{RoleIndex, Roles};
use crate::broker::Broker;
use crate::context::Context;
use crate::custody::{Custody, HeldTestaments};
use crate::dealer::{Dealer, calls_bytes};
use crate::detached::Detached;
use crate::events::MetaEvents;
use crate::identity::SessionIndex;
use crate::meta::{ClusterQueries, Kill, RemoteIndex};
use crate::random::Random;
use crate::reflection::Reflection;
use crate::session::{Session, Sessions};
use crate::{
    ClientFeatures, Decisions, Identity, JoinError, Outbox, Question, RealmConfig, RealmCounts,
    Role, SessionKey, Time, Verdict, Violation,
};

/// One realm. `H` is the type by which its owner names a session to its [`Outbox`].
#[derive(Debug)]
pub struct Realm<H> {
    pub(crate) config: RealmConfig,
    pub(crate) roles: Roles,
    pub(crate) sessions: Sessions<H>,
    pub(crate) broker: Broker,
    pub(crate) dealer: Dealer,
    pub(crate) random: Random,
    pub(crate) events: MetaEvents,
    pub(crate) kills: VecDeque<Kill>,
    /// Sessions' definitions of procedures, topics and errors.
    pub(crate) reflection: Reflection,
    pub(crate) queries: ClusterQueries,
    /// The index of other nodes' entries, for meta events about their ends.
    pub(crate) remote_index: RemoteIndex,
    pub(crate) held_testaments: HeldTestaments,
    pub(crate) custody: Custody,
    /// Nodes that are being sent all retained events, and the topic after which the next part begins.
    pub(crate) sharing: VecDeque<(NeighbourKey, Option<String>)>,
    pub(crate) steps: u32,
    pub(crate) detached: Detached,
    /// Sessions that have left and still hold something. The latest comes first: it mostly holds little, and its owner
    /// should not wait for the remains of the others.
    leaving: VecDeque<SessionIndex>,
    /// Those among them without calls and registrations.
    without_calls: VecDeque<SessionIndex>,
    /// Maximum steps of that work within one input: for most sessions, all of it.
    pub(crate) steps_at_once_max: u32,
}

impl<H> Realm<H> {
    /// Creates an empty realm. Ids, hash keys and the `random` invocation policy follow from `seed`.
    pub fn new(config: RealmConfig, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let roles = Roles::new(&config.roles, config.session_limits, &mut random);
        let mut broker = Broker::new(&mut random);
        let dealer = Dealer::new(&config.call_queues, &mut random);
        let events = broker.record(&config.history, config.meta_api);
        Self {
            roles,
            config,
            sessions: Sessions::new(),
            broker,
            dealer,
            random,
            events,
            kills: VecDeque::new(),
            queries: ClusterQueries::default(),
            remote_index: RemoteIndex::default(),
            held_testaments: HeldTestaments::default(),
            custody: Custody::default(),
            sharing: VecDeque::new(),
            reflection: Reflection::default(),
            steps: 0,
            detached: Detached::default(),
            leaving: VecDeque::new(),
            without_calls: VecDeque::new(),
            steps_at_once_max: STEPS_AT_ONCE_MAX,
        }
    }

    /// Sets the wall-clock time of the realm's time 0, in microseconds since 1970. The meta API reports creation times.
    pub fn set_epoch(&mut self, unix_us: u64) {
        self.events.set_epoch(unix_us);
    }

    /// Lets an authenticated session in. Its owner then sends it WELCOME, before any message of the realm to it.
    pub fn join(
        &mut self,
        now: Time,
        handle: H,
        identity: Identity,
        features: ClientFeatures,
    ) -> Result<(SessionKey, SessionId), JoinError> {
        self.join_as(None, now, handle, identity, features)
    }

    /// The same for a session that was told its id before; if the id is in use, it gets another.
    pub fn join_as(
        &mut self,
        id: Option<SessionId>,
        now: Time,
        handle: H,
        identity: Identity,
        features: ClientFeatures,
    ) -> Result<(SessionKey, SessionId), JoinError> {
        let Some(role) = self.find_role(&identity.authrole) else {
            return Err(JoinError::NoSuchRole {
                authrole: identity.authrole.as_ref().to_owned(),
            });
        };
        let sessions_max = self.config.limits.sessions_max;
        if self.sessions.len() >= sessions_max {
            return Err(JoinError::SessionsMax { sessions_max });
        }
        self.roles.check_room(role, &identity)?;
        self.roles.joined(role, &identity);
        let calls_max = self.roles.limits(role).calls_max;
        let calls_max = calls_max.map_or(u32::MAX, |max| u32::try_from(max).unwrap_or(u32::MAX));
        let random = &mut self.random;
        let joined = self
            .sessions
            .insert(id, handle, identity, role, features, now, random);
        let realm_max = u32::try_from(self.config.limits.calls_max).unwrap_or(u32::MAX);
        self.sessions[joined.0.index].calls_max = calls_max.min(realm_max);
        Ok(joined)
    }

    /// Handles a message from a session. After a [`Violation`] the owner sends ABORT and leaves.
    ///
    /// A message of a session that has left (the realm closed it) is ignored.
    pub fn handle(
        &mut self,
        now: Time,
        from: SessionKey,
        message: &Message<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Violation> {
        let Some(from) = self.sessions.find(from) else {
            return Ok(());
        };
        let outcome = self.dispatch(now, from, message, out);
        self.remove_closed(now, out);
        outcome
    }

    /// Handles a message again, with its authorizer's answer.
    pub fn handle_judged(
        &mut self,
        now: Time,
        from: SessionKey,
        message: &Message<'_>,
        (question, verdict): (Question, Verdict),
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Violation> {
        self.roles.give(question, verdict);
        let outcome = self.handle(now, from, message, out);
        self.roles.take_given();
        outcome
    }

    /// Whether a session's authorizer might wait for itself. That is the case if a callee of the authorizer, or of that
    /// callee's own authorizer and so on, has the session's role. Then it must not be asked, because a session that is
    /// being judged cannot answer.
    pub fn waits_for_itself(&self, session: SessionKey) -> bool {
        let Some(index) = self.sessions.find(session) else {
            return false;
        };
        let own = self.sessions[index].role;
        let mut roles = vec![own];
        let (mut place, mut is_own) = (0, false);
        while let Some(role) = roles.get(place).copied() {
            place += 1;
            let Some(procedure) = self.roles.authorizer(role) else {
                continue;
            };
            let mut left = CALLEES_SEEN_MAX;
            self.dealer.callees(procedure, &mut |callee| {
                let role = self.sessions[callee].role;
                is_own |= role == own;
                if !roles.contains(&role) {
                    roles.push(role);
                }
                left -= 1;
                !is_own && left > 0
            });
        }
        is_own
    }

    /// Takes a session out. From now on it is sent nothing and serves nothing. Its calls end, and its other holdings
    /// are removed, now or in [`Realm::work`].
    pub fn leave(&mut self, now: Time, session: SessionKey, out: &mut dyn Outbox<H>) {
        let Some(index) = self.sessions.find(session) else {
            return;
        };
        self.begin_leave(index, out);
        self.work(now, self.steps_at_once_max, out);
    }

    /// Does the work that was due until `now`, or a turn's worth of it. To be called when [`Realm::next_timeout`] has
    /// come; that also tells when to continue.
    pub fn handle_timeout(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.work(now, STEPS_PER_TURN_MAX, out);
    }

    /// Limits the steps that an input spends on the remains of sessions, in place of a tenth of a millisecond's: for
    /// simulations, whose sessions leave little.
    pub fn set_steps_at_once_max(&mut self, steps_max: u32) {
        self.steps_at_once_max = steps_max;
    }

    /// Whether [`Realm::work`] has something to do, apart from timeouts.
    pub fn has_backlog(&self) -> bool {
        !(self.leaving.is_empty()
            && self.without_calls.is_empty()
            && self.events.is_empty()
            && self.kills.is_empty()
            && !self.has_backlog_of_nodes()
            && !self.dealer.has_stirred())
            || self.broker.may_enter()
            || self.dealer.has_backlog_across(&self.sessions)
    }

    /// Does a part of the pending work, for about that many steps: for sessions that have left, and calls whose
    /// timeouts have expired.
    #[cold]
    #[inline(never)]
    pub fn work(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) {
        let before = mem::take(&mut self.steps);
        self.work_until(now, steps_max, out);
        self.steps = self.steps.saturating_add(before);
    }

    /// The same, with `steps` counted from 0.
    fn work_until(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) {
        loop {
            // Sessions that this work has closed leave, too.
            self.leave_closed(out);
            self.end_evicted(out);
            self.give_up_detached(now, out);
            self.end_queries(now, out);
            self.turn_known(out);
            self.publish_events(now, steps_max, out);
            if self.steps >= steps_max {
                return;
            }
            let left = self.steps_between_events(steps_max - self.steps);
            let (leaving, may_start) = (self.leaving.front().copied(), self.kills.is_empty());
            let (broker, dealer, mut context) = self.split(now, out);
            if dealer.handle_timeout(&mut context, left)
                || broker.enter_waiting(&mut context, left)
                || dealer.work_across(&mut context, left)
                || broker.end_retained(&mut context, left)
            {
                continue;
            }
            if let Some(index) = leaving {
                if !dealer.leave(&mut context, index, left) {
                    self.leaving.pop_front();
                    self.without_calls.push_front(index);
                }
                continue;
            }
            // All callees that were busy for leaving sessions are free now, and no session is about to leave.
            if may_start && dealer.has_stirred() && dealer.start_waiting(&mut context, left) {
                continue;
            }
            let Some(index) = self.without_calls.front().copied() else {
                if self.work_of_nodes(now, left, out) || self.kill_some(now, left, out) {
                    continue;
                }
                return;
            };
            let (broker, _, mut context) = self.split(now, out);
            if broker.leave(&mut context, index, left) || self.undefine_some(index, left, out) {
                continue;
            }
            if !self.publish_testaments(now, index, left, out) {
                self.remove_left(index, out);
            }
        }
    }

    /// Removes a session that has left and holds nothing any more.
    fn remove_left(&mut self, index: SessionIndex, out: &mut dyn Outbox<H>) {
        self.without_calls.pop_front();
        let session = self.sessions.remove(index);
        if session.keeps_role() {
            self.roles.release(session.role);
            out.keep(self.roles.decision_bytes());
        }
        let room = session.calls.room();
        let held = calls_bytes(room) + session.kept_bytes() as isize;
        if held > 0 {
            out.hold(&session.handle, -held);
        }
        self.tell_left(&session);
    }

    /// Returns the steps since the last call, of 50 to 100 ns each: a receiver, a compared pattern, an ended call. An
    /// input has a base cost beside them.
    pub fn take_steps(&mut self) -> u32 {
        mem::take(&mut self.steps)
    }

    /// The same, without resetting them.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The sessions at some places of the realm's table, out of [`Realm::places`]. A caller that needs many of them
    /// reads one part at a time.
    pub fn sessions_at(&self, places: Range<usize>) -> impl Iterator<Item = SessionView<'_, H>> {
        let sessions = places.filter_map(|place| self.sessions.at(place));
        sessions.map(|(index, session)| self.view(index, session))
    }

    /// The session with that id.
    pub fn session(&self, id: SessionId) -> Option<SessionView<'_, H>> {
        let index = self.sessions.find_id(id)?;
        Some(self.view(index, &self.sessions[index]))
    }

    fn view<'r>(&'r self, index: SessionIndex, session: &'r Session<H>) -> SessionView<'r, H> {
        SessionView {
            handle: &session.handle,
            id: session.id,
            identity: &session.identity,
            joined: session.joined,
            subscriptions: session.subscriptions.len(),
            registrations: session.registrations.len(),
            calls: session.calls.len() + self.dealer.waiting_of(index),
            requests: session.requests(),
            invocations: session.invocation_last,
        }
    }

    /// Size of the table of sessions.
    pub fn places(&self) -> usize {
        self.sessions.places()
    }

    /// Whether the session of `key` is in the realm.
    pub fn has(&self, key: SessionKey) -> bool {
        self.sessions.find(key).is_some()
    }

    /// Number of sessions with the role of that name; `None` if there is no such role.
    pub fn role_sessions(&self, name: &str) -> Option<usize> {
        Some(self.roles.sessions(self.roles.find(name)?))
    }

    /// When [`Realm::handle_timeout`] is to be called, if ever.
    pub fn next_timeout(&self) -> Option<Time> {
        let ended = self.broker.retained().next_end();
        let times = [
            self.dealer.next_timeout(),
            ended,
            self.detached.next_timeout(),
            self.queries.next_end(),
        ];
        times.into_iter().flatten().min()
    }

    /// The realm's configuration.
    pub fn config(&self) -> &RealmConfig {
        &self.config
    }

    /// The handles of all sessions.
    pub fn handles(&self) -> impl Iterator<Item = &H> {
        self.sessions.joined().map(|(_, session)| &session.handle)
    }

    /// Counts of cached authorizer decisions.
    pub fn decisions(&self) -> Decisions {
        self.roles.decisions()
    }

    /// Whether the realm is empty, except for retained events, which outlive their publishers.
    pub fn is_idle(&self) -> bool {
        let RealmCounts {
            sessions,
            subscriptions,
            registrations,
            calls,
            ..
        } = self.counts();
        let held = sessions + subscriptions + registrations + calls;
        held == 0
            && self.queries.is_empty()
            && self.dealer.next_timeout().is_none()
            && !self.has_backlog()
    }

    /// Asserts that all tables agree. Walks everything that the realm holds: for tests and simulations to call after
    /// each input.
    pub fn check_invariants(&self) {
        self.sessions.check_invariants();
        self.check_detached();
        self.roles.check_invariants(&self.sessions);
        self.broker.check_invariants(&self.sessions);
        self.dealer.check_invariants(&self.sessions);
        self.reflection.check_invariants();
        self.remote_index.check_invariants();
        self.held_testaments.check_invariants();
    }

    /// The role of that name. The role `trusted` is created for its first session.
    fn find_role(&mut self, name: &str) -> Option<RoleIndex> {
        let found = self.roles.find(name);
        if found.is_none() && name == Role::TRUSTED {
            self.roles.insert(&Role::trusted(), &mut self.random);
            return self.roles.find(name);
        }
        found
    }

    /// Removes the sessions that the present input has closed, and starts queued calls. Ending calls may close further
    /// sessions, whose queues are full.
    #[inline]
    pub(crate) fn remove_closed(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if self.sessions.has_doomed() || self.dealer.has_stirred() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    fn leave_closed(&mut self, out: &mut dyn Outbox<H>) {
        while let Some(index) = self.sessions.next_doomed() {
            self.begin_leave(index, out);
        }
    }

    /// Begins to remove a session: from now on it is sent nothing, serves nothing and cannot be found. [`Realm::work`]
    /// removes its holdings.
    pub(crate) fn begin_leave(&mut self, index: SessionIndex, out: &mut dyn Outbox<H>) {
        self.sessions.leave(index);
        self.leaving.push_front(index);
        let session = &mut self.sessions[index];
        if let Some(until) = session.take_waiting() {
            self.detached.forget(until, index);
        }
        self.roles.left(session.role, &session.identity);
        if session.keep_role() {
            self.roles.keep(session.role);
        }
        out.left(&session.handle, session.id, &session.identity);
    }

    pub(crate) fn split<'r>(
        &'r mut self,
        now: Time,
        out: &'r mut dyn Outbox<H>,
    ) -> (&'r mut Broker, &'r mut Dealer, Context<'r, H>) {
        let context = Context {
            now,
            config: &self.config,
            roles: &mut self.roles,
            sessions: &mut self.sessions,
            random: &mut self.random,
            events: &mut self.events,
            out,
            steps: &mut self.steps,
        };
        (&mut self.broker, &mut self.dealer, context)
    }
}

/// Maximum number of callees of an authorizer that are examined.
const CALLEES_SEEN_MAX: usize = 64;

/// About a tenth of a millisecond.
const STEPS_AT_ONCE_MAX: u32 = 1_024;

/// Maximum steps of due work while the realm's lock is held. Short, because a thread that serves fifty of the sessions
/// that leave at once waits for as many such turns.
const STEPS_PER_TURN_MAX: u32 = 2_048;

/// A read-only view of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionView<'r, H> {
    pub handle: &'r H,
    pub id: SessionId,
    pub identity: &'r Identity,
    pub joined: Time,
    pub subscriptions: usize,
    pub registrations: usize,
    /// Calls that it made and that have no final answer yet.
    pub calls: usize,
    /// Its highest request id. Clients count their requests from 1, so that this is their number.
    pub requests: u64,
    /// Number of invocations that it was sent.
    pub invocations: u64,
}
