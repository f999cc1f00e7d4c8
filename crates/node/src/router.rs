//! One router: its realms, and what all its connections share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crosstie_config as model;
use crosstie_routing::{Allow, Disclose, Limits, Permission, RealmConfig, RequestIdCheck, Role};
use crosstie_transport::{ConnectionLimits, QueueBudget};
use crosstie_wamp::codec;

use crate::realm::SharedRealm;
use crate::watch::Watch;

/// What a router worker is made of, apart from its threads and listeners.
pub(crate) struct Router {
    realms: HashMap<String, Arc<SharedRealm>>,
    pub(crate) limits: Arc<ConnectionLimits>,
    pub(crate) decoding: codec::Limits,
    pub(crate) watch: Watch,
    pub(crate) shutdown_timeout: std::time::Duration,
    sessions_max: usize,
    connections: AtomicUsize,
    stopping: AtomicBool,
}

impl Router {
    pub(crate) fn new(worker: &model::RouterWorker, limits: &model::Limits) -> Self {
        let realms = worker.realms.iter().map(|realm| {
            let config = realm_config(realm, limits);
            (
                realm.name.clone(),
                Arc::new(SharedRealm::new(config, seed())),
            )
        });
        Self {
            realms: realms.collect(),
            limits: Arc::new(ConnectionLimits {
                queue_bytes_max: limits.queue_bytes_max,
                stall_max: limits.queue_stall_timeout,
                budget: Arc::new(QueueBudget::new(limits.queue_bytes_total_max)),
            }),
            decoding: codec::Limits {
                depth_max: limits.depth_max,
            },
            watch: Watch::new(limits.handshake_timeout),
            shutdown_timeout: limits.shutdown_timeout,
            sessions_max: limits.sessions_max,
            connections: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// The realm of that name.
    pub(crate) fn realm(&self, name: &str) -> Option<&Arc<SharedRealm>> {
        self.realms.get(name)
    }

    pub(crate) fn realms(&self) -> impl Iterator<Item = &Arc<SharedRealm>> {
        self.realms.values()
    }

    /// Counts a connection in; `false` when there are as many as may be.
    pub(crate) fn admit(&self) -> bool {
        let admitted = self.connections.fetch_add(1, Ordering::Relaxed) < self.sessions_max;
        if !admitted {
            self.release();
        }
        admitted
    }

    /// Counts a connection out.
    pub(crate) fn release(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// From now on no session is let in, and a GOODBYE ends its connection.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

fn realm_config(realm: &model::Realm, limits: &model::Limits) -> RealmConfig {
    let mut realm_limits = Limits::default();
    realm_limits.sessions_max = limits.sessions_max;
    realm_limits.subscriptions_max = limits.subscriptions_max;
    realm_limits.registrations_max = limits.registrations_max;
    realm_limits.calls_max = limits.calls_pending_max;
    RealmConfig {
        uri_check: realm.uri_check,
        request_id_check: RequestIdCheck::default(),
        roles: realm.roles.iter().map(role).collect(),
        limits: realm_limits,
        ..RealmConfig::open(&realm.name)
    }
}

fn role(role: &model::Role) -> Role {
    let permission = |permission: &model::Permission| Permission {
        uri: permission.uri.clone(),
        match_policy: permission.match_policy,
        allow: Allow {
            call: permission.allow.call,
            register: permission.allow.register,
            publish: permission.allow.publish,
            subscribe: permission.allow.subscribe,
        },
        disclose: Disclose {
            caller: permission.disclose.caller,
            publisher: permission.disclose.publisher,
        },
        cache: permission.cache,
    };
    Role {
        name: role.name.clone(),
        permissions: role.permissions.iter().map(permission).collect(),
    }
}

/// What a realm's random ids follow from. Ids need to be unlikely to meet, not to be secret, so
/// that a system without randomness at start is served with the time instead.
fn seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos() as u64)
    })
}
