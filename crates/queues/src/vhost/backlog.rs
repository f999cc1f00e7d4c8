//! What inputs have left for later. An input that is about much does as much of it as an ordinary
//! one is about; the rest is here, and [`Vhost::work`] goes on with it in turn with other inputs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use super::Vhost;
use super::settle::Settling;
use crate::keys::ConsumerKey;
use crate::line::Line;
use crate::messages::Messages;
use crate::{ChannelKey, ConnectionKey, Outbox, Position, QueueId, QueueKey, Record, Time};

/// Of each kind so much in turn.
const PART_STEPS_MAX: u64 = 256;

/// Work that is left, by kind.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Queues that have something for somebody, or something that has to go.
    pub(super) postponed: VecDeque<QueueKey>,
    /// What channels have said about many deliveries.
    pub(super) settling: BTreeMap<ChannelKey, Settling>,
    /// Whose turn it was.
    last_settling: Option<ChannelKey>,
    pub(super) closing_channels: VecDeque<ChannelKey>,
    pub(super) closing_connections: VecDeque<ConnectionKey>,
    pub(super) resuming: VecDeque<ConnectionKey>,
    pub(super) remains: VecDeque<Remains>,
    /// What a store has told of its commits.
    pub(super) outcomes: VecDeque<Outcome>,
}

/// What is left of a queue that was purged or deleted.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) messages: Messages,
    /// A store is told of each message of that queue.
    pub(super) id: Option<QueueId>,
    /// They are told.
    pub(super) consumers: Line<ConsumerKey>,
}

/// A store has everything up to there, or could not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) position: Position,
    pub(super) is_committed: bool,
}

impl Backlog {
    fn is_empty(&self) -> bool {
        self.postponed.is_empty()
            && self.settling.is_empty()
            && self.closing_channels.is_empty()
            && self.closing_connections.is_empty()
            && self.resuming.is_empty()
            && self.remains.is_empty()
            && self.outcomes.is_empty()
    }

    /// The channel after the one that was last, as long as there are any.
    fn next_settling(&mut self) -> Option<ChannelKey> {
        let after = self.last_settling.map_or(Unbounded, Excluded);
        let mut behind = self.settling.range((after, Unbounded));
        let next = behind.next().or_else(|| self.settling.first_key_value());
        self.last_settling = next.map(|(key, _)| *key);
        self.last_settling
    }
}

type Part<H> = fn(&mut Vhost<H>, Time, &mut dyn Outbox<H>);

impl<H> Vhost<H> {
    /// Steps since it was asked last, each some 50 to 100 ns: who has had many gives the lock up for
    /// others before its next input.
    pub fn take_steps(&mut self) -> u32 {
        let routed = self.topology.take_steps();
        self.steps.take().saturating_add(routed)
    }

    /// Whether inputs have left something for later: [`Self::work`] is due.
    pub fn has_backlog(&self) -> bool {
        !self.dead.is_empty() || !self.backlog.is_empty()
    }

    /// Does some of what inputs have left for later, in about so many steps. It is an input as any
    /// other, and called in turn with those of connections until nothing is left.
    pub fn work(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) {
        // Whoever asks for none is given one.
        self.steps.begin(steps_max.max(1));
        let end = self.steps.end();
        while self.has_backlog() && !self.steps.is_at(end) {
            for part in Self::PARTS {
                self.steps.begin_part(PART_STEPS_MAX, end);
                part(self, now, out);
            }
        }
        self.died = 0;
        self.flush_confirms(out);
    }

    /// Kinds of work; each does as much as its part's steps reach.
    const PARTS: [Part<H>; 8] = [
        Self::handle_outcomes,
        Self::settle_next,
        Self::close_next_channel,
        Self::close_next_connection,
        Self::resume_next,
        |vhost, _, out| vhost.clear_remains(out),
        Self::attend_next,
        Self::bury,
    ];

    fn settle_next(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.backlog.next_settling() {
            self.go_on_settling(now, key, out);
        }
    }

    fn close_next_channel(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.backlog.closing_channels.pop_front() {
            self.go_on_closing_channel(now, key, out);
        }
    }

    fn close_next_connection(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.backlog.closing_connections.pop_front() {
            self.go_on_closing(now, key, out);
        }
    }

    fn resume_next(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.backlog.resuming.pop_front() {
            self.go_on_resuming(now, key, out);
        }
    }

    /// As many queues as there are steps for.
    fn attend_next(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        while !self.steps.is_over()
            && let Some(key) = self.backlog.postponed.pop_front()
        {
            self.steps.spend(1);
            if let Some(queue) = self.queues.find_mut(key) {
                queue.is_postponed = false;
            }
            self.attend(now, key, out);
        }
    }

    /// A queue is attended to later.
    #[cold]
    pub(super) fn postpone(&mut self, key: QueueKey) {
        if let Some(queue) = self.queues.find_mut(key)
            && !queue.is_postponed
        {
            queue.is_postponed = true;
            self.backlog.postponed.push_back(key);
        }
    }

    /// What is left of queues goes, as far as the steps reach.
    pub(super) fn clear_remains(&mut self, out: &mut dyn Outbox<H>) {
        while !self.steps.is_over()
            && let Some(remains) = self.backlog.remains.front_mut()
        {
            self.steps.spend(1);
            if let Some(entry) = remains.messages.pop() {
                let id = remains.id.filter(|_| entry.is_stored);
                if let Some(queue) = id {
                    let place = entry.place;
                    self.record(Record::Dequeued { queue, place });
                }
                self.release(&entry);
            } else if let Some((seat, consumer)) = remains.consumers.first() {
                remains.consumers.remove(seat);
                self.lose_queue(consumer, out);
            } else {
                self.backlog.remains.pop_front();
            }
        }
    }
}
