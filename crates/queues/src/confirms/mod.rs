//! Publisher confirms (RabbitMQ's extension, `confirm.select`) and commits that wait for a store. A confirm is sent at
//! once if nothing has to be stored, when the store has committed it, or when no queue needs the message any more.
//!
//! ```text
//! select ─▶ promise (a number) ─▶ confirm ─▶ (nothing to keep) ─────────────▶ flush: basic.ack
//!                                    │                                        ▲
//!                                    └▶ the line ─▶ next_kept, or later ──────┤
//!                                                │   store_says ─▶ next_told ──┤
//!                                                └▶ forgotten (by its queues) ┘
//! ```
//!
//! It borrows the channels and the outbox to send, and the ledger for its counts. *Never:* a queue, a consumer, the
//! contents of a transaction.

mod line;
mod promises;

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_amqp::method::{BasicAck, BasicNack};
use crosstie_collections::Beside;

use self::line::{Awaited, Line, Waiting};
use self::promises::{Promises, Ready};
use crate::channels::Channels;
use crate::keys::OfChannel;
use crate::ledger::Ledger;
use crate::{ChannelKey, MessageContent, Outbox, Position};

#[derive(Debug)]
pub(crate) struct Confirms {
    /// Confirms and commits that wait for a store.
    line: Line,
    /// Outcomes of commits that the waiting channels have not been told.
    outcomes: VecDeque<Outcome>,
    /// Of channels in confirm mode.
    promises: Beside<OfChannel, Promises>,
    /// Channels with confirms to be sent.
    to_flush: Vec<ChannelKey>,
    /// Number of publications of all channels in confirm mode, since the start.
    pub(crate) promised: u64,
}

/// The store has committed everything up to a position, or failed.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    position: Position,
    is_committed: bool,
}

/// The outcome of a commit for a waiting channel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// Confirmed, now or before: no further work.
    Confirmed,
    /// A publication was not stored.
    Refused {
        channel: ChannelKey,
        tag: u64,
    },
    Committed(ChannelKey),
    NotCommitted(ChannelKey),
}

impl Confirms {
    pub(crate) fn new() -> Self {
        Self {
            line: Line::new(),
            outcomes: VecDeque::new(),
            promises: Beside::new(),
            to_flush: Vec::new(),
            promised: 0,
        }
    }

    /// Puts a channel in confirm mode.
    pub(crate) fn select(&mut self, key: ChannelKey) {
        self.promises.entry(key, Promises::default);
    }

    pub(crate) fn is_selected(&self, key: ChannelKey) -> bool {
        self.promises.find(key).is_some()
    }

    /// Number of publications of a channel that were confirmed.
    pub(crate) fn confirmed(&self, key: ChannelKey) -> u64 {
        self.promises.find(key).map_or(0, |p| p.confirmed)
    }

    /// Number of publications of a channel that wait for a store.
    pub(crate) fn waiting(&self, key: ChannelKey) -> usize {
        self.promises.find(key).map_or(0, |p| p.waiting)
    }

    /// Ends a channel, which is sent nothing any more.
    pub(crate) fn end_channel(&mut self, key: ChannelKey) {
        self.promises.remove(key);
    }

    /// The number of a channel's next publication, which will be confirmed or refused; `None` if it is not in confirm
    /// mode.
    #[inline(always)]
    pub(crate) fn promise(&mut self, key: ChannelKey) -> Option<u64> {
        let promises = self.promises.find_mut(key)?;
        promises.last += 1;
        self.promised += 1;
        Some(promises.last)
    }

