//! A topic space with its lock, its clock and its session in the realm.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crosstie_config::{Limits, PayloadMapping};
use crosstie_front::cause::Cause;
use crosstie_front::seed::seed;
use crosstie_front::timer::Timer;
use crosstie_mqtt::{QoS, ReasonCode};
use crosstie_realms::realms::Realms;
use crosstie_topics::{
    Connect, Connected, ConnectionKey, Content, Counts, Position, Record, Space, SpaceConfig,
    SpaceLimits, Time,
};
use crosstie_transport::{Connection, Kept};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::bridge::Bridge;
use crate::client::{Client, Resume};
use crate::crossing::{Converted, Crossing, converted};
use crate::durable::{Committed, Durable, SpaceStore};
use crate::figures::{Dropped, Figures};
use crate::names;
use crate::outbox::SpaceOutbox;
use crate::own_content::OwnContent;

/// One space, which any thread may enter for one short call. Packets are appended to the clients' queues under the lock;
/// system calls, and whatever concerns the realm, happen outside.
pub(crate) struct SharedSpace {
    space: Mutex<Space<Arc<Client>>>,
    /// The user who logged in last: the sessions of one share its text.
    last_owner: Mutex<Owner>,
    pub(crate) bridge: Bridge,
    pub(crate) crossing: Crossing,
    /// Its store, if the realm has one.
    durable: Option<Durable>,
    timer: Timer,
    kept: Kept,
    /// Events that wait for an encoder.
    pub(crate) encoding_kept: Kept,
    /// Bounds of a topic: bytes, levels.
    topic_max: (usize, usize),
    is_over: AtomicBool,
    /// Wills that were due when the space was restored.
    restored: Mutex<Vec<OwnContent>>,
    start: Instant,
    /// Milliseconds from 1970 to the start.
    start_ms: u64,
}

/// Incoming messages of QoS 1 and 2 that a client may have unacknowledged: more than clients send that ignore CONNACK.
pub(crate) const RECEIVE_MAX: u16 = 16_384;

/// Steps of postponed work in one turn.
const WORK_STEPS: usize = 4_096;

/// Approximate memory of the user of a session, beside its place there.
const OWNER_BYTES: usize = 48;

/// The bounds of a space.
pub(crate) fn limits_of(limits: &Limits) -> SpaceLimits {
    SpaceLimits {
        sessions_max: limits.mqtt_sessions_max,
        session_subscriptions_max: limits.subscriptions_max,
        subscriptions_max: limits.mqtt_subscriptions_max,
        topic_bytes_max: limits.uri_bytes_max.max(4_096),
        retained_max: limits.mqtt_retained_messages_max,
        retained_bytes_max: limits.mqtt_retained_bytes_max,
        queued_max: limits.mqtt_queued_messages_max,
        queued_bytes_max: limits.mqtt_queued_bytes_max,
        receive_max: RECEIVE_MAX,
        session_expiry_max_s: limits.mqtt_session_expiry_seconds_max,
        session_expiry_3_s: limits.mqtt_session_expiry_3_seconds,
        ..SpaceLimits::default()
    }
}

/// The user of a session, as text: the authid, which is empty for a client without credentials, U+0000, and the role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner(Arc<str>);

impl Owner {
    pub(crate) fn new(authid: &str, role: &str) -> Self {
        Self(format!("{authid}\0{role}").into())
    }

    /// Whether a session's user is the same one, and whether his role is.
    fn is_of(&self, known: &str) -> (bool, bool) {
        // No role contains U+0000.
        let parts = |text| str::rsplit_once(text, '\0').unwrap_or((text, ""));
        let ((authid, role), known) = (parts(&self.0), parts(known));
        (authid == known.0, role == known.1)
    }
}

