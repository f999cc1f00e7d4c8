//! What all connections of one router share: its realms, its bounds, who is connected.

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

/// The state of one router, as its connections see it. Its threads and listeners are [`crate::Router`]'s.
pub(crate) struct RouterState {
    /// The worker's id.
    pub(crate) id: String,
    /// The node's.
    pub(crate) node: String,
    /// It serves the node itself, and nobody is interested in who comes and goes.
    pub(crate) is_private: bool,
    /// Makes what answers HTTP on listeners of web services.
    pub(crate) make_http: MakeHttp,
    /// Looked at when a session opens, never for a message.
    realms: RwLock<HashMap<String, Arc<SharedRealm>>>,
    /// Names of realms that were stopped, and have not been started again.
    stopped_realms: Mutex<BTreeSet<String>>,
    realm_limits: Limits,
    pub(crate) limits: Arc<ConnectionLimits>,
    pub(crate) decoding: codec::Limits,
    pub(crate) watch: Watch,
    /// What opens and closes sessions, whichever realm that is about.
    pub(crate) session_messages: Arc<Messages>,
    /// Where clients reach what listens, by the transports' ids.
    pub(crate) addresses: Mutex<Vec<(String, Vec<String>)>>,
    pub(crate) overview: Arc<Overview>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) request_head_bytes_max: usize,
    pub(crate) challenge_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    /// Whether a stop sends GOODBYE, instead of closing connections so that their clients come back.
    pub(crate) says_goodbye: bool,
    pub(crate) connections_max: usize,
    /// Connections by the addresses that they come from.
    pub(crate) peer_addresses: Addresses,
    pub(crate) address_connections_max: usize,
    /// Of each listener.
    pub(crate) page_connections_max: usize,
    conversations: AtomicUsize,
    testees: Mutex<Vec<Arc<TesteeTransport>>>,
    pub(crate) door: Arc<Door>,
    pub(crate) denials: Denials,
    pub(crate) authenticators: Authenticators,
    pub(crate) jars: Jars,
    pub(crate) key: Option<Arc<SigningKey>>,
    /// For web services that programs answer.
    pub(crate) hosting: Hosting,
    /// Set once, if at all.
    amqp: OnceLock<Arc<Broker>>,
    joints: Mutex<Vec<Arc<JointState>>>,
    /// As many as a configuration ever named.
    requests: Mutex<Vec<Arc<RequestCounts>>>,
    pub(crate) rlinks: RLinks,
    number_last: AtomicU32,
    stopping: AtomicBool,
    /// Changes when a realm or a role has come.
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

    /// All realms, in the order in which they were started.
    pub(crate) fn realms(&self) -> Vec<Arc<SharedRealm>> {
        let mut realms: Vec<_> = self.realms.read().values().map(Arc::clone).collect();
        realms.sort_by_key(|realm| realm.number);
        realms
    }

    /// Has every realm forget revoked principals, as long as the router is there.
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

    /// Lets sessions into a new realm; `None` if there is one of that name.
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

    /// Nobody finds the realm any more; sessions that are in it stay.
    pub(crate) fn remove_realm(&self, name: &str) -> Option<Arc<SharedRealm>> {
        let mut realms = self.realms.write();
        let removed = realms.remove(name)?;
        self.stopped_realms.lock().insert(name.to_owned());
        Some(removed)
    }

    /// Whether a realm of that name was stopped, and has not been started again.
    pub(crate) fn has_stopped_realm(&self, name: &str) -> bool {
        self.stopped_realms.lock().contains(name)
    }

    /// A number that no realm or transport of this router has had.
    pub(crate) fn next_number(&self) -> u32 {
        self.number_last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a conversation in; returns how many connections there were before.
    pub(crate) fn count_in(&self) -> usize {
        self.conversations.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a conversation out.
    pub(crate) fn count_out(&self) {
        self.conversations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections that a stop waits for: somebody there may have to say goodbye.
    pub(crate) fn conversations(&self) -> usize {
        self.conversations.load(Ordering::Relaxed)
    }

    /// All connections.
    pub(crate) fn connections(&self) -> usize {
        self.conversations() + self.echoes()
    }

    /// Connections of testees.
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

    /// The broker that AMQP transports lead to.
    pub(crate) fn amqp(&self) -> Option<&Arc<Broker>> {
        self.amqp.get()
    }

    /// Sets the broker; whether there was none.
    pub(crate) fn set_amqp(&self, broker: Arc<Broker>) -> bool {
        self.amqp.set(broker).is_ok()
    }

    /// Notes a joint; whether there was none of its id.
    pub(crate) fn add_joint(&self, joint: Arc<JointState>) -> bool {
        let mut joints = self.joints.lock();
        if joints.iter().any(|known| known.joint.id == joint.joint.id) {
            return false;
        }
        joints.push(joint);
        true
    }

    /// Its joints, in the order in which they were started.
    pub(crate) fn joints(&self) -> Vec<Arc<JointState>> {
        self.joints.lock().clone()
    }

    /// Takes out a joint, if there is one of that id.
    pub(crate) fn take_joint(&self, id: &str) -> Option<Arc<JointState>> {
        let mut joints = self.joints.lock();
        let at = joints.iter().position(|known| known.joint.id == id)?;
        Some(joints.remove(at))
    }

    /// The counters of a service or component, which are there from the first time on that they are asked for.
    pub(crate) fn counts_of(&self, kind: &'static str, name: &str) -> Arc<RequestCounts> {
        let mut requests = self.requests.lock();
        if let Some(known) = requests.iter().find(|known| known.is_of(kind, name)) {
            return Arc::clone(known);
        }
        let counts = Arc::new(RequestCounts::new(kind, name));
        requests.push(Arc::clone(&counts));
        counts
    }

    /// All of them, in the order in which they came.
    pub(crate) fn request_counts(&self) -> Vec<Arc<RequestCounts>> {
        self.requests.lock().clone()
    }

    /// From now on it says that it is shutting down.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// All memory is held that may be, and this peer owes the most of it: it is closed when this returns.
fn close_debtor(connection: &Arc<Connection>, debt: &Debt) {
    counters().count(Counter::ConnectionsClosedForDebt);
    let text = format!(
        "{} bytes are held for it, more than for others, and all that may be is held: {} queued, {} \
         shared with others, {} of its input, {} of its state",
        debt.bytes(),
        debt.queued_bytes,
        debt.shared_bytes,
        debt.input_bytes,
        debt.state_bytes,
    );
    report::session_closed(connection, Cause::AllMemory, &text);
}

/// One address may have all but an eighth of what there can be, which is left to others; of few
/// sessions all, because what is told to hold few is told so on purpose. A proxy and an instrument are one
/// address too, so that less would be too little.
fn address_connections_max(sessions_max: usize) -> usize {
    const ALWAYS_MIN: usize = 256;
    /// What a node has open for itself beside the reserve; of a small limit a quarter.
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
    // 0 is what a realm understands as no bound; a bound below a millisecond is one of 1.
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

/// The node's bounds of a realm, or the realm's own where they are smaller.
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

/// Ends the connections whose sessions were told GOODBYE and that have had no session since: they
/// have had as long as a new one has to become a session.
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
