//! Dead letters: messages that were rejected, expired or found no room are published to another exchange. Their headers
//! tell how they died.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Entry, Queue};
use crate::ledger::Ledger;
use crate::shrink::shrink;
use crate::{MessageContent, QueueId, QueueKey, Record};

crosstie_collections::named! {
    /// Why a message died.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Reason {
        Rejected = "rejected",
        Expired = "expired",
        MaxLength = "maxlen",
        DeliveryLimit = "delivery_limit",
    }
}

/// A dead message on its way to an exchange.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub(crate) content: Arc<MessageContent>,
    /// The entry to release when it is done; `None` if the queue never accepted it.
    entry: Option<Entry>,
    /// The queue whose record of the message is removed then, in the same journal after the new one, so that one of
    /// them always exists.
    stored: Option<QueueId>,
    pub(crate) reason: Reason,
    pub(crate) queue: Arc<str>,
    pub(crate) exchange: Arc<str>,
    pub(crate) routing_key: Option<Arc<str>>,
    /// The queue, if it keeps its dead letters until their targets have accepted them.
    pub(crate) source: Option<QueueKey>,
    /// How many deaths may follow from this one.
    pub(crate) following_max: u32,
}

/// Maximum number of deaths that follow at once from one message's: of its copies, and of messages that these push out
/// of queues. It is more hops than any retry scheme has. Without a bound, full queues that are each other's dead-letter
/// targets would make the factorial of their number of copies. Dead letters beyond the bound are dropped, and counted
/// as dropped.
pub(crate) const FOLLOWING_MAX: u32 = 256;

/// Number of waiting dead letters from which on the followers of a message precede the others. So there are no more
/// than that many at a time, beside those that died by themselves. A publisher then processes as many of them as its
/// message may cause.
const WAITING_MAX: usize = 10_000;

/// Messages that died and have not been published yet.
#[derive(Debug, Default)]
pub(crate) struct DeadLetters {
    waiting: VecDeque<DeadLetter>,
    /// Number of deaths and of traces in this input.
    died: usize,
    /// Traces of this input, which are published first.
    traces: VecDeque<MessageContent>,
}

impl DeadLetters {
    /// Adds a message that has left a queue with a dead-letter exchange.
    pub(super) fn die(&mut self, key: QueueKey, queue: &Queue, entry: Entry, reason: Reason) {
        let source = queue.settings.is_at_least_once.then_some(key);
        let stored = queue.id_of(&entry);
        let content = Arc::clone(&entry.content);
        self.push(queue, content, Some(entry), (stored, source), reason);
    }

    /// Sends a refused message to the queue's dead-letter exchange.
    pub(super) fn reject(
        &mut self,
        queue: &Queue,
        content: Arc<MessageContent>,
        ledger: &mut Ledger,
    ) {
        if queue.settings.dead_letter_exchange.is_some() {
            ledger.account_content(&content);
            self.push(queue, content, None, (None, None), Reason::MaxLength);
        }
    }

    fn push(
        &mut self,
        queue: &Queue,
        content: Arc<MessageContent>,
        entry: Option<Entry>,
        (stored, source): (Option<QueueId>, Option<QueueKey>),
        reason: Reason,
    ) {
        let Some(exchange) = queue.settings.dead_letter_exchange.clone() else {
            return;
        };
        self.died += 1;
        self.waiting.push_back(DeadLetter {
            following_max: FOLLOWING_MAX,
            source,
            content,
            entry,
            stored,
            reason,
            queue: queue.name.clone(),
            exchange,
            routing_key: queue.settings.dead_letter_routing_key.clone(),
        });
    }

    /// Adds the copy of a traced message.
    pub(crate) fn trace(&mut self, content: MessageContent) {
        self.died += 1;
        self.traces.push_back(content);
    }

    pub(crate) fn next_trace(&mut self) -> Option<MessageContent> {
        self.traces.pop_front()
    }

    /// Takes the one that has waited longest; [`Self::let_go`] finishes it.
    pub(crate) fn pop(&mut self) -> Option<DeadLetter> {
        self.waiting.pop_front()
    }

    /// Finishes a dead letter that was published or dropped. The store is told in the same journal after the new
    /// record, so that one of both always exists.
    pub(crate) fn let_go(dead: DeadLetter, ledger: &mut Ledger) {
        match dead.entry {
            None => ledger.release_content(&dead.content),
            Some(entry) => {
                if let Some(queue) = dead.stored {
                    let place = entry.place;
                    ledger.record(Record::dequeued(queue, place));
                }
                ledger.release(&entry);
            }
        }
    }

    /// Divides the number of followers allowed from one death among those that died in this input.
    pub(crate) fn share_following(&mut self) {
        let died = std::mem::take(&mut self.died).saturating_sub(self.traces.len());
        let of_each = FOLLOWING_MAX / died.max(1) as u32;
        for dead in self.waiting.iter_mut().rev().take(died) {
            dead.following_max = of_each;
        }
    }

    /// Bounds the dead letters behind `waiting`, which follow from one death. Those that their queue keeps are not cut.
    pub(crate) fn bound_following(
        &mut self,
        waiting: usize,
        following_max: u32,
        ledger: &mut Ledger,
    ) {
        let following = (self.waiting.len() - waiting) as u32;
        let kept = following.min(following_max);
        let mut spared = Vec::new();
        while self.waiting.len() > waiting + kept as usize
            && let Some(dead) = self.waiting.pop_back()
        {
            if dead.source.is_some() {
                spared.push(dead);
                continue;
            }
            ledger.counts.dropped += 1;
            ledger.counts.dead_letters_cut += 1;
            Self::let_go(dead, ledger);
        }
        self.waiting.extend(spared.into_iter().rev());
        if kept == 0 {
            return;
        }
        let of_each = (following_max - kept) / kept;
        for dead in self.waiting.range_mut(waiting..) {
            dead.following_max = of_each;
        }
        if waiting > WAITING_MAX {
            let following = self.waiting.len() - waiting;
            self.waiting.rotate_right(following);
        }
    }

    /// Sets the waiting ones aside, so that later ones are known to be followers; [`Self::put_first`] puts these back
    /// before the others.
    pub(crate) fn set_aside(&mut self) -> VecDeque<DeadLetter> {
        std::mem::take(&mut self.waiting)
    }

    pub(crate) fn put_first(&mut self, earlier: VecDeque<DeadLetter>) {
        let followed = std::mem::replace(&mut self.waiting, earlier);
        self.waiting.extend(followed);
    }

    /// Whether any have died since the last call.
    #[inline]
    pub(crate) fn take_died(&mut self) -> bool {
        std::mem::take(&mut self.died) > 0
    }

    /// Whether any have died in this input.
    #[inline]
    pub(crate) fn has_died(&self) -> bool {
        self.died > 0
    }

    /// Whether there are so many that a publisher processes a share of them.
    pub(crate) fn are_many(&self) -> bool {
        self.waiting.len() > WAITING_MAX
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives memory back after many have left.
    pub(crate) fn shrink(&mut self) {
        shrink(&mut self.waiting);
        shrink(&mut self.traces);
    }

    /// The content of each, with its entry if it comes from a queue.
    #[cfg(test)]
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&Arc<MessageContent>, Option<&Entry>)> {
        let waiting = self.waiting.iter();
        waiting.map(|dead| (&dead.content, dead.entry.as_ref()))
    }
}