impl SharedSpace {
    pub(crate) fn new(
        realms: &Arc<Realms>,
        realm: &str,
        limits: SpaceLimits,
        store: Option<&SpaceStore>,
    ) -> Self {
        let config = SpaceConfig {
            is_stored: store.is_some(),
            // WAMP clients may receive what no MQTT client does.
            tells_unmatched: false,
            limits,
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let limits = &config.limits;
        let topic_max = (limits.topic_bytes_max, limits.levels_max);
        let account = &realms.bounds.limits.account;
        let since_ms = since.map_or(0, |since| since.as_millis() as u64);
        // Times in the store do not come again if the machine's clock has stepped back.
        let start_ms = store.map_or(since_ms, |store| since_ms.max(store.now_ms()));
        let durable = store.map(|_| Durable::new(realm, account));
        Self {
            topic_max,
            space: Mutex::new(Space::new(config, seed())),
            last_owner: Mutex::default(),
            durable,
            bridge: Bridge::new(realms, realm),
            crossing: Crossing::default(),
            timer: Timer::new(Timer::NEVER),
            kept: Kept::new(account),
            encoding_kept: Kept::new(account),
            is_over: AtomicBool::new(false),
            restored: Mutex::default(),
            start: Instant::now(),
            start_ms,
        }
    }

    /// Restores the space from its store, before any client comes.
    fn restore(&self, store: &mut SpaceStore) {
        let records = store.take_records();
        let owners: Vec<_> = records
            .iter()
            .filter_map(|owned| match &owned.record {
                Record::Session { client_id, .. } if !owned.owner.is_empty() => {
                    Some((Arc::clone(client_id), Arc::from(&*owned.owner)))
                }
                _ => None,
            })
            .collect();
        let mut outbox = SpaceOutbox::default();
        let mut space = self.space.lock();
        let records = records.into_iter().map(|owned| owned.record);
        space.restore(self.now(), records, &mut outbox);
        while space.has_backlog() {
            space.work(self.now(), WORK_STEPS, &mut outbox);
        }
        for (client_id, owner) in owners {
            space.set_user(&client_id, owner);
        }
        self.kept.set(space.kept_bytes());
        let counts = space.counts();
        drop(space);
        let realm = self.bridge.realm();
        tracing::info!(
            "realm {realm}: {} MQTT sessions, {} retained and {} waiting messages are restored",
            counts.sessions,
            counts.retained,
            counts.queued
        );
        // The realm is not there yet.
        *self.restored.lock() = mem::take(&mut outbox.wills);
        self.follow(outbox);
    }

    /// Publishes in the realm the wills that were due when the space was restored.
    pub(crate) fn publish_restored(&self) {
        let wills = mem::take(&mut *self.restored.lock());
        let used = self.crossing.used.read().clone();
        for will in &wills {
            self.publish_own(will, &used.mapping);
        }
    }

    /// Restores the space from its store, and begins to write to it.
    pub(crate) fn attach(
        self: &Arc<Self>,
        mut store: SpaceStore,
        context: Handle,
    ) -> std::io::Result<()> {
        self.restore(&mut store);
        if let Some(durable) = &self.durable {
            durable.attach(store, self, context)?;
        }
        // Records of the restart itself.
        self.enter(|_, _, _| ());
        Ok(())
    }

    /// Runs an input, then what follows outside the lock. Returns its result, and the number of messages that it has sent.
    pub(crate) fn enter<R>(
        &self,
        act: impl FnOnce(&mut Space<Arc<Client>>, Time, &mut SpaceOutbox) -> R,
    ) -> (R, u32) {
        let (outcome, sent, _) = self.enter_as_publisher(act);
        (outcome, sent)
    }

    /// The same, with a receiver for which the publisher has to wait, if there is one.
    pub(crate) fn enter_as_publisher<R>(
        &self,
        act: impl FnOnce(&mut Space<Arc<Client>>, Time, &mut SpaceOutbox) -> R,
    ) -> (R, u32, Option<Arc<Connection>>) {
        let mut outbox = SpaceOutbox::default();
        let now = self.now();
        let mut space = self.space.lock();
        let outcome = act(&mut space, now, &mut outbox);
        if let Some(durable) = &self.durable {
            let journal = space.journal();
            let (records, position) = (mem::take(&mut journal.records), journal.position);
            durable.submit(records, position, |record| match record {
                Record::Session { client_id, .. } => space.user(client_id).map(|user| &**user),
                _ => None,
            });
        }
        let next = next_turn(&space);
        let owners_bytes = space.counts().sessions * OWNER_BYTES;
        self.kept.set(space.kept_bytes() + owners_bytes);
        drop(space);
        if let Some(Time(next)) = next {
            self.timer.arm(next);
        }
        let (sent, slow) = (outbox.sent, outbox.slow.take());
        self.follow(outbox);
        (outcome, sent, slow)
    }

    /// Opens a session, unless that of another user has its identifier.
    pub(crate) fn connect(
        &self,
        owner: &Owner,
        connect: &Connect<'_>,
        (client, subscriptions_max): (&Arc<Client>, Option<usize>),
        acknowledge: impl FnOnce(&Connected),
    ) -> Result<ConnectionKey, ReasonCode> {
        let is_kept = match connect.version.is_v5() {
            true => connect.session_expiry_s > 0,
            false => !connect.is_clean,
        };
        if self.is_over() {
            return Err(ReasonCode::ServerShuttingDown);
        }
        if is_kept && self.durable.as_ref().is_some_and(Durable::is_failing) {
            return Err(ReasonCode::ServerUnavailable);
        }
        let (connected, _) = self.enter(|space, now, outbox| {
            let known = space.user(connect.client_id);
            let (is_same, is_same_role) = known.map_or((true, true), |user| owner.is_of(user));
            if !is_same {
                return Err(ReasonCode::ClientIdentifierNotValid);
            }
            let connect = Connect {
                // The subscriptions that another role was permitted are not this one's.
                is_clean: connect.is_clean || !is_same_role,
                ..connect.clone()
            };
            let connected = space.connect(now, Arc::clone(client), &connect, outbox)?;
            space.set_user(&connected.client_id, self.shared(owner));
            client.set_session(connected.key, &connected.client_id);
            space.limit_subscriptions(connected.key, subscriptions_max);
            acknowledge(&connected);
            // CONNACK is sent before anything else.
            space.open(now, &connected, outbox);
            Ok(connected.key)
        });
        connected
    }

    /// The text of a user, which many sessions may have.
    fn shared(&self, owner: &Owner) -> Arc<str> {
        let mut last = self.last_owner.lock();
        if *last != *owner {
            last.clone_from(owner);
        }
        Arc::clone(&last.0)
    }

    /// Whether a session is that user's, in that role.
    pub(crate) fn is_user(&self, client_id: &str, owner: &Owner) -> bool {
        let space = self.space.lock();
        space
            .user(client_id)
            .is_some_and(|user| owner.is_of(user) == (true, true))
    }

    fn follow(&self, outbox: SpaceOutbox) {
        if outbox.sent > 0 {
            Figures::get().add_published(outbox.sent.into());
        }
        if !outbox.over.is_empty() {
            crosstie_transport::uncork();
            for client in &outbox.over {
                client.connection.close();
            }
        }
        for (filter, begins) in &outbox.interest {
            self.bridge.note_interest(filter, *begins);
        }
        if !outbox.wills.is_empty() {
            let used = self.crossing.used.read().clone();
            for will in &outbox.wills {
                self.publish_own(will, &used.mapping);
            }
        }
    }

    /// Whether a topic is within the bounds of publications.
    pub(crate) fn takes(&self, topic: &str) -> bool {
        let (bytes_max, levels_max) = self.topic_max;
        topic.len() <= bytes_max && crosstie_mqtt::topic::levels(topic).count() <= levels_max
    }

    /// Whether messages are refused because none can be stored.
    pub(crate) fn refuses(&self, qos: QoS) -> bool {
        let durable = self.durable.as_ref();
        qos > QoS::AtMostOnce && durable.is_some_and(Durable::is_failing)
    }

    /// Delivers a message from the realm. Returns the number of messages that were sent at once.
    pub(crate) fn deliver(&self, content: &Content<'_>) -> u32 {
        let publish = |space: &mut Space<_>, now, outbox: &mut _| {
            space.publish_from_outside(now, content, outbox);
        };
        self.enter(publish).1
    }

    /// Publishes wills, ends sessions and does postponed work, turn by turn. Exactly one task runs this.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        while !self.is_over() {
            let instant = |at: u64| {
                let after = at.saturating_sub(self.start_ms);
                self.start + Duration::from_millis(after)
            };
            if !self.timer.wait(instant).await {
                continue;
            }
            self.enter(|space, now, outbox| {
                space.handle_timeout(now, outbox);
                if space.has_backlog() {
                    space.work(now, WORK_STEPS, outbox);
                }
                let next = next_turn(space).map_or(Timer::NEVER, |time| time.0);
                self.timer.set(next);
            });
            crosstie_transport::uncork();
            // More may remain; other tasks run first.
            tokio::task::yield_now().await;
        }
    }

    /// Ends it with its realm, another one follows: closes the store. Returns whether all is written.
    pub(crate) fn close(&self) -> bool {
        self.is_over.store(true, Ordering::SeqCst);
        // Their conversations end later, and find nothing to do.
        self.enter(|space, now, outbox| space.disconnect_all(now, outbox));
        let is_stored = self.durable.as_ref().is_none_or(Durable::close);
        self.timer.arm(0);
        is_stored
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Its store, if it has one.
    pub(crate) fn store(&self) -> Option<&Durable> {
        self.durable.as_ref()
    }

    /// Ends all sessions, and closes their connections: the realm was stopped. No will is published. A space with a store is
    /// [closed](Self::close) instead.
    pub(crate) fn forget_all(&self) {
        if self.durable.is_some() {
            return;
        }
        let (forgotten, _) = self.enter(|space, _, _| {
            self.bridge.forget_filters();
            space.forget_all(seed())
        });
        for client in forgotten.links() {
            Cause::Stop.note(&client.connection);
            client.close();
        }
    }

    /// Publishes a will in the realm by the router's session. `mapping` is that of its listener.
    pub(crate) fn publish_own(&self, will: &OwnContent, mapping: &[(String, PayloadMapping)]) {
        let Some(uri) = names::uri(&will.topic).filter(|uri| !names::is_own_uri(uri)) else {
            return Figures::get().count_dropped(Dropped::NoUri);
        };
        let limits = &self.bridge.realms().decoding;
        match converted(mapping, self.bridge.realm(), &uri, &will.payload, limits) {
            Converted::Arguments(arguments) => self.bridge.publish(&uri, will, &arguments),
            Converted::Stays => {}
            // No client is there that could wait for a procedure.
            Converted::Unfit | Converted::Later(_) => {
                Figures::get().count_dropped(Dropped::Payload);
            }
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.space.lock().counts()
    }

    fn now(&self) -> Time {
        let since = self.start.elapsed().as_millis() as u64;
        Time(self.start_ms.saturating_add(since))
    }
}

/// The time of the next own work: at once, if an input left some.
fn next_turn(space: &Space<Arc<Client>>) -> Option<Time> {
    match space.has_backlog() {
        true => Some(Time(0)),
        false => space.next_timeout(),
    }
}

impl Resume for SharedSpace {
    /// Continues to send to a client whose output is sent.
    fn resume(&self, key: ConnectionKey) {
        self.enter(|space, now, outbox| space.resume(now, key, outbox));
    }
}

impl Committed for SharedSpace {
    fn handle_commit(&self, position: u64, is_committed: bool) {
        let position = Position(position);
        self.enter(|space, now, outbox| match is_committed {
            true => space.handle_committed(now, position, outbox),
            false => space.handle_not_committed(now, position, outbox),
        });
    }

    fn durable(&self) -> Option<&Durable> {
        self.store()
    }
}
