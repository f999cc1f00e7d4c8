//! The memory held for peers: one total, and the debt of each connection.
//!
//! Each byte is on the account once, by its [`Kind`]. A connection keeps its own debt (`Ledger`, in `out.rs`), in which
//! shared bytes count in full: any connection that keeps them could give them up. At the bound the largest debtors
//! give up what is held only to serve them better, such as a compressor's window. If that is not enough, they are closed
//! until there is some room; no other connection is refused anything for their debts.
//!
//! The thread that crosses the bound notes that, and chooses the debtors at its next [`crate::uncork`], where it holds
//! no lock, before it reads more.

use std::cell::{Cell, RefCell};
use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Connection;

crosstie_collections::named! {
    /// The purpose of held bytes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// Queued behind a full socket, for one connection alone.
        Queued = "queued",
        /// Sent to several connections, and stored once.
        Shared = "shared",
        /// Received parts of incomplete messages.
        Input = "input",
        /// State of other layers for a peer ([`Connection::hold`]).
        State = "state",
        /// State of other layers for no particular peer ([`crate::Kept`]).
        Kept = "kept",
    }
}

/// The debt of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    pub queued_bytes: usize,
    /// In full, however many other connections keep the same bytes.
    pub shared_bytes: usize,
    pub input_bytes: usize,
    pub state_bytes: usize,
}

/// The account of all connections that share a bound.
pub struct Account {
    bytes_max: usize,
    total_bytes: AtomicUsize,
    kinds: [AtomicUsize; Kind::ALL.len()],
    /// The total at which debtors have to be chosen.
    choose_at_bytes: AtomicUsize,
    /// Connections whose debt is large enough to be chosen, by address.
    debtors: Mutex<HashMap<usize, Weak<Connection>>>,
    choosing: Mutex<()>,
    debtors_closed: AtomicU64,
    on_debtor: OnceLock<OnDebtor>,
    /// The number of tasks that wait for room and are notified of refunds.
    waiting: AtomicUsize,
    left: Notify,
}

/// Called with a debtor that is about to be closed. No lock is held.
type OnDebtor = Box<dyn Fn(&Arc<Connection>, &Debt) + Send + Sync>;

/// The bound is divided into this many shares. A connection that owes less than a share is never chosen, and costs the
/// account nothing but an addition.
const SHARES: usize = 128 * 1024;
/// Smallest share in bytes: less is not worth tracking.
const SHARE_BYTES_MIN: usize = 1024;

/// If the bound is exceeded by a tenth, a connection that owes more than the bound divided by this number gets no more.
const LARGE_PARTS: usize = 1024;

thread_local! {
    static HAS_CROSSED: Cell<bool> = const { Cell::new(false) };
    static CROSSED: RefCell<Option<Arc<Account>>> = const { RefCell::new(None) };
}

impl Debt {
    pub fn bytes(&self) -> usize {
        self.queued_bytes + self.shared_bytes + self.input_bytes + self.state_bytes
    }
}

