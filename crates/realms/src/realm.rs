//! A realm with its lock and its clock.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use crosstie_collections::Histogram;
use crosstie_config::{self as model, LoneSurrogates, UnreadableValues};
use crosstie_front::connections::Connections;
use crosstie_front::counters::{Counter, counters};
use crosstie_front::end_reason::EndReason;
use crosstie_front::timer::Timer;
use crosstie_routing::{
    ClientFeatures, Decisions, Identity, JoinError, Realm, RealmConfig, RealmCounts, Revocation,
    Role, SessionKey, Time,
};
use crosstie_spans::{OpenSpans, Span};
use crosstie_transport::{Connection, Kept};
use crosstie_wamp::{Dict, Message, Payload, Serializer, SessionId};
use parking_lot::{Mutex, MutexGuard};

use crate::event_store::RealmStore;
use crate::fabric::port::FabricPort;
use crate::farewell::{Farewell, say_goodbye};
use crate::handled::Handled;
use crate::judged::Judged;
use crate::message_counts::{Messages, RealmMessages, is_of_sessions};
use crate::outbox::RealmOutbox;
use crate::payload_encodings::{PayloadEncodings, Source};
use crate::peer::Peer;
use crate::rate::Rates;
use crate::realm_log::RealmLog;
use crate::realms::Realms;
use crate::silence::close_silent;
use crate::spans;
use crate::started_role::StartedRole;

/// One realm, which any thread may enter for one short call.
///
/// Messages are appended to the receivers' queues under the lock: this gives WAMP's ordering guarantees across threads.
/// System calls and large transcodings happen outside the lock.
pub struct SharedRealm {
    pub(crate) log: RealmLog,
    /// Increases with each start of a realm.
    pub number: u32,
    /// The time of its start.
    pub started: SystemTime,
    pub(crate) lone_surrogates: LoneSurrogates,
    pub(crate) unreadable_values: UnreadableValues,
    /// WELCOME names the node, the worker and the process that serve the session.
    pub(crate) discloses_router: bool,
    /// Whether it offers the meta procedures and publishes the meta events.
    pub(crate) meta_api: bool,
    pub(super) has_history: bool,
    /// Whether any role assigns trust levels.
    pub(super) gives_trustlevels: AtomicBool,
    /// Whether its sessions may outlive their connections.
    pub(super) is_resumable: bool,
    pub(super) roles: Mutex<Vec<StartedRole>>,
    pub realm: Mutex<Realm<Peer>>,
    /// Counted under the lock of `realm`.
    pub messages: RealmMessages,
    /// The router's counters, for all its realms.
    pub(super) session_messages: Arc<Messages>,
    /// No further session may join. Written and read under the lock of `realm`.
    pub(super) stopped: AtomicBool,
    router: Weak<Realms>,
    /// Set if the realm spans several nodes.
    pub port: Option<Arc<FabricPort>>,
    /// Cached verdicts of authorizers. Written under the lock of `realm`.
    pub kept: Kept,
    /// The store of its events, if not in memory.
    pub store: Option<RealmStore>,
    pub judged: Judged,
    pub(super) rates: Rates,
    /// The spans of its calls that belong to traces.
    pub(super) spans: OpenSpans,
    /// Connections of killed sessions, which the keeper closes if they do not answer.
    pub(super) killed: Mutex<Vec<Weak<Connection>>>,
    start: Instant,
    /// In the realm's time.
    pub(super) timer: Timer,
}

/// Why a session could not join.
pub(crate) enum NotJoined {
    /// The realm was stopped during the handshake.
    Stopped,
    /// Its other nodes are unreachable, and it is configured to refuse sessions then.
    Detached,
    Refused(JoinError),
}

/// The text for [`NotJoined::Detached`].
pub(crate) const DETACHED: &str = "the realm's other nodes cannot be reached";

/// Minimum size of a payload that is transcoded before the lock is taken. A shorter one is transcoded under the lock,
/// if that takes less time than unlocking and locking again.
pub(super) const TRANSCODE_OUTSIDE_BYTES_MIN: usize = 512;

/// Maximum number of receivers inspected for their serializers, which usually cover those of the rest.
pub(super) const RECEIVERS_SEEN_MAX: usize = 1_024;

