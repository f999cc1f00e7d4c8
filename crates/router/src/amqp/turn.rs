//! One turn in a vhost: what is done under one taking of its lock, and what that leads to.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crosstie_queues::{ConnectionKey, MessageContent, Record, Time, Vhost};
use crosstie_transport::Budget;
use parking_lot::MutexGuard;

use super::flow::Journaled;
use super::outbox::VhostOutbox;
use super::peer::Peer;
use super::vhost::SharedVhost;

/// A turn in a vhost: the work that one connection does before others have theirs.
///
/// ```text
/// enter (the lock, when it is first needed) ─▶ spend (after each item) ─▶ finish
/// ```
///
/// [`Self::finish`] hands the journal to the store, says the confirms and gives the lock back. The
/// code that begins a turn finishes it; to forget that would leave others without their confirms until the
/// next turn.
pub(crate) struct Turn<'v> {
    shared: &'v Arc<SharedVhost>,
    now: Time,
    budget: Budget,
    is_over: bool,
    is_finished: bool,
    vhost: Option<MutexGuard<'v, Vhost<Arc<Peer>>>>,
    outbox: VhostOutbox,
    /// Large messages that may be held by nothing else any more.
    contents: Vec<Arc<MessageContent>>,
}

/// What a publisher does of a vhost's backlog in a turn of its own: some 0.1 ms.
const SHARE_STEPS_MAX: u32 = 1024;

impl<'v> Turn<'v> {
    /// A turn that begins `at` for the budget, and at `now` for the vhost.
    pub(super) fn new(shared: &'v Arc<SharedVhost>, at: Instant, now: Time) -> Self {
        Self {
            shared,
            now,
            budget: Budget::begin(at),
            is_over: false,
            is_finished: false,
            vhost: None,
            outbox: VhostOutbox::default(),
            contents: Vec::new(),
        }
    }

    /// The vhost, locked, with the time and the outbox.
    pub(crate) fn enter(&mut self) -> (&mut Vhost<Arc<Peer>>, Time, &mut VhostOutbox) {
        let shared = self.shared;
        let vhost = self.vhost.get_or_insert_with(|| shared.lock());
        (vhost, self.now, &mut self.outbox)
    }

    /// Lets go of a large message when the lock is given back: to free it takes as long as many turns.
    pub(super) fn forget_later(&mut self, content: Arc<MessageContent>) {
        self.contents.push(content);
    }

    /// Notes that an item is done; whether the turn is over.
    pub(crate) fn spend(&mut self) -> bool {
        let steps = self.vhost.as_mut().map_or(0, |vhost| vhost.take_steps());
        // One input may hold thousands of messages for thousands of consumers: bytes that were
        // appended are sent between turns.
        self.is_over =
            self.budget.spend(steps) || self.is_over || crosstie_transport::is_much_appended();
        self.is_over
    }

    /// Does so many steps of what the vhost has left to do; whether anything is left then.
    pub(super) fn work(&mut self, steps_max: u32) -> bool {
        let (vhost, now, outbox) = self.enter();
        if steps_max > 0 && vhost.has_backlog() {
            vhost.work(now, steps_max, outbox);
        }
        vhost.has_backlog()
    }

    /// Does a share of what the vhost has left to do, if it is entered: for publishers, since
    /// what makes work has to be slower than what does it.
    pub(super) fn share(&mut self) {
        if self.vhost.is_some() {
            self.work(SHARE_STEPS_MAX);
        }
    }

    /// Bytes that a connection has published and not committed; `None` where the turn has not changed
    /// that, for the vhost was not entered.
    pub(super) fn uncommitted_bytes(&self, connection: ConnectionKey) -> Option<usize> {
        let vhost = self.vhost.as_ref()?;
        Some(vhost.uncommitted_bytes_of(connection))
    }

    /// Ends the turn, and sees to what it led to; what of that goes to the store. Needs a tokio context.
    pub(crate) fn finish(mut self) -> Journaled {
        self.is_finished = true;
        let mut journaled = Journaled::Nothing;
        let Some(mut vhost) = self.vhost.take() else {
            return journaled;
        };
        let SharedVhost {
            shared,
            memory_bytes,
            ..
        } = &**self.shared;
        vhost.flush_confirms(&mut self.outbox);
        let journal = vhost.journal();
        let mut waiting = 0;
        if !journal.records.is_empty() {
            let position = journal.position;
            let records = mem::take(&mut journal.records);
            // A consumer that acknowledges is sent the next.
            let departure =
                |record: &Record| matches!(record, Record::Dequeued { .. }) || record.is_delivery();
            journaled = match records.iter().all(departure) {
                true => Journaled::Departures,
                false => Journaled::More,
            };
            waiting = self.shared.submit(records, position);
        }
        let memory_after = vhost.memory_bytes();
        let memory_before = memory_bytes.swap(memory_after, Ordering::Relaxed);
        let flow = &shared.flow;
        if memory_after != memory_before {
            flow.memory_changed(memory_before, memory_after);
        }
        let next = vhost.next_timeout();
        let is_unattended = vhost.has_backlog() && self.shared.backlog.is_to_start();
        // A connection that had all of a turn does not take the lock again before those that wait for
        // it.
        match self.is_over {
            true => MutexGuard::unlock_fair(vhost),
            false => drop(vhost),
        }
        if is_unattended {
            self.shared.start_work();
        }
        self.shared.arm(next);
        if memory_after != memory_before {
            flow.judge_memory();
        }
        if waiting > 0 {
            self.shared.judge_waiting(waiting);
        }
        self.outbox.settle();
        journaled
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        debug_assert!(
            self.is_finished || std::thread::panicking(),
            "a turn in a vhost that nobody finished"
        );
    }
}
