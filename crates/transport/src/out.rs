//! The sending half of a connection, and its part of the [`Account`].

use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::account::{Account, Debt, Kind};
use crate::ledger::{Coming, Ledger};
use crate::overflow::Own;
use crate::queue::Queue;

/// The bounds of every connection of a listener.
#[derive(Debug)]
pub struct ConnectionLimits {
    /// Maximum number of bytes queued for one connection; beyond it, appending is refused.
    pub queue_bytes_max: usize,
    /// A connection that takes none of its waiting bytes for so long is closed by the sweep that calls
    /// [`crate::Connection::is_stalled`].
    pub stall_max: Duration,
    /// A message that has been arriving for longer than this must arrive at the minimum rate.
    pub message_max: Duration,
    /// Minimum rate at which a peer takes waiting bytes and sends the rest of a message, beyond these times. 0: any
    /// progress is enough.
    pub bytes_per_second_min: usize,
    /// The account of all connections together.
    pub account: Arc<Account>,
}

/// The reason why an append was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<E> {
    /// Its queue, or all queues together, have reached their bound.
    Full,
    /// It is closed.
    Gone,
    /// The writer itself failed.
    Writer(E),
}

/// The sending half of a connection, behind its lock. Bytes leave in this order: `rest`, `unfiltered`, `queue`.
#[derive(Default)]
pub(crate) struct Out {
    /// Appended bytes that no sender has taken yet.
    pub(crate) queue: Queue,
    /// Bytes appended before the filter was set. Boxed, like `rest`, because an idle connection has none.
    pub(crate) unfiltered: Option<Box<Queue>>,
    /// Bytes that the socket did not take, transformed.
    pub(crate) rest: Option<Box<Queue>>,
    /// Bytes of a flush in progress, which are in none of the above.
    pub(crate) in_flight_bytes: usize,
    /// Bytes that other layers hold for the peer.
    state_bytes: usize,
    /// The other entries on the account. Boxed, because an idle connection owes little.
    ledger: Option<Box<Ledger>>,
    /// The receiver's own bounds, if it has any.
    pub(crate) own: Option<Box<Own>>,
    /// A thread or task has the duty to send until nothing is left.
    pub(crate) sending: bool,
    /// The stage may have bytes of its own to send.
    pub(crate) stage_stirred: bool,
    /// The task that has the duty to send waits for room in the socket, which last took something at `taken_at_s`, by
    /// [`crate::now_s`].
    pub(crate) blocked: bool,
    pub(crate) taken_at_s: u32,
    /// The thread whose cork this connection was put into last; 0: none.
    pub(crate) corked_by: u32,
    /// The stage was notified that nothing more is sent.
    pub(crate) farewell_said: bool,
    pub(crate) phase: Phase,
    /// Boxed, because few connections ever have one.
    wakers: Option<Box<Wakers>>,
}

/// Tasks that wait for something of a connection.
#[derive(Default)]
struct Wakers {
    /// The one that waits until everything is sent.
    waiter: Option<Waker>,
    /// The reader, while it is paused.
    reader: Option<Waker>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// The queue is still sent, then the sending side is shut down.
    Finishing,
    Closed,
}

/// A message of at least this length is charged before the socket has been tried.
const LARGE_BYTES_MIN: usize = 64 * 1024;

