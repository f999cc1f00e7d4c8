//! The bounds of a router's connections, and the counts that are held against them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crosstie_config as model;
use crosstie_transport::{Account, Connection, ConnectionLimits, Debt, descriptors};

use crate::addresses::Addresses;
use crate::cause::Cause;
use crate::counters::{Counter, counters};
use crate::report;

/// The limits of a router, shared by all of its listeners.
pub struct Bounds {
    /// The router serves the node itself: its clients may have the last connections.
    pub is_private: bool,
    /// The limits of each connection.
    pub limits: Arc<ConnectionLimits>,
    pub handshake_timeout: Duration,
    pub request_head_bytes_max: usize,
    pub shutdown_timeout: Duration,
    pub connections_max: usize,
    /// Connections by address.
    pub(crate) peer_addresses: Addresses,
    pub(crate) address_connections_max: usize,
    conversations: AtomicUsize,
    listener_last: AtomicU32,
    stopping: AtomicBool,
    draining: AtomicBool,
}

impl Bounds {
    pub fn new(limits: &model::Limits, is_private: bool) -> Self {
        let account = Account::new(limits.queue_bytes_total_max);
        account.set_on_debtor(close_debtor);
        Self {
            is_private,
            limits: Arc::new(ConnectionLimits {
                queue_bytes_max: limits.queue_bytes_max,
                stall_max: limits.queue_stall_timeout,
                message_max: limits.message_timeout,
                bytes_per_second_min: limits.bytes_per_second_min,
                account: Arc::new(account),
            }),
            handshake_timeout: limits.handshake_timeout,
            request_head_bytes_max: limits.request_head_bytes_max,
            shutdown_timeout: limits.shutdown_timeout,
            connections_max: limits.sessions_max,
            peer_addresses: Addresses::default(),
            address_connections_max: limits
                .address_connections_max
                .unwrap_or_else(|| address_connections_max(limits.sessions_max)),
            conversations: AtomicUsize::new(0),
            listener_last: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        }
    }

    /// A number that no listener of this router has had.
    pub(crate) fn next_listener(&self) -> u32 {
        self.listener_last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a conversation. Returns the earlier number.
    pub(crate) fn count_in(&self) -> usize {
        self.conversations.fetch_add(1, Ordering::Relaxed)
    }

    /// Uncounts a conversation.
    pub(crate) fn count_out(&self) {
        self.conversations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections that a stop waits for: their clients may have to say goodbye.
    pub fn conversations(&self) -> usize {
        self.conversations.load(Ordering::Relaxed)
    }

    /// From now on the router says that it is shutting down.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The router says that it is not ready for new clients, or no more.
    pub fn set_draining(&self, is_draining: bool) {
        self.draining.store(is_draining, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub fn is_stopping(&self) -> bool {
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
