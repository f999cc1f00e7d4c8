//! The state shared by all connections of one router: its realms, its limits, its connections.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crosstie_auth::wamp::SigningKey;
use crosstie_config as model;
use crosstie_routing::{CallTimeoutUnit, Limits, RealmConfig, Revocation};
use crosstie_transport::{Account, Connection, ConnectionLimits, Debt, descriptors};
use crosstie_wamp::codec;
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::addresses::Addresses;
use crate::amqp::Broker;
use crate::cause::Cause;
use crate::counters::{Counter, counters};
use crate::fabric::port::FabricPort;
use crate::joint_state::JointState;
use crate::listen::MakeHttp;
use crate::overview::Overview;
use crate::programs::Hosting;
use crate::report;
use crate::request_counts::RequestCounts;
use crate::rlink_state::RLinks;
use crate::router::RouterOptions;
use crate::seed::seed;
use crate::testee::TesteeTransport;
use crate::wamp::authenticators::Authenticators;
use crate::wamp::cookies::Jars;
use crate::wamp::denials::Denials;
use crate::wamp::door::Door;
use crate::wamp::event_store::RealmStore;
use crate::wamp::message_counts::Messages;
use crate::wamp::realm::SharedRealm;
use crate::watch::{Connections, Watch};

/// The state of one router, as seen by its connections. [`crate::Router`] has its threads and listeners.
pub(crate) struct RouterState {
    /// The worker's id.
    pub(crate) id: String,
    /// The node's id.
    pub(crate) node: String,
    /// The router serves the node itself, so that its clients are not logged.
    pub(crate) is_private: bool,
    /// Creates the HTTP services of listeners.
    pub(crate) make_http: MakeHttp,
    /// Read when a session opens, never for a message.
    realms: RwLock<HashMap<String, Arc<SharedRealm>>>,
    /// Names of realms that were stopped and not started again.
    stopped_realms: Mutex<BTreeSet<String>>,
    realm_limits: Limits,
    pub(crate) limits: Arc<ConnectionLimits>,
    pub(crate) decoding: codec::Limits,
    pub(crate) watch: Watch,
    /// Messages that open and close sessions, in any realm.
    pub(crate) session_messages: Arc<Messages>,
    /// The addresses for clients, by transport id.
    pub(crate) addresses: Mutex<Vec<(String, Vec<String>)>>,
    pub(crate) overview: Arc<Overview>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) request_head_bytes_max: usize,
    pub(crate) challenge_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    /// Whether a stop sends GOODBYE, instead of closing connections so that their clients return.
    pub(crate) says_goodbye: bool,
    pub(crate) connections_max: usize,
    /// Connections by address.
    pub(crate) peer_addresses: Addresses,
    pub(crate) address_connections_max: usize,
    /// Per listener.
    pub(crate) page_connections_max: usize,
    conversations: AtomicUsize,
    testees: Mutex<Vec<Arc<TesteeTransport>>>,
    pub(crate) door: Arc<Door>,
    pub(crate) denials: Denials,
    pub(crate) authenticators: Authenticators,
    pub(crate) jars: Jars,
    pub(crate) key: Option<Arc<SigningKey>>,
    /// For web services with programs.
    pub(crate) hosting: Hosting,
    /// Set at most once.
    amqp: OnceLock<Arc<Broker>>,
    joints: Mutex<Vec<Arc<JointState>>>,
    /// As many as the configuration ever named.
    requests: Mutex<Vec<Arc<RequestCounts>>>,
    pub(crate) rlinks: RLinks,
    number_last: AtomicU32,
    stopping: AtomicBool,
    /// Changes when a realm or a role starts.
    pub(crate) comings: watch::Sender<()>,
}

