//! A connection without a socket: what is queued for it waits until somebody takes it.
//!
//! Who talks in requests (HTTP long-poll) has no stream. To everybody who appends and judges it is a connection all
//! the same: its queue has the same bound, what waits in it is on the account, and a peer that takes nothing is
//! stalled. Instead of a pump it has [takers](Connection::take), and one who waits for its
//! [end](Connection::ended).
//!
//! ```text
//! Connection::append (any connection) ─cork─▶ offered ─▶ who waits in `offered` ─▶ take
//! ```

use std::future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use crate::end::{End, Mailbox};
use crate::out::Phase;
use crate::queue::Queue;
use crate::{Connection, ConnectionLimits, PeerAddress, Refused, clock};

/// How much is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    All,
    /// So many bytes of a stream at most, wherever an item ends.
    Bytes(usize),
    /// One item, which begins with its length: four octets, big-endian, that do not count themselves.
    Item,
}

/// What was taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    Bytes(Vec<u8>),
    /// There is nothing yet.
    Nothing,
    /// There is nothing, and nothing will come.
    Over,
}

/// Octets of an item's length.
const PREFIX_BYTES: usize = 4;

/// Somebody who waits for something to take, for as long as this lives.
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
    /// A connection that has no socket. Its peer was last heard of now; it may have so many items waiting.
    pub fn mailbox(
        peer: PeerAddress,
        certificate: Option<Vec<u8>>,
        items_max: usize,
        limits: Arc<ConnectionLimits>,
    ) -> Self {
        let mailbox = Mailbox::new(peer, certificate, items_max);
        let connection = Self::of(End::Mailbox(Box::new(mailbox)), None, limits);
        connection.note_heard();
        connection
    }

    /// Takes what waits, of a mailbox; others have nothing to take.
    pub fn take(self: &Arc<Self>, portion: Portion) -> Taken {
        let Some(mailbox) = self.as_mailbox() else {
            return Taken::Over;
        };
        let _taking = mailbox.taking.lock();
        let mut bytes = Vec::new();
        self.take_once(mailbox, portion, &mut bytes);
        if portion != Portion::Item && bytes.len() < portion.bytes_max() {
            // The first was what somebody had left who takes less.
            let portion = Portion::Bytes(portion.bytes_max() - bytes.len());
            self.take_once(mailbox, portion, &mut bytes);
        }
        match bytes.is_empty() {
            false => Taken::Bytes(bytes),
            true if self.is_closed() => Taken::Over,
            true => Taken::Nothing,
        }
    }

    /// Waits until there may be something to take, or nothing will come any more; or until another condition holds,
    /// of which [`Connection::stir`] tells.
    pub async fn offered(&self, or: impl Fn() -> bool) {
        if let Some(mailbox) = self.as_mailbox() {
            wait(&mailbox.offered, || {
                let out = self.out.lock();
                !out.is_empty() || out.phase != Phase::Open || or()
            })
            .await;
        }
    }

    /// Has whoever waits for something to take look again: it may be for somebody else.
    pub fn stir(&self) {
        if let Some(mailbox) = self.as_mailbox() {
            mailbox.offered.notify_waiters();
        }
    }

    /// Waits until a mailbox is closed.
    pub async fn ended(&self) {
        if let Some(mailbox) = self.as_mailbox() {
            wait(&mailbox.ended, || self.is_ended()).await;
        }
    }

    /// Waits until what comes of the peer may be handled ([`Connection::pause_reading`]), or the connection is
    /// closed. For one who has no pump.
    pub async fn reading(&self) {
        future::poll_fn(|cx| self.poll_reading(cx)).await;
    }

    /// Says that somebody waits for something to take.
    pub fn taker(self: &Arc<Self>) -> Taker {
        if let Some(mailbox) = self.as_mailbox() {
            mailbox.takers.fetch_add(1, Ordering::Relaxed);
        }
        Taker(Arc::clone(self))
    }

    /// Whether somebody waits for something to take.
    pub fn has_taker(&self) -> bool {
        let mailbox = self.as_mailbox();
        mailbox.is_some_and(|mailbox| mailbox.takers.load(Ordering::Relaxed) > 0)
    }

    /// The peer has said something.
    pub fn note_heard(&self) {
        self.note_received(clock::now_s());
    }

    /// What waits is there for who takes it.
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
                // It was taken before it was offered.
                return;
            }
        }
        mailbox.offered.notify_waiters();
    }

    /// The certificate that a mailbox's peer has shown.
    pub(crate) fn mailbox_certificate(&self) -> Option<Vec<u8>> {
        let certificate = self.as_mailbox()?.certificate.as_deref();
        certificate.map(<[u8]>::to_vec)
    }

    pub(crate) fn as_mailbox(&self) -> Option<&Mailbox> {
        match &self.end {
            End::Mailbox(mailbox) => Some(mailbox),
            End::Socket(_) => None,
        }
    }

    /// Whether a mailbox has room for one more item.
    #[inline]
    pub(crate) fn check_items<E>(&self) -> Result<(), Refused<E>> {
        match &self.end {
            End::Mailbox(mailbox) if mailbox.is_full() => Err(Refused::Full),
            _ => Ok(()),
        }
    }

    /// An item was appended.
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
        // Copied outside the lock: who appends holds a realm's.
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

    /// What is to be taken from: what the last one has left, or all that waits.
    fn begin_taking(&self, mailbox: &Mailbox, portion: Portion) -> Option<Queue> {
        let mut out = self.out.lock();
        if out.phase == Phase::Closed || out.is_empty() {
            return None;
        }
        let queue = match out.rest.take() {
            Some(rest) => *rest,
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
            out.rest = Some(Box::new(rest));
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
        // It was there until now.
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

/// Waits until something is so, of which whoever makes it so tells.
async fn wait(told: &Notify, is_so: impl Fn() -> bool) {
    loop {
        let mut next = std::pin::pin!(told.notified());
        // What is told from now on is not missed.
        next.as_mut().enable();
        if is_so() {
            return;
        }
        next.await;
    }
}
