//! The invariants of consumers between any two inputs.

use std::collections::HashMap;

use super::Consumers;
use super::consumer::{Consumer, OfOneQueue, Turn};
use super::group::Group;
use crate::channels::Channels;
use crate::keys::{ConsumerKey, GroupKey};
use crate::{ChannelKey, QueueKey};

type OfGroups<'c> = HashMap<GroupKey, Vec<(ConsumerKey, &'c Consumer)>>;

impl Consumers {
    pub(crate) fn tags_of_channel(&self, key: ChannelKey) -> impl Iterator<Item = &str> {
        let channel = self.of_channels.find(key).into_iter();
        channel.flat_map(|channel| channel.by_tag.keys().map(|tag| &**tag))
    }

    /// Panics if an invariant is broken. `unacked`: the unacknowledged deliveries of a consumer; `is_settling`: a
    /// channel's answers are not all processed; `is_ready`: a queue has messages for a consumer with room.
    pub(crate) fn check_invariants<H>(
        &self,
        channels: &Channels<H>,
        unacked: impl Fn(ConsumerKey) -> usize,
        is_settling: impl Fn(ChannelKey) -> bool,
        is_ready: impl Fn(QueueKey) -> bool,
    ) {
        assert!(self.unblocked.is_empty());
        for (key, channel) in self.of_channels.iter() {
            let of_channel = |group| channel.groups.values().any(|g| g == group);
            assert!(channel.waiting.values().all(of_channel));
            for (tag, consumer) in &channel.by_tag {
                let consumer = self.consumers.find(*consumer).expect("is there");
                assert_eq!((&consumer.tag, consumer.channel), (tag, key));
            }
        }
        for (queue_key, queue) in self.of_queues.iter() {
            let mut of_groups = OfGroups::new();
            for (seat, key) in queue.consumers.iter() {
                let consumer = self.consumers.find(key).expect("is there");
                let seats = (consumer.seat, consumer.rank.priority);
                assert_eq!(seats, (seat, seat.priority));
                assert_eq!(consumer.unacked, unacked(key));
                match consumer.turn {
                    Turn::InLine => {}
                    // A consumer out of line is there for a temporary reason.
                    Turn::Blocked => assert!(consumer.is_at_limit()),
                    Turn::Waiting => assert!(consumer.reader.is_some()),
                    Turn::Inactive => assert!(queue.active != Some(key) || queue.awaited > 0),
                }
                let of_group = of_groups.entry(consumer.group).or_default();
                of_group.push((key, consumer));
            }
            for (key, consumers) in &of_groups {
                let group = self.groups.find(*key).expect("is there");
                let can_take = self.check_group(*key, group, consumers, channels, &is_settling);
                assert!(!can_take || !is_ready(queue_key), "{queue:?}");
            }
            self.check_line(queue, &of_groups);
        }
    }

    /// Checks that a group in line has room, and one out of line has not.
    fn check_group<H>(
        &self,
        key: GroupKey,
        group: &Group,
        consumers: &[(ConsumerKey, &Consumer)],
        channels: &Channels<H>,
        is_settling: impl Fn(ChannelKey) -> bool,
    ) -> bool {
        assert_eq!(group.consumers, consumers.len());
        let of_channel = self.of_channels.find(group.channel).expect("is there");
        assert_eq!(of_channel.groups.get(&group.queue), Some(&key));
        let in_line = consumers.iter().filter(|(_, c)| c.turn == Turn::InLine);
        let mut expected: Vec<_> = in_line.map(|(key, c)| (c.rank, *key)).collect();
        let mut found: Vec<_> = group.line.iter().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        let has_room = channels.has_room(group.channel).expect("is there");
        let Some(number) = group.waiting else {
            assert_eq!(group.rank, found.first().map(|(rank, _)| *rank));
            let mut consumers = found.iter().map(|(_, key)| self.consumers.find(*key));
            return has_room && consumers.any(|c| c.is_some_and(|c| !c.is_at_limit()));
        };
        assert_eq!(of_channel.waiting.get(&number), Some(&key));
        assert_eq!(group.rank, None);
        let (_, connection) = channels.both(group.channel).expect("is there");
        // A consumer out of line is there for a temporary reason.
        assert!(!has_room || connection.is_resuming || is_settling(group.channel));
        false
    }

    /// Checks that a queue's groups are in line, each at its place.
    fn check_line(&self, queue: &OfOneQueue, of_groups: &OfGroups<'_>) {
        let ranks = of_groups.keys().filter_map(|key| {
            let group = self.groups.find(*key)?;
            Some((group.rank?, *key))
        });
        let mut expected: Vec<_> = ranks.collect();
        let mut found: Vec<_> = queue.line.iter().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}