impl Out {
    /// Whether anything may be appended now.
    pub(crate) fn check<E>(&self, limits: &ConnectionLimits) -> Result<(), Refused<E>> {
        if self.phase != Phase::Open {
            return Err(Refused::Gone);
        }
        if self.queued_bytes() >= self.queue_bytes_max(limits)
            || (self.blocked && limits.account.is_shut_for(self.debt().bytes()))
        {
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// Accounts for bytes just appended; removes them again if they exceed the bound. A message that finds the queue
    /// empty is always admitted: its size has a bound of its own. Returns whether something was charged.
    pub(crate) fn admit<E>(
        &mut self,
        limits: &ConnectionLimits,
        appended: usize,
    ) -> Result<bool, Refused<E>> {
        let queued = self.queued_bytes();
        if queued > self.queue_bytes_max(limits) && queued > appended {
            self.queue.truncate(appended);
            return Err(Refused::Full);
        }
        let is_charged = self.blocked || appended >= LARGE_BYTES_MIN;
        if is_charged {
            self.charge(limits);
        }
        Ok(is_charged)
    }

    /// Charges bytes that wait behind a full socket.
    pub(crate) fn note_queued(&mut self, limits: &ConnectionLimits) {
        if self.blocked {
            self.charge(limits);
        }
    }

    /// The socket is full: `rest` waits for room, and is charged with the queue behind it. The socket took `taken`
    /// bytes before.
    pub(crate) fn block(
        &mut self,
        mut rest: Queue,
        taken: usize,
        now_s: u32,
        limits: &ConnectionLimits,
    ) {
        rest.shrink();
        if !self.blocked || taken > 0 {
            self.taken_at_s = now_s;
        }
        let ledger = self.ledger.get_or_insert_default();
        match self.blocked {
            true => ledger.taken_bytes += taken,
            false => ledger.begin_full(now_s),
        }
        self.note_in_flight(&Queue::default());
        self.rest = Some(Box::new(rest));
        self.blocked = true;
        self.charge(limits);
        self.wake_held_back(limits);
    }

    /// The queue of a mailbox waits until a request takes it.
    pub(crate) fn await_taker(&mut self, now_s: u32, limits: &ConnectionLimits) {
        if !self.blocked {
            self.blocked = true;
            self.taken_at_s = now_s;
            self.ledger.get_or_insert_default().begin_full(now_s);
        }
        self.charge(limits);
    }

    /// Records bytes taken from a mailbox with more waiting.
    pub(crate) fn note_taken(&mut self, taken: usize, now_s: u32, limits: &ConnectionLimits) {
        self.taken_at_s = now_s;
        self.ledger.get_or_insert_default().taken_bytes += taken;
        self.charge(limits);
        self.wake_held_back(limits);
    }

    /// Keeps `rest` for the sender's next turn. The socket took `taken` bytes before.
    pub(crate) fn keep_rest(&mut self, rest: Queue, taken: usize, now_s: u32) {
        self.note_in_flight(&Queue::default());
        self.rest = Some(Box::new(rest));
        if self.blocked && taken > 0 {
            self.taken_at_s = now_s;
            self.ledger.get_or_insert_default().taken_bytes += taken;
        }
    }

    /// Records bytes that are taken to be sent.
    pub(crate) fn note_in_flight(&mut self, batch: &Queue) {
        self.in_flight_bytes = batch.len();
        if let Some(ledger) = &mut self.ledger {
            ledger.shared_in_flight_bytes = batch.shared_bytes().min(batch.len());
        }
    }

    /// Refunds everything: nothing waits any more.
    pub(crate) fn release(&mut self, limits: &ConnectionLimits) {
        self.blocked = false;
        if let Some(ledger) = &mut self.ledger {
            let queued = mem::take(&mut ledger.queued_bytes);
            limits.account.change(Kind::Queued, queued, 0);
            ledger.shared_bytes = 0;
            ledger.shared_in_flight_bytes = 0;
            self.close_ledger();
        }
        if let Some(waiter) = self.take_waker(|wakers| &mut wakers.waiter) {
            waiter.wake();
        }
        self.wake_held_back(limits);
    }

    /// Wakes the task when everything is sent.
    pub(crate) fn await_sent(&mut self, waker: &Waker) {
        self.wakers.get_or_insert_default().waiter = Some(waker.clone());
    }

    /// Wakes the reader when it may read.
    pub(crate) fn await_reading(&mut self, waker: &Waker) {
        self.wakers.get_or_insert_default().reader = Some(waker.clone());
    }

    /// The reader, if it waits.
    pub(crate) fn take_reader(&mut self) -> Option<Waker> {
        self.take_waker(|wakers| &mut wakers.reader)
    }

    fn take_waker(&mut self, of: fn(&mut Wakers) -> &mut Option<Waker>) -> Option<Waker> {
        let wakers = self.wakers.as_mut()?;
        let taken = of(wakers).take();
        if wakers.waiter.is_none() && wakers.reader.is_none() {
            self.wakers = None;
        }
        taken
    }

    /// Drops all waiting bytes, for good.
    pub(crate) fn close(&mut self, limits: &ConnectionLimits) {
        self.phase = Phase::Closed;
        self.queue.clear();
        self.forget_kept();
        self.unfiltered = None;
        self.rest = None;
        self.in_flight_bytes = 0;
        self.release(limits);
    }

    /// Refunds everything when the connection is dropped.
    pub(crate) fn settle(&mut self, limits: &ConnectionLimits) {
        self.release(limits);
        self.set_input(0, false, 0, limits);
        self.set_partial(0, 0, limits);
        self.hold(isize::MIN, limits);
    }

    /// Records the change of the bytes that other layers hold for the peer.
    pub(crate) fn hold(&mut self, delta: isize, limits: &ConnectionLimits) {
        let before = self.state_bytes;
        self.state_bytes = before.saturating_add_signed(delta);
        limits.account.change(Kind::State, before, self.state_bytes);
    }

    /// Records how many input bytes are kept, and whether they belong to a new message.
    pub(crate) fn set_input(
        &mut self,
        bytes: usize,
        is_another: bool,
        now_s: u32,
        limits: &ConnectionLimits,
    ) {
        self.set_coming(bytes, is_another, now_s, limits, |ledger| &mut ledger.input);
    }

    /// Records how many bytes of an incomplete message the protocol keeps.
    pub(crate) fn set_partial(&mut self, bytes: usize, now_s: u32, limits: &ConnectionLimits) {
        self.set_coming(bytes, false, now_s, limits, |ledger| &mut ledger.partial);
    }

    fn set_coming(
        &mut self,
        bytes: usize,
        is_another: bool,
        now_s: u32,
        limits: &ConnectionLimits,
        of: fn(&mut Ledger) -> &mut Coming,
    ) {
        if bytes == 0 && self.ledger.is_none() {
            return;
        }
        let coming = of(self.ledger.get_or_insert_default());
        let before = mem::replace(&mut coming.bytes, bytes);
        if before == 0 || is_another {
            coming.since_s = now_s;
        }
        limits.account.change(Kind::Input, before, bytes);
        self.close_ledger();
    }

    /// Restarts the time of incomplete messages, because the peer could not send.
    pub(crate) fn renew_input(&mut self, now_s: u32) {
        if let Some(ledger) = &mut self.ledger {
            ledger.renew_input(now_s);
        }
    }

    /// Whether an incomplete message of the peer has been arriving too slowly for too long.
    pub(crate) fn is_input_overdue(&self, now_s: u32, limits: &ConnectionLimits) -> bool {
        let ledger = self.ledger.as_ref();
        ledger.is_some_and(|ledger| ledger.is_input_overdue(now_s, limits))
    }

    /// Whether the peer takes its waiting bytes too slowly.
    pub(crate) fn is_stalled(&mut self, now_s: u32, limits: &ConnectionLimits) -> bool {
        if !self.blocked {
            return false;
        }
        let stall_max_s = limits.stall_max.as_secs();
        if u64::from(now_s.saturating_sub(self.taken_at_s)) > stall_max_s {
            return true;
        }
        let queued = self.queued_bytes();
        let ledger = self.ledger.as_mut();
        ledger.is_some_and(|ledger| ledger.judge_full(queued, now_s, limits))
    }

    pub(crate) fn debt(&self) -> Debt {
        let mut debt = Debt {
            state_bytes: self.state_bytes,
            ..Debt::default()
        };
        if let Some(ledger) = &self.ledger {
            debt.queued_bytes = ledger.queued_bytes;
            debt.shared_bytes = ledger.shared_bytes;
            debt.input_bytes = ledger.input.bytes + ledger.partial.bytes;
        }
        debt
    }

    /// Whether the account has registered the connection as a debtor.
    pub(crate) fn is_debtor(&self) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.is_debtor)
    }

