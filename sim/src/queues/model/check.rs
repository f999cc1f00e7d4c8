//! Checks that a vhost's messages were permitted, and complete.

use super::super::operation::Channel;
use super::super::recorder::Sent;
use super::{Model, Unconfirmed};

impl Model {
    /// Checks the messages of an input, in order. `failed`: the store has failed with the inputs up to that one.
    pub fn check(&mut self, sent: Vec<(Channel, Sent)>, failed: usize) -> Result<(), String> {
        let mut answers = Vec::new();
        for (to, sent) in sent {
            match sent {
                Sent::Deliver {
                    consumer,
                    tag,
                    redelivered,
                    message,
                } => self.take_delivery(to, &consumer, tag, redelivered, message),
                Sent::Return { message } => self.take_return(to, message),
                Sent::Confirm {
                    tag,
                    multiple,
                    is_ack,
                } => self.take_confirm(to, tag, multiple, is_ack, failed),
                Sent::Answer {
                    method: "tx.commit-ok",
                } if self.is_committing(to) => self.take_commit(to),
                Sent::Closed { code } => self.take_close(to, code, failed),
                _ => {
                    answers.push((to, sent.clone()));
                    Ok(())
                }
            }
            .map_err(|complaint| format!("{complaint}, to {to:?}"))?;
        }
        self.settle_queues();
        self.check_answers(answers)?;
        self.check_deliveries()?;
        self.check_confirms(failed)?;
        self.check_commits(failed)
    }

    pub(super) fn take_delivery(
        &mut self,
        to: Channel,
        consumer: &str,
        tag: u64,
        redelivered: bool,
        message: u64,
    ) -> Result<(), String> {
        let what = format!("message {message} is delivered to {consumer}");
        let is_it = |queue: &super::Queue| {
            let mut consumers = queue.consumers.iter();
            consumers.position(|known| known.channel == to && known.tag == consumer)
        };
        let found = self.queues.iter().find_map(|queue| {
            let place = is_it(queue)?;
            Some((queue.name.clone(), place))
        });
        let (name, place) = found.ok_or_else(|| format!("{what}, who is not there"))?;
        let is_head = |model: &Self| {
            let queue = model.queue(&name)?;
            let head = queue.head_that_is(message, model.input)?;
            let due = queue.entries[head].expires_at;
            due.is_none_or(|due| due > model.now_ms).then_some(head)
        };
        // A message before it may have expired, or exceed a bound: returned messages are delivered before or after the
        // queue is cut to its length.
        if is_head(self).is_none() {
            self.expire();
        }
        if is_head(self).is_none() {
            self.settle_queues();
        }
        if is_head(self).is_none() {
            self.expire_hidden(&name);
        }
        let head = is_head(self).ok_or_else(|| format!("{what}: it is not the next in {name}"))?;
        let queue = self.queue(&name).ok_or("no queue")?;
        let (entry, no_ack) = (&queue.entries[head], queue.consumers[place].no_ack);
        if entry.redelivered != redelivered {
            return Err(format!("{what}, redelivered {redelivered}"));
        }
        if !self.is_able(queue, place, false) {
            return Err(format!("{what}, who must not be given any"));
        }
        let priority = queue.consumers[place].priority;
        let mut others = (0..queue.consumers.len()).filter(|other| {
            let other = &queue.consumers[*other];
            other.priority > priority && !self.full.contains(&other.channel)
        });
        if let Some(other) = others.find(|other| self.is_able(queue, *other, true)) {
            let other = &queue.consumers[other].tag;
            return Err(format!("{what}, though {other} goes first"));
        }
        let expected = self.next_tag(to);
        if tag != expected {
            return Err(format!("{what} with tag {tag}, expected {expected}"));
        }
        self.give(&name, head, to, tag, Some(consumer.to_owned()), no_ack);
        Ok(())
    }

