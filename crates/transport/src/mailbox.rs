//! A connection without a socket: queued bytes wait until a request takes them.
//!
//! A client of a request-response transport (HTTP long-poll) has no stream. For senders and sweeps its mailbox is a
//! connection like any other: the queue has the same bound, waiting bytes are on the account, and a peer that takes
//! nothing is stalled. In place of a pump it has [takers](Connection::take), and a task that waits for its
//! [end](Connection::ended).
//!
//! ```text
//! Connection::append (any connection) ─cork─▶ offered ─▶ the task in `offered` ─▶ take
//! ```

use std::future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use crate::end::{End, Mailbox, Owner, Waiting};
use crate::out::Phase;
use crate::queue::Queue;
use crate::{Connection, ConnectionLimits, PeerAddress, Refused, clock};

/// The amount to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    All,
    /// At most so many bytes of a stream, regardless of item boundaries.
    Bytes(usize),
    /// One item, which begins with its length: four octets, big-endian, not counting themselves.
    Item,
}

/// The bytes taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    Bytes(Vec<u8>),
    /// Nothing waits yet.
    Nothing,
    /// Nothing waits, and nothing will come.
    Over,
}

/// Octets of an item's length.
const PREFIX_BYTES: usize = 4;

/// A request that waits for something to take, for as long as this lives.
#[derive(Debug)]
pub struct Taker(Arc<Connection>);

impl Portion {
    fn bytes_max(self) -> usize {
        match self {
            Self::All | Self::Item => usize::MAX,
            Self::Bytes(bytes_max) => bytes_max,
        }
    }
}

impl Connection {
    /// A connection without a socket, with the bound `items_max` on waiting items. Counts as heard from now.
    pub fn mailbox(
        peer: PeerAddress,
        certificate: Option<Vec<u8>>,
        items_max: usize,
        limits: Arc<ConnectionLimits>,
    ) -> Self {
        Self::of_mailbox(Mailbox::new(peer, certificate, items_max), limits)
    }

    /// A mailbox for the client of another connection. Its owner is told, as no task waits.
    pub fn owned_mailbox(
        items_max: usize,
        limits: Arc<ConnectionLimits>,
        owner: Weak<dyn Owner>,
    ) -> Self {
        Self::of_mailbox(Mailbox::owned(owner, items_max), limits)
    }

    fn of_mailbox(mailbox: Mailbox, limits: Arc<ConnectionLimits>) -> Self {
        let connection = Self::of(End::Mailbox(Box::new(mailbox)), None, limits);
        connection.note_heard();
        connection
    }

    /// Takes waiting bytes of a mailbox; other connections have none to take.
    pub fn take(self: &Arc<Self>, portion: Portion) -> Taken {
        let Some(mailbox) = self.as_mailbox() else {
            return Taken::Over;
        };
        let _taking = mailbox.taking.lock();
        let mut bytes = Vec::new();
        self.take_once(mailbox, portion, &mut bytes);
        if portion != Portion::Item && bytes.len() < portion.bytes_max() {
            // The first is the rest of a taker with a smaller portion.
            let portion = Portion::Bytes(portion.bytes_max() - bytes.len());
            self.take_once(mailbox, portion, &mut bytes);
        }
        match bytes.is_empty() {
            false => Taken::Bytes(bytes),
            true if self.is_closed() => Taken::Over,
            true => Taken::Nothing,
        }
    }

    /// Waits until there may be something to take, until the end, or until `or` holds, of which [`Connection::stir`]
    /// notifies.
    pub async fn offered(&self, or: impl Fn() -> bool) {
        if let Some(waiting) = self.waiting() {
            wait(&waiting.offered, || {
                let out = self.out.lock();
                !out.is_empty() || out.phase != Phase::Open || or()
            })
            .await;
        }
    }

    /// Wakes the task in [`Connection::offered`] to check its condition.
    pub fn stir(&self) {
        if let Some(waiting) = self.waiting() {
            waiting.offered.notify_waiters();
        }
    }

    /// Waits until a mailbox is closed.
    pub async fn ended(&self) {
        if let Some(waiting) = self.waiting() {
            wait(&waiting.ended, || self.is_ended()).await;
        }
    }

    /// Waits until the peer's input may be handled ([`Connection::pause_reading`]), or the connection is closed. For
    /// connections without a pump.
    pub async fn reading(&self) {
        future::poll_fn(|cx| self.poll_reading(cx)).await;
    }

    /// Registers a waiting request.
    pub fn taker(self: &Arc<Self>) -> Taker {
        if let Some(mailbox) = self.as_mailbox() {
            mailbox.takers.fetch_add(1, Ordering::Relaxed);
        }
        Taker(Arc::clone(self))
    }

