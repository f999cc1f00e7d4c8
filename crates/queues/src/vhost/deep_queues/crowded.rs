//! Short queues while memory is crowded: their first messages stay, and each comes once and in order.

use super::priorities::check_drain;
use super::*;

impl Deep {
    fn crowd(&mut self, is_crowded: bool) {
        self.vhost.set_crowded(is_crowded);
        for _ in 0..100 {
            self.go_on();
        }
    }
}

#[test]
fn a_crowded_memory_keeps_the_first_messages_of_a_short_queue() {
    for (seed, priority_max) in (0..20).flat_map(|seed| [(seed, 0), (seed, PRIORITY_MAX)]) {
        let mut deep = Deep::shallow(seed, priority_max);
        (0..400).for_each(|number| deep.publish(number));
        assert!(deep.vhost.memory_bytes() > 400 * 100, "seed {seed}");
        deep.crowd(true);
        let heads = 1 + usize::from(priority_max);
        let most = heads * 4 * 250;
        assert!(deep.vhost.memory_bytes() < most, "seed {seed}");
        // A queue that is at rest by then, and one that is not.
        (400..440).for_each(|number| deep.publish(number));
        deep.crowd(seed % 2 == 0);
        assert_eq!(deep.ready(), 440);
        match priority_max {
            0 => {
                let mut first = deep.consume(440);
                assert!(first.is_sorted_by(|a, b| *a < *b + 60), "{first:?}");
                first.sort_unstable();
                assert_eq!(first, (0..440).collect::<Vec<u32>>(), "seed {seed}");
            }
            _ => check_drain(&mut deep, (0..440).collect()),
        }
    }
}

#[test]
fn messages_that_consumers_have_or_gave_back_are_not_read_again_when_memory_is_crowded() {
    for seed in 0..40 {
        let mut deep = Deep::shallow(seed, 0);
        (0..300).for_each(|number| deep.publish(number));
        // Some are acknowledged, some come back, and some stay with the consumer.
        let consumed = deep.random.next() as usize % 100;
        deep.consume(consumed);
        deep.handle(BasicCancel {
            consumer_tag: "c",
            no_wait: false,
        });
        for round in 0..3 {
            deep.crowd(round % 2 == 0);
            let before = deep.vhost.memory_bytes();
            assert!(round > 0 || before < 40 * 250, "seed {seed}: {before}");
        }
        deep.consume(300 - deep.acknowledged.len());
        deep.acknowledged.sort_unstable();
        assert_eq!(
            deep.acknowledged,
            (0..300).collect::<Vec<u32>>(),
            "seed {seed}"
        );
        for _ in 0..100 {
            deep.go_on();
        }
        assert_eq!(deep.vhost.memory_bytes(), 0);
        assert!(deep.disk.is_empty(), "seed {seed}");
    }
}

/// A page has what the store had at its last commit.
#[test]
fn returned_messages_stay_in_memory_until_departures_are_stored() {
    let mut deep = Deep::shallow(1, 0);
    (0..12).for_each(|number| deep.publish_as(number, 2));
    (12..20).for_each(|number| deep.publish_as(number, 1));
    deep.begin_consuming(12);
    deep.handle(BasicCancel {
        consumer_tag: "c",
        no_wait: false,
    });
    deep.commit();
    // The transient messages get records. Before these are stored one message is acknowledged, and the others return.
    deep.vhost.set_crowded(true);
    deep.vhost.work(NOW, 1_000, &mut deep.sent);
    let position = deep.vhost.journal().position;
    let records = std::mem::take(&mut deep.vhost.journal().records);
    assert_eq!(records.len(), 8);
    for (delivery_tag, number, _) in std::mem::take(&mut deep.sent.deliveries) {
        match number {
            9 => deep.apply(BasicAck::one(delivery_tag)),
            _ => deep.apply(BasicNack {
                delivery_tag,
                multiple: false,
                requeue: true,
            }),
        }
    }
    let departure = std::mem::take(&mut deep.vhost.journal().records);
    assert_eq!(departure.len(), 1);
    for record in records {
        deep.disk.write(record);
    }
    deep.vhost.handle_committed(position, &mut deep.sent);
    deep.vhost.work(NOW, 1_000, &mut deep.sent);
    deep.begin_consuming(8);
    let want = deep.vhost.take_want().expect("a page is due");
    let page = deep.disk.read(&want, 100);
    let places: Vec<i64> = page.messages.iter().map(|paged| paged.place).collect();
    assert_eq!(places, (12..20).collect::<Vec<i64>>());
}

/// Those are tried once more, when no departure waits for the store.
#[test]
fn returned_messages_leave_memory_once_departures_are_stored() {
    let mut deep = Deep::shallow(1, 0);
    (0..20).for_each(|number| deep.publish_as(number, 2));
    deep.begin_consuming(20);
    deep.apply(BasicCancel {
        consumer_tag: "c",
        no_wait: false,
    });
    let deliveries = std::mem::take(&mut deep.sent.deliveries);
    deep.apply(BasicNack {
        delivery_tag: deliveries[19].0,
        multiple: true,
        requeue: true,
    });
    deep.commit();
    deep.vhost.set_crowded(true);
    let get = BasicGet {
        queue: "q",
        no_ack: true,
    };
    // The relief waits for the commit of one departure, behind which another one comes.
    deep.apply(get);
    deep.vhost.work(NOW, 1_000, &mut deep.sent);
    let position = deep.vhost.journal().position;
    for record in std::mem::take(&mut deep.vhost.journal().records) {
        deep.disk.write(record);
    }
    deep.apply(get);
    deep.vhost.handle_committed(position, &mut deep.sent);
    deep.vhost.work(NOW, 1_000, &mut deep.sent);
    let before = deep.vhost.memory_bytes();
    deep.commit();
    deep.vhost.work(NOW, 1_000, &mut deep.sent);
    let after = deep.vhost.memory_bytes();
    assert!(after * 4 < before, "{before} {after}");
    let mut left = deep.consume(18);
    left.sort_unstable();
    assert_eq!(left, (2..20).collect::<Vec<u32>>());
}

