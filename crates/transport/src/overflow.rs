//! A receiver's own bounds: how much may wait for it, and the treatment of events that it takes too slowly.
//!
//! Most connections have none, and pay one branch for this. While a socket is full, or the queue is half full, items
//! for a receiver that drops its oldest events are kept one by one, in [`Kept`]. There the oldest event can be removed;
//! in a [`Queue`] none can.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::queue::Queue;

/// The treatment of events for which there is no room. Other items are refused in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The new event is refused.
    #[default]
    DropNew,
    /// The oldest events are dropped. A mailbox refuses the new one.
    DropOldest,
    /// The new event is refused; the sender has to close the connection.
    Disconnect,
    /// The sender is notified before there is no room ([`Queued::Slowly`]); then new events are refused.
    HoldBack,
}

/// A receiver's own bounds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of queued bytes, if that is less than its listener's bound.
    pub queue_bytes_max: usize,
    pub overflow: Overflow,
    /// Counts dropped events.
    pub count_dropped: fn(usize),
}

/// How an event was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    Freely,
    /// More than half of the bound waits: the sender has to wait for [`crate::Connection::eased`].
    Slowly,
}

/// Bytes of kept items that become a queue at a time.
const REFILL_BYTES: usize = 64 * 1024;
/// Overhead of an item in bytes.
const ITEM_BYTES: usize = size_of::<(u64, Item)>();

/// The bounds of one connection, and the state that they need.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) bounds: Bounds,
    pub(crate) kept: Kept,
    /// Notifies tasks that less is queued; a cancelled wait leaves nothing behind.
    pub(crate) ease: Arc<Notify>,
}

/// Items behind a full socket, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    events: VecDeque<(u64, Item)>,
    others: VecDeque<(u64, Item)>,
    number_last: u64,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) enum Item {
    Whole(Bytes),
    /// As in [`Queue::append_parts`].
    Parts(Vec<u8>, Vec<(usize, Bytes)>),
}

impl Own {
    pub(crate) fn of(bounds: Bounds) -> Self {
        Self {
            bounds,
            kept: Kept::default(),
            ease: Arc::default(),
        }
    }
}

impl Item {
    pub(crate) fn parts(own: &[u8], parts: &[(usize, &Bytes)]) -> Self {
        let parts = parts
            .iter()
            .map(|(place, part)| (*place, Bytes::clone(part)));
        Self::Parts(own.to_vec(), parts.collect())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Parts(own, parts) => {
                let parts: usize = parts.iter().map(|(_, part)| part.len()).sum();
                own.len() + parts
            }
        }
    }

    fn append_to(&self, queue: &mut Queue) {
        match self {
            Self::Whole(bytes) => queue.append_shared(bytes),
            Self::Parts(own, parts) => {
                let parts: Vec<_> = parts.iter().map(|(place, part)| (*place, part)).collect();
                queue.append_parts(own, &parts);
            }
        }
    }
}

impl Kept {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.others.is_empty()
    }

    /// Waiting bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Bytes held for them.
    pub(crate) fn held(&self) -> usize {
        self.bytes + (self.events.len() + self.others.len()) * ITEM_BYTES
    }

    pub(crate) fn push(&mut self, item: Item, is_event: bool) {
        self.number_last += 1;
        self.bytes += item.len();
        match is_event {
            true => self.events.push_back((self.number_last, item)),
            false => self.others.push_back((self.number_last, item)),
        }
    }

    /// Drops the oldest events until so many bytes are free, or none are left; returns how many.
    pub(crate) fn drop_oldest(&mut self, bytes: usize) -> usize {
        let mut free = 0;
        let mut dropped = 0;
        while free < bytes
            && let Some((_, item)) = self.events.pop_front()
        {
            free += item.len();
            dropped += 1;
        }
        self.bytes -= free;
        dropped
    }

    /// Moves the oldest items to an empty queue, until that has so many bytes.
    pub(crate) fn refill(&mut self, queue: &mut Queue, bytes_max: usize) {
        while queue.len() < bytes_max.clamp(1, REFILL_BYTES)
            && let Some(item) = self.pop()
        {
            self.bytes -= item.len();
            item.append_to(queue);
        }
        if self.is_empty() {
            *self = Self::default();
        }
    }

    fn pop(&mut self) -> Option<Item> {
        let event = self.events.front().map_or(u64::MAX, |(number, _)| *number);
        let other = self.others.front().map_or(u64::MAX, |(number, _)| *number);
        let items = match event < other {
            true => &mut self.events,
            false => &mut self.others,
        };
        items.pop_front().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        Item::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_oldest_events_are_dropped_and_the_order_stays() {
        for (items, free, dropped, left) in [
            ("e1 o2 e3 o4 e5", 0, 0, "e1o2e3o4e5"),
            ("e1 o2 e3 o4 e5", 1, 1, "o2e3o4e5"),
            ("e1 o2 e3 o4 e5", 3, 2, "o2o4e5"),
            ("o1 o2", 9, 0, "o1o2"),
            ("", 1, 0, ""),
        ] {
            let mut kept = Kept::default();
            for text in items.split_whitespace() {
                kept.push(item(text), text.starts_with('e'));
            }
            assert_eq!(kept.drop_oldest(free), dropped, "{items}");
            assert_eq!(kept.len(), left.len(), "{items}");
            let mut queue = Queue::default();
            kept.refill(&mut queue, usize::MAX);
            let mut bytes = Vec::new();
            queue.copy_to(queue.len(), &mut bytes);
            assert_eq!(bytes, left.as_bytes(), "{items}");
            assert!(kept.is_empty() && kept.held() == 0);
        }
    }

    #[test]
    fn a_queue_is_refilled_in_portions() {
        let mut kept = Kept::default();
        for _ in 0..3 {
            kept.push(
                Item::parts(&[1; 10], &[(5, &vec![2; REFILL_BYTES].into())]),
                true,
            );
        }
        for left in [2, 1, 0] {
            let mut queue = Queue::default();
            kept.refill(&mut queue, usize::MAX);
            assert_eq!(queue.len(), REFILL_BYTES + 10);
            assert_eq!(kept.len(), left * (REFILL_BYTES + 10));
        }
    }
}
