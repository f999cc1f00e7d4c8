//! The contents of a channel's transaction, and the effects of its commit in order: each publication, then the answers
//! to deliveries, then the dead letters.

use std::collections::VecDeque;

use super::super::operation::{Channel, Operation, Settlement};
use super::super::recorder::Sent;
use super::{Model, Queue};

/// The methods since the last commit or rollback.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    pub publications: Vec<Operation>,
    /// Deliveries by their tags; consecutive ones with the same answer are together.
    pub settlements: Vec<(Settlement, Vec<u64>)>,
    /// The input of a commit that the disk does not have yet.
    pub committing: Option<usize>,
}

impl Transaction {
    pub fn settle(&mut self, tag: u64, settlement: Settlement) {
        match self.settlements.last_mut() {
            Some((last, tags)) if *last == settlement => tags.push(tag),
            _ => self.settlements.push((settlement, vec![tag])),
        }
    }

    fn has_said(&self, tag: u64) -> bool {
        let mut settlements = self.settlements.iter();
        settlements.any(|(_, tags)| tags.contains(&tag))
    }
}

impl Model {
    pub fn transaction_mut(&mut self, channel: Channel) -> Option<&mut Transaction> {
        self.open_mut(channel)?.transaction.as_mut()
    }

    /// Whether the channel may say nothing until the disk has its commit.
    pub fn is_committing(&self, channel: Channel) -> bool {
        let open = self.open(channel);
        let transaction = open.and_then(|open| open.transaction.as_ref());
        transaction.is_some_and(|transaction| transaction.committing.is_some())
    }

    /// Whether something was said of a delivery, and is not committed.
    pub(super) fn is_said(&self, channel: Channel, tag: u64) -> bool {
        let open = self.open(channel);
        let transaction = open.and_then(|open| open.transaction.as_ref());
        transaction.is_some_and(|transaction| transaction.has_said(tag))
    }

    pub(super) fn select(&mut self, channel: Channel) -> Result<(), u16> {
        let open = self.open_mut(channel).ok_or(504u16)?;
        if open.confirms {
            return Err(406);
        }
        open.transaction.get_or_insert_default();
        self.answer(channel, "tx.select-ok");
        Ok(())
    }

    pub(super) fn rollback(&mut self, channel: Channel) -> Result<(), u16> {
        *self.transaction_mut(channel).ok_or(406u16)? = Transaction::default();
        self.answer(channel, "tx.rollback-ok");
        Ok(())
    }

    /// Whether a commit can be done at all.
    pub(super) fn check_commit(&self, channel: Channel) -> Result<(), u16> {
        let open = self.open(channel);
        let transaction = open.and_then(|open| open.transaction.as_ref());
        let publications = &transaction.ok_or(406u16)?.publications;
        let is_there = |publication: &Operation| match publication {
            Operation::Publish { exchange, key, .. } => self.route(exchange, key).is_some(),
            _ => false,
        };
        publications.iter().all(is_there).then_some(()).ok_or(404)
    }

    /// Whether a commit has several permitted results. A consumer that waits for the channel's common limit may be sent
    /// the first returned message before or after the rest is back. The messages beyond the bounds differ then.
    pub fn has_several_ends(&self, channel: Channel) -> bool {
        let Some(open) = self.open(channel).filter(|open| open.prefetch_global > 0) else {
            return false;
        };
        let is_bounded = |tag: u64| {
            let mut queues = self.queues.iter();
            queues.any(|queue| {
                queue.kind.length_max.is_some() && holds(queue, channel, |held| held == tag)
            })
        };
        let transaction = open.transaction.iter();
        let mut settlements = transaction.flat_map(|transaction| &transaction.settlements);
        settlements.any(|(settlement, tags)| {
            *settlement == Settlement::Requeue && tags.iter().any(|tag| is_bounded(*tag))
        })
    }