impl RouterState {
    pub(crate) fn new(
        worker: &model::RouterWorker,
        limits: &model::Limits,
        options: &RouterOptions,
        keeper: Handle,
        make_http: MakeHttp,
    ) -> Self {
        let account = Account::new(limits.queue_bytes_total_max);
        account.set_on_debtor(close_debtor);
        Self {
            id: worker.id.clone(),
            node: options.node.clone(),
            is_private: options.is_private,
            make_http,
            realms: RwLock::default(),
            stopped_realms: Mutex::default(),
            realm_limits: realm_limits(limits),
            limits: Arc::new(ConnectionLimits {
                queue_bytes_max: limits.queue_bytes_max,
                stall_max: limits.queue_stall_timeout,
                message_max: limits.message_timeout,
                bytes_per_second_min: limits.bytes_per_second_min,
                account: Arc::new(account),
            }),
            decoding: codec::Limits {
                depth_max: limits.depth_max,
            },
            watch: Watch::default(),
            session_messages: Arc::new(Messages::new()),
            addresses: Mutex::default(),
            overview: Arc::clone(&options.overview),
            handshake_timeout: limits.handshake_timeout,
            request_head_bytes_max: limits.request_head_bytes_max,
            challenge_timeout: limits.challenge_timeout,
            shutdown_timeout: limits.shutdown_timeout,
            says_goodbye: worker.says_goodbye,
            connections_max: limits.sessions_max,
            peer_addresses: Addresses::default(),
            address_connections_max: limits
                .address_connections_max
                .unwrap_or_else(|| address_connections_max(limits.sessions_max)),
            page_connections_max: limits.page_connections_max,
            conversations: AtomicUsize::new(0),
            testees: Mutex::default(),
            door: Arc::new(Door::new(
                limits.handshakes_pending_max,
                limits.login_delay_max,
                limits.handshake_timeout,
                keeper,
                options.audit.clone(),
            )),
            denials: Denials::new(options.audit.clone()),
            authenticators: Authenticators::default(),
            jars: Jars::default(),
            key: options.key.clone(),
            hosting: Hosting {
                programs: options.programs.clone(),
                options: worker.process.clone(),
            },
            amqp: OnceLock::new(),
            joints: Mutex::default(),
            requests: Mutex::default(),
            rlinks: RLinks::default(),
            number_last: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            comings: watch::Sender::new(()),
        }
    }

    /// The realm of that name.
    pub(crate) fn realm(&self, name: &str) -> Option<Arc<SharedRealm>> {
        self.realms.read().get(name).map(Arc::clone)
    }

    /// All realms, in the order of their starts.
    pub(crate) fn realms(&self) -> Vec<Arc<SharedRealm>> {
        let mut realms: Vec<_> = self.realms.read().values().map(Arc::clone).collect();
        realms.sort_by_key(|realm| realm.number);
        realms
    }

    /// Makes every realm forget revoked principals, while the router exists.
    pub(crate) fn revoking(self: &Arc<Self>) -> impl Fn(&Revocation) + Send + use<> {
        let router = Arc::downgrade(self);
        move |revocation| {
            let Some(router) = router.upgrade() else {
                return;
            };
            for realm in router.realms() {
                realm.revoke(revocation.clone());
            }
            crosstie_transport::uncork();
        }
    }

    /// Adds a realm; `None` if the name is in use.
    pub(crate) fn add_realm(
        self: &Arc<Self>,
        realm: &model::Realm,
        store: Option<RealmStore>,
    ) -> Option<Arc<SharedRealm>> {
        let mut realms = self.realms.write();
        if realms.contains_key(&realm.name) {
            return None;
        }
        let number = self.next_number();
        let port = realm.fabric.as_ref();
        let port = port.map(|fabric| {
            let node = format!("{}/{}", self.node, self.id);
            FabricPort::new(&realm.name, fabric, node, seed())
        });
        let port = port.map(Arc::new);
        let config = realm_config(realm, &self.realm_limits);
        let kept = (port, store);
        let added = Arc::new(SharedRealm::new(realm, config, seed(), number, self, kept));
        if let Some(store) = &added.store {
            store.belongs_to(&added);
            added.restore_retained(store.take_retained());
        }
        realms.insert(realm.name.clone(), Arc::clone(&added));
        self.stopped_realms.lock().remove(&realm.name);
        drop(realms);
        added.join_fabric();
        self.comings.send_replace(());
        Some(added)
    }

    /// Removes a realm, so that no further session joins; present sessions stay.
    pub(crate) fn remove_realm(&self, name: &str) -> Option<Arc<SharedRealm>> {
        let mut realms = self.realms.write();
        let removed = realms.remove(name)?;
        self.stopped_realms.lock().insert(name.to_owned());
        Some(removed)
    }

    /// Whether a realm of that name was stopped, and not started again.
    pub(crate) fn has_stopped_realm(&self, name: &str) -> bool {
        self.stopped_realms.lock().contains(name)
    }

