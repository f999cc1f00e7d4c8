//! Messages that have not come completely, and transactions that are open: who holds how much of
//! what is in no queue yet.
//!
//! A client that is paused for want of memory cannot complete its own, so that these bytes must not be what
//! others wait for: they have a bound of their own, as large as that of messages in queues. One
//! connection may hold a share of it; where all of them together have too much, the one that holds
//! most is closed, and not the one that comes next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::time::Duration;

use crosstie_transport::now_s;
use parking_lot::Mutex;

use super::peer::Peer;
use crate::cause::Cause;
use crate::report;

/// The incomplete messages of a router's AMQP connections.
pub(crate) struct Incomplete {
    /// For a moment less than none, where what somebody lets go of is noted before what it took.
    bytes: AtomicIsize,
    bytes_max: usize,
    connection_bytes_max: usize,
    timeout_s: u32,
    /// Those who hold any, by their numbers.
    holders: Mutex<BTreeMap<u64, Arc<Peer>>>,
    /// Connections that were closed for it.
    pub(crate) closed: AtomicU64,
}

/// A share of the bound; but a message of the largest size is never too much.
const SHARES: usize = 4;
/// Holders that are looked at under one lock.
const SWEEP_MAX: usize = 1024;

impl Incomplete {
    pub(crate) fn new(
        bytes_max: usize,
        message_bytes_max: usize,
        timeout: Option<Duration>,
    ) -> Self {
        let timeout_s = timeout.map_or(u64::MAX, |timeout| timeout.as_secs().max(1));
        Self {
            bytes: AtomicIsize::new(0),
            bytes_max,
            connection_bytes_max: (bytes_max / SHARES).max(message_bytes_max.min(bytes_max)),
            timeout_s: u32::try_from(timeout_s).unwrap_or(u32::MAX),
            holders: Mutex::default(),
            closed: AtomicU64::new(0),
        }
    }

    /// Whether one connection that holds so many bytes may hold no more.
    pub(crate) fn is_share_spent(&self, bytes: usize) -> bool {
        bytes >= self.connection_bytes_max
    }

    /// Bytes that one connection may hold.
    pub(crate) fn connection_bytes_max(&self) -> usize {
        self.connection_bytes_max
    }

    /// How long a message may take, or what is enough of it to go on waiting.
    pub(crate) fn timeout_s(&self) -> u32 {
        self.timeout_s
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed).max(0).cast_unsigned()
    }

    /// A peer holds so many bytes now. Where that is too much for all, those who hold most are closed:
    /// not under the vhost's lock.
    pub(crate) fn set(&self, peer: &Arc<Peer>, bytes: usize) {
        let before = peer.incomplete_bytes.swap(bytes, Ordering::Relaxed);
        if before == bytes {
            return;
        }
        // Wraps around, which is what taking away the difference comes to.
        let more = bytes.wrapping_sub(before).cast_signed();
        peer.connection.hold(more);
        self.bytes.fetch_add(more, Ordering::Relaxed);
        match (before, bytes) {
            (0, _) => drop(self.holders.lock().insert(peer.number, Arc::clone(peer))),
            (_, 0) => drop(self.holders.lock().remove(&peer.number)),
            _ => {}
        }
        if bytes > before && self.bytes() > self.bytes_max {
            self.relieve();
        }
    }

    /// Closes those whose messages come too slowly; to be called each second.
    pub(crate) fn sweep(&self) {
        let now_s = now_s();
        let mut next = 0;
        loop {
            let mut late = Vec::new();
            let mut looked_at = 0;
            for (number, peer) in self.holders.lock().range(next..).take(SWEEP_MAX) {
                next = number + 1;
                looked_at += 1;
                // What came is looked at when more comes; this is for those of whom nothing does.
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
        while self.bytes() > self.bytes_max {
            let bytes = |peer: &&Arc<Peer>| peer.incomplete_bytes.load(Ordering::Relaxed);
            let largest = self.holders.lock().values().max_by_key(bytes).cloned();
            // What is held and nobody's is on its way to be noted.
            let Some(largest) = largest.filter(|largest| bytes(&largest) > 0) else {
                return;
            };
            self.close(&largest, Cause::AmqpMemory);
        }
    }

    /// What the peer holds is gone as soon as its reader hears of the end, and counts as gone now.
    fn close(&self, peer: &Arc<Peer>, cause: Cause) {
        self.set(peer, 0);
        self.closed.fetch_add(1, Ordering::Relaxed);
        report::session_closed(&peer.connection, cause, cause.text());
        peer.force_close(cause.text());
        peer.connection.flush();
        peer.connection.close();
    }
}