    /// Commits, and compares the messages in between; returns its result, and the other messages. `is_written`:
    /// something of it has to be on the disk before it is answered.
    pub fn commit(
        &mut self,
        channel: Channel,
        sent: Vec<(Channel, Sent)>,
        is_written: bool,
    ) -> Result<Outcome, String> {
        let mut sent = VecDeque::from(sent);
        let transaction = self.transaction_mut(channel).map(std::mem::take);
        let transaction = transaction.unwrap_or_default();
        self.dying = Some(Vec::new());
        let mut is_rejected = false;
        for publication in &transaction.publications {
            let queues = match publication {
                Operation::Publish { exchange, key, .. } => self.route(exchange, key),
                _ => None,
            };
            let taken = self.distribute(publication, &queues.unwrap_or_default());
            is_rejected |= taken.is_rejected;
            self.take_deliveries(&mut sent, |_| true);
            self.settle_queues();
            self.check_deliveries()?;
        }
        for (settlement, mut tags) in transaction.settlements {
            tags.sort_unstable();
            let back: Vec<String> = self
                .queues
                .iter()
                .filter(|queue| holds(queue, channel, |tag| tags.contains(&tag)))
                .map(|queue| queue.name.clone())
                .collect();
            for held in self.held_by(channel) {
                if tags.contains(&held.tag) {
                    self.give_back(&held, settlement);
                }
            }
            if settlement == Settlement::Requeue {
                // First the bounds, then the waiting consumers.
                self.settle_queues();
                self.take_deliveries(&mut sent, |queue| back.contains(&queue.name));
            }
        }
        self.take_deliveries(&mut sent, |_| true);
        self.settle_queues();
        for (grave, entry) in self.dying.take().into_iter().flatten() {
            self.bury(grave, &entry);
        }
        self.take_deliveries(&mut sent, |_| true);
        if is_rejected {
            return Ok((Err(406), sent.into()));
        }
        let input = self.input;
        match self.transaction_mut(channel) {
            Some(transaction) if is_written => transaction.committing = Some(input),
            _ => self.answer(channel, "tx.commit-ok"),
        }
        Ok((Ok(()), sent.into()))
    }

    /// Takes the first messages, while each is one that may be sent now, from such a queue.
    fn take_deliveries(
        &mut self,
        sent: &mut VecDeque<(Channel, Sent)>,
        is_from: impl Fn(&Queue) -> bool,
    ) {
        while let Some((to, next)) = sent.front() {
            let to = *to;
            let taken = match next {
                Sent::Return { message } => self.take_return(to, *message),
                Sent::Deliver {
                    consumer,
                    tag,
                    redelivered,
                    message,
                } if self.is_next(to, consumer, *message, &is_from) => {
                    self.take_delivery(to, consumer, *tag, *redelivered, *message)
                }
                _ => return,
            };
            // The rest is checked later, where its fault is found.
            if taken.is_err() {
                return;
            }
            sent.pop_front();
        }
    }

    fn is_next(
        &self,
        to: Channel,
        consumer: &str,
        message: u64,
        is_from: impl Fn(&Queue) -> bool,
    ) -> bool {
        self.queues.iter().any(|queue| {
            let mut consumers = queue.consumers.iter();
            let place = consumers.position(|known| known.channel == to && known.tag == consumer);
            let head = queue.head().map(|head| queue.entries[head].message);
            is_from(queue)
                && head == Some(message)
                && place.is_some_and(|place| self.is_able(queue, place, false))
        })
    }

    /// A commit that the disk has is answered.
    pub(super) fn take_commit(&mut self, to: Channel) -> Result<(), String> {
        let committed = self.committed;
        let transaction = self
            .transaction_mut(to)
            .ok_or("a commit of no transaction")?;
        match transaction.committing.take() {
            Some(since) if since <= committed => Ok(()),
            _ => Err("a commit is answered before it is kept".to_owned()),
        }
    }

    /// A channel is closed, since the disk has failed with its commit.
    pub(super) fn take_close(
        &mut self,
        to: Channel,
        code: u16,
        failed: usize,
    ) -> Result<(), String> {
        let committing = self.transaction_mut(to).and_then(|open| open.committing);
        if code != 406 || committing.is_none_or(|since| since > failed) {
            return Err(format!("it is closed with {code} without reason"));
        }
        // Messages returned by others whose commit has failed are in their places.
        self.settle_queues();
        self.close_channel(to);
        Ok(())
    }

    pub(super) fn check_commits(&self, failed: usize) -> Result<(), String> {
        for open in &self.channels {
            let committing = open.transaction.as_ref().and_then(|tx| tx.committing);
            let Some(since) = committing else {
                continue;
            };
            if since <= self.committed || since <= failed {
                return Err(format!("the commit of {:?} has not ended", open.channel));
            }
        }
        Ok(())
    }
}

/// The result of a commit, and the messages that are not part of it.
type Outcome = (Result<(), u16>, Vec<(Channel, Sent)>);

/// Whether a queue has a delivery of the channel that is meant.
fn holds(queue: &Queue, channel: Channel, is_meant: impl Fn(u64) -> bool) -> bool {
    let mut held = queue.entries.iter().filter_map(|entry| entry.held.as_ref());
    held.any(|held| held.channel == channel && is_meant(held.tag))
}
