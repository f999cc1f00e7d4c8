//! Deep queues deliver each message once and in order, however their pages come.

mod crowded;
mod rules;

use std::sync::Arc;

use crosstie_amqp::method::*;
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf, Value};
use crosstie_auth::Permissions;

use super::Vhost;
use crate::paper_disk::Disk;
use crate::random::Random;
use crate::{
    ChannelKey, Client, Fault, Kept, Outbox, Paging, QueueId, Record, Refused, Time, VhostConfig,
};

/// What a consumer was sent.
#[derive(Default)]
struct Sent {
    /// Delivery tag, number of the message, and whether it is marked as redelivered.
    deliveries: Vec<(u64, u32, bool)>,
    /// All numbers, in the order of the first delivery.
    first: Vec<u32>,
    purged: Option<u32>,
}

impl Outbox<()> for Sent {
    fn send(&mut self, _to: &(), _channel: u16, method: &Method<'_>) {
        if let Method::QueuePurgeOk(ok) = method {
            self.purged = Some(ok.message_count);
        }
    }

    fn send_content(
        &mut self,
        _to: &(),
        _channel: u16,
        method: &Method<'_>,
        _properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if let Method::BasicDeliver(deliver) = method {
            let number = u32::from_be_bytes(body[..4].try_into().expect("a number"));
            self.deliveries
                .push((deliver.delivery_tag, number, deliver.redelivered));
            if !self.first.contains(&number) {
                self.first.push(number);
            }
        }
        Ok(())
    }

    fn send_owed(
        &mut self,
        to: &(),
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        self.send_content(to, channel, method, properties, body)
    }

    fn close_channel(&mut self, _to: &(), _channel: u16, fault: &Fault) {
        panic!("{}", fault.text);
    }

    fn hold(&mut self, _to: &(), _delta: isize) {}
}

struct Deep {
    vhost: Vhost<()>,
    channel: ChannelKey,
    sent: Sent,
    disk: Disk,
    random: Random,
    /// The numbers of acknowledged messages.
    acknowledged: Vec<u32>,
    /// 0: without priorities.
    priority_max: u8,
}

const NOW: Time = Time(1_000);
const PRIORITY_MAX: u8 = 4;

fn arguments(priority_max: u8) -> TableBuf {
    match priority_max {
        0 => TableBuf::new(),
        max => TableBuf::new().with("x-max-priority", Value::I32(max.into())),
    }
}

/// The priority of the message with that number, in queues that have priorities.
fn priority_of(number: u32) -> u8 {
    (number * 7 % 5) as u8
}

impl Deep {
    /// After a restart if there are messages of the queue.
    fn paging(
        seed: u64,
        priority_max: u8,
        paging: Paging,
        (disk, kept): (Disk, Vec<Kept>),
    ) -> Self {
        let mut config = VhostConfig::named("/");
        config.paging = paging;
        let mut vhost = Vhost::new(config, seed);
        let mut sent = Sent::default();
        if !kept.is_empty() {
            vhost.restore(
                NOW,
                Record::QueueDeclared {
                    id: QueueId(1),
                    name: "q".into(),
                    auto_delete: false,
                    arguments: arguments(priority_max),
                },
            );
            for kept in kept {
                vhost.restore(NOW, Record::Kept(kept));
            }
            vhost.restored(NOW, &mut sent);
        }
        let client = Client {
            user: "guest".into(),
            permissions: Arc::new(Permissions::all()),
            consumer_cancel_notify: true,
            is_impersonator: false,
        };
        let connection = vhost.open_connection((), client);
        let channel = vhost.open_channel(connection, 1).expect("a channel");
        Self {
            vhost,
            channel,
            sent,
            disk,
            random: Random::new(seed),
            acknowledged: Vec::new(),
            priority_max,
        }
    }

    fn handle<'m>(&mut self, method: impl Into<Method<'m>>) {
        let done = self
            .vhost
            .handle(NOW, self.channel, &method.into(), &mut self.sent);
        done.expect("is accepted");
        self.vhost.flush_confirms(&mut self.sent);
        self.go_on();
    }

    fn declare(&mut self) {
        self.handle(QueueDeclare {
            queue: "q",
            durable: true,
            arguments: arguments(self.priority_max).as_table(),
            ..QueueDeclare::default()
        });
    }

    fn publish(&mut self, number: u32) {
        let named = BasicProperties {
            delivery_mode: Some(1 + (self.random.next() % 2) as u8),
            priority: (self.priority_max > 0).then(|| priority_of(number)),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        named.write(&mut bytes);
        let properties = Properties::from_bytes(&bytes).expect("was written so");
        let publish = BasicPublish {
            routing_key: "q",
            ..BasicPublish::default()
        };
        let body = number.to_be_bytes();
        let sent = &mut self.sent;
        let done = self
            .vhost
            .publish(NOW, self.channel, &publish, properties, &body, sent);
        done.expect("is accepted");
        self.vhost.flush_confirms(&mut self.sent);
        self.go_on();
    }

    /// Commits, reads and works, each or not.
    fn go_on(&mut self) {
        if self.random.next().is_multiple_of(2) {
            let position = self.vhost.journal().position;
            // A page has what is committed, and nothing later.
            for record in std::mem::take(&mut self.vhost.journal().records) {
                self.disk.write(record);
            }
            self.vhost.handle_committed(position, &mut self.sent);
        }
        if self.random.next().is_multiple_of(2) {
            self.vhost.work(NOW, 20, &mut self.sent);
        }
        if self.random.next().is_multiple_of(2)
            && let Some(want) = self.vhost.take_want()
        {
            let messages_max = 1 + (self.random.next() % 30) as usize;
            let page = self.disk.read(&want, messages_max);
            let sent = &mut self.sent;
            assert_eq!(self.vhost.handle_page(NOW, &want, page, sent), 0);
        }
        self.vhost.check_invariants();
    }

    /// Consumes until so many were acknowledged; some are requeued. Returns their numbers in the order of their first
    /// delivery.
    fn consume(&mut self, count: usize) -> Vec<u32> {
        self.handle(BasicQos {
            prefetch_size: 0,
            prefetch_count: 7,
            global: false,
        });
        self.handle(BasicConsume {
            queue: "q",
            consumer_tag: "c",
            ..BasicConsume::default()
        });
        let mut first = Vec::new();
        let upto = self.acknowledged.len() + count;
        for _ in 0..100_000 {
            if self.acknowledged.len() == upto {
                break;
            }
            if self.sent.deliveries.is_empty() {
                self.go_on();
                continue;
            }
            let at = self.random.next() as usize % self.sent.deliveries.len();
            let (delivery_tag, number, is_redelivered) = self.sent.deliveries.remove(at);
            if !is_redelivered || !first.contains(&number) {
                first.push(number);
            }
            match self.random.next() % 4 {
                0 => self.handle(BasicNack {
                    delivery_tag,
                    multiple: false,
                    requeue: true,
                }),
                _ => {
                    self.acknowledged.push(number);
                    self.handle(BasicAck {
                        delivery_tag,
                        multiple: false,
                    });
                }
            }
        }
        assert_eq!(self.acknowledged.len(), upto);
        first
    }

    fn ready(&self) -> usize {
        let status = self.vhost.queues().next().expect("a queue");
        status.messages_ready
    }
}

