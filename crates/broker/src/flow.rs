//! Flow control: pauses reading from publishers while memory or the store is full.

mod obey;
mod orders;

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use self::orders::Resource;

use self::orders::Orders;
use super::peer::Peer;

/// The bounds at which publishers of all vhosts of a router are blocked.
///
/// If a client publishes while a bound is reached, reading from it is paused. The client gets `connection.blocked` if
/// it supports that. Below nine tenths of the bound all publishers continue. The same applies to clients with methods
/// for the store, while the store is behind or its disk is low. (Low, not full: a full disk does not even allow
/// deletions.) Clients that only consume are not blocked for full memory, a low disk or a failing store: they make
/// room.
pub struct FlowControl {
    memory_bytes: AtomicUsize,
    memory_bytes_max: AtomicUsize,
    commit_bytes_max: AtomicUsize,
    memory: Cause,
    /// Messages take so much memory that all but the first ones of each queue are to leave it.
    is_crowded: AtomicBool,
    store: Cause,
    disk: Cause,
    orders: Box<Orders>,
    /// The reason for `connection.blocked` while the store fails.
    store_reason: &'static str,
}

/// A reason to block publishers, and the peers that it blocks.
#[derive(Default)]
struct Cause {
    stands: AtomicBool,
    /// The cause is more than a brief backlog: peers get `connection.blocked`.
    is_told: AtomicBool,
    blocked: Mutex<Vec<(Weak<Peer>, bool)>>,
}

/// The effects of an input on publishers' bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Published {
    /// The input contained message content, complete or partial.
    pub content: bool,
    pub(crate) journaled: Journaled,
}

/// The store's part of the effects of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Journaled {
    #[default]
    Nothing,
    /// Only departures of messages, which are bounded by their number and free space in the store.
    Departures,
    /// Anything else.
    More,
}

/// A page is at most this part of the memory that is left for pages.
const PAGES_IN_REST: usize = 16;

/// Approximate sizes of a page. Reading one delays a commit.
const PAGE_BYTES_MIN: usize = 16 << 10;
const PAGE_BYTES_MAX: usize = 1 << 20;

/// RabbitMQ's texts.
const LOW_ON_MEMORY: &str = "low on memory";
const LOW_ON_DISK: &str = "low on disk";

/// For a vhost with a replicated journal.
const NO_REPLICAS: &str = "waiting for replicas";

impl FlowControl {
    pub fn new(memory_bytes_max: usize, commit_bytes_max: usize) -> Self {
        Self {
            memory_bytes: AtomicUsize::new(0),
            memory_bytes_max: AtomicUsize::new(memory_bytes_max),
            commit_bytes_max: AtomicUsize::new(commit_bytes_max),
            memory: Cause::default(),
            is_crowded: AtomicBool::new(false),
            store: Cause::default(),
            disk: Cause::default(),
            orders: Box::default(),
            store_reason: LOW_ON_DISK,
        }
    }

    /// The flow control of one replicated vhost: only the bytes that wait for its log count.
    pub(crate) fn of_a_log(waiting_bytes_max: usize) -> Self {
        Self {
            store_reason: NO_REPLICAS,
            ..Self::new(usize::MAX, waiting_bytes_max)
        }
    }

    /// Unblocks all publishers, as nothing waits any more.
    pub(crate) fn let_go(&self) {
        self.store.end();
    }

    /// Replaces `before` bytes of messages by `after` in the sum. Called under the lock of the holder, so that a
    /// subtraction never precedes its addition; [`Self::judge_memory`] follows outside the lock.
    pub(crate) fn memory_changed(&self, before: usize, after: usize) {
        match after >= before {
            true => self
                .memory_bytes
                .fetch_add(after - before, Ordering::SeqCst),
            false => self
                .memory_bytes
                .fetch_sub(before - after, Ordering::SeqCst),
        };
    }

    /// Blocks or unblocks publishers, depending on the memory in use.
    pub(crate) fn judge_memory(&self) {
        let total = self.memory_bytes();
        self.judge_crowding(total);
        let max = self.memory_bytes_max();
        let is_ordered = self.must_block();
        if is_ordered || total > max {
            if !self.memory.begin(true) {
                return;
            }
            match is_ordered {
                true => tracing::warn!("publishers are blocked, as an operator ordered"),
                false => tracing::warn!(
                    "messages use {total} bytes of memory, the maximum is {max}: publishers are blocked"
                ),
            }
        }
        // Checked after a block as well: memory may have been freed before the block was visible.
        let is_low = self.memory_bytes() < ninety_percent(self.memory_bytes_max());
        if is_low && !self.must_block() {
            self.end_memory();
        }
    }

    fn end_memory(&self) {
        if self.memory.end() {
            tracing::info!("memory for messages is available again: publishers are unblocked");
        }
    }

    /// Notes whether half of the memory is in use. That ends below three eighths, so that it does not begin again at once.
    fn judge_crowding(&self, total: usize) {
        let half = self.memory_bytes_max() / 2;
        let is_crowded = self.is_crowded();
        if is_crowded != (total >= half) && (!is_crowded || total < half / 4 * 3) {
            self.is_crowded.store(!is_crowded, Ordering::Relaxed);
        }
    }

    /// Whether all but the first messages of each queue are to leave memory. Vhosts follow at their next turn.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Blocks publishers if too many bytes wait for the store. Called after records are submitted.
    pub(crate) fn store_waits(&self, bytes: usize, waiting: impl Fn() -> usize) {
        if bytes > self.commit_bytes_max() {
            self.store.begin(false);
            if waiting() < ninety_percent(self.commit_bytes_max()) && !self.is_store_failing() {
                self.store.end();
            }
        }
    }

