//! What a connection owes its peer, and the account of it: its own and that of all connections.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use tokio::sync::Notify;

use crate::queue::Queue;

/// The bounds of every connection of a listener.
#[derive(Debug)]
pub struct ConnectionLimits {
    /// Octets queued for one connection; beyond it, appending is refused.
    pub queue_bytes_max: usize,
    /// A connection that takes nothing for so long while octets wait for it is closed, by whoever
    /// asks for [`crate::Connection::is_stalled`].
    pub stall_max: Duration,
    /// What all connections together may have queued behind full sockets.
    pub budget: Arc<QueueBudget>,
}

/// A bound on the octets that wait for receivers which do not read, over all connections.
#[derive(Debug)]
pub struct QueueBudget {
    used_bytes: AtomicUsize,
    bytes_max: usize,
    left: Notify,
}

/// Why a connection did not take what was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<E> {
    /// Its queue, or all queues together, hold as much as they may.
    Full,
    /// It is closed.
    Gone,
    /// The writer itself failed.
    Writer(E),
}

/// The sending half of a connection, behind its lock. Octets leave in this order: `rest`,
/// `unfiltered`, `queue`.
#[derive(Default)]
pub(crate) struct Out {
    /// What was appended and nobody has taken yet.
    pub(crate) queue: Queue,
    /// What was appended before there was a filter. Boxed, like `rest`, because an idle
    /// connection has none.
    pub(crate) unfiltered: Option<Box<Queue>>,
    /// What the socket did not take, in the form it is sent in.
    pub(crate) rest: Option<Box<Queue>>,
    /// Octets of a flush in progress, which are in none of them.
    pub(crate) in_flight_bytes: usize,
    /// Octets charged to the budget of all connections.
    charged_bytes: usize,
    /// Somebody has the duty to send until nothing is left.
    pub(crate) sending: bool,
    /// The stage may have something to say by itself.
    pub(crate) stage_stirred: bool,
    /// Whoever has the duty to send waits for room in the socket, which last took something at
    /// `taken_at_s`, by [`crate::now_s`].
    pub(crate) blocked: bool,
    pub(crate) taken_at_s: u32,
    /// The thread whose cork this connection was put into last; 0: none.
    pub(crate) corked_by: u32,
    /// The stage has been told that nothing more is sent.
    pub(crate) farewell_said: bool,
    pub(crate) phase: Phase,
    /// Who waits until nothing is left to send. Boxed, like `reader`, because few connections ever
    /// have one.
    pub(crate) waiter: Option<Box<Waker>>,
    /// The reader, while it is paused and waits.
    pub(crate) reader: Option<Box<Waker>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// What is queued is still sent, then the sending side is shut down.
    Finishing,
    Closed,
}

impl Out {
    /// Whether anything at all may be appended now.
    pub(crate) fn check<E>(&self, limits: &ConnectionLimits) -> Result<(), Refused<E>> {
        if self.phase != Phase::Open {
            return Err(Refused::Gone);
        }
        if self.queued_bytes() >= limits.queue_bytes_max
            || (self.blocked && limits.budget.is_spent())
        {
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// Accounts for octets just appended; takes them back if they are too many. A message that
    /// finds the queue empty is never too many: its size has a bound of its own.
    pub(crate) fn admit<E>(
        &mut self,
        limits: &ConnectionLimits,
        appended: usize,
    ) -> Result<(), Refused<E>> {
        let queued = self.queued_bytes();
        if queued > limits.queue_bytes_max && queued > appended {
            self.queue.truncate(appended);
            return Err(Refused::Full);
        }
        self.note_queued(limits);
        Ok(())
    }

    /// Charges what waits behind a full socket.
    pub(crate) fn note_queued(&mut self, limits: &ConnectionLimits) {
        if self.blocked {
            self.charge(limits);
        }
    }

    /// The socket is full: `rest` waits for room, and is charged with what is queued behind it.
    pub(crate) fn block(&mut self, mut rest: Queue, limits: &ConnectionLimits) {
        rest.shrink();
        self.in_flight_bytes = 0;
        self.rest = Some(Box::new(rest));
        self.blocked = true;
        self.charge(limits);
    }

    /// Nothing waits any more.
    pub(crate) fn release(&mut self, limits: &ConnectionLimits) {
        self.blocked = false;
        if self.charged_bytes > 0 {
            limits.budget.refund(self.charged_bytes);
            self.charged_bytes = 0;
        }
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }

    /// Forgets all that waits, for good.
    pub(crate) fn close(&mut self, limits: &ConnectionLimits) {
        self.phase = Phase::Closed;
        self.queue.clear();
        self.unfiltered = None;
        self.rest = None;
        self.in_flight_bytes = 0;
        self.release(limits);
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        let boxed = [&self.unfiltered, &self.rest];
        let boxed_bytes: usize = boxed.into_iter().flatten().map(|queue| queue.len()).sum();
        self.queue.len() + boxed_bytes + self.in_flight_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.unfiltered.is_none() && self.rest.is_none()
    }

    fn charge(&mut self, limits: &ConnectionLimits) {
        let queued = self.queued_bytes();
        if queued >= self.charged_bytes {
            limits.budget.charge(queued - self.charged_bytes);
        } else {
            limits.budget.refund(self.charged_bytes - queued);
        }
        self.charged_bytes = queued;
    }
}

impl QueueBudget {
    /// A budget of so many octets.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            used_bytes: AtomicUsize::new(0),
            bytes_max,
            left: Notify::new(),
        }
    }

    /// Octets that wait for receivers which do not read.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::SeqCst)
    }

    /// Whether so many octets wait that no more may.
    pub(crate) fn is_spent(&self) -> bool {
        self.used_bytes() >= self.bytes_max
    }

    /// Waits until it is not spent.
    pub(crate) async fn left(&self) {
        loop {
            let mut left = pin!(self.left.notified());
            // What is refunded from now on is not missed.
            left.as_mut().enable();
            if !self.is_spent() {
                return;
            }
            left.await;
        }
    }

    fn charge(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn refund(&self, bytes: usize) {
        let before = self.used_bytes.fetch_sub(bytes, Ordering::SeqCst);
        debug_assert!(before >= bytes, "refunded {bytes} of {before}");
        if before >= self.bytes_max && before - bytes < self.bytes_max {
            self.left.notify_waiters();
        }
    }
}
