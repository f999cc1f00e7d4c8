//! A queue: its messages, and what bounds them.

use std::sync::Arc;

use crosstie_amqp::{Properties, Table, TableBuf};

use super::arrivals::Arrivals;
use super::crowded::Relief;
use super::entry::Entry;
use super::messages::{Messages, placed};
use super::role::{Kept, Role};
use crate::ledger::Ledger;
use crate::policy::Applied;
use crate::tally::QueueCounters;
use crate::topology::{QueueArguments, QueueFlags, QueueKind};
use crate::{ConnectionKey, Deliveries, MessageContent, QueueId, Time};

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) name: Arc<str>,
    /// Its id in the store; `None` if it is not durable.
    pub(crate) id: Option<QueueId>,
    /// The id under which the store keeps messages until a restart; set once the queue is deep.
    pub(crate) spill_id: Option<QueueId>,
    pub(crate) flags: QueueFlags,
    pub(crate) arguments: TableBuf,
    /// What follows from its arguments and policies.
    pub(crate) settings: QueueArguments,
    /// The policies that apply to it.
    pub(crate) applied: Option<Arc<Applied>>,
    pub(crate) role: Role,
    /// The connection that an exclusive queue belongs to.
    pub(crate) owner: Option<ConnectionKey>,
    /// The ready messages.
    pub(crate) messages: Messages,
    /// Bytes of the ready messages' bodies, also of those on the disk: bounded by `x-max-length-bytes`.
    pub(crate) body_bytes: u64,
    /// Messages on the disk that arrived earlier may have been delivered before a restart.
    pub(super) redelivered_before: i64,
    /// Number of times that all messages were taken out: a page that was requested before is of no use.
    pub(super) clearances: u32,
    /// Whether it waits for a page to be requested.
    pub(super) is_wanting: bool,
    /// Whether its tail waits for a commit.
    pub(super) is_sinking: bool,
    /// How far it is with leaving memory, while that is nearly full.
    pub(super) relief: Relief,
    /// Whether a message arrived while the next one was on the disk: with a higher priority it is the next one.
    pub(super) is_overtaking: bool,
    /// In the order of arrivals, whatever their levels.
    pub(super) next_place: i64,
    /// Number of messages held by channels.
    pub(crate) unacknowledged: usize,
    pub(crate) counters: QueueCounters,
    /// Number of channels that are returning messages in parts. No consumer is sent any until all are back.
    pub(crate) returning: u32,
    /// Whether it is postponed.
    pub(crate) is_postponed: bool,
    /// The last use by a client (`x-expires`).
    pub(super) used_at: Time,
    /// The time of the timer that checks that.
    pub(super) unused_timer: Option<Time>,
    /// The time of the timer for its first message.
    pub(super) head_timer: Option<Time>,
    /// When its messages arrived, if any waits.
    pub(super) arrivals: Option<Box<Arrivals>>,
}

/// One of so many arriving messages looks for those that have left another way than to a consumer.
const LOOKS_EVERY: i64 = 16;

impl Queue {
    /// An empty one.
    pub(crate) fn new(
        now: Time,
        name: Arc<str>,
        id: Option<QueueId>,
        (flags, settings): (QueueFlags, QueueArguments),
        arguments: Table<'_>,
        owner: Option<ConnectionKey>,
    ) -> Self {
        let role = match settings.is_at_least_once {
            true => Role::Keeping(Kept::default()),
            false => Role::Ordinary,
        };
        Self {
            role,
            name,
            id,
            spill_id: None,
            flags,
            arguments: TableBuf::from(arguments),
            settings,
            applied: None,
            owner,
            messages: Messages::default(),
            body_bytes: 0,
            redelivered_before: i64::MIN,
            clearances: 0,
            is_wanting: false,
            is_sinking: false,
            relief: Relief::None,
            is_overtaking: false,
            next_place: 0,
            unacknowledged: 0,
            counters: QueueCounters::default(),
            returning: 0,
            is_postponed: false,
            used_at: now,
            unused_timer: None,
            head_timer: None,
            arrivals: None,
        }
    }

    pub(crate) fn is_quorum(&self) -> bool {
        matches!(self.settings.kind, QueueKind::Quorum)
    }