#[test]
fn a_deep_queue_delivers_each_message_once_and_little_is_in_memory() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, 0);
        deep.declare();
        (0..400).for_each(|number| deep.publish(number));
        for _ in 0..40 {
            deep.go_on();
        }
        let status = deep.vhost.queues().next().expect("a queue");
        assert_eq!(status.messages_ready, 400);
        assert_eq!(status.message_bytes, 1_600);
        assert!(deep.vhost.memory_bytes() < 100 * 250, "seed {seed}");
        let mut first = deep.consume(400);
        // The consumer is sent at most seven at a time, and settles them in any order.
        assert!(
            first.is_sorted_by(|a, b| *a < *b + 60),
            "seed {seed}: {first:?}"
        );
        first.sort_unstable();
        assert_eq!(first, (0..400).collect::<Vec<u32>>(), "seed {seed}");
        for _ in 0..100 {
            deep.go_on();
        }
        assert_eq!(deep.vhost.memory_bytes(), 0);
        assert!(deep.disk.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_purge_leaves_the_messages_that_are_held() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, 0);
        deep.declare();
        (0..200).for_each(|number| deep.publish(number));
        deep.handle(BasicQos {
            prefetch_size: 0,
            prefetch_count: 5,
            global: false,
        });
        deep.handle(BasicConsume {
            queue: "q",
            ..BasicConsume::default()
        });
        for _ in 0..200 {
            deep.go_on();
        }
        deep.handle(QueuePurge {
            queue: "q",
            no_wait: false,
        });
        assert_eq!(deep.sent.purged, Some(195), "seed {seed}");
        (200..230).for_each(|number| deep.publish(number));
        for _ in 0..100 {
            deep.go_on();
        }
        let held: Vec<u32> = deep.sent.deliveries.iter().map(|sent| sent.1).collect();
        assert_eq!(held, [0, 1, 2, 3, 4]);
        let status = deep.vhost.queues().next().expect("a queue");
        assert_eq!(status.messages_ready, 30);
        let mut left = deep.consume(35);
        left.sort_unstable();
        assert_eq!(left, (0..5).chain(200..230).collect::<Vec<u32>>());
    }
}

#[test]
fn a_restart_reads_no_message_before_it_is_wanted() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, 0);
        deep.declare();
        (0..300).for_each(|number| deep.publish(number));
        let (kept, numbers) = deep.disk.keep(QueueId(1));
        assert_eq!(kept[0].messages, numbers.len());
        let mut again = Deep::with(seed, 0, std::mem::take(&mut deep.disk), kept);
        assert_eq!(again.vhost.memory_bytes(), 0);
        let status = again.vhost.queues().next().expect("a queue");
        assert_eq!(status.messages_ready, numbers.len());
        (300..340).for_each(|number| again.publish(number));
        let mut all = again.consume(numbers.len() + 40);
        all.sort_unstable();
        let expected: Vec<u32> = numbers.into_iter().chain(300..340).collect();
        assert_eq!(all, expected, "seed {seed}");
    }
}

#[test]
fn a_consumer_that_catches_up_and_falls_back_gets_each_message_once() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, 0);
        deep.declare();
        let mut published = 0;
        for round in 0..12 {
            let more = 1 + (deep.random.next() % 120) as u32;
            (published..published + more).for_each(|number| deep.publish(number));
            published += more;
            assert!(deep.vhost.memory_bytes() < 100 * 250, "seed {seed}");
            // Every third time it catches up; otherwise it falls back.
            let ready = deep.ready();
            let count = if round % 3 == 2 { ready } else { ready / 2 };
            deep.consume(count);
            deep.handle(BasicCancel {
                consumer_tag: "c",
                no_wait: false,
            });
        }
        deep.consume(published as usize - deep.acknowledged.len());
        deep.acknowledged.sort_unstable();
        assert_eq!(deep.acknowledged, (0..published).collect::<Vec<u32>>());
        for _ in 0..100 {
            deep.go_on();
        }
        assert_eq!(deep.vhost.memory_bytes(), 0);
        assert!(deep.disk.is_empty(), "seed {seed}");
    }
}

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
fn check_drain(deep: &mut Deep, mut numbers: Vec<u32>) {
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
