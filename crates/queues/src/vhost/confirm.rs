//! The store's commits, and the resulting confirms.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crosstie_amqp::method::TxCommitOk;

use super::Vhost;
use super::commit::not_committed;
use crate::confirms::Told;
use crate::queues::Withdrawn;
use crate::{ChannelKey, MessageContent, Outbox, Position, QueueId, Time};

impl<H> Vhost<H> {
    /// Sends the confirms that need not wait, several in one. To be called once per input of a connection, after its
    /// methods; a method on the channel sends its own before it is handled. Also tells the outbox of changed charges.
    pub fn flush_confirms(&mut self, out: &mut dyn Outbox<H>) {
        self.confirms.flush(&self.channels, &mut self.ledger, out);
        self.channels.flush_charges(out);
    }

    /// The last position that a confirm or a commit waits for.
    pub fn last_confirm(&self) -> Option<Position> {
        self.confirms.last_position()
    }

    /// The store has committed everything up to there: sends the waiting confirms.
    pub fn handle_committed(&mut self, position: Position, out: &mut dyn Outbox<H>) {
        self.begin();
        // Earlier outcomes are told first, by `work`: a failed commit closes channels, for which the time is needed.
        let mut is_told = false;
        while !is_told && !self.confirms.has_backlog() && !self.ledger.steps.is_over() {
            match self.confirms.next_kept(position) {
                None => is_told = true,
                Some(Told::Committed(channel)) => {
                    self.ledger.steps.spend(1);
                    self.end_commit(channel, out);
                }
                Some(_) => self.ledger.steps.spend(1),
            }
        }
        if !is_told {
            self.confirms.store_says(position, true);
        }
        self.confirms.end_kept();
        self.queues.handle_committed(position, &mut self.ledger);
        self.flush_confirms(out);
    }

    /// The store failed with these messages in it: takes those out whose publications wait for a confirm or a commit, so
    /// that they are not delivered after their refusal, wherever they are. Returns the places of those. Others are stored
    /// later. To be called before [`Self::handle_not_committed`].
    pub fn withdraw(&mut self, places: &[(QueueId, i64)]) -> HashSet<(QueueId, i64)> {
        self.begin();
        let confirms = &self.confirms;
        let is_refused = |content: &MessageContent| confirms.is_waiting(content);
        let withdrawn = self.queues.withdraw(places, is_refused, &mut self.ledger);
        self.withdraw_copies(withdrawn)
    }

    /// Streams could not keep these messages, at positions behind `behind` up to `to`: their publications are refused, and
    /// each is taken out wherever else it is, as [`Self::withdraw`] does. `places`: the messages whose records are at these
    /// positions. Returns the places of those that are taken out. Transactions there are refused whatever they have.
    pub fn refuse_contents(
        &mut self,
        now: Time,
        contents: &[Arc<MessageContent>],
        places: &[(QueueId, i64)],
        (behind, to): (Position, Position),
        out: &mut dyn Outbox<H>,
    ) -> HashSet<(QueueId, i64)> {
        self.begin();
        let numbers = contents.iter().map(|content| content.awaited());
        let numbers: BTreeSet<u64> = numbers.chain(self.confirms.commits(behind, to)).collect();
        let is_refused = |content: &MessageContent| numbers.contains(&content.awaited());
        let mut withdrawn = self.queues.withdraw(places, is_refused, &mut self.ledger);
        contents
            .iter()
            .for_each(|content| withdrawn.add_content(content));
        let places = self.withdraw_copies(withdrawn);
        for number in numbers {
            self.ledger.steps.spend(1);
            let told = self.confirms.take_refused(number);
            self.tell(now, told, out);
        }
        self.end(now, out);
        self.flush_confirms(out);
        places
    }

    fn withdraw_copies(&mut self, mut withdrawn: Withdrawn) -> HashSet<(QueueId, i64)> {
        let ledger = &mut self.ledger;
        if !withdrawn.is_done() {
            self.queues.withdraw_copies(&mut withdrawn, ledger);
        }
        if !withdrawn.is_done() {
            self.histories
                .withdraw(|content| withdrawn.has(content), ledger);
        }
        withdrawn.places
    }

    /// Whether a message's publisher waits for a confirm or a commit, so that the message can be refused.
    pub fn is_refusable(&self, content: &MessageContent) -> bool {
        self.confirms.is_waiting(content)
    }

    /// The store failed: publications that wait for anything up to there are refused. A channel whose commit waits is
    /// closed.
    pub fn handle_not_committed(&mut self, now: Time, position: Position, out: &mut dyn Outbox<H>) {
        self.begin();
        self.confirms.store_says(position, false);
        self.handle_outcomes(now, out);
        self.end(now, out);
        self.flush_confirms(out);
    }

    /// Tells channels of the store's outcomes, as far as this input's steps allow.
    pub(super) fn handle_outcomes(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        while !self.ledger.steps.is_over()
            && let Some(told) = self.confirms.next_told()
        {
            self.ledger.steps.spend(1);
            self.tell(now, told, out);
        }
    }

    fn tell(&mut self, now: Time, told: Told, out: &mut dyn Outbox<H>) {
        match told {
            Told::Confirmed => {}
            Told::Refused { channel, tag } => self.refuse(channel, tag, out),
            Told::Committed(channel) => self.end_commit(channel, out),
            Told::NotCommitted(channel) => {
                self.channels.tell_closed(channel, &not_committed(), out);
                self.end_channel(now, channel, out);
            }
        }
    }

    fn end_commit(&mut self, key: ChannelKey, out: &mut dyn Outbox<H>) {
        if self.transactions.end_commit(key) {
            self.channels.send(key, TxCommitOk {}, out);
        }
    }

    /// Refuses a publication.
    pub(super) fn refuse(&mut self, key: ChannelKey, tag: u64, out: &mut dyn Outbox<H>) {
        let channels = &self.channels;
        self.confirms
            .refuse(key, tag, channels, &mut self.ledger, out);
    }

    /// Sends a channel its confirms, if there are any.
    #[inline]
    pub(super) fn flush_channel(&mut self, key: ChannelKey, out: &mut dyn Outbox<H>) {
        self.confirms
            .flush_channel(key, &self.channels, &mut self.ledger, out);
    }
}
