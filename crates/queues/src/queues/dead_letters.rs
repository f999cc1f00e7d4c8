//! Dead letters: what was rejected, has expired or had no room goes to another exchange, and its
//! headers say how it died.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Entry, Queue};
use crate::ledger::Ledger;
use crate::shrink::shrink;
use crate::{MessageContent, QueueId, Record};

/// Why a message died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Rejected,
    Expired,
    MaxLength,
    DeliveryLimit,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

/// A message that has died and is to go to an exchange.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub(crate) content: Arc<MessageContent>,
    /// What is let go of when it is done; none, if the queue never took it.
    entry: Option<Entry>,
    /// What a store is told then: in the same journal after what it became, so that it is never
    /// in neither.
    stored: Option<QueueId>,
    pub(crate) reason: Reason,
    pub(crate) queue: Arc<str>,
    pub(crate) exchange: Arc<str>,
    pub(crate) routing_key: Option<Arc<str>>,
    /// How many deaths may follow from this one.
    pub(crate) following_max: u32,
}

/// So many deaths may follow at once from one message's: of copies of it, and of what these push out
/// of queues. It is more hops than anybody's retries have; and queues without room or time, each of
/// which has all others for its dead letters, would make the factorial of their number of copies.
/// Dead letters beyond the bound are dropped, and counted as such.
pub(crate) const FOLLOWING_MAX: u32 = 256;

/// Beyond so many that wait, those that follow from a message's death go before the others, so that
/// there are no more than that at a time beside what died by itself; and a publisher does as much of
/// them as its message may cause.
const WAITING_MAX: usize = 10_000;

/// Messages that died and have not gone where they are to go yet.
#[derive(Debug, Default)]
pub(crate) struct DeadLetters {
    waiting: VecDeque<DeadLetter>,
    /// How many have died in this input.
    died: usize,
}

impl DeadLetters {
    /// A message has left a queue that has an exchange for its dead letters.
    pub(super) fn die(&mut self, queue: &Queue, entry: Entry, reason: Reason) {
        let stored = queue.id.filter(|_| entry.is_stored);
        let content = Arc::clone(&entry.content);
        self.push(queue, content, Some(entry), stored, reason);
    }

    /// A message was not taken, and goes where the queue's dead letters go.
    pub(super) fn reject(
        &mut self,
        queue: &Queue,
        content: Arc<MessageContent>,
        ledger: &mut Ledger,
    ) {
        if queue.settings.dead_letter_exchange.is_some() {
            ledger.account_content(&content);
            self.push(queue, content, None, None, Reason::MaxLength);
        }
    }

    fn push(
        &mut self,
        queue: &Queue,
        content: Arc<MessageContent>,
        entry: Option<Entry>,
        stored: Option<QueueId>,
        reason: Reason,
    ) {
        let Some(exchange) = queue.settings.dead_letter_exchange.clone() else {
            return;
        };
        self.died += 1;
        self.waiting.push_back(DeadLetter {
            following_max: FOLLOWING_MAX,
            content,
            entry,
            stored,
            reason,
            queue: queue.name.clone(),
            exchange,
            routing_key: queue.settings.dead_letter_routing_key.clone(),
        });
    }

    /// The one that has waited longest; [`Self::let_go`] ends it.
    pub(crate) fn pop(&mut self) -> Option<DeadLetter> {
        self.waiting.pop_front()
    }

    /// One is where it goes, or nowhere. A store is told now: in the same journal after what it
    /// became, so that it is never in neither.
    pub(crate) fn let_go(dead: DeadLetter, ledger: &mut Ledger) {
        match dead.entry {
            None => ledger.release_content(&dead.content),
            Some(entry) => {
                if let Some(queue) = dead.stored {
                    let place = entry.place;
                    ledger.record(Record::Dequeued { queue, place });
                }
                ledger.release(&entry);
            }
        }
    }

    /// Those that have died in this input share what may follow from one death.
    pub(crate) fn share_following(&mut self) {
        let died = std::mem::take(&mut self.died);
        let of_each = FOLLOWING_MAX / died.max(1) as u32;
        for dead in self.waiting.iter_mut().rev().take(died) {
            dead.following_max = of_each;
        }
    }

    /// Those behind `waiting` have followed from a death from which so many may.
    pub(crate) fn bound_following(
        &mut self,
        waiting: usize,
        following_max: u32,
        ledger: &mut Ledger,
    ) {
        let following = (self.waiting.len() - waiting) as u32;
        let kept = following.min(following_max);
        while self.waiting.len() > waiting + kept as usize {
            if let Some(dead) = self.waiting.pop_back() {
                ledger.counts.dropped += 1;
                ledger.counts.dead_letters_cut += 1;
                Self::let_go(dead, ledger);
            }
        }
        if kept == 0 {
            return;
        }
        let of_each = (following_max - kept) / kept;
        for dead in self.waiting.range_mut(waiting..) {
            dead.following_max = of_each;
        }
        if waiting > WAITING_MAX {
            self.waiting.rotate_right(kept as usize);
        }
    }

    /// Sets aside what waits, so that what dies from now on is known as what follows;
    /// [`Self::put_first`] puts it before that.
    pub(crate) fn set_aside(&mut self) -> VecDeque<DeadLetter> {
        std::mem::take(&mut self.waiting)
    }

    pub(crate) fn put_first(&mut self, earlier: VecDeque<DeadLetter>) {
        let followed = std::mem::replace(&mut self.waiting, earlier);
        self.waiting.extend(followed);
    }

    /// Whether any have died since it was asked last.
    #[inline]
    pub(crate) fn take_died(&mut self) -> bool {
        std::mem::take(&mut self.died) > 0
    }

    /// Whether any have died in this input.
    #[inline]
    pub(crate) fn has_died(&self) -> bool {
        self.died > 0
    }

    /// There are so many that a publisher does a share of them.
    pub(crate) fn are_many(&self) -> bool {
        self.waiting.len() > WAITING_MAX
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// After many have gone.
    pub(crate) fn shrink(&mut self) {
        shrink(&mut self.waiting);
    }

    /// Each one's content, and whether a queue had it and its place counts still.
    #[cfg(test)]
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&Arc<MessageContent>, bool)> {
        let waiting = self.waiting.iter();
        waiting.map(|dead| (&dead.content, dead.entry.is_some()))
    }
}
