//! Publisher confirms and `tx.commit-ok`: given at once where nothing has to be kept, when a store
//! has it, or when nobody needs it any more.

use std::collections::VecDeque;

use crosstie_amqp::method::{BasicAck, BasicNack, TxCommitOk};

use super::Vhost;
use super::backlog::Outcome;
use super::transactions::not_committed;
use crate::channel::{Confirms, Ready};
use crate::shrink::shrink;
use crate::{ChannelKey, MessageContent, Outbox, Position, Time};

/// What waits for a store, in the order of its positions. Each has a number, so that a message
/// that is done with before finds whoever waits for it.
#[derive(Debug)]
pub(super) struct Line {
    waiting: VecDeque<Waiting>,
    /// The first one's; 0 is nobody's.
    first: u64,
}

/// Somebody is told when a store has everything up to there.
#[derive(Debug)]
struct Waiting {
    position: Position,
    channel: ChannelKey,
    awaited: Awaited,
}

#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// The confirm of a publication, of which a store is to keep so many entries of queues.
    Publication { tag: u64, owed: u32 },
    /// `tx.commit-ok`.
    Commit,
    /// It was told: its queues had forgotten the message before a store had it.
    Told,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            first: 1,
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number.
    fn push(&mut self, waiting: Waiting) -> u64 {
        self.waiting.push_back(waiting);
        self.first + self.waiting.len() as u64 - 1
    }

    /// The first, if it is within that position, with its number.
    fn pop_within(&mut self, position: Position) -> Option<(u64, Waiting)> {
        let waiting = self.waiting.pop_front_if(|w| w.position <= position)?;
        let number = self.first;
        self.first += 1;
        Some((number, waiting))
    }

    fn find_mut(&mut self, number: u64) -> Option<&mut Waiting> {
        let at = number.checked_sub(self.first)?;
        self.waiting.get_mut(usize::try_from(at).ok()?)
    }

    /// The publication that waits by that number.
    fn publication(&self, number: u64) -> Option<u64> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        match self.waiting.get(at)?.awaited {
            Awaited::Publication { tag, .. } => Some(tag),
            Awaited::Commit | Awaited::Told => None,
        }
    }
}

impl<H> Vhost<H> {
    /// Sends the confirms that need not wait, several as one. Once per input of a connection,
    /// after its methods; a method on the channel sends its own before it is handled. What its
    /// connection is charged with is told here, too.
    pub fn flush_confirms(&mut self, out: &mut dyn Outbox<H>) {
        while let Some(channel) = self.to_flush.pop() {
            self.send_confirms(channel, out);
        }
        if !self.to_charge.is_empty() {
            self.tell_charges(out);
        }
    }

    /// The store has everything up to there: what waits for it is confirmed.
    pub fn handle_committed(&mut self, position: Position, out: &mut dyn Outbox<H>) {
        self.begin();
        // What was told before comes first.
        let mut is_done = false;
        while self.backlog.outcomes.is_empty() && !is_done && !self.steps.is_over() {
            match self.line.pop_within(position) {
                None => is_done = true,
                Some((number, waiting)) => self.handle_kept(number, &waiting, out),
            }
        }
        if !is_done {
            self.backlog.outcomes.push_back(Outcome {
                position,
                is_committed: true,
            });
        }
        shrink(&mut self.line.waiting);
        self.flush_confirms(out);
    }

    /// The store failed: what waits for anything up to there is refused, and not lost: its
    /// publisher may send it again, and has it twice then. A channel whose commit waits is closed.
    pub fn handle_not_committed(&mut self, now: Time, position: Position, out: &mut dyn Outbox<H>) {
        self.begin();
        self.backlog.outcomes.push_back(Outcome {
            position,
            is_committed: false,
        });
        self.handle_outcomes(now, out);
        self.end(now, out);
        self.flush_confirms(out);
    }

    /// Tells who waits for what a store has told, as far as this input's steps reach.
    pub(super) fn handle_outcomes(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        while let Some(outcome) = self.backlog.outcomes.front().copied()
            && !self.steps.is_over()
        {
            match self.line.pop_within(outcome.position) {
                None => {
                    self.backlog.outcomes.pop_front();
                }
                Some((number, waiting)) if outcome.is_committed => {
                    self.handle_kept(number, &waiting, out);
                }
                Some((number, waiting)) => self.handle_failed(now, number, &waiting, out),
            }
        }
        shrink(&mut self.line.waiting);
    }

    #[inline(always)]
    fn handle_kept(&mut self, number: u64, waiting: &Waiting, out: &mut dyn Outbox<H>) {
        self.steps.spend(1);
        match waiting.awaited {
            Awaited::Told => {}
            Awaited::Publication { tag, .. } => {
                let key = waiting.channel;
                let Some(confirms) = self.confirms_out_of_line(key, number) else {
                    return;
                };
                let is_news = !confirms.has_news();
                // Those before it were confirmed when they came, or waited in this same line.
                Ready::add(&mut confirms.ready, tag);
                if is_news {
                    self.to_flush.push(key);
                }
            }
            Awaited::Commit => self.end_commit(waiting.channel, out),
        }
    }

    fn handle_failed(
        &mut self,
        now: Time,
        number: u64,
        waiting: &Waiting,
        out: &mut dyn Outbox<H>,
    ) {
        self.steps.spend(1);
        match waiting.awaited {
            Awaited::Told => {}
            Awaited::Publication { tag, .. } => {
                self.confirms_out_of_line(waiting.channel, number);
                self.refuse(waiting.channel, tag, out);
            }
            Awaited::Commit => self.fail_commit(now, waiting.channel, out),
        }
    }

