//! Records for the store when the vhost ends in good order: the messages that have been delivered before.

use std::collections::BTreeMap;

use super::messages::age;
use super::{Queue, Queues};
use crate::{QueueKey, Record};

impl Queues {
    /// Records that make `redelivered` exact after a restart, for each durable queue; `held`: the places of messages
    /// that channels hold.
    pub(crate) fn rest(&self, held: &BTreeMap<QueueKey, Vec<i64>>) -> Vec<Record> {
        let mut records = Vec::new();
        for (key, queue) in self.queues.iter() {
            queue.rest(held.get(&key).map_or(&[], Vec::as_slice), &mut records);
        }
        records
    }
}

impl Queue {
    fn rest(&self, held: &[i64], records: &mut Vec<Record>) {
        let Some(queue) = self.id else {
            return;
        };
        let fresh = self.messages.lanes().filter_map(|lane| lane.first_fresh());
        let fresh = fresh
            .map(|entry| age(entry.place))
            .chain(self.first_fresh_below());
        let fresh_from = fresh.min().unwrap_or(self.next_place);
        // With priorities a message may be delivered before one that has waited longer. A quorum queue has counted each
        // delivery already.
        if !self.is_quorum() {
            let delivered = self.messages.lanes().flat_map(|lane| lane.delivered());
            let delivered = delivered.filter(|entry| entry.is_stored && entry.deliveries == 0);
            let places = delivered
                .map(|entry| entry.place)
                .chain(held.iter().copied());
            records.extend(
                places
                    .filter(|place| age(*place) > fresh_from)
                    .map(|place| Record::Delivered {
                        queue,
                        place,
                        deliveries: 1,
                    }),
            );
        }
        records.push(Record::Rested { queue, fresh_from });
    }

    /// The age of the first message behind the heads that was never delivered.
    fn first_fresh_below(&self) -> Option<i64> {
        let firsts = self.messages.depths().filter_map(|depths| {
            let on_disk = depths
                .places()
                .map(|(from, to)| (age(from).max(self.redelivered_before), age(to)));
            let on_disk = on_disk
                .filter(|(from, to)| from <= to)
                .map(|(from, _)| from);
            let mut tail = depths.tail().iter().filter(|entry| !entry.is_redelivered);
            on_disk.or_else(|| Some(age(tail.next()?.place)))
        });
        firsts.min()
    }
}
