//! The deliveries that a channel has not acknowledged.

use std::collections::VecDeque;

use crate::keys::ConsumerKey;
use crate::queues::Entry;
use crate::shrink::shrink;
use crate::{QueueKey, Time};

#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) queue: QueueKey,
    /// `None`: requested by `basic.get`.
    pub(crate) consumer: Option<ConsumerKey>,
    pub(crate) delivered_at: Time,
    pub(crate) entry: Entry,
}

impl Delivery {
    pub(crate) fn new(
        queue: QueueKey,
        consumer: Option<ConsumerKey>,
        delivered_at: Time,
        entry: Entry,
    ) -> Self {
        Self {
            queue,
            consumer,
            delivered_at,
            entry,
        }
    }
}

/// Deliveries by tag. Acknowledgements come from the front, mostly; one from within leaves a gap,
/// and gaps go when they are the half.
#[derive(Debug, Default)]
pub(crate) struct Unacked {
    /// In the order of their tags.
    deliveries: VecDeque<(u64, Option<Delivery>)>,
    count: usize,
}

impl Unacked {
    pub(crate) fn push(&mut self, tag: u64, delivery: Delivery) {
        self.deliveries.push_back((tag, Some(delivery)));
        self.count += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn oldest(&self) -> Option<&Delivery> {
        // The front is no gap.
        self.deliveries.front()?.1.as_ref()
    }

    pub(crate) fn contains(&self, tag: u64) -> bool {
        self.find(tag)
            .is_some_and(|at| self.deliveries[at].1.is_some())
    }

    /// Takes the delivery with that tag. Mostly it is the first, which needs no search.
    #[inline]
    pub(crate) fn take(&mut self, tag: u64) -> Option<Delivery> {
        match self.deliveries.front()?.0 == tag {
            true => self.take_first().map(|(_, delivery)| delivery),
            false => self.take_within(tag),
        }
    }

    fn take_within(&mut self, tag: u64) -> Option<Delivery> {
        let at = self.find(tag)?;
        let delivery = self.deliveries.get_mut(at)?.1.take()?;
        self.count -= 1;
        self.drop_gaps();
        Some(delivery)
    }

    /// Takes the first delivery, if its tag is not above that.
    pub(crate) fn take_up_to(&mut self, tag: u64) -> Option<(u64, Delivery)> {
        if self.deliveries.front()?.0 > tag {
            return None;
        }
        self.take_first()
    }

    /// The front, which is no gap.
    #[inline]
    fn take_first(&mut self) -> Option<(u64, Delivery)> {
        let (tag, delivery) = self.deliveries.pop_front()?;
        self.count -= 1;
        self.drop_gaps();
        Some((tag, delivery?))
    }

    /// Restores deliveries that were taken. Each fills its gap. If gaps have been removed since then, at least as many
    /// deliveries were taken as are left, so that a walk through all costs no more than taking them did.
    pub(crate) fn put_back(&mut self, mut deliveries: Vec<(u64, Delivery)>) {
        deliveries.sort_unstable_by_key(|(tag, _)| *tag);
        self.count += deliveries.len();
        let mut homeless = Vec::new();
        while let Some((tag, delivery)) = deliveries.pop() {
            match self.deliveries.binary_search_by_key(&tag, |d| d.0) {
                Ok(at) => self.deliveries[at].1 = Some(delivery),
                Err(0) => self.deliveries.push_front((tag, Some(delivery))),
                Err(_) => homeless.push((tag, Some(delivery))),
            }
        }
        if !homeless.is_empty() {
            self.deliveries.extend(homeless);
            let slots = self.deliveries.make_contiguous();
            slots.sort_by_key(|(tag, _)| *tag);
        }
    }

    /// Takes all deliveries up to that tag, to be processed one by one.
    pub(crate) fn split_up_to(&mut self, tag: u64) -> Self {
        if self.deliveries.back().is_none_or(|(last, _)| *last <= tag) {
            return std::mem::take(self);
        }
        let at = self.deliveries.partition_point(|(other, _)| *other <= tag);
        // Moves the smaller part.
        let deliveries = match at <= self.deliveries.len() / 2 {
            true => self.deliveries.drain(..at).collect(),
            false => {
                let rest = self.deliveries.split_off(at);
                std::mem::replace(&mut self.deliveries, rest)
            }
        };
        let is_there = |slot: &&(u64, Option<Delivery>)| slot.1.is_some();
        let count = deliveries.iter().filter(is_there).count();
        self.count -= count;
        self.drop_gaps();
        Self { deliveries, count }
    }

    /// Bytes that it takes in memory, beside the messages.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.deliveries.capacity() * size_of::<(u64, Option<Delivery>)>()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Delivery)> {
        let deliveries = self.deliveries.iter();
        deliveries.filter_map(|(tag, d)| Some((*tag, d.as_ref()?)))
    }

    fn find(&self, tag: u64) -> Option<usize> {
        match self.deliveries.front() {
            Some((first, _)) if *first == tag => Some(0),
            _ => self.deliveries.binary_search_by_key(&tag, |d| d.0).ok(),
        }
    }

    /// Mostly there are none: this is inlined up to where that is known.
    #[inline]
    fn drop_gaps(&mut self) {
        if self.deliveries.len() > self.count {
            self.drop_some_gaps();
        }
        shrink(&mut self.deliveries);
    }

    #[inline(never)]
    fn drop_some_gaps(&mut self) {
        while let Some((_, None)) = self.deliveries.front() {
            self.deliveries.pop_front();
        }
        if self.deliveries.len() > 2 * self.count + GAPS_MIN {
            self.deliveries.retain(|(_, delivery)| delivery.is_some());
        }
    }
}

/// Fewer gaps are not worth a walk.
const GAPS_MIN: usize = 32;