    pub(crate) fn set_debtor(&mut self, is_debtor: bool) {
        self.ledger.get_or_insert_default().is_debtor = is_debtor;
        self.close_ledger();
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        let boxed = [&self.unfiltered, &self.rest];
        let boxed_bytes: usize = boxed.into_iter().flatten().map(|queue| queue.len()).sum();
        let kept_bytes = self.own.as_ref().map_or(0, |own| own.kept.len());
        self.queue.len() + boxed_bytes + self.in_flight_bytes + kept_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        let has_kept = self.own.as_ref().is_some_and(|own| !own.kept.is_empty());
        self.queue.is_empty() && self.unfiltered.is_none() && self.rest.is_none() && !has_kept
    }

    pub(crate) fn charge(&mut self, limits: &ConnectionLimits) {
        let boxed = [&self.unfiltered, &self.rest].into_iter().flatten();
        let (mut queued, mut shared) = (self.queue.own_bytes(), self.queue.shared_bytes());
        for queue in boxed {
            queued += queue.own_bytes();
            shared += queue.shared_bytes();
        }
        queued += self.own.as_ref().map_or(0, |own| own.kept.held());
        let ledger = self.ledger.get_or_insert_default();
        queued += self.in_flight_bytes - ledger.shared_in_flight_bytes;
        ledger.shared_bytes = shared + ledger.shared_in_flight_bytes;
        let before = mem::replace(&mut ledger.queued_bytes, queued);
        limits.account.change(Kind::Queued, before, queued);
    }

    fn close_ledger(&mut self) {
        if !self.blocked && self.ledger.as_ref().is_some_and(|ledger| ledger.is_even()) {
            self.ledger = None;
        }
    }
}