impl Account {
    /// An account with a bound of `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            total_bytes: AtomicUsize::new(0),
            kinds: [const { AtomicUsize::new(0) }; Kind::ALL.len()],
            choose_at_bytes: AtomicUsize::new(bytes_max),
            debtors: Mutex::default(),
            choosing: Mutex::default(),
            debtors_closed: AtomicU64::new(0),
            on_debtor: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            left: Notify::new(),
        }
    }

    /// Sets the callback for debtors that are about to be closed. Later calls have no effect.
    pub fn set_on_debtor(
        &self,
        on_debtor: impl Fn(&Arc<Connection>, &Debt) + Send + Sync + 'static,
    ) {
        let _ = self.on_debtor.set(Box::new(on_debtor));
    }

    /// Bytes currently held.
    pub fn total_bytes(&self) -> usize {
        self.total_bytes.load(Ordering::SeqCst)
    }

    /// The bytes of one kind.
    pub fn bytes(&self, kind: Kind) -> usize {
        self.kinds[kind as usize].load(Ordering::Relaxed)
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Number of connections that were closed as the largest debtors.
    pub fn debtors_closed(&self) -> u64 {
        self.debtors_closed.load(Ordering::Relaxed)
    }

    /// Puts bytes that several connections will send on the account, until the last of them has sent or dropped its
    /// reference.
    pub fn share(self: &Arc<Self>, mut bytes: Vec<u8>) -> Bytes {
        if bytes.len() < crate::queue::SHARED_BYTES_MIN {
            // Short ones are copied by each receiver.
            return bytes.into();
        }
        if bytes.capacity() > 2 * bytes.len() {
            bytes.shrink_to_fit();
        }
        self.add(Kind::Shared, bytes.capacity());
        Bytes::from_owner(Shared {
            bytes,
            account: Arc::clone(self),
        })
    }

    /// Closes the largest debtors if the bound is exceeded. No lock may be held.
    pub fn choose(&self) {
        if self.total_bytes() > self.bytes_max {
            self.close_debtors();
        }
    }

    /// Whether so little room is left that nothing should be held only to do better.
    pub fn is_tight(&self) -> bool {
        self.total_bytes() > self.bytes_max / 10 * 9
    }

    /// Whether senders that can wait should keep so many bytes, so that no debtor has to be closed for them. If little
    /// is queued, waiting would free nothing: then even more than the bound may pass.
    pub(crate) fn is_short_for(&self, bytes: usize) -> bool {
        let fifth = self.bytes_max / 5;
        self.total_bytes().saturating_add(bytes) > 4 * fifth && self.bytes(Kind::Queued) > fifth
    }

    /// Whether a connection with that debt gets no more: debtors are being closed, and it may be one of them.
    pub(crate) fn is_shut_for(&self, debt_bytes: usize) -> bool {
        let passed = self.bytes_max.saturating_add(self.bytes_max / 10);
        debt_bytes > self.bytes_max / LARGE_PARTS && self.total_bytes() >= passed
    }

    /// The debt from which on a connection may be chosen.
    pub(crate) fn share_bytes(&self) -> usize {
        (self.bytes_max / SHARES).max(SHARE_BYTES_MIN)
    }

    /// Waits until there is room for so many bytes.
    pub(crate) async fn room(&self, bytes: usize) {
        let _waiting = Waiting::new(&self.waiting);
        while self.is_short_for(bytes) {
            let mut left = pin!(self.left.notified());
            // Refunds from now on are not missed.
            left.as_mut().enable();
            if !self.is_short_for(bytes) {
                break;
            }
            left.await;
        }
        // Each refund wakes one task, which wakes the next if there was room for it.
        self.left.notify_one();
    }

    /// Changes the bytes held for something from `before` to `after`.
    pub(crate) fn change(self: &Arc<Self>, kind: Kind, before: usize, after: usize) {
        if after > before {
            self.add(kind, after - before);
        } else if before > after {
            self.refund(kind, before - after);
        }
    }

    pub(crate) fn refund(&self, kind: Kind, bytes: usize) {
        let of_kind = self.kinds[kind as usize].fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(of_kind >= bytes, "refunded {bytes} of {of_kind}, {kind:?}");
        let before = self.total_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if before > self.bytes_max && before - bytes <= self.bytes_max {
            let max = self.bytes_max;
            self.choose_at_bytes.store(max, Ordering::Relaxed);
        }
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.left.notify_one();
        }
    }

    pub(crate) fn register(&self, connection: &Arc<Connection>) {
        let address = Arc::as_ptr(connection).addr();
        let debtor = Arc::downgrade(connection);
        self.debtors.lock().insert(address, debtor);
    }

    pub(crate) fn forget(&self, connection: &Connection) {
        let address = std::ptr::from_ref(connection).addr();
        // Dropped outside the lock: it may be the connection's last reference.
        let debtor = self.debtors.lock().remove(&address);
        drop(debtor);
    }

    fn add(self: &Arc<Self>, kind: Kind, bytes: usize) {
        self.kinds[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        let total = self.total_bytes.fetch_add(bytes, Ordering::SeqCst) + bytes;
        if total > self.choose_at_bytes.load(Ordering::Relaxed) {
            self.note_crossed();
        }
    }

    #[cold]
    fn note_crossed(self: &Arc<Self>) {
        HAS_CROSSED.set(true);
        CROSSED.set(Some(Arc::clone(self)));
    }

    #[cold]
    fn close_debtors(&self) {
        let Some(_alone) = self.choosing.try_lock() else {
            return;
        };
        let debtors: Vec<_> = {
            let debtors = self.debtors.lock();
            debtors.values().filter_map(Weak::upgrade).collect()
        };
        let low = self.bytes_max / 10 * 9;
        self.give_up(&debtors, low);
        // The debts of connections that are closed already, which their threads will refund.
        let mut pending = 0;
        let mut by_debt = BinaryHeap::with_capacity(debtors.len());
        for (place, debtor) in debtors.iter().enumerate() {
            let owed = debtor.debt().bytes();
            match debtor.is_ended() {
                true => pending += owed,
                false => by_debt.push((owed, place)),
            }
        }
        while self.total_bytes().saturating_sub(pending) > low
            && let Some((_, place)) = by_debt.pop()
        {
            let debtor = &debtors[place];
            if let Some(on_debtor) = self.on_debtor.get() {
                on_debtor(debtor, &debtor.debt());
            }
            debtor.close();
            self.debtors_closed.fetch_add(1, Ordering::Relaxed);
            pending += debtor.debt().bytes();
        }
        // If that did not help at once, the next byte does not trigger another choice.
        let total = self.total_bytes();
        let next = match total > self.bytes_max {
            true => total.saturating_add(self.bytes_max / 64),
            false => self.bytes_max,
        };
        self.choose_at_bytes.store(next, Ordering::Relaxed);
    }
}

impl Account {
    /// Makes debtors drop what is held for them only to do better, the largest first, until little enough is left.
    fn give_up(&self, debtors: &[Arc<Connection>], low: usize) {
        let mut by_debt: BinaryHeap<_> = (0..debtors.len())
            .map(|place| (debtors[place].debt().bytes(), place))
            .collect();
        while self.total_bytes() > low
            && let Some((_, place)) = by_debt.pop()
        {
            debtors[place].give_up();
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("bytes_max", &self.bytes_max)
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let total = *self.total_bytes.get_mut();
        let is_even = total == 0 || std::thread::panicking();
        debug_assert!(
            is_even,
            "no connection is left, and {self:?} is not refunded"
        );
    }
}

/// Bytes that are on the account until the last reference is dropped.
struct Shared {
    bytes: Vec<u8>,
    account: Arc<Account>,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.account.refund(Kind::Shared, self.bytes.capacity());
    }
}

/// A task that waits for room.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Closes the largest debtors if this thread has crossed a bound. No lock may be held.
#[inline]
pub(crate) fn choose_if_crossed() {
    if HAS_CROSSED.get() {
        choose_crossed();
    }
}

#[cold]
fn choose_crossed() {
    HAS_CROSSED.set(false);
    if let Some(account) = CROSSED.take() {
        account.choose();
    }
}