    /// A publication is where it belongs, or will be when a store has come to `position`, with so
    /// many entries of queues.
    pub(super) fn confirm(
        &mut self,
        key: ChannelKey,
        tag: u64,
        stored: Option<(Position, u32, &MessageContent)>,
    ) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let Some(confirms) = &mut channel.confirms else {
            return;
        };
        if let Some((position, owed, content)) = stored {
            let number = self.line.push(Waiting {
                position,
                channel: key,
                awaited: Awaited::Publication { tag, owed },
            });
            confirms.waiting += 1;
            confirms.line.push_back(number);
            content.set_awaited(number);
            return;
        }
        if !confirms.has_news() {
            self.to_flush.push(key);
        }
        match confirms.waiting {
            0 => Ready::add(&mut confirms.ready, tag),
            _ => confirms.early.push(tag),
        }
    }

    /// A queue has forgotten a message that a store was to keep for it. When all have, there is
    /// nothing to wait for.
    pub(super) fn not_owed(&mut self, content: &MessageContent) {
        let number = content.awaited();
        if number == 0 {
            return;
        }
        let Some(waiting) = self.line.find_mut(number) else {
            return;
        };
        let Awaited::Publication { tag, owed } = &mut waiting.awaited else {
            return;
        };
        *owed = owed.saturating_sub(1);
        if *owed > 0 {
            return;
        }
        let (tag, channel) = (*tag, waiting.channel);
        waiting.awaited = Awaited::Told;
        if let Some(channel) = self.channels.find_mut(channel)
            && let Some(confirms) = &mut channel.confirms
        {
            confirms.waiting -= 1;
        }
        self.confirm_early(channel, tag);
    }

    /// The channel hears of its commit when a store has all that is in the journal.
    pub(super) fn await_commit(&mut self, key: ChannelKey) {
        let position = self.journal.position;
        if let Some(channel) = self.channels.find_mut(key)
            && let Some(transaction) = &mut channel.transaction
        {
            transaction.is_committing = true;
            self.committing += 1;
            self.line.push(Waiting {
                position,
                channel: key,
                awaited: Awaited::Commit,
            });
        }
    }

    /// A publication was not taken.
    pub(super) fn refuse(&mut self, key: ChannelKey, tag: u64, out: &mut dyn Outbox<H>) {
        self.flush_channel(key, out);
        let Some(channel) = self.channels.find(key).filter(|c| !c.is_closing) else {
            return;
        };
        if let Some(connection) = self.connections.find(channel.connection) {
            let method = BasicNack {
                delivery_tag: tag,
                multiple: false,
                requeue: false,
            };
            out.send(&connection.handle, channel.number, &method.into());
        }
    }

    /// Tells a channel what is confirmed, if anything is.
    #[inline]
    pub(super) fn flush_channel(&mut self, key: ChannelKey, out: &mut dyn Outbox<H>) {
        if let Some(channel) = self.channels.find(key)
            && let Some(confirms) = &channel.confirms
            && confirms.has_news()
        {
            self.send_confirms(key, out);
        }
    }

    fn send_confirms(&mut self, key: ChannelKey, out: &mut dyn Outbox<H>) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let Some(confirms) = &mut channel.confirms else {
            return;
        };
        let mut early = Vec::new();
        if !confirms.early.is_empty() {
            early = confirms.take_early(|number| self.line.publication(number));
        }
        let ready = confirms.ready.take();
        let Some(connection) = self.connections.find(channel.connection) else {
            return;
        };
        let mut ack = |delivery_tag, multiple| {
            let method = BasicAck {
                delivery_tag,
                multiple,
            };
            out.send(&connection.handle, channel.number, &method.into());
        };
        if let Some(Ready { to, count }) = ready {
            self.counts.confirmed += count;
            ack(to, count > 1);
        }
        self.steps.spend(early.len());
        // An acknowledgement of several would cover those that wait.
        self.counts.confirmed += early.len() as u64;
        early.into_iter().for_each(|tag| ack(tag, false));
    }

    /// Something that was published before may wait.
    fn confirm_early(&mut self, key: ChannelKey, tag: u64) {
        if let Some(channel) = self.channels.find_mut(key)
            && let Some(confirms) = &mut channel.confirms
        {
            if !confirms.has_news() {
                self.to_flush.push(key);
            }
            confirms.early.push(tag);
        }
    }

    /// What has that number in the line waits no more, nor does what its channel had before it.
    fn confirms_out_of_line(&mut self, key: ChannelKey, number: u64) -> Option<&mut Confirms> {
        let confirms = self.channels.find_mut(key)?.confirms.as_mut()?;
        confirms.waiting -= 1;
        while confirms.line.pop_front_if(|n| *n <= number).is_some() {}
        Some(confirms)
    }

    fn end_commit(&mut self, key: ChannelKey, out: &mut dyn Outbox<H>) {
        if let Some(channel) = self.channels.find_mut(key)
            && let Some(transaction) = &mut channel.transaction
        {
            transaction.is_committing = false;
            self.committing -= 1;
            if let Some(connection) = self.connections.find(channel.connection) {
                out.send(&connection.handle, channel.number, &TxCommitOk {}.into());
            }
        }
    }

    fn fail_commit(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        let Some(channel) = self.channels.find(key) else {
            return;
        };
        if let Some(connection) = self.connections.find(channel.connection) {
            out.close_channel(&connection.handle, channel.number, &not_committed());
        }
        self.end_channel(now, key, out);
    }
}
