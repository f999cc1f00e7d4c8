//! Flow control: publishers are not read while memory, or the store, is full.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::peer::Peer;

/// The bounds at which publishers of all vhosts of a router are held back.
///
/// A client that publishes while a bound is reached has its reading paused, and is told so
/// (`connection.blocked`) if it wants to know; below nine tenths of the bound all go on. The same is
/// done to a client whose methods the store is to keep, while the store is behind or the disk is low.
/// (Low, and not full: on a full disk it is too late even to delete.) Clients that only consume are
/// not held back when memory is full, when the disk is low, nor when the store fails: they make room.
pub(crate) struct FlowControl {
    memory_bytes: AtomicUsize,
    memory_bytes_max: usize,
    commit_bytes_max: usize,
    memory: Cause,
    store: Cause,
    disk: Cause,
    /// Why a store that fails holds publishers back, as they are told.
    store_reason: &'static str,
}

/// A reason to hold publishers back, and those that it holds.
#[derive(Default)]
struct Cause {
    stands: AtomicBool,
    /// There is more to it than a moment's backlog: peers are told.
    is_told: AtomicBool,
    blocked: Mutex<Vec<(Weak<Peer>, bool)>>,
}

/// The effects of an input on publishers' bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Published {
    /// It brought content, or a part of some.
    pub(crate) content: bool,
    pub(crate) journaled: Journaled,
}

/// The part of them that goes to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Journaled {
    #[default]
    Nothing,
    /// That messages have gone: no more than there were, and it undoes what the store was given.
    Departures,
    /// Anything else.
    More,
}

/// In RabbitMQ's words.
const LOW_ON_MEMORY: &str = "low on memory";
const LOW_ON_DISK: &str = "low on disk";

/// Of a vhost whose journal several servers keep.
const NO_REPLICAS: &str = "waiting for replicas";

impl FlowControl {
    pub(crate) fn new(memory_bytes_max: usize, commit_bytes_max: usize) -> Self {
        Self {
            memory_bytes: AtomicUsize::new(0),
            memory_bytes_max,
            commit_bytes_max,
            memory: Cause::default(),
            store: Cause::default(),
            disk: Cause::default(),
            store_reason: LOW_ON_DISK,
        }
    }

    /// Of one vhost, whose journal is kept elsewhere: what waits for that is all that counts.
    pub(crate) fn of_a_log(waiting_bytes_max: usize) -> Self {
        Self {
            store_reason: NO_REPLICAS,
            ..Self::new(usize::MAX, waiting_bytes_max)
        }
    }

    /// Nothing waits any more, for nobody: publishers are let go.
    pub(crate) fn let_go(&self) {
        self.store.end();
    }

    /// What held `before` bytes of messages holds `after` now. Under the lock of what holds them, so
    /// that nothing is taken off before it was put on; [`Self::judge_memory`] follows outside it.
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

    /// Holds publishers back, or no more, as memory is now.
    pub(crate) fn judge_memory(&self) {
        let total = self.memory_bytes();
        if total > self.memory_bytes_max {
            if !self.memory.begin(true) {
                return;
            }
            let max = self.memory_bytes_max;
            tracing::warn!(
                "{total} bytes of messages in memory, {max} are the most: publishers are blocked"
            );
        }
        // Also when it has just begun: somebody may have made room before that could be seen.
        let is_low = self.memory_bytes() < ninety_percent(self.memory_bytes_max);
        if is_low && self.memory.end() {
            tracing::info!("memory for messages is available again: publishers are unblocked");
        }
    }

    /// So many bytes wait to be written by the store, after something was handed to it.
    pub(crate) fn store_waits(&self, bytes: usize, waiting: impl Fn() -> usize) {
        if bytes > self.commit_bytes_max {
            self.store.begin(false);
            if waiting() < ninety_percent(self.commit_bytes_max) && !self.is_store_failing() {
                self.store.end();
            }
        }
    }

    /// The store has written something, and so many bytes wait.
    pub(crate) fn store_wrote(&self, waiting: usize) {
        let is_over = self.is_store_failing() || waiting < ninety_percent(self.commit_bytes_max);
        if is_over && self.store.end() {
            tracing::debug!("the store keeps up again: publishers are unblocked");
        }
    }

    /// The store cannot write; whether it could when it tried last.
    pub(crate) fn store_failed(&self) -> bool {
        let was_failing = self.is_store_failing();
        self.store.begin(true);
        if !was_failing {
            self.store.tell(self.store_reason);
        }
        !was_failing
    }

    /// Less is free on the store's disk than there should be, or is so no more.
    pub(crate) fn disk_changed(&self, is_low: bool) {
        match is_low {
            true => drop(self.disk.begin(true)),
            false => drop(self.disk.end()),
        }
    }

    /// Whether publishers are held back because the store's disk is low.
    pub(crate) fn is_disk_low(&self) -> bool {
        self.disk.stands()
    }

    pub(crate) fn memory_bytes_max(&self) -> usize {
        self.memory_bytes_max
    }

    /// Bytes of messages in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::SeqCst)
    }

    /// Whether the store could not write when it tried last.
    pub(crate) fn is_store_failing(&self) -> bool {
        self.store.stands() && self.store.is_told.load(Ordering::SeqCst)
    }

    /// Whether publishers are held back for want of memory.
    pub(crate) fn is_memory_full(&self) -> bool {
        self.memory.stands()
    }

    /// Peers whose reading is paused.
    pub(crate) fn blocked(&self) -> usize {
        self.memory.blocked() + self.store.blocked() + self.disk.blocked()
    }

    /// Holds a peer back, if what its input brought is too much now.
    pub(crate) fn judge(&self, peer: &Arc<Peer>, published: Published) {
        if published.content && self.memory.stands() {
            self.memory.block(peer, LOW_ON_MEMORY);
        } else if published.journaled > Journaled::Nothing && self.store.stands() {
            // To take messages away is the way out of a disk that is full.
            if published.journaled == Journaled::More || !self.is_store_failing() {
                self.store.block(peer, self.store_reason);
            }
        } else if published.journaled == Journaled::More && self.disk.stands() {
            self.disk.block(peer, LOW_ON_DISK);
        }
    }
}

impl Cause {
    fn stands(&self) -> bool {
        self.stands.load(Ordering::SeqCst)
    }

    /// Whether it did not stand before.
    fn begin(&self, is_told: bool) -> bool {
        if is_told {
            self.is_told.store(true, Ordering::SeqCst);
        }
        !self.stands.swap(true, Ordering::SeqCst)
    }

    /// Tells those who are held back and have not been told.
    fn tell(&self, reason: &str) {
        for (peer, was_told) in self.blocked.lock().iter_mut() {
            if !mem::replace(was_told, true)
                && let Some(peer) = peer.upgrade()
            {
                peer.say_blocked(reason);
            }
        }
    }

    /// Whether it stood.
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
        // Input that was read before its reading stopped is handled while it is held back.
        if blocked
            .iter()
            .any(|(held, _)| held.as_ptr() == Arc::as_ptr(peer))
        {
            return;
        }
        // It may have ended meanwhile; then nobody would unblock.
        if self.stands() && !peer.is_closing() {
            let is_told = self.is_told.load(Ordering::SeqCst);
            peer.block(is_told.then_some(reason));
            blocked.retain(|(peer, _)| peer.strong_count() > 0);
            blocked.push((Arc::downgrade(peer), is_told));
        }
    }
}

fn ninety_percent(max: usize) -> usize {
    max / 10 * 9
}
