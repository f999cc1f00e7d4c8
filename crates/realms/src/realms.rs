//! The realms of a router, and what all of them share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosstie_auth::wamp::SigningKey;
use crosstie_config as model;
use crosstie_front::bounds::Bounds;
use crosstie_front::seed::seed;
use crosstie_routing::{CallTimeoutUnit, Limits, RealmConfig, Revocation};
use crosstie_wamp::codec;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::audit::Audit;
use crate::authenticators::Authenticators;
use crate::cookies::Jars;
use crate::denials::Denials;
use crate::door::Door;
use crate::event_store::RealmStore;
use crate::fabric::port::FabricPort;
use crate::message_counts::Messages;
use crate::realm::SharedRealm;

/// The realms of one router.
pub struct Realms {
    /// The worker's id.
    pub worker: String,
    /// The node's id.
    pub node: String,
    pub bounds: Arc<Bounds>,
    /// Read when a session opens, never for a message.
    realms: RwLock<HashMap<String, Arc<SharedRealm>>>,
    /// Names of realms that were stopped and not started again.
    stopped_realms: Mutex<BTreeSet<String>>,
    realm_limits: Limits,
    number_last: AtomicU32,
    /// Changes when a realm or a role starts.
    pub(super) comings: watch::Sender<()>,
    pub decoding: codec::Limits,
    /// Messages that open and close sessions, in any realm.
    pub session_messages: Arc<Messages>,
    pub(super) challenge_timeout: Duration,
    /// Whether a stop sends GOODBYE, instead of closing connections so that their clients return.
    pub says_goodbye: bool,
    pub door: Arc<Door>,
    pub denials: Denials,
    pub(super) authenticators: Authenticators,
    pub(super) jars: Jars,
    pub key: Option<Arc<SigningKey>>,
}

/// The node that a router's realms belong to.
pub struct Node {
    /// Its id, as sent to clients.
    pub id: String,
    /// The worker's id.
    pub worker: String,
    pub audit: Option<Arc<Audit>>,
    /// Proves the node to clients that ask for that.
    pub key: Option<Arc<SigningKey>>,
}

impl Realms {
    /// The realms of a worker; `keeper` has timers, and a stop `says_goodbye` to clients.
    pub fn new(
        node: Node,
        limits: &model::Limits,
        says_goodbye: bool,
        bounds: &Arc<Bounds>,
        keeper: Handle,
    ) -> Self {
        Self {
            worker: node.worker,
            node: node.id,
            bounds: Arc::clone(bounds),
            realms: RwLock::default(),
            stopped_realms: Mutex::default(),
            realm_limits: realm_limits(limits),
            number_last: AtomicU32::new(0),
            comings: watch::Sender::new(()),
            decoding: codec::Limits {
                depth_max: limits.depth_max,
            },
            session_messages: Arc::new(Messages::new()),
            challenge_timeout: limits.challenge_timeout,
            says_goodbye,
            door: Arc::new(Door::new(
                limits.handshakes_pending_max,
                limits.login_delay_max,
                limits.handshake_timeout,
                keeper,
                node.audit.clone(),
            )),
            denials: Denials::new(node.audit),
            authenticators: Authenticators::default(),
            jars: Jars::default(),
            key: node.key,
        }
    }

    /// The realm of that name.
    pub fn realm(&self, name: &str) -> Option<Arc<SharedRealm>> {
        self.realms.read().get(name).map(Arc::clone)
    }

    /// All realms, in the order of their starts.
    pub fn realms(&self) -> Vec<Arc<SharedRealm>> {
        let mut realms: Vec<_> = self.realms.read().values().map(Arc::clone).collect();
        realms.sort_by_key(|realm| realm.number);
        realms
    }

    /// Makes every realm forget revoked principals, while the router exists.
    pub fn revoking(self: &Arc<Self>) -> impl Fn(&Revocation) + Send + use<> {
        let realms = Arc::downgrade(self);
        move |revocation| {
            let Some(realms) = realms.upgrade() else {
                return;
            };
            for realm in realms.realms() {
                realm.revoke(revocation.clone());
            }
            crosstie_transport::uncork();
        }
    }

    /// Adds a realm; `None` if the name is in use.
    pub fn add(
        self: &Arc<Self>,
        realm: &model::Realm,
        store: Option<RealmStore>,
    ) -> Option<Arc<SharedRealm>> {
        let mut realms = self.realms.write();
        if realms.contains_key(&realm.name) {
            return None;
        }
        let number = self.number_last.fetch_add(1, Ordering::Relaxed) + 1;
        let port = realm.fabric.as_ref();
        let port = port.map(|fabric| {
            let node = format!("{}/{}", self.node, self.worker);
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

    /// No client finds the realm any more; sessions that are in it stay.
    pub fn remove(&self, name: &str) -> Option<Arc<SharedRealm>> {
        let mut realms = self.realms.write();
        let removed = realms.remove(name)?;
        self.stopped_realms.lock().insert(name.to_owned());
        Some(removed)
    }

    /// Whether a realm of that name was stopped, and not started again.
    pub(super) fn has_stopped_realm(&self, name: &str) -> bool {
        self.stopped_realms.lock().contains(name)
    }
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