/// A log would have transient messages on all nodes, because one of these has little memory.
#[test]
fn messages_without_a_record_stay_if_a_restart_cannot_forget_them() {
    for seed in 0..20 {
        let mut deep = Deep::in_a_log(seed);
        (0..200).for_each(|number| deep.publish_as(number, 2));
        // Among them, and behind them.
        (200..210).for_each(|number| deep.publish_as(number, 1));
        (210..300).for_each(|number| deep.publish_as(number, 2));
        deep.commit();
        let before = deep.vhost.memory_bytes();
        deep.vhost.set_crowded(true);
        while deep.vhost.has_backlog() {
            deep.vhost.work(NOW, 100, &mut deep.sent);
            deep.vhost.check_invariants();
        }
        assert_eq!(deep.vhost.journal().records, [], "seed {seed}");
        // The last ones leave.
        let after = deep.vhost.memory_bytes();
        let left = before - after;
        assert!((before / 4..before / 3).contains(&left), "{before} {after}");
        let first = deep.consume(300);
        assert!(first.is_sorted_by(|a, b| *a < *b + 60), "{first:?}");
        deep.commit();
        assert!(deep.disk.is_empty(), "seed {seed}");
    }
}

/// A page of such places would be taken for one of the lowest priority.
#[test]
fn messages_at_places_of_an_earlier_version_stay_if_their_queue_has_priorities() {
    let queue = QueueId(1);
    let records = |properties: &[u8]| {
        let enqueued = (0..40_u32).map(|number| {
            let content = MessageContent::new("", "q", properties, &number.to_be_bytes());
            Record::enqueued(
                queue,
                i64::from(number) + 1,
                StoredMessage::new(Arc::new(content)),
            )
        });
        let rested = Record::Rested {
            queue,
            fresh_from: 1,
        };
        enqueued.chain([rested]).collect()
    };
    let named = BasicProperties {
        delivery_mode: Some(2),
        priority: Some(3),
        ..BasicProperties::default()
    };
    let mut properties = Vec::new();
    named.write(&mut properties);
    for spills in [false, true] {
        let mut deep = Deep::restored(1, PRIORITY_MAX, spills, records(&properties));
        deep.crowd(true);
        let mut consumed = deep.consume(40);
        consumed.sort_unstable();
        assert_eq!(consumed, (0..40).collect::<Vec<u32>>());
    }
}

#[test]
fn each_of_many_queues_is_relieved_in_turns_that_are_bounded() {
    let mut deep = Deep::shallow(1, 0);
    const QUEUES: usize = 1_000;
    let name = |nth: usize| format!("q{nth}");
    for nth in 0..QUEUES {
        deep.handle(QueueDeclare {
            queue: &name(nth),
            durable: true,
            ..QueueDeclare::default()
        });
        for _ in 0..20 {
            let properties = Properties::from_bytes(&[0, 0]).expect("none");
            let name = name(nth);
            let publish = BasicPublish::to("", &name);
            let sent = &mut deep.sent;
            let done = deep
                .vhost
                .publish(NOW, deep.channel, &publish, properties, b"body", sent);
            done.expect("is accepted");
        }
    }
    let before = deep.vhost.memory_bytes();
    deep.vhost.take_steps();
    deep.vhost.set_crowded(true);
    while deep.vhost.has_backlog() {
        deep.vhost.work(NOW, 256, &mut deep.sent);
        let steps = deep.vhost.take_steps();
        assert!(steps < 2_500, "one turn took {steps} steps");
        for record in std::mem::take(&mut deep.vhost.journal().records) {
            deep.disk.write(record);
        }
        let position = deep.vhost.journal().position;
        deep.vhost.handle_committed(position, &mut deep.sent);
    }
    let after = deep.vhost.memory_bytes();
    assert!(after * 4 < before, "{before} {after}");
}

#[test]
fn a_long_head_gets_its_records_in_turns_that_are_bounded() {
    let mut deep = Deep::shallow(1, 0);
    for _ in 0..20_000 {
        let properties = Properties::from_bytes(&[0, 0]).expect("none");
        let publish = BasicPublish::to("", "q");
        let sent = &mut deep.sent;
        let done = deep
            .vhost
            .publish(NOW, deep.channel, &publish, properties, b"body", sent);
        done.expect("is accepted");
    }
    deep.vhost.take_steps();
    deep.vhost.set_crowded(true);
    let mut turns = 0;
    while deep.vhost.has_backlog() {
        deep.vhost.work(NOW, 256, &mut deep.sent);
        let steps = deep.vhost.take_steps();
        assert!(steps < 5_000, "one turn took {steps} steps");
        let records = std::mem::take(&mut deep.vhost.journal().records);
        assert!(records.len() <= 2_048, "{} records", records.len());
        turns += 1;
    }
    assert!(turns > 5, "{turns}");
}
