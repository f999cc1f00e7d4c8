//! A realm with its lock and its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crosstie_config::LoneSurrogates;
use crosstie_routing::{
    ClientFeatures, Identity, JoinError, Realm, RealmConfig, RealmCounts, Role, SessionKey, Time,
    Violation,
};
use crosstie_wamp::{Message, Payload, Serializer, SessionId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::counters::{Counter, counters};
use crate::message_counts::{Direction, Messages, RealmMessages, is_of_sessions};
use crate::outbox::{Forms, RealmOutbox};
use crate::peer::Peer;
use crate::report;
use crate::session::{Farewell, say_goodbye};

/// One realm, which any thread may enter for one short call.
///
/// The receivers' octets are appended to their queues under the lock: that is what gives WAMP's
/// ordering guarantees over all threads. System calls and large transcodings happen outside it.
pub(crate) struct SharedRealm {
    name: String,
    /// Later ones have higher numbers.
    pub(crate) number: u32,
    /// When it was started.
    pub(crate) started: SystemTime,
    pub(crate) lone_surrogates: LoneSurrogates,
    roles: Mutex<Vec<StartedRole>>,
    realm: Mutex<Realm<Peer>>,
    /// Counted under the lock of `realm`.
    pub(crate) messages: RealmMessages,
    /// The router's, of all its realms.
    session_messages: Arc<Messages>,
    /// Nobody joins any more. Written under the lock of `realm`, and read there by whoever lets
    /// somebody in.
    stopped: AtomicBool,
    start: Instant,
    /// When the timer's task will look next, in the realm's time; `u64::MAX` for never.
    timer_at: AtomicU64,
    timer_earlier: Notify,
}

/// A role that sessions may have.
#[derive(Clone)]
pub(crate) struct StartedRole {
    pub(crate) role: Role,
    pub(crate) started: SystemTime,
}

/// Why a session was not let in.
pub(crate) enum NotJoined {
    /// The realm was stopped while the session was on its way.
    Stopped,
    Refused(JoinError),
}

/// A payload of so many octets is transcoded before the lock is taken; a shorter one under it,
/// where that takes less time than unlocking and locking again.
const TRANSCODE_OUTSIDE_BYTES_MIN: usize = 512;

impl SharedRealm {
    pub(crate) fn new(
        config: RealmConfig,
        seed: u64,
        number: u32,
        lone_surrogates: LoneSurrogates,
        session_messages: Arc<Messages>,
    ) -> Self {
        let started = SystemTime::now();
        let roles = config.roles.iter().cloned();
        Self {
            name: config.name.clone(),
            number,
            started,
            lone_surrogates,
            roles: Mutex::new(roles.map(|role| StartedRole { role, started }).collect()),
            stopped: AtomicBool::new(false),
            realm: Mutex::new(Realm::new(config, seed)),
            messages: RealmMessages::new(),
            session_messages,
            start: Instant::now(),
            timer_at: AtomicU64::new(u64::MAX),
            timer_earlier: Notify::new(),
        }
    }

    /// The realm's URI.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Lets a session in, and has `welcome` queue its WELCOME before anything else can be
    /// queued for it.
    pub(crate) fn join(
        &self,
        peer: Peer,
        identity: Identity,
        features: ClientFeatures,
        welcome: impl FnOnce(SessionId),
    ) -> Result<SessionKey, NotJoined> {
        let now = self.now();
        let mut realm = self.realm.lock();
        if self.stopped.load(Ordering::Relaxed) {
            return Err(NotJoined::Stopped);
        }
        let joined = realm.join(now, peer, identity, features);
        let (key, id) = joined.map_err(NotJoined::Refused)?;
        welcome(id);
        counters().count(Counter::SessionsJoined);
        Ok(key)
    }

    /// Routes one message of a session, received at `now`.
    pub(crate) fn handle(
        &self,
        now: Instant,
        from: SessionKey,
        message: &Message<'_>,
    ) -> Result<(), Violation> {
        let now = self.time(now);
        let payload = message.payload().copied().unwrap_or(Payload::EMPTY);
        let mut forms = Forms::new(payload);
        if payload.len() >= TRANSCODE_OUTSIDE_BYTES_MIN {
            self.transcode_ahead(from, message, &mut forms);
        }
        self.enter(&mut forms, |realm, outbox| {
            if !is_of_sessions(message.kind()) {
                let messages = outbox.messages;
                messages.count_alone(Direction::Received, message.kind());
            }
            realm.handle(now, from, message, outbox)
        })
    }

    /// Answers one message of a session, received at `now`, that is not to be routed.
    pub(crate) fn decline(
        &self,
        now: Instant,
        from: SessionKey,
        message: &Message<'_>,
        text: &'static str,
    ) -> Result<(), Violation> {
        let now = self.time(now);
        let mut forms = Forms::new(Payload::EMPTY);
        self.enter(&mut forms, |realm, outbox| {
            let messages = outbox.messages;
            messages.count_alone(Direction::Received, message.kind());
            realm.decline(now, from, message, text, outbox)
        })
    }

    /// Takes a session out, whatever it left open; whether it had not been taken out before.
    pub(crate) fn leave(&self, session: SessionKey) -> bool {
        let now = self.now();
        let mut forms = Forms::new(Payload::EMPTY);
        let was_in = self.enter(&mut forms, |realm, outbox| {
            let was_in = realm.has(session);
            realm.leave(now, session, outbox);
            was_in
        });
        counters().add(Counter::SessionsLeft, was_in.into());
        was_in
    }

    /// Whether a session has not been taken out.
    pub(crate) fn has(&self, session: SessionKey) -> bool {
        self.realm.lock().has(session)
    }

    /// Lets nobody in any more, and takes everybody out with a GOODBYE.
    pub(crate) fn stop(&self) -> Vec<Peer> {
        let now = self.now();
        let mut forms = Forms::new(Payload::EMPTY);
        self.enter(&mut forms, |realm, outbox| {
            self.stopped.store(true, Ordering::Relaxed);
            let ended = realm.end(now, outbox);
            self.say_goodbye_to(&ended, &Farewell::CLOSE_REALM);
            self.timer_earlier.notify_one();
            ended
        })
    }

    /// Adds a role; whether there was none of that name.
    pub(crate) fn start_role(&self, role: &Role) -> bool {
        let mut roles = self.roles.lock();
        let is_new = self.realm.lock().start_role(role);
        if is_new {
            roles.push(StartedRole {
                role: role.clone(),
                started: SystemTime::now(),
            });
        }
        is_new
    }

    /// Removes a role, and takes everybody who has it out with a GOODBYE; `None` if there is no
    /// such role.
    pub(crate) fn stop_role(&self, name: &str) -> Option<Vec<Peer>> {
        let now = self.now();
        let mut roles = self.roles.lock();
        roles.retain(|started| started.role.name != name);
        let mut forms = Forms::new(Payload::EMPTY);
        self.enter(&mut forms, |realm, outbox| {
            let ended = realm.stop_role(now, name, outbox)?;
            self.say_goodbye_to(&ended, &Farewell::STOP_ROLE);
            Some(ended)
        })
    }

    /// The roles, each with how many sessions have it.
    pub(crate) fn roles(&self) -> Vec<(StartedRole, usize)> {
        let roles = self.roles.lock();
        let realm = self.realm.lock();
        let sessions = |started: &StartedRole| realm.role_sessions(&started.role.name);
        let counted = roles.iter().map(|s| (s.clone(), sessions(s).unwrap_or(0)));
        counted.collect()
    }

    /// Every session's peer.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        self.realm.lock().handles().cloned().collect()
    }

    pub(crate) fn counts(&self) -> RealmCounts {
        self.realm.lock().counts()
    }

    /// Ends calls whose time is up, until the realm is stopped. One task runs this.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        while !self.stopped.load(Ordering::Relaxed) {
            let at = self.timer_at.load(Ordering::Relaxed);
            if at == u64::MAX {
                self.timer_earlier.notified().await;
                continue;
            }
            let due = self.start + Duration::from_micros(at);
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {}
                () = self.timer_earlier.notified() => continue,
            }
            self.handle_timeout();
            crosstie_transport::uncork();
        }
    }

    fn handle_timeout(&self) {
        let now = self.now();
        let mut forms = Forms::new(Payload::EMPTY);
        self.enter(&mut forms, |realm, outbox| {
            realm.handle_timeout(now, outbox);
            let next = realm.next_timeout().map_or(u64::MAX, |time| time.0);
            // Under the lock, so that a call that is made meanwhile arms the timer after this.
            self.timer_at.store(next, Ordering::Relaxed);
        });
    }

    /// Has the realm do something, then everything about it that needs no lock.
    fn enter<R>(
        &self,
        forms: &mut Forms<'_>,
        act: impl FnOnce(&mut Realm<Peer>, &mut RealmOutbox<'_, '_>) -> R,
    ) -> R {
        let mut outbox = RealmOutbox::new(forms, counters(), self.messages.own());
        let mut realm = self.realm.lock();
        let outcome = act(&mut realm, &mut outbox);
        let next = realm.next_timeout();
        drop(realm);
        self.arm(next);
        for peer in outbox.closed {
            let text = "an answer found its queue full";
            report::session_closed(&peer.connection, "queue_bytes_max", text);
        }
        outcome
    }

    /// Says GOODBYE to sessions that were taken out.
    fn say_goodbye_to(&self, peers: &[Peer], farewell: &Farewell) {
        peers
            .iter()
            .for_each(|peer| say_goodbye(&self.session_messages, peer, farewell));
        counters().add(Counter::SessionsLeft, peers.len() as u64);
    }

    /// Sees to it that the timer looks no later than `next`.
    fn arm(&self, next: Option<Time>) {
        let Some(Time(next)) = next else { return };
        if next < self.timer_at.load(Ordering::Relaxed) {
            self.timer_at.fetch_min(next, Ordering::Relaxed);
            self.timer_earlier.notify_one();
        }
    }

    /// Makes the forms of the payload that the receivers will need, outside the lock. What has
    /// changed when the message is routed is made up for under it.
    fn transcode_ahead(&self, from: SessionKey, message: &Message<'_>, forms: &mut Forms<'_>) {
        let mut needed = [false; Serializer::ALL.len()];
        self.realm.lock().receivers(from, message, &mut |peer| {
            needed[peer.wire.serializer.index()] = true;
            needed.contains(&false)
        });
        for serializer in Serializer::ALL {
            if needed[serializer.index()] {
                forms.transcode(serializer);
            }
        }
    }

    fn now(&self) -> Time {
        self.time(Instant::now())
    }

    fn time(&self, at: Instant) -> Time {
        let micros = at.saturating_duration_since(self.start).as_micros();
        Time(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}
