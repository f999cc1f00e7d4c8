//! What is true of a vhost between any two inputs; and a thousand inputs at random that keep it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use crosstie_amqp::method::*;
use crosstie_amqp::{BasicProperties, Method, Properties, Table, TableBuf, Value};
use crosstie_auth::Permissions;

use super::Vhost;
use crate::channel::{Consumer, Turn};
use crate::keys::{ConsumerKey, GroupKey};
use crate::queue::{Entry, Queue};
use crate::random::Random;
use crate::{
    ChannelKey, Client, ConnectionKey, Counts, Fault, MessageContent, Outbox, Refused, Time,
    VhostConfig,
};

impl<H> Vhost<H> {
    /// Panics where something is not as it must be.
    fn check_invariants(&self) {
        assert!(self.dead.is_empty(), "the dead are buried");
        let mut contents: HashMap<*const MessageContent, usize> = HashMap::new();
        let mut memory_bytes = 0;
        let mut hold = |entry: &Entry| {
            let content = Arc::as_ptr(&entry.content);
            if contents.insert(content, 0).is_none() {
                memory_bytes += entry.content.memory_bytes();
            }
            memory_bytes += Entry::MEMORY_BYTES;
        };
        let mut unacked_of_queue = HashMap::new();
        let mut unacked_of_consumer = HashMap::new();
        let (mut uncommitted_bytes, mut committing) = (0, 0);
        for (key, channel) in self.channels.iter() {
            let mut prefetched = 0;
            let transaction = channel.transaction.as_deref();
            let held = transaction.into_iter().flat_map(|tx| tx.deliveries());
            uncommitted_bytes += transaction.map_or(0, |tx| tx.publication_bytes());
            committing += usize::from(transaction.is_some_and(|tx| tx.is_committing));
            for (tag, delivery) in channel.unacked.iter().chain(held) {
                hold(&delivery.entry);
                *unacked_of_queue.entry(delivery.queue).or_insert(0) += 1;
                prefetched += usize::from(channel.counts(tag, delivery.consumer));
                if let Some(consumer) = delivery.consumer {
                    *unacked_of_consumer.entry(consumer).or_insert(0) += 1;
                }
            }
            assert_eq!(channel.prefetched, prefetched);
            let connection = self.connections.find(channel.connection);
            let connection = connection.expect("a channel has a connection");
            assert!(connection.channels.contains(&key));
            assert!(
                channel
                    .waiting
                    .values()
                    .all(|group| channel.groups.values().any(|g| g == group))
            );
            for (tag, consumer) in &channel.consumers {
                let consumer = self.consumers.find(*consumer).expect("is there");
                assert_eq!((&consumer.tag, consumer.channel), (tag, key));
            }
        }
        for (key, queue) in self.queues.iter() {
            let unacked = unacked_of_queue.remove(&key).unwrap_or(0);
            assert_eq!(queue.unacknowledged, unacked, "of {}", queue.name);
            let order = |entry: &Entry| (Reverse(entry.level), entry.place);
            let messages = &queue.messages;
            assert!(messages.iter().is_sorted_by(|a, b| order(a) < order(b)));
            let is_its_level = |e: &Entry| e.level == queue.level(e.content.properties());
            assert!(messages.iter().all(is_its_level));
            assert!(!queue.overflows() || queue.unacknowledged > 0);
            let bodies = queue.messages.iter().map(|e| e.content.body().len() as u64);
            assert_eq!(queue.body_bytes, bodies.sum::<u64>());
            queue.messages.iter().for_each(&mut hold);
            if let Some(expires_at) = queue.messages.front().and_then(|e| e.expires_at) {
                assert!(queue.head_timer.is_some_and(|at| at <= expires_at));
            }
            let mut consumers = HashMap::new();
            for (seat, key) in queue.consumers.iter() {
                let consumer = self.consumers.find(key).expect("is there");
                assert_eq!(
                    (consumer.seat, consumer.rank.priority),
                    (seat, seat.priority)
                );
                let unacked = unacked_of_consumer.remove(&key).unwrap_or(0);
                assert_eq!(consumer.unacked, unacked);
                match consumer.turn {
                    Turn::InLine => {}
                    // Nobody is forgotten.
                    Turn::Blocked => assert!(consumer.is_at_limit()),
                    Turn::Inactive => assert_ne!(queue.active_consumer, Some(key)),
                }
                let of_group = consumers.entry(consumer.group).or_insert_with(Vec::new);
                of_group.push((key, consumer));
            }
            self.check_groups(queue, &consumers);
        }
        assert!(self.unblocked.is_empty());
        assert_eq!(self.memory_bytes, memory_bytes);
        assert_eq!(self.committing, committing);
        assert_eq!(self.uncommitted_bytes, uncommitted_bytes);
        let of_connections = self.connections.iter().map(|(_, c)| c.uncommitted_bytes);
        assert_eq!(uncommitted_bytes, of_connections.sum::<usize>());
    }

