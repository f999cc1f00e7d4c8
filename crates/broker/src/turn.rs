//! One turn in a vhost: the work under one lock, and its consequences.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crosstie_front::counters::{Spoken, counters};
use crosstie_queues::{ConnectionKey, MessageContent, Record, Time, Vhost};
use crosstie_transport::Budget;
use parking_lot::MutexGuard;

use super::flow::Journaled;
use super::outbox::VhostOutbox;
use super::peer::Peer;
use super::vhost::SharedVhost;

/// A turn in a vhost: the work of one connection before others take their turns.
///
/// ```text
/// enter (the lock, when it is first needed) ─▶ spend (after each item) ─▶ finish
/// ```
///
/// [`Self::finish`] submits the journal to the store, sends the confirms and releases the lock. The code that begins a
/// turn must finish it; otherwise other connections get no confirms until the next turn.
pub(crate) struct Turn<'v> {
    shared: &'v Arc<SharedVhost>,
    at: Instant,
    now: Time,
    budget: Budget,
    is_over: bool,
    is_finished: bool,
    vhost: Option<MutexGuard<'v, Vhost<Arc<Peer>>>>,
    outbox: VhostOutbox,
    /// Large messages whose last reference this may be.
    contents: Vec<Arc<MessageContent>>,
}

/// Maximum steps of a vhost's backlog that a publisher does in its own turn: about 0.1 ms.
const SHARE_STEPS_MAX: u32 = 1024;

impl<'v> Turn<'v> {
    /// A turn that begins `at` for the budget, and at `now` for the vhost.
    pub(crate) fn new(shared: &'v Arc<SharedVhost>, at: Instant, now: Time) -> Self {
        Self {
            shared,
            at,
            now,
            budget: Budget::begin(at),
            is_over: false,
            is_finished: false,
            vhost: None,
            outbox: VhostOutbox::default(),
            contents: Vec::new(),
        }
    }

    /// Locks the vhost on the first call. Returns it with the time and the outbox.
    pub(crate) fn enter(&mut self) -> (&mut Vhost<Arc<Peer>>, Time, &mut VhostOutbox) {
        let shared = self.shared;
        let vhost = self.vhost.get_or_insert_with(|| shared.lock());
        (vhost, self.now, &mut self.outbox)
    }

    /// Drops a large message after the lock is released: freeing one takes as long as many turns.
    pub(super) fn forget_later(&mut self, content: Arc<MessageContent>) {
        self.contents.push(content);
    }

    /// Counts a finished item. Returns whether the turn is over.
    pub(crate) fn spend(&mut self) -> bool {
        let steps = self.vhost.as_mut().map_or(0, |vhost| vhost.take_steps());
        // One input may hold thousands of messages for thousands of consumers: appended bytes are sent between turns.
        self.is_over =
            self.budget.spend(steps) || self.is_over || crosstie_transport::is_much_appended();
        self.is_over
    }

    /// Does up to `steps_max` steps of the vhost's backlog. Returns whether some is left.
    pub(super) fn work(&mut self, steps_max: u32) -> bool {
        let (vhost, now, outbox) = self.enter();
        if steps_max > 0 && vhost.has_backlog() {
            vhost.work(now, steps_max, outbox);
        }
        vhost.has_backlog()
    }

    /// Does a share of the backlog, if the vhost is entered. Publishers call this, because adding work must be slower
    /// than doing it.
    pub(super) fn share(&mut self) {
        if self.vhost.is_some() {
            self.work(SHARE_STEPS_MAX);
        }
    }

    /// Bytes that a connection has published and not committed; `None` if this turn has not entered the vhost and so
    /// has not changed them.
    pub(super) fn uncommitted_bytes(&self, connection: ConnectionKey) -> Option<usize> {
        let vhost = self.vhost.as_ref()?;
        Some(vhost.uncommitted_bytes_of(connection))
    }

    /// Measures the confirm of a publication of this turn, whose records are behind that position, unless another one is
    /// being measured.
    fn time_confirm(&self, vhost: &Vhost<Arc<Peer>>, before: u64) {
        if self.shared.confirm_latency.is_idle()
            && let Some(awaited) = vhost.last_confirm().filter(|last| last.0 > before)
        {
            self.shared.confirm_latency.begin(awaited, || self.at);
        }
    }

    /// Ends the turn and handles its consequences. Returns the kind of records submitted. Needs a tokio context.
    pub(crate) fn finish(mut self) -> Journaled {
        self.is_finished = true;
        let mut journaled = Journaled::Nothing;
        let Some(mut vhost) = self.vhost.take() else {
            return journaled;
        };
        vhost.flush_confirms(&mut self.outbox);
        let (journal, mut waiting) = (vhost.journal(), 0);
        if !journal.records.is_empty() || !journal.streams.is_empty() {
            let position = journal.position;
            let before = position.0 - (journal.records.len() + journal.streams.len()) as u64;
            let records = mem::take(&mut journal.records);
            let changes = mem::take(&mut journal.streams);
            // Only acknowledgements, and the deliveries that they cause.
            let departure =
                |record: &Record| matches!(record, Record::Dequeued { .. }) || record.is_delivery();
            journaled = match changes.is_empty() && records.iter().all(departure) {
                true => Journaled::Departures,
                false => Journaled::More,
            };
            waiting = self.shared.submit(records, changes, position);
            self.time_confirm(&vhost, before);
        }
        let mut wants = Vec::new();
        while vhost.has_wants() {
            wants.extend(vhost.take_want());
        }
        let mut stream_wants = Vec::new();
        while vhost.has_stream_wants() {
            stream_wants.extend(vhost.take_stream_want());
        }
        let has_memory_changed = self.shared.note_memory(&vhost);
        self.shared.heed_crowding(&mut vhost);
        let next = vhost.next_timeout();
        let is_unattended = vhost.has_backlog() && self.shared.backlog.is_to_start();
        // A connection that used its whole turn does not take the lock again before waiting connections.
        match self.is_over {
            true => MutexGuard::unlock_fair(vhost),
            false => drop(vhost),
        }
        if is_unattended {
            self.shared.start_work();
        }
        for want in wants {
            self.shared.read_page(want);
        }
        for want in stream_wants {
            self.shared.read_stream(want);
        }
        self.shared.arm(next);
        if has_memory_changed {
            self.shared.shared.flow.judge_memory();
        }
        if waiting > 0 {
            self.shared.judge_waiting(waiting);
        }
        self.outbox.settle();
        counters().end_turn(Spoken::Amqp, &self.budget);
        journaled
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        debug_assert!(
            self.is_finished || std::thread::panicking(),
            "a turn in a vhost was dropped unfinished"
        );
    }
}