    pub(super) fn take_return(&mut self, to: Channel, message: u64) -> Result<(), String> {
        let mut returning = self.returning.iter();
        let place = returning.position(|known| *known == (to, message));
        let place = place.ok_or_else(|| format!("message {message} is returned"))?;
        self.returning.remove(place);
        Ok(())
    }

    fn take_confirm(
        &mut self,
        to: Channel,
        tag: u64,
        multiple: bool,
        is_ack: bool,
        failed: usize,
    ) -> Result<(), String> {
        let open = self.open_mut(to).ok_or("a confirm to a closed channel")?;
        let is_meant = |known: &Unconfirmed| known.tag == tag || (multiple && known.tag < tag);
        let unconfirmed = std::mem::take(&mut open.unconfirmed);
        let (meant, left): (Vec<_>, Vec<_>) = unconfirmed.into_iter().partition(is_meant);
        open.unconfirmed = left;
        if meant.is_empty() {
            return Err(format!("tag {tag} is confirmed, but nothing waits for it"));
        }
        for confirmed in meant {
            let message = confirmed.message;
            if is_ack && confirmed.is_rejected {
                return Err(format!("message {message} is confirmed, but was rejected"));
            }
            if is_ack && !self.is_safe(&confirmed) {
                // A full queue may have dropped it.
                self.settle_queues();
            }
            if is_ack && !self.is_safe(&confirmed) {
                return Err(format!("message {message} is confirmed before it is kept"));
            }
            if !is_ack && !confirmed.is_rejected && !is_failed(&confirmed, failed) {
                return Err(format!("message {message} is refused without reason"));
            }
            if self.returning.contains(&(to, message)) {
                return Err(format!(
                    "message {message} is confirmed before it is returned"
                ));
            }
        }
        Ok(())
    }

    /// Whether a crash would keep it, or it is in its place.
    fn is_safe(&self, confirmed: &Unconfirmed) -> bool {
        // A dead letter of a non-durable queue is not promised to survive, wherever it is published.
        !confirmed.is_durable
            || confirmed.since <= self.committed
            || !self.queues.iter().any(|queue| {
                queue.entries.iter().any(|entry| {
                    queue.keeps(entry.persistent)
                        && entry.message == confirmed.message
                        && entry.since == confirmed.since
                })
            })
    }

    fn check_answers(&mut self, mut answers: Vec<(Channel, Sent)>) -> Result<(), String> {
        let mut expected = std::mem::take(&mut self.expected);
        let order = |answer: &(Channel, Sent)| (answer.0, format!("{:?}", answer.1));
        expected.sort_by_key(order);
        answers.sort_by_key(order);
        if answers != expected {
            return Err(format!("answered {answers:?}, expected {expected:?}"));
        }
        if !self.returning.is_empty() {
            return Err(format!("{:?} are not returned", self.returning));
        }
        Ok(())
    }

    pub(super) fn check_deliveries(&self) -> Result<(), String> {
        for queue in &self.queues {
            let Some(head) = queue.head() else {
                continue;
            };
            let able = (0..queue.consumers.len()).find(|place| self.is_able(queue, *place, true));
            if let Some(place) = able {
                return Err(format!(
                    "message {} stays in {}, though {} could be given it",
                    queue.entries[head].message, queue.name, queue.consumers[place].tag
                ));
            }
        }
        Ok(())
    }

    fn check_confirms(&self, failed: usize) -> Result<(), String> {
        let unconfirmed = self.channels.iter().flat_map(|open| &open.unconfirmed);
        for waiting in unconfirmed {
            let message = waiting.message;
            if waiting.is_rejected || is_failed(waiting, failed) {
                return Err(format!("message {message} is not refused"));
            }
            if !waiting.is_durable || waiting.since <= self.committed {
                return Err(format!("message {message} is not confirmed"));
            }
        }
        Ok(())
    }
}

fn is_failed(waiting: &Unconfirmed, failed: usize) -> bool {
    waiting.is_durable && waiting.since <= failed
}