    fn check_groups(
        &self,
        queue: &Queue,
        consumers: &HashMap<GroupKey, Vec<(ConsumerKey, &Consumer)>>,
    ) {
        let mut line = Vec::new();
        for (key, consumers) in consumers {
            let group = self.groups.find(*key).expect("is there");
            assert_eq!(group.consumers, consumers.len());
            let channel = self.channels.find(group.channel).expect("is there");
            assert_eq!(channel.groups.get(&group.queue), Some(key));
            let in_line = consumers.iter().filter(|(_, c)| c.turn == Turn::InLine);
            let mut expected: Vec<_> = in_line.map(|(key, c)| (c.rank, *key)).collect();
            let mut found: Vec<_> = group.line.iter().collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected);
            let connection = self.connections.find(channel.connection).expect("is there");
            let is_stopped = connection.is_full || channel.is_at_limit();
            match group.waiting {
                Some(number) => {
                    assert_eq!(channel.waiting.get(&number), Some(key));
                    // Nobody is forgotten.
                    assert!(is_stopped);
                    assert_eq!(group.rank, None);
                }
                None => assert_eq!(group.rank, found.first().map(|(rank, _)| *rank)),
            }
            line.extend(group.rank.map(|rank| (rank, *key)));
            let can_take = !is_stopped
                && found.iter().any(|(_, consumer)| {
                    let consumer = self.consumers.find(*consumer).expect("is there");
                    !consumer.is_at_limit()
                });
            assert!(queue.messages.is_empty() || !can_take, "{queue:?}");
        }
        let mut found: Vec<_> = queue.line.iter().collect();
        line.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, line);
    }
}

struct Sink {
    full: Vec<u32>,
}

impl Outbox<u32> for Sink {
    fn send(&mut self, _to: &u32, _channel: u16, _method: &Method<'_>) {}

    fn send_content(
        &mut self,
        to: &u32,
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        _body: &[u8],
    ) -> Result<(), Refused> {
        match self.full.contains(to) {
            true => Err(Refused::Full),
            false => Ok(()),
        }
    }

    fn send_owed(
        &mut self,
        to: &u32,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        self.send_content(to, channel, method, properties, body)
    }

    fn close_channel(&mut self, _to: &u32, _channel: u16, _fault: &Fault) {}
}

struct Driver {
    vhost: Vhost<u32>,
    random: Random,
    now: Time,
    sink: Sink,
    connections: Vec<(u32, ConnectionKey)>,
    channels: Vec<(ConnectionKey, ChannelKey)>,
}

#[test]
fn random_inputs_keep_the_invariants() {
    let mut happened = Counts::default();
    for seed in 0..40 {
        let mut config = VhostConfig::named("/");
        config.consumer_timeout_ms = Some(400);
        let mut driver = Driver {
            vhost: Vhost::new(config, seed),
            random: Random::new(seed),
            now: Time(1_000),
            sink: Sink { full: Vec::new() },
            connections: Vec::new(),
            channels: Vec::new(),
        };
        for _ in 0..1_500 {
            driver.step();
            driver.vhost.flush_confirms(&mut driver.sink);
            driver.vhost.check_invariants();
        }
        for (_, key) in std::mem::take(&mut driver.connections) {
            driver
                .vhost
                .close_connection(driver.now, key, &mut driver.sink);
            driver.vhost.check_invariants();
        }
        driver.now.0 += 1_000_000;
        driver.vhost.handle_timeout(driver.now, &mut driver.sink);
        driver.vhost.check_invariants();
        let position = driver.vhost.journal().position;
        driver.vhost.handle_committed(position, &mut driver.sink);
        assert!(driver.vhost.line.is_empty());
        let counts = driver.vhost.counts();
        assert_eq!(counts.messages_unacknowledged, 0);
        happened.delivered += counts.delivered;
        happened.redelivered += counts.redelivered;
        happened.confirmed += counts.confirmed;
        happened.expired += counts.expired;
        happened.committed += counts.committed;
        happened.rolled_back += counts.rolled_back;
        happened.dropped += counts.dropped;
        happened.dead_lettered += counts.dead_lettered;
    }
    assert!(happened.delivered > 1_000, "{happened:?}");
    assert!(happened.redelivered > 200, "{happened:?}");
    assert!(happened.confirmed > 200, "{happened:?}");
    assert!(happened.committed > 50, "{happened:?}");
    assert!(happened.rolled_back > 50, "{happened:?}");
    assert!(happened.expired > 200, "{happened:?}");
    assert!(happened.dropped > 50, "{happened:?}");
    assert!(happened.dead_lettered > 50, "{happened:?}");
}

impl Driver {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.next() % bound
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    fn step(&mut self) {
        if self.connections.is_empty() || self.below(40) == 0 {
            self.connect();
        }
        if self.channels.is_empty() || self.below(20) == 0 {
            let at = self.below(self.connections.len() as u64) as usize;
            let (_, connection) = self.connections[at];
            let number = self.channels.len() as u16 + 1;
            if let Ok(channel) = self.vhost.open_channel(connection, number) {
                self.channels.push((connection, channel));
            }
            return;
        }
        let at = self.below(self.channels.len() as u64) as usize;
        let (connection, channel) = self.channels[at];
        match self.below(31) {
            0 => {
                self.vhost.close_channel(self.now, channel, &mut self.sink);
                self.channels.swap_remove(at);
            }
            1 if self.below(4) == 0 => self.disconnect(connection),
            2 => self.toggle(connection),
            3 => {
                let position = self.vhost.journal().position;
                self.vhost.handle_committed(position, &mut self.sink);
            }
            4 if self.below(8) == 0 => {
                let position = self.vhost.journal().position;
                self.vhost
                    .handle_not_committed(self.now, position, &mut self.sink);
                let vhost = &self.vhost;
                self.channels
                    .retain(|(_, channel)| vhost.channels.find(*channel).is_some());
            }
            4..=5 => {
                self.now.0 += self.below(50);
                self.vhost.handle_timeout(self.now, &mut self.sink);
            }
            6..=15 => self.publish(connection, channel),
            _ => self.method(connection, channel),
        }
    }