    /// Whether a request waits for something to take.
    pub fn has_taker(&self) -> bool {
        let mailbox = self.as_mailbox();
        mailbox.is_some_and(|mailbox| mailbox.takers.load(Ordering::Relaxed) > 0)
    }

    /// Records that the peer has been heard from.
    pub fn note_heard(&self) {
        self.note_received(clock::now_s());
    }

    /// Offers the waiting bytes to a taker.
    pub(crate) fn offer(self: &Arc<Self>, mailbox: &Mailbox) {
        {
            let mut out = self.out.lock();
            out.corked_by = 0;
            if out.phase == Phase::Closed {
                return;
            }
            if !out.is_empty() {
                out.await_taker(clock::now_s(), &self.limits);
                self.note_debt(&mut out);
            } else if out.phase == Phase::Open {
                // Taken before it was offered.
                return;
            }
        }
        mailbox.tell();
    }

    /// The verified certificate of a mailbox's peer.
    pub(crate) fn mailbox_certificate(&self) -> Option<Vec<u8>> {
        self.as_mailbox()?.certificate()
    }

    pub(crate) fn as_mailbox(&self) -> Option<&Mailbox> {
        match &self.end {
            End::Mailbox(mailbox) => Some(mailbox),
            End::Socket(_) => None,
        }
    }

    fn waiting(&self) -> Option<&Waiting> {
        self.as_mailbox()?.waiting()
    }

    /// Whether a mailbox has room for one more item.
    #[inline]
    pub(crate) fn check_items<E>(&self) -> Result<(), Refused<E>> {
        match &self.end {
            End::Mailbox(mailbox) if mailbox.is_full() => Err(Refused::Full),
            _ => Ok(()),
        }
    }

    /// Counts an appended item.
    #[inline]
    pub(crate) fn note_item(&self) {
        if let End::Mailbox(mailbox) = &self.end {
            mailbox.items.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_once(self: &Arc<Self>, mailbox: &Mailbox, portion: Portion, bytes: &mut Vec<u8>) {
        let Some(mut queue) = self.begin_taking(mailbox, portion) else {
            return;
        };
        // Copied outside the lock: senders hold a realm's lock.
        let count = match portion {
            Portion::All | Portion::Bytes(_) => queue.len().min(portion.bytes_max()),
            Portion::Item => item_bytes(&queue),
        };
        bytes.reserve_exact(count);
        queue.copy_to(count, bytes);
        queue.consume(count);
        if portion == Portion::Item {
            mailbox.items.fetch_sub(1, Ordering::Relaxed);
        }
        self.end_taking(queue, count);
    }

    /// The bytes to take from: the rest that the last taker left, or all waiting ones.
    fn begin_taking(&self, mailbox: &Mailbox, portion: Portion) -> Option<Queue> {
        let mut out = self.out.lock();
        if out.phase == Phase::Closed || out.is_empty() {
            return None;
        }
        let queue = match out.take_rest() {
            Some(rest) => rest,
            None => std::mem::take(&mut out.queue),
        };
        if portion != Portion::Item {
            mailbox.items.store(0, Ordering::Relaxed);
        }
        out.note_in_flight(&queue);
        Some(queue)
    }

    fn end_taking(self: &Arc<Self>, rest: Queue, taken: usize) {
        let mut out = self.out.lock();
        out.note_in_flight(&Queue::default());
        if out.phase == Phase::Closed {
            return;
        }
        if !rest.is_empty() {
            out.set_rest(rest);
        }
        match out.is_empty() {
            true => out.release(&self.limits),
            false => out.note_taken(taken, clock::now_s(), &self.limits),
        }
        self.note_debt(&mut out);
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        // The client was connected until now.
        self.0.note_heard();
        if let Some(mailbox) = self.0.as_mailbox() {
            mailbox.takers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The length of the first item of a queue that is not empty, with its prefix.
fn item_bytes(queue: &Queue) -> usize {
    let mut prefix = Vec::with_capacity(PREFIX_BYTES);
    queue.copy_to(PREFIX_BYTES.min(queue.len()), &mut prefix);
    let length = prefix
        .first_chunk()
        .map_or(0, |prefix| u32::from_be_bytes(*prefix) as usize);
    length.saturating_add(PREFIX_BYTES).min(queue.len())
}

/// Waits until `is_so` holds; every change of it notifies `told`.
async fn wait(told: &Notify, is_so: impl Fn() -> bool) {
    loop {
        let mut next = std::pin::pin!(told.notified());
        // Notifications from now on are not missed.
        next.as_mut().enable();
        if is_so() {
            return;
        }
        next.await;
    }
}