    /// Confirms a publication that is in its queues; if some entries have to be stored, once the store has committed
    /// `position`.
    #[inline]
    pub(crate) fn confirm(
        &mut self,
        key: ChannelKey,
        tag: u64,
        stored: Option<(Position, u32, &MessageContent)>,
    ) {
        let Some(promises) = self.promises.find_mut(key) else {
            return;
        };
        if let Some((position, owed, content)) = stored {
            let number = self.line.push(Waiting {
                position,
                channel: key,
                awaited: Awaited::Publication { tag, owed },
            });
            promises.waiting += 1;
            promises.line.push_back(number);
            content.set_awaited(number);
            return;
        }
        if !promises.has_news() {
            self.to_flush.push(key);
        }
        match promises.waiting {
            0 => Ready::add(&mut promises.ready, tag),
            _ => promises.early.push(tag),
        }
    }

    /// Notes that a queue has forgotten a message before it was stored. When all have, the publication is confirmed.
    pub(crate) fn forgotten(&mut self, content: &MessageContent) {
        let number = content.awaited();
        if number == 0 {
            return;
        }
        let Some((channel, tag)) = self.line.settle(number) else {
            return;
        };
        if let Some(promises) = self.promises.find_mut(channel) {
            promises.waiting -= 1;
            if !promises.has_news() {
                self.to_flush.push(channel);
            }
            // An earlier publication may still wait.
            promises.early.push(tag);
        }
    }

    /// A message goes on as another one while its publication waits for a store: it is refused with it. `stored` more
    /// entries are owed.
    pub(crate) fn follow(&mut self, before: &MessageContent, after: &MessageContent, stored: u32) {
        let number = before.awaited();
        if self.line.is_waiting(number) {
            self.line.owe(number, stored);
            after.set_awaited(number);
        }
    }

    /// Whether the publication of a message, or its transaction, waits for a store.
    pub(crate) fn is_waiting(&self, content: &MessageContent) -> bool {
        self.line.is_waiting(content.awaited())
    }

    /// Tells a channel of its commit once the store has committed everything up to there. If it fails, these publications
    /// are withdrawn.
    pub(crate) fn await_commit(
        &mut self,
        channel: ChannelKey,
        position: Position,
        contents: &[Arc<MessageContent>],
    ) {
        let number = self.line.push(Waiting {
            position,
            channel,
            awaited: Awaited::Commit,
        });
        for content in contents {
            content.set_awaited(number);
        }
    }

    /// The numbers of the commits that wait for positions behind the first one, up to the second.
    pub(crate) fn commits(&self, behind: Position, to: Position) -> impl Iterator<Item = u64> {
        self.line.commits(behind, to)
    }

    /// Takes the publication or the commit with that number out of the line, because it is refused alone: others go on
    /// waiting.
    pub(crate) fn take_refused(&mut self, number: u64) -> Told {
        match self.line.take(number) {
            Some((channel, Awaited::Commit)) => Told::NotCommitted(channel),
            Some((channel, Awaited::Publication { tag, .. })) => {
                if let Some(promises) = self.promises.find_mut(channel) {
                    promises.waiting -= 1;
                }
                Told::Refused { channel, tag }
            }
            Some((_, Awaited::Told)) | None => Told::Confirmed,
        }
    }

    /// Refuses a publication.
    pub(crate) fn refuse<H>(
        &mut self,
        key: ChannelKey,
        tag: u64,
        channels: &Channels<H>,
        ledger: &mut Ledger,
        out: &mut dyn Outbox<H>,
    ) {
        // Earlier publications are confirmed first.
        self.flush_channel(key, channels, ledger, out);
        if channels.find_open(key).is_some() {
            let method = BasicNack {
                delivery_tag: tag,
                multiple: false,
                requeue: false,
            };
            channels.send(key, method, out);
        }
    }
}

/// Outcomes of the store.
impl Confirms {
    /// Notes an outcome of the store: everything up to the position is committed, or failed. [`Self::next_told`]
    /// returns the channels to tell.
    pub(crate) fn store_says(&mut self, position: Position, is_committed: bool) {
        self.outcomes.push_back(Outcome {
            position,
            is_committed,
        });
    }

    /// The last position that is waited for.
    pub(crate) fn last_position(&self) -> Option<Position> {
        self.line.last_position()
    }