    #[inline]
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.settings.kind, QueueKind::Stream)
    }

    /// Its counters, and those of all queues of its type.
    #[inline(always)]
    pub(crate) fn counters<'l>(
        &mut self,
        ledger: &'l mut Ledger,
    ) -> (&mut QueueCounters, &'l mut Deliveries) {
        let all = &mut ledger.deliveries[self.settings.kind as usize].0;
        (&mut self.counters, all)
    }

    /// Counts a message that was sent on its arrival; returns whether it is to be acknowledged.
    #[inline(always)]
    pub(crate) fn note_sent(&mut self, needs_ack: bool, ledger: &mut Ledger) -> bool {
        let (counters, all) = self.counters(ledger);
        counters.count_sent(all);
        if needs_ack {
            counters.count_sent_to_ack(all);
        }
        if self.settings.priority_max != 0 {
            // The other waits of such a queue are not known.
            ledger.waits.note(None);
        }
        needs_ack
    }

    /// Takes the next place behind all others of a level.
    pub(super) fn take_place(&mut self, level: u8) -> i64 {
        let age = self.next_place;
        self.next_place = age.saturating_add(1);
        match self.settings.priority_max {
            0 => age,
            _ => placed(age, level),
        }
    }

    /// Notes the time of a message that is about to be [pushed](Self::push). A queue with priorities is not in the order
    /// of its arrivals.
    #[inline]
    pub(crate) fn note_arrival(&mut self, now: Time, entry: &Entry) {
        if self.messages.is_empty() {
            self.arrivals = None;
        }
        if self.settings.priority_max != 0 {
            return;
        }
        let arrivals = self.arrivals.get_or_insert_default();
        if entry.place % LOOKS_EVERY == 0
            && let Some(first) = self.messages.front()
        {
            arrivals.forget_before(first.place);
        }
        arrivals.note(entry.place, now);
    }

    /// The milliseconds that the message just taken out has waited, if they are known.
    #[inline]
    pub(super) fn waited(&mut self, now: Time, entry: &Entry) -> Option<u64> {
        let waited = match entry.is_redelivered {
            true => None,
            false => self.arrivals.as_mut()?.waited(entry.place, now),
        };
        if self.messages.is_empty() {
            self.arrivals = None;
        }
        waited
    }

    /// The id under which the store has that message, if it has it.
    pub(crate) fn id_of(&self, entry: &Entry) -> Option<QueueId> {
        match entry.is_spilled {
            true => self.spill_id,
            false => self.id.filter(|_| entry.is_stored),
        }
    }

    /// Adds behind all others of its priority.
    #[inline]
    pub(crate) fn push(&mut self, mut entry: Entry, ledger: &mut Ledger) {
        self.body_bytes += entry.content.body().len() as u64;
        if self.is_deep() {
            self.is_overtaking |= self.is_waiting();
            self.spill(&mut entry, ledger);
        }
        self.messages.push(entry, ledger.journal.position);
    }

    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.messages.pop()?;
        self.body_bytes -= entry.content.body().len() as u64;
        Some(entry)
    }

    /// All of its ready messages.
    pub(super) fn take_messages(&mut self) -> Messages {
        self.body_bytes = 0;
        self.clearances = self.clearances.wrapping_add(1);
        std::mem::take(&mut self.messages)
    }

    /// Returns an entry to its place.
    pub(super) fn insert(&mut self, entry: Entry, ledger: &Ledger) {
        self.body_bytes += entry.content.body().len() as u64;
        self.messages.insert(entry, ledger.journal.position);
    }

    /// Takes out the ready message with that place, if it is in memory.
    pub(super) fn take(&mut self, place: i64) -> Option<Entry> {
        let entry = self.messages.take(place)?;
        self.body_bytes -= entry.content.body().len() as u64;
        Some(entry)
    }

    /// The same, if a condition on its content holds.
    pub(super) fn take_if(
        &mut self,
        place: i64,
        condition: impl FnOnce(&MessageContent) -> bool,
    ) -> Option<Entry> {
        let found = self.messages.find_mut(place);
        found.filter(|entry| condition(&entry.content))?;
        self.take(place)
    }

    /// The level of a message with these properties.
    pub(crate) fn level(&self, properties: Properties<'_>) -> u8 {
        match self.settings.priority_max {
            0 => 0,
            max => properties.priority().unwrap_or(0).min(max),
        }
    }

    /// Whether a publication is refused, rather than an older message dropped for it.
    pub(crate) fn rejects(&self, body_bytes: usize) -> bool {
        if self.settings.overflow.drops_head() {
            return false;
        }
        let (messages, bytes) = (self.messages.len() as u64, self.body_bytes);
        // A quorum queue refuses once it is over a bound, as in RabbitMQ, and so takes one message more. Dead letters that
        // it keeps count.
        let kept = self.role.kept().copied().unwrap_or_default();
        match self.is_quorum() {
            true => self.is_over(messages + kept.letters as u64, bytes + kept.body_bytes),
            false => self.is_over(messages + 1, bytes + body_bytes as u64),
        }
    }

    /// Whether the first message has to be dropped.
    #[inline]
    pub(crate) fn overflows(&self) -> bool {
        self.settings.overflow.drops_head()
            && self.is_over(self.messages.len() as u64, self.body_bytes)
    }

    #[cfg(test)]
    pub(crate) fn head_timer(&self) -> Option<Time> {
        self.head_timer
    }

    fn is_over(&self, messages: u64, body_bytes: u64) -> bool {
        self.settings.length_max.is_some_and(|max| messages > max)
            || self.settings.bytes_max.is_some_and(|max| body_bytes > max)
    }
}