    fn connect(&mut self) {
        let number = self.random.next() as u32;
        let client = Client {
            user: "guest".into(),
            permissions: Arc::new(Permissions::all()),
            consumer_cancel_notify: true,
            is_impersonator: false,
        };
        let key = self.vhost.open_connection(number, client);
        self.connections.push((number, key));
    }

    fn disconnect(&mut self, connection: ConnectionKey) {
        self.vhost
            .close_connection(self.now, connection, &mut self.sink);
        self.connections.retain(|(_, key)| *key != connection);
        self.channels.retain(|(key, _)| *key != connection);
    }

    fn toggle(&mut self, connection: ConnectionKey) {
        let found = self.connections.iter().find(|(_, key)| *key == connection);
        let Some((number, key)) = found.copied() else {
            return;
        };
        if self.sink.full.contains(&number) {
            self.sink.full.retain(|full| *full != number);
            self.vhost.resume(self.now, key, &mut self.sink);
        } else {
            self.sink.full.push(number);
        }
    }

    fn publish(&mut self, connection: ConnectionKey, channel: ChannelKey) {
        let expirations = [None, None, None, Some("0"), Some("20"), Some("100")];
        let named = BasicProperties {
            delivery_mode: self.chance().then_some(2),
            expiration: expirations[self.below(6) as usize],
            priority: self
                .chance()
                .then(|| [0, 1, 2, 3, 9, 255][self.below(6) as usize]),
            ..BasicProperties::default()
        };
        let mut octets = Vec::new();
        named.write(&mut octets);
        let properties = Properties::from_octets(&octets).expect("was written so");
        let exchanges = ["", "", "amq.fanout", "amq.direct"];
        let publish = BasicPublish {
            exchange: exchanges[self.below(4) as usize],
            routing_key: self.name(),
            mandatory: self.chance(),
            immediate: false,
        };
        let body = vec![b'x'; self.below(30) as usize];
        let done = self.vhost.publish(
            self.now,
            channel,
            &publish,
            properties,
            &body,
            &mut self.sink,
        );
        self.ended(connection, channel, done);
    }

    fn name(&mut self) -> &'static str {
        ["a", "b", "c", "d", "e"][self.below(5) as usize]
    }

