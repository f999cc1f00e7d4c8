//! The sending half of a connection, and its part of the [`Account`].

use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;

use crate::account::{Account, Debt, Kind};
use crate::ledger::{Coming, Ledger};
use crate::overflow::Own;
use crate::queue::Queue;
use crate::{Filter, Tap};

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
    /// Bytes of a flush in progress, which are in no queue.
    pub(crate) in_flight_bytes: usize,
    /// Bytes that other layers hold for the peer.
    state_bytes: usize,
    pub(crate) rare: Option<Box<Rare>>,
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
}

/// The parts that few connections have at a time: an idle one holds one word for all.
#[derive(Default)]
pub(crate) struct Rare {
    /// Bytes appended before the filter was set.
    pub(crate) unfiltered: Option<Box<Queue>>,
    /// Bytes that the socket did not take, transformed.
    pub(crate) rest: Option<Box<Queue>>,
    /// The entries on the account, except for the state of other layers.
    pub(crate) ledger: Option<Box<Ledger>>,
    /// The receiver's own bounds, if it has any.
    pub(crate) own: Option<Box<Own>>,
    pub(crate) filter: Option<Arc<Mutex<dyn Filter>>>,
    pub(crate) tap: Option<Arc<dyn Tap>>,
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
        let was_blocked = self.blocked;
        let ledger = self.open_ledger();
        match was_blocked {
            true => ledger.taken_bytes += taken,
            false => ledger.begin_full(now_s),
        }
        self.note_in_flight(&Queue::default());
        self.set_rest(rest);
        self.blocked = true;
        self.charge(limits);
        self.wake_held_back(limits);
    }

    /// The queue of a mailbox waits until a request takes it.
    pub(crate) fn await_taker(&mut self, now_s: u32, limits: &ConnectionLimits) {
        if !self.blocked {
            self.blocked = true;
            self.taken_at_s = now_s;
            self.open_ledger().begin_full(now_s);
        }
        self.charge(limits);
    }

    /// Records bytes taken from a mailbox with more waiting.
    pub(crate) fn note_taken(&mut self, taken: usize, now_s: u32, limits: &ConnectionLimits) {
        self.taken_at_s = now_s;
        self.open_ledger().taken_bytes += taken;
        self.charge(limits);
        self.wake_held_back(limits);
    }

    /// Keeps `rest` for the sender's next turn. The socket took `taken` bytes before.
    pub(crate) fn keep_rest(&mut self, rest: Queue, taken: usize, now_s: u32) {
        self.note_in_flight(&Queue::default());
        self.set_rest(rest);
        if self.blocked && taken > 0 {
            self.taken_at_s = now_s;
            self.open_ledger().taken_bytes += taken;
        }
    }

    /// Records bytes that are taken to be sent.
    pub(crate) fn note_in_flight(&mut self, batch: &Queue) {
        self.in_flight_bytes = batch.len();
        if let Some(ledger) = self.ledger_mut() {
            ledger.shared_in_flight_bytes = batch.shared_bytes().min(batch.len());
        }
    }

    /// Refunds everything: nothing waits any more.
    pub(crate) fn release(&mut self, limits: &ConnectionLimits) {
        self.blocked = false;
        if self.rare.is_none() {
            return;
        }
        if let Some(ledger) = self.ledger_mut() {
            let queued = mem::take(&mut ledger.queued_bytes);
            limits.account.change(Kind::Queued, queued, 0);
            ledger.shared_bytes = 0;
            ledger.shared_in_flight_bytes = 0;
            self.close_ledger();
        }
        if let Some(waiter) = self.take_waiter() {
            waiter.wake();
        }
        self.wake_held_back(limits);
        self.tidy();
    }

    /// Drops all waiting bytes, for good.
    pub(crate) fn close(&mut self, limits: &ConnectionLimits) {
        self.phase = Phase::Closed;
        self.queue.clear();
        self.forget_kept();
        self.take_unfiltered();
        self.take_rest();
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
        if bytes == 0 && self.ledger().is_none() {
            return;
        }
        let coming = of(self.open_ledger());
        let before = mem::replace(&mut coming.bytes, bytes);
        if before == 0 || is_another {
            coming.since_s = now_s;
        }
        limits.account.change(Kind::Input, before, bytes);
        self.close_ledger();
    }

    /// Restarts the time of incomplete messages, because the peer could not send.
    pub(crate) fn renew_input(&mut self, now_s: u32) {
        if let Some(ledger) = self.ledger_mut() {
            ledger.renew_input(now_s);
        }
    }

    /// Whether an incomplete message of the peer has been arriving too slowly for too long.
    pub(crate) fn is_input_overdue(&self, now_s: u32, limits: &ConnectionLimits) -> bool {
        let ledger = self.ledger();
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
        let ledger = self.ledger_mut();
        ledger.is_some_and(|ledger| ledger.judge_full(queued, now_s, limits))
    }

    pub(crate) fn debt(&self) -> Debt {
        let mut debt = Debt {
            state_bytes: self.state_bytes,
            ..Debt::default()
        };
        if let Some(ledger) = self.ledger() {
            debt.queued_bytes = ledger.queued_bytes;
            debt.shared_bytes = ledger.shared_bytes;
            debt.input_bytes = ledger.input.bytes + ledger.partial.bytes;
        }
        debt
    }

    /// Whether the account has registered the connection as a debtor.
    pub(crate) fn is_debtor(&self) -> bool {
        self.ledger().is_some_and(|ledger| ledger.is_debtor)
    }

    pub(crate) fn set_debtor(&mut self, is_debtor: bool) {
        self.open_ledger().is_debtor = is_debtor;
        self.close_ledger();
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        let rare_bytes = self.rare.as_ref().map_or(0, |rare| rare.queued_bytes());
        self.queue.len() + self.in_flight_bytes + rare_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        let has_rare = || self.rare.as_ref().is_some_and(|rare| rare.has_queued());
        self.queue.is_empty() && !has_rare()
    }

    pub(crate) fn charge(&mut self, limits: &ConnectionLimits) {
        let in_flight_bytes = self.in_flight_bytes;
        let (mut queued, mut shared) = (self.queue.own_bytes(), self.queue.shared_bytes());
        let rare = self.rare_mut();
        for queue in rare.queues() {
            queued += queue.own_bytes();
            shared += queue.shared_bytes();
        }
        queued += rare.own.as_ref().map_or(0, |own| own.kept.held());
        let ledger = rare.ledger.get_or_insert_default();
        queued += in_flight_bytes - ledger.shared_in_flight_bytes;
        ledger.shared_bytes = shared + ledger.shared_in_flight_bytes;
        let before = mem::replace(&mut ledger.queued_bytes, queued);
        limits.account.change(Kind::Queued, before, queued);
    }

    fn close_ledger(&mut self) {
        if !self.blocked
            && let Some(rare) = &mut self.rare
        {
            rare.ledger.take_if(|ledger| ledger.is_even());
            self.tidy();
        }
    }
}

