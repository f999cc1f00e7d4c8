//! Listeners: the state shared by all connections of one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crosstie_config::ProxyProtocol;
use crosstie_transport::{ConnectionLimits, PeerAddress};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::allowance::Allowance;
use crate::bounds::Bounds;
use crate::certificate::Presented;
use crate::watch::Watch;

/// The state shared by all connections of one listener, in any protocol.
pub struct Listening {
    pub bounds: Arc<Bounds>,
    pub watch: Arc<Watch>,
    /// The listener's number in the router.
    pub number: u32,
    /// Time limit for a connection to become a session.
    pub handshake_timeout: Duration,
    /// Set if the listener has TLS.
    pub tls: Option<Arc<Presented>>,
    /// The proxies that send a header first, if the listener has any.
    pub(crate) proxies: Option<ProxyProtocol>,
    pub limits: Arc<ConnectionLimits>,
    connections: AtomicUsize,
    /// Listeners whose address this one has taken over, with connections that count for its bound. Each connection keeps
    /// its listener.
    earlier: Vec<Weak<Self>>,
    pub connections_max: usize,
    /// Limits the rate of new connections.
    connection_rate: Option<Mutex<Allowance>>,
    stopping: AtomicBool,
    /// The listener stops; its last connection has ended.
    stopped: Notify,
    emptied: Notify,
}

/// The settings of a listener for its connections.
pub struct Terms {
    pub handshake_timeout: Duration,
    pub tls: Option<Arc<Presented>>,
    pub proxies: Option<ProxyProtocol>,
    pub limits: Arc<ConnectionLimits>,
    pub connections_max: Option<usize>,
    pub connections_per_second_max: Option<u32>,
    /// Listeners whose address it takes over, and whose connections stay.
    pub earlier: Vec<Arc<Listening>>,
}

impl Listening {
    pub fn new(bounds: &Arc<Bounds>, watch: &Arc<Watch>, terms: Terms) -> Arc<Self> {
        let rate = terms.connections_per_second_max;
        Arc::new(Self {
            bounds: Arc::clone(bounds),
            watch: Arc::clone(watch),
            number: bounds.next_listener(),
            handshake_timeout: terms.handshake_timeout,
            tls: terms.tls,
            proxies: terms.proxies,
            limits: terms.limits,
            connections: AtomicUsize::new(0),
            earlier: terms.earlier.iter().map(Arc::downgrade).collect(),
            connections_max: terms.connections_max.unwrap_or(usize::MAX),
            connection_rate: rate.map(|rate| Mutex::new(Allowance::new(rate, Instant::now()))),
            stopping: AtomicBool::new(false),
            stopped: Notify::new(),
            emptied: Notify::new(),
        })
    }

    /// Current number of connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// From now on no session may join, and a GOODBYE ends its connection.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stopped.notify_waiters();
    }

    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Returns when the listener is stopped.
    pub async fn until_stopped(&self) {
        let stopped = self.stopped.notified();
        if !self.is_stopping() {
            stopped.await;
        }
    }

    /// Returns when no connection is left. One task may wait, after the listener has stopped accepting.
    pub async fn until_empty(&self) {
        while self.connections() > 0 {
            self.emptied.notified().await;
        }
    }

    /// Counts a connection. Returns the earlier number, of this listener's address and of the router.
    pub(crate) fn count_in(&self) -> (usize, usize) {
        let here = self.connections.fetch_add(1, Ordering::Relaxed);
        let earlier = self.earlier.iter().filter_map(Weak::upgrade);
        let earlier: usize = earlier.map(|of| of.connections()).sum();
        (here + earlier, self.bounds.count_in())
    }

    /// Whether connections exceed the rate limit.
    pub(crate) fn is_too_fast(&self) -> bool {
        let rate = self.connection_rate.as_ref();
        rate.is_some_and(|rate| !rate.lock().try_take(Instant::now()))
    }

    /// Whether the peer is a process of the node itself. The console's clients are not, although its router is the node's.
    pub(crate) fn is_of_own_process(&self, peer: PeerAddress) -> bool {
        self.bounds.is_private && matches!(peer, PeerAddress::Unix(_))
    }

    /// Uncounts a connection.
    pub(crate) fn count_out(&self) {
        if self.connections.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.emptied.notify_one();
        }
        self.bounds.count_out();
    }
}