    /// The next number of a realm or a transport. Numbers are never reused.
    pub(crate) fn next_number(&self) -> u32 {
        self.number_last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a conversation. Returns the earlier number.
    pub(crate) fn count_in(&self) -> usize {
        self.conversations.fetch_add(1, Ordering::Relaxed)
    }

    /// Uncounts a conversation.
    pub(crate) fn count_out(&self) {
        self.conversations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of connections that a stop waits for, as their clients may have to say goodbye.
    pub(crate) fn conversations(&self) -> usize {
        self.conversations.load(Ordering::Relaxed)
    }

    /// Number of all connections.
    pub(crate) fn connections(&self) -> usize {
        self.conversations() + self.echoes()
    }

    /// Number of testees' connections.
    fn echoes(&self) -> usize {
        self.testees().iter().map(|t| t.connections()).sum()
    }

    pub(crate) fn add_testee(&self, testee: Arc<TesteeTransport>) {
        self.testees.lock().push(testee);
    }

    pub(crate) fn remove_testee(&self, testee: &Arc<TesteeTransport>) {
        self.testees.lock().retain(|t| !Arc::ptr_eq(t, testee));
    }

    pub(crate) fn testees(&self) -> MutexGuard<'_, Vec<Arc<TesteeTransport>>> {
        self.testees.lock()
    }

    /// The broker of AMQP transports.
    pub(crate) fn amqp(&self) -> Option<&Arc<Broker>> {
        self.amqp.get()
    }

    /// Sets the broker. Returns false if it was set before.
    pub(crate) fn set_amqp(&self, broker: Arc<Broker>) -> bool {
        self.amqp.set(broker).is_ok()
    }

    /// Adds a joint. Returns whether its id is new.
    pub(crate) fn add_joint(&self, joint: Arc<JointState>) -> bool {
        let mut joints = self.joints.lock();
        if joints.iter().any(|known| known.joint.id == joint.joint.id) {
            return false;
        }
        joints.push(joint);
        true
    }

    /// The joints, in the order of their starts.
    pub(crate) fn joints(&self) -> Vec<Arc<JointState>> {
        self.joints.lock().clone()
    }

    /// Removes the joint of that id, if any.
    pub(crate) fn take_joint(&self, id: &str) -> Option<Arc<JointState>> {
        let mut joints = self.joints.lock();
        let at = joints.iter().position(|known| known.joint.id == id)?;
        Some(joints.remove(at))
    }

    /// The counters of a service or component, created with the first call.
    pub(crate) fn counts_of(&self, kind: &'static str, name: &str) -> Arc<RequestCounts> {
        let mut requests = self.requests.lock();
        if let Some(known) = requests.iter().find(|known| known.is_of(kind, name)) {
            return Arc::clone(known);
        }
        let counts = Arc::new(RequestCounts::new(kind, name));
        requests.push(Arc::clone(&counts));
        counts
    }

    /// All of these counters, in the order of their creation.
    pub(crate) fn request_counts(&self) -> Vec<Arc<RequestCounts>> {
        self.requests.lock().clone()
    }

    /// Marks the router as shutting down.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// All memory for clients is in use, and this peer uses the most: it is closed when this returns.
fn close_debtor(connection: &Arc<Connection>, debt: &Debt) {
    counters().count(Counter::ConnectionsClosedForDebt);
    let text = format!(
        "{} bytes are held for it, the most of all clients, and the maximum is reached: {} queued, {} \
         shared with others, {} of its input, {} of its state",
        debt.bytes(),
        debt.queued_bytes,
        debt.shared_bytes,
        debt.input_bytes,
        debt.state_bytes,
    );
    report::session_closed(connection, Cause::AllMemory, &text);
}

/// Maximum number of connections per address: seven eighths of the total, so that others have some. With a small
/// `sessions_max` it is all of them, as such a limit is deliberate. A proxy or a load generator is one address too, so
/// that less would be too little.
fn address_connections_max(sessions_max: usize) -> usize {
    const ALWAYS_MIN: usize = 256;
    /// Descriptors of the node itself beside the reserve; a quarter of a small limit.
    const OWN_MAX: u32 = 64;
    let (limit, reserve) = (descriptors::limit(), descriptors::reserve());
    let connections = limit.saturating_sub(reserve + OWN_MAX.min(limit / 4)) as usize;
    let most = |count: usize| count - count / 8;
    most(sessions_max).max(ALWAYS_MIN).min(most(connections))
}

fn realm_limits(limits: &model::Limits) -> Limits {
    let mut realm_limits = Limits::default();
    realm_limits.sessions_max = limits.sessions_max;
    realm_limits.subscriptions_max = limits.subscriptions_max;
    realm_limits.registrations_max = limits.registrations_max;
    realm_limits.calls_max = limits.calls_pending_max;
    realm_limits.realm_subscriptions_max = limits.realm_subscriptions_max;
    realm_limits.realm_registrations_max = limits.realm_registrations_max;
    realm_limits.realm_calls_max = limits.realm_calls_pending_max;
    realm_limits.call_options_bytes_max = limits.call_options_bytes_max;
    realm_limits.kept_call_bytes_max = limits.kept_call_bytes_max;
    realm_limits.kept_calls_bytes_max = limits.kept_calls_bytes_max;
    realm_limits.wildcard_shapes_max = limits.wildcard_shapes_max;
    realm_limits.uri_bytes_max = limits.uri_bytes_max;
    // For a realm, 0 means no limit; a limit below a millisecond becomes 1.
    let timeout_ms = limits.call_timeout_max.map(|max| max.as_millis().max(1));
    realm_limits.call_timeout_ms_max =
        timeout_ms.map_or(0, |ms| u64::try_from(ms).unwrap_or(u64::MAX));
    realm_limits.retained_events_max = limits.retained_events_max;
    realm_limits.retained_bytes_max = limits.retained_bytes_max;
    realm_limits.retained_event_bytes_max = limits.retained_event_bytes_max;
    realm_limits.retained_sent_max = limits.retained_sent_max;
    realm_limits.history_bytes_max = limits.history_bytes_max;
    realm_limits.history_answer_bytes_max = limits.history_answer_bytes_max;
    realm_limits.testaments_max = limits.testaments_max;
    realm_limits.testaments_bytes_max = limits.testaments_bytes_max;
    realm_limits.definitions_max = limits.definitions_max;
    realm_limits.definitions_bytes_max = limits.definitions_bytes_max;
    realm_limits.realm_definitions_max = limits.realm_definitions_max;
    realm_limits.unacknowledged_events_max = limits.unacknowledged_events_max;
    realm_limits.unacknowledged_bytes_max = limits.unacknowledged_bytes_max;
    realm_limits
}

fn realm_config(realm: &model::Realm, limits: &Limits) -> RealmConfig {
    RealmConfig {
        name: realm.name.clone(),
        uri_check: realm.uri_check,
        request_id_check: realm.request_id_check,
        disclose_me: realm.disclose_me,
        call_timeout_unit: match realm.call_timeout_unit {
            model::CallTimeoutUnit::Milliseconds => CallTimeoutUnit::Milliseconds,
            model::CallTimeoutUnit::Seconds => CallTimeoutUnit::Seconds,
        },
        empty_eligible: realm.empty_eligible,
        cancel_answers: realm.cancel_answers,
        on_leave: realm.on_leave,
        meta_api: realm.meta_api,
        history: realm.history.clone(),
        is_stored: realm.event_store.is_some(),
        stores_retained: realm.event_store.as_ref().is_some_and(|s| s.keeps_retained),
        retention: realm.retention.clone(),
        call_queues: realm.call_queues.clone(),
        resumption: realm.resumption.clone(),
        roles: realm.roles.clone(),
        limits: limits_of(realm, limits),
        session_limits: realm.limits.each,
    }
}

/// The node's limits, or the realm's own if smaller.
fn limits_of(realm: &model::Realm, limits: &Limits) -> Limits {
    let own = &realm.limits;
    let mut limits = limits.clone();
    for (max, own) in [
        (&mut limits.sessions_max, own.sessions_max),
        (&mut limits.realm_subscriptions_max, own.subscriptions_max),
        (&mut limits.realm_registrations_max, own.registrations_max),
        (&mut limits.realm_calls_max, own.calls_pending_max),
    ] {
        *max = own.unwrap_or(*max).min(*max);
    }
    limits
}

/// Closes the connections whose sessions were sent GOODBYE and that have opened no session since, within the time limit
/// of a new connection.
pub(crate) async fn close_silent(state: Arc<RouterState>, told: Vec<Weak<Connection>>) {
    tokio::time::sleep(state.handshake_timeout).await;
    let realms = state.realms();
    let joined: Vec<_> = realms.iter().flat_map(|realm| realm.peers()).collect();
    let joined: Connections = joined.iter().map(|peer| &peer.connection).collect();
    for connection in told.iter().filter_map(Weak::upgrade) {
        if !joined.has(&connection) && !connection.is_closed() {
            report::timed_out(&connection, Cause::NoGoodbye);
            connection.close();
        }
    }
}
