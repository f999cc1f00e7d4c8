//! What is held in memory for peers: one total, and who owes the most of it.
//!
//! A byte is on the account once, by its [`Kind`]. What each peer owes is its connection's to
//! know (`Ledger`, in `out.rs`): there, bytes that it shares with others count in full, because
//! each of those who keep them could give them up. At the bound the largest debtors are closed
//! until there is some room; nobody is refused for what others owe.
//!
//! The thread that crosses the bound notes it, and chooses at its next [`crate::uncork`], where it
//! holds no lock: before it reads more.

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

/// What bytes are held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They wait behind a full socket, and are one connection's own.
    Queued,
    /// They are sent to several connections, and exist once.
    Shared,
    /// They were received, and are a part of something.
    Input,
    /// What other layers remember for a peer ([`Connection::hold`]).
    State,
    /// What they remember for nobody in particular ([`crate::Kept`]).
    Kept,
}

/// What one connection owes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    pub queued_bytes: usize,
    /// In full, however many others keep the same bytes.
    pub shared_bytes: usize,
    pub input_bytes: usize,
    pub state_bytes: usize,
}

/// The account of all connections that share a bound.
pub struct Account {
    bytes_max: usize,
    total_bytes: AtomicUsize,
    kinds: [AtomicUsize; Kind::ALL.len()],
    /// The total at which somebody has to choose.
    choose_at_bytes: AtomicUsize,
    /// By their addresses: those who owe enough to be chosen.
    debtors: Mutex<HashMap<usize, Weak<Connection>>>,
    choosing: Mutex<()>,
    debtors_closed: AtomicU64,
    on_debtor: OnceLock<OnDebtor>,
    /// How many wait for room, and are told of refunds.
    waiting: AtomicUsize,
    left: Notify,
}

/// Is told of a debtor that is about to be closed. No lock is held.
type OnDebtor = Box<dyn Fn(&Arc<Connection>, &Debt) + Send + Sync>;

/// A bound is spread over so many connections: one that owes less than its share is never chosen, and
/// so costs the account nothing but an addition.
const SHARES: usize = 128 * 1024;
/// A smaller share than this is not worth knowing about.
const SHARE_BYTES_MIN: usize = 1024;

/// A connection that owes more than such a part of the bound gets no more where the bound is passed by a tenth.
const LARGE_PARTS: usize = 1024;

thread_local! {
    static HAS_CROSSED: Cell<bool> = const { Cell::new(false) };
    static CROSSED: RefCell<Option<Arc<Account>>> = const { RefCell::new(None) };
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Shared,
        Self::Input,
        Self::State,
        Self::Kept,
    ];

    /// Its name in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Shared => "shared",
            Self::Input => "input",
            Self::State => "state",
            Self::Kept => "kept",
        }
    }
}

impl Debt {
    pub fn bytes(&self) -> usize {
        self.queued_bytes + self.shared_bytes + self.input_bytes + self.state_bytes
    }
}

impl Account {
    /// An account of at most so many bytes.
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

    /// Has `on_debtor` told of each debtor before it is closed. The first one stays.
    pub fn set_on_debtor(
        &self,
        on_debtor: impl Fn(&Arc<Connection>, &Debt) + Send + Sync + 'static,
    ) {
        let _ = self.on_debtor.set(Box::new(on_debtor));
    }

    /// Bytes held at the moment.
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

    /// How many were closed because they owed the most.
    pub fn debtors_closed(&self) -> u64 {
        self.debtors_closed.load(Ordering::Relaxed)
    }

    /// Puts bytes that several connections are going to send on the account, until the last of them
    /// has sent or forgotten its own.
    pub fn share(self: &Arc<Self>, mut bytes: Vec<u8>) -> Bytes {
        if bytes.len() < crate::queue::SHARED_BYTES_MIN {
            // Each receiver copies so few.
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

    /// Closes the largest debtors if the bound is passed. No lock may be held.
    pub fn choose(&self) {
        if self.total_bytes() > self.bytes_max {
            self.close_debtors();
        }
    }

    /// Whether those who can keep so many bytes had better, so that nobody has to be closed for them.
    /// Where little is queued, nothing would become of waiting: then even what is more than the bound
    /// goes.
    pub(crate) fn is_short_for(&self, bytes: usize) -> bool {
        let fifth = self.bytes_max / 5;
        self.total_bytes().saturating_add(bytes) > 4 * fifth && self.bytes(Kind::Queued) > fifth
    }

    /// Whether one who owes so much gets no more: debtors are being closed, and it may be one.
    pub(crate) fn is_shut_for(&self, debt_bytes: usize) -> bool {
        let passed = self.bytes_max.saturating_add(self.bytes_max / 10);
        debt_bytes > self.bytes_max / LARGE_PARTS && self.total_bytes() >= passed
    }

    /// A debt from which on a connection may be chosen.
    pub(crate) fn share_bytes(&self) -> usize {
        (self.bytes_max / SHARES).max(SHARE_BYTES_MIN)
    }

    /// Waits until it is not short for so many bytes.
    pub(crate) async fn room(&self, bytes: usize) {
        let _waiting = Waiting::new(&self.waiting);
        while self.is_short_for(bytes) {
            let mut left = pin!(self.left.notified());
            // What is refunded from now on is not missed.
            left.as_mut().enable();
            if !self.is_short_for(bytes) {
                break;
            }
            left.await;
        }
        // One is woken by each refund, and wakes the next if there was room for it.
        self.left.notify_one();
    }

    /// What held `before` bytes holds `after` now.
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
        // Dropped outside the lock: it may be what is left of the connection.
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
        // What those owe who are closed already, and what is refunded when their threads get to it.
        let mut pending = 0;
        let mut by_debt = BinaryHeap::with_capacity(debtors.len());
        for (place, debtor) in debtors.iter().enumerate() {
            let owed = debtor.debt().bytes();
            match debtor.is_ended() {
                true => pending += owed,
                false => by_debt.push((owed, place)),
            }
        }
        let low = self.bytes_max / 10 * 9;
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
        // Where that did not help at once, nobody looks again for the next byte.
        let total = self.total_bytes();
        let next = match total > self.bytes_max {
            true => total.saturating_add(self.bytes_max / 64),
            false => self.bytes_max,
        };
        self.choose_at_bytes.store(next, Ordering::Relaxed);
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
        debug_assert!(is_even, "nobody is left, and owes {self:?}");
    }
}

/// Bytes on the account for as long as anybody keeps them.
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

/// Somebody waits for room.
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

/// Closes the largest debtors if this thread has passed a bound. No lock may be held.
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