    /// Unblocks publishers if, after a commit, few enough bytes wait.
    pub(crate) fn store_wrote(&self, waiting: usize) {
        let is_over = self.is_store_failing() || waiting < ninety_percent(self.commit_bytes_max());
        if is_over && self.store.end() {
            tracing::debug!("the store keeps up again: publishers are unblocked");
        }
    }

    /// The store cannot write. Returns whether its last attempt failed too.
    pub(crate) fn store_failed(&self) -> bool {
        let was_failing = self.is_store_failing();
        self.store.begin(true);
        if !was_failing {
            self.store.tell(self.store_reason);
        }
        !was_failing
    }

    /// Whether the store's low disk blocks publishers.
    pub fn is_disk_low(&self) -> bool {
        self.disk.stands()
    }

    /// The bytes of messages above which publishers are blocked.
    pub fn memory_bytes_max(&self) -> usize {
        self.memory_bytes_max.load(Ordering::Relaxed)
    }

    fn commit_bytes_max(&self) -> usize {
        self.commit_bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the store's bound, and blocks or unblocks publishers by it. `waiting` returns the bytes that wait for the
    /// store.
    pub(crate) fn set_commit_bytes_max(&self, bytes: usize, waiting: impl Fn() -> usize) {
        self.commit_bytes_max.store(bytes, Ordering::Relaxed);
        self.store_waits(waiting(), &waiting);
        if !self.is_store_failing() {
            self.store_wrote(waiting());
        }
    }

    /// Bytes of the next page of a deep queue, if messages of so many bytes are on their way into memory. Many such queues,
    /// each with a consumer, together take little more than half of the maximum memory.
    pub(crate) fn page_bytes(&self, under_way: usize) -> usize {
        let used = self.memory_bytes() + under_way;
        let left = (self.memory_bytes_max() / 2).saturating_sub(used);
        (left / PAGES_IN_REST).clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
    }

    /// Bytes of messages in memory.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::SeqCst)
    }

    /// Whether the store's last attempt to write failed.
    pub(crate) fn is_store_failing(&self) -> bool {
        self.store.stands() && self.store.is_told.load(Ordering::SeqCst)
    }

    /// Whether publishers are blocked because memory is full.
    pub fn is_memory_full(&self) -> bool {
        self.memory.stands()
    }

    /// Whether memory is full, or an operator has raised an alarm: then no more content is taken.
    pub(crate) fn has_alarm(&self) -> bool {
        self.memory.stands() || self.disk.stands() && self.is_raised(Resource::Disk)
    }

    /// Number of peers with paused reading.
    pub(crate) fn blocked(&self) -> usize {
        self.memory.blocked() + self.store.blocked() + self.disk.blocked()
    }

    /// Blocks a peer if the effects of its input exceed a bound.
    pub(crate) fn judge(&self, peer: &Arc<Peer>, published: Published) {
        if published.content && self.memory.stands() {
            self.memory.block(peer, LOW_ON_MEMORY);
        } else if published.journaled > Journaled::Nothing && self.store.stands() {
            // Departures free space, so that a full disk does not block them.
            if published.journaled == Journaled::More || !self.is_store_failing() {
                self.store.block(peer, self.store_reason);
            }
        } else if self.disk.stands()
            && (published.journaled == Journaled::More
                || published.content && self.is_raised(Resource::Disk))
        {
            self.disk.block(peer, LOW_ON_DISK);
        }
    }
}

impl Cause {
    fn stands(&self) -> bool {
        self.stands.load(Ordering::SeqCst)
    }

    /// Activates the cause. Returns whether it was inactive.
    fn begin(&self, is_told: bool) -> bool {
        if is_told {
            self.is_told.store(true, Ordering::SeqCst);
        }
        !self.stands.swap(true, Ordering::SeqCst)
    }

    /// Sends `connection.blocked` to blocked peers that have not received it.
    fn tell(&self, reason: &str) {
        for (peer, was_told) in self.blocked.lock().iter_mut() {
            if !mem::replace(was_told, true)
                && let Some(peer) = peer.upgrade()
            {
                peer.say_blocked(reason);
            }
        }
    }

    /// Deactivates the cause. Returns whether it was active.
    fn end(&self) -> bool {
        if !self.stands() {
            return false;
        }
        let mut blocked = self.blocked.lock();
        if !self.stands.swap(false, Ordering::SeqCst) {
            return false;
        }
        self.is_told.store(false, Ordering::SeqCst);
        for (peer, was_told) in blocked.drain(..) {
            if let Some(peer) = peer.upgrade() {
                peer.unblock(was_told);
            }
        }
        true
    }

    fn blocked(&self) -> usize {
        let blocked = self.blocked.lock();
        let there = blocked.iter().filter(|(peer, _)| peer.strong_count() > 0);
        there.count()
    }

    fn block(&self, peer: &Arc<Peer>, reason: &str) {
        let mut blocked = self.blocked.lock();
        // The cause may have ended meanwhile; then no later call would unblock the peer.
        if !self.stands() || peer.is_closing() {
            return;
        }
        let mut peers = blocked.iter();
        match peers.any(|(held, _)| held.as_ptr() == Arc::as_ptr(peer)) {
            // Input that was read before the pause is handled while the peer is blocked, and the end of another cause
            // resumes its reading.
            true => peer.block(None),
            false => {
                let is_told = self.is_told.load(Ordering::SeqCst);
                peer.block(is_told.then_some(reason));
                blocked.retain(|(peer, _)| peer.strong_count() > 0);
                blocked.push((Arc::downgrade(peer), is_told));
            }
        }
    }
}

fn ninety_percent(max: usize) -> usize {
    max / 10 * 9
}