impl Out {
    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Frees the rare parts if there are none.
    pub(crate) fn tidy(&mut self) {
        self.rare.take_if(|rare| rare.is_empty());
    }

    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.rare.as_ref()?.ledger.as_deref()
    }

    pub(crate) fn ledger_mut(&mut self) -> Option<&mut Ledger> {
        self.rare.as_mut()?.ledger.as_deref_mut()
    }

    pub(crate) fn open_ledger(&mut self) -> &mut Ledger {
        self.rare_mut().ledger.get_or_insert_default()
    }

    pub(crate) fn own(&self) -> Option<&Own> {
        self.rare.as_ref()?.own.as_deref()
    }

    pub(crate) fn own_mut(&mut self) -> Option<&mut Own> {
        self.rare.as_mut()?.own.as_deref_mut()
    }

    pub(crate) fn filter(&self) -> Option<&Arc<Mutex<dyn Filter>>> {
        self.rare.as_ref()?.filter.as_ref()
    }

    pub(crate) fn take_rest(&mut self) -> Option<Queue> {
        let rest = self.rare.as_mut()?.rest.take()?;
        Some(*rest)
    }

    pub(crate) fn take_unfiltered(&mut self) -> Option<Queue> {
        let unfiltered = self.rare.as_mut()?.unfiltered.take()?;
        Some(*unfiltered)
    }

    /// Keeps bytes that were taken to be sent, to be sent next.
    pub(crate) fn set_rest(&mut self, rest: Queue) {
        self.rare_mut().rest = Some(Box::new(rest));
    }

    /// Wakes the task when everything is sent.
    pub(crate) fn await_sent(&mut self, waker: &Waker) {
        self.wakers_mut().waiter = Some(waker.clone());
    }

    /// Wakes the reader when it may read.
    pub(crate) fn await_reading(&mut self, waker: &Waker) {
        self.wakers_mut().reader = Some(waker.clone());
    }

    /// The task that waits until everything is sent.
    pub(crate) fn take_waiter(&mut self) -> Option<Waker> {
        self.take_waker(|wakers| &mut wakers.waiter)
    }

    /// The reader, if it waits.
    pub(crate) fn take_reader(&mut self) -> Option<Waker> {
        self.take_waker(|wakers| &mut wakers.reader)
    }

    fn wakers_mut(&mut self) -> &mut Wakers {
        self.rare_mut().wakers.get_or_insert_default()
    }

    fn take_waker(&mut self, of: fn(&mut Wakers) -> &mut Option<Waker>) -> Option<Waker> {
        let rare = self.rare.as_mut()?;
        let wakers = rare.wakers.as_mut()?;
        let taken = of(wakers).take();
        if wakers.waiter.is_none() && wakers.reader.is_none() {
            rare.wakers = None;
            self.tidy();
        }
        taken
    }
}

impl Rare {
    /// The queues apart from the open one.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Queue> {
        let boxed = [&self.unfiltered, &self.rest].into_iter();
        boxed.flatten().map(|queue| &**queue)
    }

    /// Bytes in the queues, and of kept items.
    pub(crate) fn queued_bytes(&self) -> usize {
        let kept_bytes = self.own.as_ref().map_or(0, |own| own.kept.len());
        self.queues().map(Queue::len).sum::<usize>() + kept_bytes
    }

    /// Whether there are such bytes, or were before the socket took the last of them.
    pub(crate) fn has_queued(&self) -> bool {
        let has_kept = self.own.as_ref().is_some_and(|own| !own.kept.is_empty());
        self.unfiltered.is_some() || self.rest.is_some() || has_kept
    }

    fn is_empty(&self) -> bool {
        let Self {
            unfiltered,
            rest,
            ledger,
            own,
            filter,
            tap,
            wakers,
        } = self;
        let has_bytes = unfiltered.is_some() || rest.is_some();
        let is_watched = filter.is_some() || tap.is_some();
        !has_bytes && !is_watched && ledger.is_none() && own.is_none() && wakers.is_none()
    }
}
