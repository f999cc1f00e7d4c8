//! Deep queues deliver each message once and in order, however their pages come.

mod crowded;
mod priorities;
mod retained;
mod rules;

use std::sync::Arc;

use crosstie_amqp::method::*;
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf, Value};

use super::Vhost;
use crate::paper_disk::Disk;
use crate::random::Random;
use crate::{
    ChannelKey, Client, Fault, Kept, MessageContent, Outbox, Paging, QueueId, Record, Refused,
    StoredMessage, Time, VhostConfig,
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
            match self.first.contains(&number) {
                true => assert!(deliver.redelivered, "{number} has come before"),
                false => self.first.push(number),
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
        (disk, records): (Disk, Vec<Record>),
    ) -> Self {
        let mut config = VhostConfig::named("/");
        config.paging = paging;
        let mut vhost = Vhost::new(config, seed);
        let mut sent = Sent::default();
        if !records.is_empty() {
            vhost.restore(
                NOW,
                Record::queue_declared(QueueId(1), "q", arguments(priority_max)),
            );
            for record in records {
                vhost.restore(NOW, record);
            }
            vhost.restored(NOW, &mut sent);
        }
        let client = Client::unrestricted("guest");
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
        self.apply(method);
        self.go_on();
    }

    fn apply<'m>(&mut self, method: impl Into<Method<'m>>) {
        let done = self
            .vhost
            .handle(NOW, self.channel, &method.into(), &mut self.sent);
        done.expect("is accepted");
        self.vhost.flush_confirms(&mut self.sent);
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
        let delivery_mode = 1 + (self.random.next() % 2) as u8;
        self.publish_as(number, delivery_mode);
        self.go_on();
    }

    fn publish_as(&mut self, number: u32, delivery_mode: u8) {
        let named = BasicProperties {
            delivery_mode: Some(delivery_mode),
            priority: (self.priority_max > 0).then(|| priority_of(number)),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        named.write(&mut bytes);
        let properties = Properties::from_bytes(&bytes).expect("was written so");
        let publish = BasicPublish::to("", "q");
        let body = number.to_be_bytes();
        let sent = &mut self.sent;
        let done = self
            .vhost
            .publish(NOW, self.channel, &publish, properties, &body, sent);
        done.expect("is accepted");
        self.vhost.flush_confirms(&mut self.sent);
    }

    /// A page has what is committed, and nothing later.
    fn commit(&mut self) {
        let position = self.vhost.journal().position;
        for record in std::mem::take(&mut self.vhost.journal().records) {
            self.disk.write(record);
        }
        self.vhost.handle_committed(position, &mut self.sent);
    }

    /// Commits, reads and works, each or not.
    fn go_on(&mut self) {
        if self.random.next().is_multiple_of(2) {
            self.commit();
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

    fn begin_consuming(&mut self, prefetch_count: u16) {
        self.apply(BasicQos::of_each(prefetch_count));
        self.apply(BasicConsume {
            queue: "q",
            consumer_tag: "c",
            ..BasicConsume::default()
        });
    }

    /// Consumes until so many were acknowledged; some are requeued. Returns their numbers in the order of their first
    /// delivery.
    fn consume(&mut self, count: usize) -> Vec<u32> {
        self.begin_consuming(7);
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
                    self.handle(BasicAck::one(delivery_tag));
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

/// A quorum queue puts them behind all others, so they leave memory again.
#[test]
fn messages_that_return_to_the_end_of_a_deep_queue_stay_redelivered() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, 0);
        deep.handle(QueueDeclare {
            queue: "q",
            durable: true,
            arguments: TableBuf::new()
                .with("x-queue-type", Value::LongString(b"quorum"))
                .as_table(),
            ..QueueDeclare::default()
        });
        (0..200).for_each(|number| deep.publish(number));
        deep.consume(200);
        assert_eq!(deep.sent.first, (0..200).collect::<Vec<u32>>());
        deep.acknowledged.sort_unstable();
        assert_eq!(deep.acknowledged, deep.sent.first, "seed {seed}");
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
        deep.handle(BasicQos::of_each(5));
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