    /// Whether waiting channels have yet to be told of an outcome.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// Takes the next one that waited for a position at or before the one just committed. Earlier outcomes must have
    /// been told.
    #[inline(always)]
    pub(crate) fn next_kept(&mut self, position: Position) -> Option<Told> {
        let (number, waiting) = self.line.pop_within(position)?;
        Some(self.tell(number, &waiting, true))
    }

    /// Gives memory back after the last of them.
    #[inline(always)]
    pub(crate) fn end_kept(&mut self) {
        self.line.shrink();
    }

    /// Takes the next one that waited for an outcome, including those left for later.
    pub(crate) fn next_told(&mut self) -> Option<Told> {
        loop {
            let outcome = *self.outcomes.front()?;
            if let Some((number, waiting)) = self.line.pop_within(outcome.position) {
                return Some(self.tell(number, &waiting, outcome.is_committed));
            }
            self.outcomes.pop_front();
            self.line.shrink();
        }
    }

    #[inline(always)]
    fn tell(&mut self, number: u64, waiting: &Waiting, is_committed: bool) -> Told {
        let channel = waiting.channel;
        let tag = match (waiting.awaited, is_committed) {
            (Awaited::Told, _) => return Told::Confirmed,
            (Awaited::Commit, true) => return Told::Committed(channel),
            (Awaited::Commit, false) => return Told::NotCommitted(channel),
            (Awaited::Publication { tag, .. }, _) => tag,
        };
        let Some(promises) = self.promises.find_mut(channel) else {
            return Told::Confirmed;
        };
        promises.leave_line(number);
        if !is_committed {
            return Told::Refused { channel, tag };
        }
        if !promises.has_news() {
            self.to_flush.push(channel);
        }
        // Earlier ones were confirmed on arrival, or waited in this same line.
        Ready::add(&mut promises.ready, tag);
        Told::Confirmed
    }
}

/// Confirms that are sent.
impl Confirms {
    /// Sends all channels their confirms, several publications in one.
    #[inline]
    pub(crate) fn flush<H>(
        &mut self,
        channels: &Channels<H>,
        ledger: &mut Ledger,
        out: &mut dyn Outbox<H>,
    ) {
        while let Some(channel) = self.to_flush.pop() {
            self.say(channel, channels, ledger, out);
        }
    }

    /// Sends a channel its confirms, if there are any.
    #[inline]
    pub(crate) fn flush_channel<H>(
        &mut self,
        key: ChannelKey,
        channels: &Channels<H>,
        ledger: &mut Ledger,
        out: &mut dyn Outbox<H>,
    ) {
        if let Some(promises) = self.promises.find(key)
            && promises.has_news()
        {
            self.say(key, channels, ledger, out);
        }
    }

    fn say<H>(
        &mut self,
        key: ChannelKey,
        channels: &Channels<H>,
        ledger: &mut Ledger,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(promises) = self.promises.find_mut(key) else {
            return;
        };
        let mut early = Vec::new();
        if !promises.early.is_empty() {
            early = promises.take_early(|number| self.line.publication(number));
        }
        if let Some(Ready { to, count }) = promises.ready.take() {
            ledger.counts.confirmed += count;
            promises.confirmed += count;
            ack(key, to, count > 1, channels, out);
        }
        if !early.is_empty() {
            ledger.steps.spend(early.len());
            // A `multiple` acknowledgement would cover those that still wait.
            ledger.counts.confirmed += early.len() as u64;
            promises.confirmed += early.len() as u64;
            for tag in early {
                ack(key, tag, false, channels, out);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

#[inline]
fn ack<H>(
    key: ChannelKey,
    delivery_tag: u64,
    multiple: bool,
    channels: &Channels<H>,
    out: &mut dyn Outbox<H>,
) {
    let method = BasicAck {
        delivery_tag,
        multiple,
    };
    channels.send(key, method, out);
}
