//! Deep queues with priorities: each priority has its own middle on the disk.

use super::*;

#[test]
fn a_deep_queue_with_priorities_delivers_the_highest_first_and_each_message_once() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, PRIORITY_MAX);
        deep.declare();
        (0..400).for_each(|number| deep.publish(number));
        for _ in 0..100 {
            deep.go_on();
        }
        let status = deep.vhost.queues().next().expect("a queue");
        assert_eq!((status.messages_ready, status.message_bytes), (400, 1_600));
        assert!(deep.vhost.memory_bytes() < 40 * 250, "seed {seed}");
        check_drain(&mut deep, (0..400).collect());
    }
}

#[test]
fn a_message_with_a_higher_priority_overtakes_those_on_the_disk() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, PRIORITY_MAX);
        deep.declare();
        // All of one priority; one message of the highest arrives among each ten that are consumed.
        let low = |number: &u32| priority_of(*number) == 0;
        (0..1_000)
            .filter(low)
            .for_each(|number| deep.publish(number));
        let high = (1_000..2_000).filter(|number| priority_of(*number) == PRIORITY_MAX);
        for number in high.take(15) {
            deep.publish(number);
            deep.consume(10);
            deep.handle(BasicCancel {
                consumer_tag: "c",
                no_wait: false,
            });
            assert!(deep.sent.first.contains(&number), "seed {seed}: {number}");
        }
        deep.consume(200 + 15 - deep.acknowledged.len());
        let firsts = deep.sent.first.iter().copied().filter(low);
        assert!(firsts.eq((0..1_000).filter(low)), "seed {seed}");
    }
}

#[test]
fn a_restart_leaves_messages_with_priorities_on_the_disk() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, PRIORITY_MAX);
        deep.declare();
        (0..400).for_each(|number| deep.publish(number));
        let (kept, mut numbers) = deep.disk.keep(QueueId(1));
        assert_eq!(kept.len(), 1 + usize::from(PRIORITY_MAX));
        let disk = std::mem::take(&mut deep.disk);
        let mut again = Deep::with(seed, PRIORITY_MAX, disk, kept);
        assert_eq!(again.vhost.memory_bytes(), 0, "seed {seed}");
        assert_eq!(again.ready(), numbers.len());
        (400..440).for_each(|number| again.publish(number));
        numbers.extend(400..440);
        check_drain(&mut again, numbers);
    }
}

/// A log may have left them to itself before it knew that their queue has priorities.
#[test]
fn messages_at_places_without_a_priority_come_before_others_of_the_lowest() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, PRIORITY_MAX);
        deep.declare();
        (0..200).for_each(|number| deep.publish(number));
        deep.disk.forget_levels(60);
        let (kept, mut numbers) = deep.disk.keep(QueueId(1));
        assert_eq!(kept.len(), 1 + usize::from(PRIORITY_MAX));
        let disk = std::mem::take(&mut deep.disk);
        let mut again = Deep::with(seed, PRIORITY_MAX, disk, kept);
        assert_eq!(again.ready(), numbers.len());
        (200..240).for_each(|number| again.publish(number));
        numbers.extend(200..240);
        again.consume(numbers.len());
        // The first number has the first age.
        let level = |number: u32| if number < 60 { 0 } else { priority_of(number) };
        numbers.sort_by_key(|number| (std::cmp::Reverse(level(*number)), *number));
        assert_eq!(again.sent.first, numbers, "seed {seed}");
        assert!(again.vhost.memory_bytes() < 500);
    }
}

#[test]
fn a_purge_of_priorities_leaves_nothing_on_the_disk() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, PRIORITY_MAX);
        deep.declare();
        (0..200).for_each(|number| deep.publish(number));
        deep.handle(BasicGet {
            queue: "q",
            no_ack: false,
        });
        deep.handle(QueuePurge {
            queue: "q",
            no_wait: false,
        });
        (200..230).for_each(|number| deep.publish(number));
        assert_eq!(deep.ready(), 30, "seed {seed}");
        check_drain(&mut deep, (200..230).collect());
    }
}

/// Takes out all messages, of which these are left: each level in its order, the highest first.
pub(super) fn check_drain(deep: &mut Deep, mut numbers: Vec<u32>) {
    deep.consume(numbers.len());
    numbers.sort_by_key(|number| (std::cmp::Reverse(priority_of(*number)), *number));
    assert_eq!(deep.sent.first, numbers);
    numbers.sort_unstable();
    deep.acknowledged.sort_unstable();
    assert_eq!(deep.acknowledged, numbers);
    for _ in 0..100 {
        deep.go_on();
    }
}