impl SharedRealm {
    pub fn new(
        model: &model::Realm,
        config: RealmConfig,
        seed: u64,
        number: u32,
        router: &Arc<Realms>,
        (port, store): (Option<Arc<FabricPort>>, Option<RealmStore>),
    ) -> Self {
        // Read together: what passes between both is an error of the clock that other nodes' numbers are compared with.
        let (started, start) = (SystemTime::now(), Instant::now());
        let mut realm = Realm::new(config.clone(), seed);
        let since_1970 = started.duration_since(SystemTime::UNIX_EPOCH);
        realm.set_epoch(since_1970.map_or(0, |since| since.as_micros() as u64));
        let roles = config.roles.iter().cloned();
        Self {
            log: RealmLog::new(&config.name, router.bounds.is_private),
            number,
            started,
            lone_surrogates: model.lone_surrogates,
            unreadable_values: model.unreadable_values,
            discloses_router: model.discloses_router,
            meta_api: model.meta_api,
            has_history: !model.history.is_empty(),
            gives_trustlevels: AtomicBool::new(config.roles.iter().any(Role::gives_trustlevels)),
            is_resumable: model.resumption.is_some(),
            router: Arc::downgrade(router),
            port,
            kept: Kept::new(&router.bounds.limits.account),
            store,
            judged: Judged::default(),
            rates: Rates::default(),
            spans: OpenSpans::default(),
            killed: Mutex::default(),
            roles: Mutex::new(roles.map(|role| StartedRole { role, started }).collect()),
            stopped: AtomicBool::new(false),
            realm: Mutex::new(realm),
            messages: RealmMessages::new(),
            session_messages: Arc::clone(&router.session_messages),
            start,
            timer: Timer::new(Timer::NEVER),
        }
    }

    /// The router, while it exists.
    pub fn router(&self) -> Option<Arc<Realms>> {
        self.router.upgrade()
    }

    /// The realm's URI.
    pub fn name(&self) -> &str {
        &self.log.realm
    }

