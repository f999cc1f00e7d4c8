//! What a channel has said about many deliveries at once, or left unsaid when it ended.
//!
//! They are taken out of the channel at once, and gone through in parts, the oldest first. Of those
//! that go back to their queues, all are in their places before anybody is sent one: a queue is kept
//! from delivering from the first of them on.

use std::collections::{BTreeSet, VecDeque};

use super::Vhost;
use super::dead_letters::Reason;
use crate::transaction::Verdict;
use crate::unacked::{Delivery, Unacked};
use crate::{ChannelKey, Outbox, QueueKey, Time};

/// What is left of all that one channel has said, in that order.
#[derive(Debug, Default)]
pub(super) struct Settling {
    runs: VecDeque<Run>,
    /// Queues that deliver nothing until all of this is done.
    returning: BTreeSet<QueueKey>,
}

#[derive(Debug)]
struct Run {
    deliveries: Unacked,
    verdict: Verdict,
}

#[cfg(test)]
impl Settling {
    pub(super) fn deliveries(&self) -> impl Iterator<Item = (u64, &Delivery)> {
        self.runs.iter().flat_map(|run| run.deliveries.iter())
    }

    pub(super) fn returning(&self) -> impl Iterator<Item = QueueKey> {
        self.returning.iter().copied()
    }
}

impl<H> Vhost<H> {
    /// The same was said about all of these; as much is done as this input's steps reach.
    pub(super) fn settle_all(
        &mut self,
        now: Time,
        key: ChannelKey,
        deliveries: Unacked,
        verdict: Verdict,
        out: &mut dyn Outbox<H>,
    ) {
        self.settle_later(key, deliveries, verdict);
        self.go_on_settling(now, key, out);
    }

    /// The same, when nothing is done yet but that the first one's queue waits for it.
    pub(super) fn settle_later(&mut self, key: ChannelKey, deliveries: Unacked, verdict: Verdict) {
        let Some(oldest) = deliveries.oldest() else {
            return;
        };
        let queue = oldest.queue;
        let settling = self.backlog.settling.entry(key).or_default();
        if verdict == Verdict::GivenBack
            && let Some(found) = self.queues.find_mut(queue)
            && settling.returning.insert(queue)
        {
            found.returning += 1;
        }
        settling.runs.push_back(Run {
            deliveries,
            verdict,
        });
    }

    /// Whether something that the channel has said before is not done yet.
    pub(super) fn is_settling(&self, key: ChannelKey) -> bool {
        self.backlog.settling.contains_key(&key)
    }

    /// Goes on with what a channel has said, and gives it what there is room for then.
    pub(super) fn go_on_settling(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        if let Some(settling) = self.backlog.settling.remove(&key) {
            self.settle_some(now, key, settling, out);
        }
        self.serve(now, key, out);
    }

    /// As much as this input's steps reach.
    fn settle_some(
        &mut self,
        now: Time,
        key: ChannelKey,
        mut settling: Settling,
        out: &mut dyn Outbox<H>,
    ) {
        while !self.steps.is_over()
            && let Some(run) = settling.runs.front_mut()
        {
            let Some((tag, delivery)) = run.deliveries.take_up_to(u64::MAX) else {
                settling.runs.pop_front();
                continue;
            };
            self.steps.spend(1);
            self.settle(key, tag, &delivery);
            match run.verdict {
                Verdict::Done => {
                    self.counts.acknowledged += 1;
                    self.forget(delivery.queue, delivery.entry);
                }
                Verdict::Refused => self.die(delivery.queue, delivery.entry, Reason::Rejected),
                Verdict::GivenBack => self.give_back(&mut settling.returning, delivery),
            }
        }
        settling.runs.pop_front_if(|run| run.deliveries.len() == 0);
        if settling.runs.is_empty() {
            self.end_return(now, settling.returning, out);
        } else {
            self.backlog.settling.insert(key, settling);
        }
    }

    /// These go back to their queues at once.
    pub(super) fn requeue(
        &mut self,
        now: Time,
        deliveries: impl IntoIterator<Item = Delivery>,
        out: &mut dyn Outbox<H>,
    ) {
        let mut returning = BTreeSet::new();
        for delivery in deliveries {
            self.steps.spend(1);
            self.give_back(&mut returning, delivery);
        }
        self.end_return(now, returning, out);
    }

    /// A message goes back to its place in its queue, which then waits until all are there.
    fn give_back(&mut self, returning: &mut BTreeSet<QueueKey>, delivery: Delivery) {
        let Delivery { queue, entry, .. } = delivery;
        let Some(found) = self.queues.find_mut(queue) else {
            return self.release(&entry);
        };
        if returning.insert(queue) {
            found.returning += 1;
        }
        if let Some(entry) = self.return_entry(queue, entry)
            && let Some(queue) = self.queues.find_mut(queue)
        {
            queue.insert(entry);
        }
    }

    /// All are in their places.
    fn end_return(&mut self, now: Time, returning: BTreeSet<QueueKey>, out: &mut dyn Outbox<H>) {
        for key in returning {
            if let Some(queue) = self.queues.find_mut(key) {
                queue.returning -= 1;
                self.attend(now, key, out);
            }
        }
    }
}