    fn method(&mut self, connection: ConnectionKey, channel: ChannelKey) {
        let queue = self.name();
        let consumer_tag = self.name();
        let multiple = self.chance();
        let requeue = self.chance();
        let no_ack = self.chance();
        let delivery_tag = self.oldest(channel) + self.below(3);
        let arguments = self.arguments();
        let arguments: Table<'_> = arguments.as_table();
        let mut of_consumer = TableBuf::new();
        if self.below(3) == 0 {
            let priority = [i64::MIN, -1, 0, 1, 2, i64::MAX][self.below(6) as usize];
            of_consumer = of_consumer.with("x-priority", Value::I64(priority));
        }
        let method: Method<'_> = match self.below(31) {
            0..=3 => QueueDeclare {
                queue,
                durable: self.chance(),
                exclusive: self.below(6) == 0,
                auto_delete: self.below(4) == 0,
                arguments,
                ..QueueDeclare::default()
            }
            .into(),
            4 => QueueDelete {
                queue,
                ..QueueDelete::default()
            }
            .into(),
            5 => QueueBind {
                queue,
                exchange: ["amq.fanout", "amq.direct"][usize::from(multiple)],
                routing_key: consumer_tag,
                ..QueueBind::default()
            }
            .into(),
            6..=9 => BasicConsume {
                queue,
                consumer_tag,
                no_ack,
                exclusive: self.below(10) == 0,
                arguments: of_consumer.as_table(),
                ..BasicConsume::default()
            }
            .into(),
            10 => BasicCancel {
                consumer_tag,
                no_wait: false,
            }
            .into(),
            11 => BasicQos {
                prefetch_size: 0,
                prefetch_count: self.below(4) as u16,
                global: self.chance(),
            }
            .into(),
            12..=14 => BasicGet { queue, no_ack }.into(),
            15..=18 => BasicAck {
                delivery_tag,
                multiple,
            }
            .into(),
            19..=20 => BasicNack {
                delivery_tag,
                multiple,
                requeue,
            }
            .into(),
            21 => BasicRecover { requeue: true }.into(),
            22 => QueuePurge {
                queue,
                no_wait: false,
            }
            .into(),
            23 => ConfirmSelect { no_wait: false }.into(),
            24..=25 => TxSelect {}.into(),
            26..=28 => TxCommit {}.into(),
            _ => TxRollback {}.into(),
        };
        let done = self
            .vhost
            .handle(self.now, channel, &method, &mut self.sink);
        self.ended(connection, channel, done);
    }

    fn arguments(&mut self) -> TableBuf {
        let mut table = TableBuf::new();
        let kind: &[u8] = match self.below(4) {
            0 => b"quorum",
            _ => b"classic",
        };
        table = table.with("x-queue-type", Value::LongString(kind));
        if self.chance() {
            table = table.with("x-max-length", Value::I32(self.below(5) as i32));
        }
        if self.below(3) == 0 {
            table = table.with("x-message-ttl", Value::I32(self.below(60) as i32));
        }
        if kind == b"classic" && self.chance() {
            let max = [1, 3, 255][self.below(3) as usize];
            table = table.with("x-max-priority", Value::I32(max));
        }
        if self.below(3) == 0 {
            table = table.with("x-overflow", Value::LongString(b"reject-publish"));
        }
        if self.chance() {
            let key = self.name().as_bytes();
            table = table
                .with("x-dead-letter-exchange", Value::LongString(b""))
                .with("x-dead-letter-routing-key", Value::LongString(key));
        }
        if self.below(4) == 0 {
            table = table.with("x-single-active-consumer", Value::Bool(true));
        }
        if self.below(4) == 0 {
            table = table.with("x-expires", Value::I32(1 + self.below(100) as i32));
        }
        if kind == b"quorum" {
            table = table.with("x-delivery-limit", Value::I32(self.below(3) as i32));
        }
        table
    }

    /// A tag that can be acknowledged, where there is one.
    fn oldest(&self, channel: ChannelKey) -> u64 {
        let channel = self.vhost.channels.find(channel);
        channel.map_or(0, |c| c.last_tag.saturating_sub(c.unacked.len() as u64))
    }

    fn ended(&mut self, connection: ConnectionKey, channel: ChannelKey, done: Result<(), Fault>) {
        let Err(fault) = done else {
            return;
        };
        if fault.code.is_hard() {
            self.disconnect(connection);
        } else {
            self.vhost.close_channel(self.now, channel, &mut self.sink);
            self.channels.retain(|(_, key)| *key != channel);
        }
    }
}