    /// Joins a session, under its previous id or a new one, with the `authextra` for other sessions. `welcome` queues
    /// WELCOME before anything else can be queued, and returns whether it could.
    pub(crate) fn join(
        &self,
        peer: Peer,
        identity: Identity,
        features: ClientFeatures,
        (id, authextra): (Option<SessionId>, &Dict),
        welcome: impl FnOnce(SessionId) -> bool,
    ) -> Result<SessionKey, NotJoined> {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, EndReason::Closed, |realm, outbox| {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(NotJoined::Stopped);
            }
            if self.port.as_ref().is_some_and(|port| port.is_refusing()) {
                return Err(NotJoined::Detached);
            }
            let joined = realm.join_as(id, now, peer, identity, features);
            let (key, id) = joined.map_err(NotJoined::Refused)?;
            if welcome(id) {
                realm.keep_authextra(key, authextra, outbox);
                realm.welcomed(now, key, outbox);
            }
            counters().count(Counter::SessionsJoined);
            Ok(key)
        })
    }

    /// Routes one message of a session, received at `now`.
    #[inline]
    pub(crate) fn handle(
        &self,
        now: Instant,
        from: SessionKey,
        message: &Message<'_>,
        source: Source<'_>,
    ) -> Handled {
        let span = spans::begin(self.name(), message, source.len);
        let now = self.time(now);
        let mut encodings = self.encodings(from, message, source);
        self.enter(&mut encodings, EndReason::Closed, |realm, outbox| {
            if !is_of_sessions(message.kind()) {
                let messages = outbox.messages;
                messages.count_received_alone(message.kind(), source.len);
            }
            let span = span.and_then(|span| spans::keep(&self.spans, source, message, span));
            let outcome = realm.handle(now, from, message, outbox);
            if span.is_some() || outbox.spans.is_some_and(OpenSpans::has_some) {
                self.settle_spans(realm, outbox, (from, message, source), span);
            }
            Handled::of(outcome, realm, outbox)
        })
    }

    /// Ends what a routed message has ended. A message that an authorizer is asked about is routed later.
    #[cold]
    pub(super) fn settle_spans(
        &self,
        realm: &Realm<Peer>,
        outbox: &RealmOutbox<'_, '_>,
        (from, message, source): (SessionKey, &Message<'_>, Source<'_>),
        published: Option<Box<Span>>,
    ) {
        if outbox.asked.is_some() {
            return;
        }
        if let Some(span) = published {
            spans::end_published(*span, outbox.denied.is_some());
        }
        let is_open = |request| realm.has_call(from, request);
        spans::settle(&self.spans, source.connection, message, is_open);
    }

    /// The encodings of a message's payload, prepared for receivers if the message is long.
    #[inline]
    pub(super) fn encodings<'p>(
        &self,
        from: SessionKey,
        message: &'p Message<'p>,
        source: Source<'_>,
    ) -> PayloadEncodings<'p> {
        let payload = message.payload().copied().unwrap_or(Payload::EMPTY);
        let mut encodings = PayloadEncodings::new(payload);
        if payload.len() >= TRANSCODE_OUTSIDE_BYTES_MIN {
            self.prepare_encodings(from, message, source, &mut encodings);
        }
        encodings
    }

    /// Whether a session's authorizer must not be asked, because it would wait for itself.
    pub(crate) fn waits_for_itself(&self, session: SessionKey) -> bool {
        self.realm.lock().waits_for_itself(session)
    }

    pub fn decisions(&self) -> Decisions {
        self.realm.lock().decisions()
    }

    /// Removes a session with all its state. Returns whether it was still present.
    pub fn leave(&self, session: SessionKey, why: EndReason) -> bool {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, why, |realm, outbox| {
            let was_in = realm.has(session);
            realm.leave(now, session, outbox);
            was_in
        })
    }

    /// Removes the session of that id with a GOODBYE, if it exists.
    pub fn end_session(&self, id: SessionId, text: &str) -> Option<Peer> {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, EndReason::Killed, |realm, outbox| {
            let peer = realm.end_session(now, id, outbox)?;
            say_goodbye(&self.session_messages, &peer, &Farewell::killed(text));
            Some(peer)
        })
    }

    /// Drops the remembered logins of principals, and ends their sessions if the revocation says so.
    pub(crate) fn revoke(&self, revocation: Revocation) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, EndReason::Killed, |realm, outbox| {
            realm.revoke(now, revocation, outbox);
        });
    }

    /// The time elapsed since `time`.
    pub fn age(&self, time: Time) -> Duration {
        Duration::from_micros(self.now().0.saturating_sub(time.0))
    }

    /// Whether a session is present.
    pub fn has(&self, session: SessionKey) -> bool {
        self.realm.lock().has(session)
    }

    /// Every session's peer.
    pub fn peers(&self) -> Vec<Peer> {
        self.realm.lock().handles().cloned().collect()
    }

    /// The sessions of these connections.
    pub fn peers_of(&self, connections: &Connections) -> Vec<Peer> {
        let realm = self.realm.lock();
        let peers = realm.handles();
        let meant = peers.filter(|peer| connections.has(&peer.connection));
        meant.cloned().collect()
    }

    /// Microseconds from CALL to answer, by the role of the caller.
    pub fn call_times(&self) -> BTreeMap<String, Histogram> {
        self.realm.lock().call_times()
    }

    pub fn counts(&self) -> RealmCounts {
        let counts = self.realm.lock().counts();
        self.store.as_ref().map_or(counts, |s| s.counted(counts))
    }

    /// Ends calls that have timed out, and cleans up after sessions that have left, turn by turn, until the realm is
    /// stopped. Exactly one task runs this.
    pub async fn keep_time(self: Arc<Self>) {
        loop {
            if self.stopped.load(Ordering::Relaxed) && self.is_over() {
                return;
            }
            let instant = |at| self.start + Duration::from_micros(at);
            if !self.timer.wait(instant).await {
                continue;
            }
            self.handle_timeout();
            self.close_killed();
            crosstie_transport::uncork();
            // More may remain; other tasks run first.
            tokio::task::yield_now().await;
        }
    }

    /// Ends the thread that stores its events, if any.
    pub fn stop_store(&self) {
        if let Some(store) = &self.store {
            store.keeper.stop();
        }
    }

    /// Whether the realm is empty, and all cleaning up is done.
    fn is_over(&self) -> bool {
        let realm = self.realm.lock();
        realm.counts().sessions == 0 && !realm.has_backlog()
    }

    /// Has connections closed whose clients do not answer GOODBYE.
    fn close_killed(&self) {
        let killed = mem::take(&mut *self.killed.lock());
        if !killed.is_empty()
            && let Some(router) = self.router.upgrade()
        {
            tokio::spawn(close_silent(router, killed));
        }
    }

    fn handle_timeout(&self) {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter_in_turn(&mut encodings, EndReason::Closed, |realm, outbox| {
            realm.handle_timeout(now, outbox);
            // No session's turn pays for these steps.
            realm.take_steps();
            let next = next_turn(realm).map_or(Timer::NEVER, |time| time.0);
            self.timer.set(next);
        });
    }

    /// Runs an action on the realm, then everything that follows outside the lock. Sessions that leave have the given
    /// reason, unless their queues were full.
    pub(super) fn enter<R>(
        &self,
        encodings: &mut PayloadEncodings<'_>,
        why: EndReason,
        act: impl FnOnce(&mut Realm<Peer>, &mut RealmOutbox<'_, '_>) -> R,
    ) -> R {
        self.enter_until(encodings, why, drop, act)
    }

    /// The same for callers that soon enter again: a waiting thread gets the lock next. Otherwise it would find the
    /// lock taken again, as waking takes longer than locking.
    pub(super) fn enter_in_turn<R>(
        &self,
        encodings: &mut PayloadEncodings<'_>,
        why: EndReason,
        act: impl FnOnce(&mut Realm<Peer>, &mut RealmOutbox<'_, '_>) -> R,
    ) -> R {
        self.enter_until(encodings, why, MutexGuard::unlock_fair, act)
    }

    #[inline]
    fn enter_until<'s, R>(
        &'s self,
        encodings: &mut PayloadEncodings<'_>,
        why: EndReason,
        unlock: impl FnOnce(MutexGuard<'s, Realm<Peer>>),
        act: impl FnOnce(&mut Realm<Peer>, &mut RealmOutbox<'_, '_>) -> R,
    ) -> R {
        let of_sessions = (&*self.session_messages, self.discloses_router);
        let (own, port) = (self.messages.own(), self.port.as_deref());
        let kept = (&self.kept, self.store.as_ref().map(|store| &store.keeper));
        let mut outbox = RealmOutbox::new(encodings, own, of_sessions, port, kept);
        let has_spans = crosstie_spans::is_on() || self.spans.has_some();
        outbox.spans = has_spans.then_some(&self.spans);
        let mut realm = self.realm.lock();
        let outcome = act(&mut realm, &mut outbox);
        let next = next_turn(&realm);
        unlock(realm);
        self.arm(next);
        let is_silent = outbox.left.is_empty()
            && outbox.denied.is_none()
            && outbox.logged_out.is_none()
            && outbox.unwritable.is_none();
        if !is_silent {
            self.tell(outbox, why);
        }
        outcome
    }

    /// Sets the timer to fire no later than `next`.
    fn arm(&self, next: Option<Time>) {
        if let Some(Time(next)) = next {
            self.timer.arm(next);
        }
    }

    /// Makes the payload's encodings for its receivers outside the lock. Receivers that appear meanwhile are served
    /// under the lock.
    fn prepare_encodings(
        &self,
        from: SessionKey,
        message: &Message<'_>,
        source: Source<'_>,
        encodings: &mut PayloadEncodings<'_>,
    ) {
        let mut needed = [false; Serializer::ALL.len()];
        let mut seen = 0;
        self.realm.lock().receivers(from, message, &mut |peer| {
            needed[peer.wire.serializer.index()] = true;
            seen += 1;
            seen < RECEIVERS_SEEN_MAX && needed.contains(&false)
        });
        for serializer in Serializer::ALL {
            if needed[serializer.index()] {
                encodings.prepare(serializer, source);
            }
        }
    }

    /// The time of its start, by the monotonic clock.
    pub fn started_at(&self) -> Instant {
        self.start
    }

    pub(super) fn now(&self) -> Time {
        self.time(Instant::now())
    }

    pub fn time(&self, at: Instant) -> Time {
        let micros = at.saturating_duration_since(self.start).as_micros();
        Time(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// The time of the realm's next own work: at once, if an input left some.
fn next_turn(realm: &Realm<Peer>) -> Option<Time> {
    match realm.has_backlog() {
        true => Some(Time(0)),
        false => realm.next_timeout(),
    }
}
