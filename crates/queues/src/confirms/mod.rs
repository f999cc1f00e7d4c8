//! Publisher confirms (RabbitMQ's extension, `confirm.select`) and what else waits for a store: given at
//! once where nothing has to be kept, when a store has it, or when no queue needs it any more.
//!
//! ```text
//! select ─▶ promise (a number) ─▶ confirm ─▶ (nothing to keep) ─────────────▶ flush: basic.ack
//!                                    │                                        ▲
//!                                    └▶ the line ─▶ next_kept, or later ──────┤
//!                                                │   store_says ─▶ next_told ──┤
//!                                                └▶ forgotten (by its queues) ┘
//! ```
//!
//! It is lent the channels and the outbox where something is said, and the ledger for its counts.
//! *Never:* a queue, a consumer, what a transaction holds.

mod line;
mod promises;

use std::collections::VecDeque;

use crosstie_amqp::method::{BasicAck, BasicNack};

use self::line::{Awaited, Line, Waiting};
use self::promises::{Promises, Ready};
use crate::channels::Channels;
use crate::keys::OfChannel;
use crate::ledger::Ledger;
use crate::slab::Beside;
use crate::{ChannelKey, MessageContent, Outbox, Position};

#[derive(Debug)]
pub(crate) struct Confirms {
    /// Confirms and commits that a store keeps waiting.
    line: Line,
    /// Outcomes of commits that the waiting channels have not been told.
    outcomes: VecDeque<Outcome>,
    /// Of channels in confirm mode.
    promises: Beside<OfChannel, Promises>,
    /// Channels with something to be told.
    to_flush: Vec<ChannelKey>,
}

/// A store has everything up to there, or could not.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    position: Position,
    is_committed: bool,
}

/// The outcome of a commit for one that waited for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// It is confirmed, or was before: nothing else is to be done.
    Confirmed,
    /// A publication is not kept.
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
        }
    }

    /// A channel is in confirm mode from now on.
    pub(crate) fn select(&mut self, key: ChannelKey) {
        self.promises.entry(key, Promises::default);
    }

    pub(crate) fn is_selected(&self, key: ChannelKey) -> bool {
        self.promises.find(key).is_some()
    }

    /// How many publications of a channel wait for a store.
    pub(crate) fn waiting(&self, key: ChannelKey) -> usize {
        self.promises.find(key).map_or(0, |p| p.waiting)
    }

    /// A channel has gone, and is told nothing any more.
    pub(crate) fn end_channel(&mut self, key: ChannelKey) {
        self.promises.remove(key);
    }

    /// The number of a channel's next publication, which will be confirmed or refused; none, if it
    /// is not in confirm mode.
    #[inline]
    pub(crate) fn promise(&mut self, key: ChannelKey) -> Option<u64> {
        let promises = self.promises.find_mut(key)?;
        promises.last += 1;
        Some(promises.last)
    }

    /// A publication is where it belongs, or will be when a store has come to `position`, with so
    /// many entries of queues.
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

    /// A queue has forgotten a message that a store was to keep for it. When all have, there is
    /// nothing to wait for.
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
            // Something that was published before may wait.
            promises.early.push(tag);
        }
    }

    /// A channel hears of its commit when a store has all up to there.
    pub(crate) fn await_commit(&mut self, channel: ChannelKey, position: Position) {
        self.line.push(Waiting {
            position,
            channel,
            awaited: Awaited::Commit,
        });
    }

    /// A publication was not taken.
    pub(crate) fn refuse<H>(
        &mut self,
        key: ChannelKey,
        tag: u64,
        channels: &Channels<H>,
        ledger: &mut Ledger,
        out: &mut dyn Outbox<H>,
    ) {
        // Messages published before it are told first.
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

/// What a store says.
impl Confirms {
    /// A store has everything up to there, or could not; [`Self::next_told`] says who is to hear of it.
    pub(crate) fn store_says(&mut self, position: Position, is_committed: bool) {
        self.outcomes.push_back(Outcome {
            position,
            is_committed,
        });
    }

    /// Whether a store has said something that was not told to all that wait.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// Takes the next that has waited for a store to have everything up to there, which it has said just
    /// now: what it said before was told.
    #[inline(always)]
    pub(crate) fn next_kept(&mut self, position: Position) -> Option<Told> {
        let (number, waiting) = self.line.pop_within(position)?;
        Some(self.tell(number, &waiting, true))
    }

    /// After the last of them.
    #[inline(always)]
    pub(crate) fn end_kept(&mut self) {
        self.line.shrink();
    }

    /// Takes the next that has waited for what a store has said, and what was left for later.
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
        // Those before it were confirmed when they came, or waited in this same line.
        Ready::add(&mut promises.ready, tag);
        Told::Confirmed
    }
}

/// Sending confirms.
impl Confirms {
    /// Tells all channels what is confirmed, several publications as one.
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

    /// Tells a channel what is confirmed, if anything is.
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
            ack(key, to, count > 1, channels, out);
        }
        if !early.is_empty() {
            ledger.steps.spend(early.len());
            // An acknowledgement of several would cover those that wait.
            ledger.counts.confirmed += early.len() as u64;
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
