//! Bounds the memory of incomplete messages and open transactions, which are in no queue yet.
//!
//! If a client is paused because memory is full, it cannot complete its own message. These bytes therefore do not count
//! for flow control; they have a bound of their own, equal to that of queued messages. One connection may hold a share
//! of the bound. If all together exceed it, the connection that holds most is closed, not the newest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crosstie_front::cause::Cause;
use crosstie_front::report;
use crosstie_transport::now_s;
use parking_lot::Mutex;

use super::peer::Peer;

/// The incomplete messages of a router's AMQP connections.
pub struct Incomplete {
    /// Can be negative for a moment, if a release is counted before its allocation.
    bytes: AtomicIsize,
    bytes_max: AtomicUsize,
    connection_bytes_max: AtomicUsize,
    timeout_s: u32,
    /// Peers that hold any bytes, by connection number.
    holders: Mutex<BTreeMap<u64, Arc<Peer>>>,
    /// Number of connections closed for exceeding the bounds.
    pub closed: AtomicU64,
}

/// One connection's share of the bound is a quarter, but at least one message of the largest size.
const SHARES: usize = 4;
/// Maximum number of holders checked under one lock.
const SWEEP_MAX: usize = 1024;

impl Incomplete {
    pub fn new(bytes_max: usize, message_bytes_max: usize, timeout: Option<Duration>) -> Self {
        let timeout_s = timeout.map_or(u64::MAX, |timeout| timeout.as_secs().max(1));
        Self {
            bytes: AtomicIsize::new(0),
            bytes_max: AtomicUsize::new(bytes_max),
            connection_bytes_max: AtomicUsize::new(share(bytes_max, message_bytes_max)),
            timeout_s: u32::try_from(timeout_s).unwrap_or(u32::MAX),
            holders: Mutex::default(),
            closed: AtomicU64::new(0),
        }
    }

    /// Whether a connection that holds that many bytes has reached its share.
    pub(crate) fn is_share_spent(&self, bytes: usize) -> bool {
        bytes >= self.connection_bytes_max()
    }

    /// Maximum bytes of one connection.
    pub(crate) fn connection_bytes_max(&self) -> usize {
        self.connection_bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the bounds.
    pub(crate) fn set_bounds(&self, bytes_max: usize, message_bytes_max: usize) {
        let share = share(bytes_max, message_bytes_max);
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.connection_bytes_max.store(share, Ordering::Relaxed);
    }

    /// The timeout of a message without sufficient progress, in seconds.
    pub(crate) fn timeout_s(&self) -> u32 {
        self.timeout_s
    }

    /// Total bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed).max(0).cast_unsigned()
    }

    /// Sets the bytes that a peer holds. If the total exceeds the bound, the largest holders are closed. Must not be
    /// called under the vhost's lock.
    pub fn set(&self, peer: &Arc<Peer>, bytes: usize) {
        let before = peer.incomplete_bytes.swap(bytes, Ordering::Relaxed);
        if before == bytes {
            return;
        }
        // The wrapped difference, as a signed number.
        let more = bytes.wrapping_sub(before).cast_signed();
        peer.connection.hold(more);
        self.bytes.fetch_add(more, Ordering::Relaxed);
        match (before, bytes) {
            (0, _) => drop(self.holders.lock().insert(peer.number, Arc::clone(peer))),
            (_, 0) => drop(self.holders.lock().remove(&peer.number)),
            _ => {}
        }
        if bytes > before && self.bytes() > self.bytes_max.load(Ordering::Relaxed) {
            self.relieve();
        }
    }

    /// Closes connections with messages that arrive too slowly. Called every second.
    pub(crate) fn sweep(&self) {
        let now_s = now_s();
        let mut next = 0;
        loop {
            let mut late = Vec::new();
            let mut looked_at = 0;
            for (number, peer) in self.holders.lock().range(next..).take(SWEEP_MAX) {
                next = number + 1;
                looked_at += 1;
                // The reader checks progress when bytes arrive; this finds connections that send nothing.
                if peer.unfinished_for_s(now_s) > self.timeout_s.saturating_mul(2) {
                    late.push(Arc::clone(peer));
                }
            }
            for peer in late {
                self.close(&peer, Cause::SlowContent);
            }
            if looked_at < SWEEP_MAX {
                return;
            }
        }
    }

    #[cold]
    fn relieve(&self) {
        while self.bytes() > self.bytes_max.load(Ordering::Relaxed) {
            let bytes = |peer: &&Arc<Peer>| peer.incomplete_bytes.load(Ordering::Relaxed);
            let largest = self.holders.lock().values().max_by_key(bytes).cloned();
            // The rest of the total belongs to holders that are not registered yet.
            let Some(largest) = largest.filter(|largest| bytes(&largest) > 0) else {
                return;
            };
            self.close(&largest, Cause::AmqpMemory);
        }
    }

    /// Counts the peer's bytes as freed at once; its reader frees them when it sees the end.
    fn close(&self, peer: &Arc<Peer>, cause: Cause) {
        self.set(peer, 0);
        self.closed.fetch_add(1, Ordering::Relaxed);
        report::session_closed(&peer.connection, cause, cause.text());
        peer.force_close(cause.text());
        peer.connection.flush();
        peer.connection.close();
    }
}

/// One connection's part of the bound.
fn share(bytes_max: usize, message_bytes_max: usize) -> usize {
    (bytes_max / SHARES).max(message_bytes_max.min(bytes_max))
}
