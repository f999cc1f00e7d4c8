//! A thousand random inputs, between which all invariants of a vhost hold.

use std::collections::HashMap;
use std::sync::Arc;

use crosstie_amqp::method::*;
use crosstie_amqp::{BasicProperties, Method, Properties, Table, TableBuf, Value};

use super::Vhost;
use super::random_methods::{arguments, end_of_delivery, name, policies};
use crate::paper_disk::Disk;
use crate::random::Random;
use crate::{
    ChannelKey, Client, ConnectionKey, Counts, Fault, Outbox, Paging, QueueId, Record, Refused,
    RetainedMax, Time, VhostConfig, Want,
};

const RETAINED_MAX: RetainedMax = RetainedMax {
    messages: 3,
    bytes: 1_000,
};

/// The name of an exchange that delays messages.
const LATER: &str = "later";

struct Sink {
    full: Vec<u32>,
    /// The charge of each connection.
    held: HashMap<u32, isize>,
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

    fn hold(&mut self, to: &u32, delta: isize) {
        let held = self.held.entry(*to).or_default();
        *held += delta;
        assert!(*held >= 0);
    }
}

struct Driver {
    vhost: Vhost<u32>,
    random: Random,
    now: Time,
    sink: Sink,
    connections: Vec<(u32, ConnectionKey)>,
    channels: Vec<(ConnectionKey, ChannelKey)>,
    is_paging: bool,
    disk: Disk,
    /// The pages that are being read.
    reading: Vec<Want>,
    /// Messages whose commit may be said to have failed.
    recent: Vec<(QueueId, i64)>,
    pages: usize,
}

#[test]
fn random_inputs_keep_the_invariants() {
    let mut happened = Counts::default();
    let mut pages = 0;
    let mut delayed = 0;
    let mut applied = 0;
    for seed in 0..40 {
        let mut driver = Driver::new(seed);
        for _ in 0..1_500 {
            driver.step();
            driver.vhost.flush_confirms(&mut driver.sink);
            driver.vhost.check_invariants();
            delayed += driver.vhost.counts().messages_delayed;
            driver.write();
            if driver.chance() {
                driver.work();
            }
            if driver.chance() {
                driver.read();
            }
        }
        for (_, key) in std::mem::take(&mut driver.connections) {
            driver
                .vhost
                .close_connection(driver.now, key, &mut driver.sink);
            driver.vhost.check_invariants();
        }
        driver.work_all();
        driver.now.0 += 1_000_000;
        driver.work_all();
        let position = driver.vhost.journal().position;
        driver.vhost.handle_committed(position, &mut driver.sink);
        driver.work_all();
        assert!(driver.sink.held.values().all(|held| *held == 0));
        assert!(driver.vhost.confirms.is_empty());
        let counts = driver.vhost.counts();
        assert_eq!(counts.messages_unacknowledged, 0);
        assert_eq!(counts.messages_delayed, 0, "seed {seed}");
        pages += driver.pages;
        happened.delivered += counts.delivered;
        happened.redelivered += counts.redelivered;
        happened.confirmed += counts.confirmed;
        happened.expired += counts.expired;
        happened.committed += counts.committed;
        happened.rolled_back += counts.rolled_back;
        happened.dropped += counts.dropped;
        happened.dead_lettered += counts.dead_lettered;
        applied += driver.vhost.applied_count();
    }
    assert!(applied > 10, "{applied}");
    assert!(pages > 200, "{pages}");
    assert!(delayed > 10_000, "{delayed}");
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
    fn new(seed: u64) -> Self {
        let mut config = VhostConfig::named("/");
        config.consumer_timeout_ms = Some(400);
        if seed % 2 == 1 {
            // Nearly everything is cut into parts.
            config.input_steps_max = 1 + (seed % 7) as u32;
        }
        if seed % 3 == 1 {
            // Nearly every queue is deep.
            config.paging = Paging {
                memory_bytes: 0,
                messages: (seed % 4) as usize,
                body_bytes: u64::MAX,
                crowded_messages: 3,
                crowded_body_bytes: u64::MAX,
                spills: seed.is_multiple_of(2),
            };
        }
        Self {
            vhost: Vhost::new(config, seed),
            random: Random::new(seed),
            now: Time(1_000),
            sink: Sink {
                full: Vec::new(),
                held: HashMap::new(),
            },
            connections: Vec::new(),
            channels: Vec::new(),
            is_paging: seed % 3 == 1,
            disk: Disk::default(),
            reading: Vec::new(),
            recent: Vec::new(),
            pages: 0,
        }
    }

    /// Does some of the postponed work.
    fn work(&mut self) {
        let steps_max = self.below(40) as u32;
        self.vhost.work(self.now, steps_max, &mut self.sink);
        self.vhost.check_invariants();
    }

    /// Does all of it, and the due timers.
    fn work_all(&mut self) {
        let is_due = |vhost: &Vhost<u32>, now| vhost.next_timeout().is_some_and(|at| at <= now);
        loop {
            self.write();
            while self.vhost.has_wants() || !self.reading.is_empty() {
                self.read();
            }
            if !self.vhost.has_backlog() && !is_due(&self.vhost, self.now) {
                return;
            }
            self.vhost.handle_timeout(self.now, &mut self.sink);
            self.work();
        }
    }

    /// Writes what is in the journal.
    fn write(&mut self) {
        let records = std::mem::take(&mut self.vhost.journal().records);
        for record in records {
            if let Record::Enqueued { queue, place, .. } = &record {
                self.recent.push((*queue, *place));
            }
            self.disk.write(record);
        }
        if self.is_paging && self.chance() {
            let position = self.vhost.journal().position;
            self.vhost.handle_committed(position, &mut self.sink);
        }
    }

    /// Begins to read a page, or ends to.
    fn read(&mut self) {
        if self.chance() {
            self.reading.extend(self.vhost.take_want());
        }
        if self.reading.is_empty() || self.chance() {
            return;
        }
        let at = self.below(self.reading.len() as u64) as usize;
        let want = self.reading.swap_remove(at);
        let page = self.disk.read(&want, 1 + at);
        let missing = self
            .vhost
            .handle_page(self.now, &want, page, &mut self.sink);
        assert_eq!(missing, 0);
        self.vhost.check_invariants();
        self.pages += 1;
        self.write();
    }

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
                self.vhost.withdraw(&std::mem::take(&mut self.recent));
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
            16 => self.change_later(connection, channel),
            18 if self.below(4) == 0 => {
                let is_crowded = !self.vhost.is_crowded();
                self.vhost.set_crowded(is_crowded);
            }
            17 if self.below(4) == 0 => {
                let policies = policies(&mut self.random);
                self.vhost
                    .set_policies(self.now, Arc::new(policies), &mut self.sink);
            }
            _ => self.method(connection, channel),
        }
    }

    fn connect(&mut self) {
        let number = self.random.next() as u32;
        let client = Client::unrestricted("guest");
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
        let is_delayed = self.vhost.topology.exchange(LATER).is_some() && self.below(4) == 0;
        let delays_ms = [-1, 1, 30, 400, 5_000, 200_000];
        let delay_ms = delays_ms[self.below(6) as usize];
        let delayed = TableBuf::new().with("x-delay", Value::I32(delay_ms));
        let named = BasicProperties {
            delivery_mode: self.chance().then_some(2),
            expiration: expirations[self.below(6) as usize],
            priority: self
                .chance()
                .then(|| [0, 1, 2, 3, 9, 255][self.below(6) as usize]),
            headers: is_delayed.then(|| delayed.as_table()),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        named.write(&mut bytes);
        let properties = Properties::from_bytes(&bytes).expect("was written so");
        let mut exchange = ["", "", "amq.fanout", "amq.direct"][self.below(4) as usize];
        if is_delayed {
            exchange = LATER;
        }
        let publish = BasicPublish {
            exchange,
            routing_key: self.name(),
            mandatory: self.chance(),
            immediate: false,
        };
        let body = vec![b'x'; self.below(30) as usize];
        let (now, sink) = (self.now, &mut self.sink);
        let done = match body.len() % 4 {
            0 => {
                let (content, max) = ((properties, &body[..]), RETAINED_MAX);
                let vhost = &mut self.vhost;
                let done = vhost.publish_retained(now, channel, &publish, content, max, sink);
                done.map(drop)
            }
            _ => (self.vhost).publish(now, channel, &publish, properties, &body, sink),
        };
        self.ended(connection, channel, done);
    }

    fn name(&mut self) -> &'static str {
        name(&mut |bound| self.below(bound))
    }

    /// Declares the exchange that delays messages, binds a queue to it, or rarely deletes it.
    fn change_later(&mut self, connection: ConnectionKey, channel: ChannelKey) {
        let arguments = TableBuf::new().with("x-delayed-type", Value::LongString(b"fanout"));
        let method: Method<'_> = match self.below(12) {
            0 => ExchangeDelete {
                exchange: LATER,
                ..ExchangeDelete::default()
            }
            .into(),
            1..=4 => QueueBind::of(self.name()).to(LATER, "").into(),
            _ if self.vhost.topology.exchange(LATER).is_some() => return,
            _ => ExchangeDeclare {
                exchange: LATER,
                kind: "x-delayed-message",
                durable: self.chance(),
                arguments: arguments.as_table(),
                ..ExchangeDeclare::default()
            }
            .into(),
        };
        let done = self
            .vhost
            .handle(self.now, channel, &method, &mut self.sink);
        self.ended(connection, channel, done);
    }

    fn method(&mut self, connection: ConnectionKey, channel: ChannelKey) {
        let queue = self.name();
        let consumer_tag = self.name();
        let multiple = self.chance();
        let requeue = self.chance();
        let no_ack = self.chance();
        let delivery_tag = self.oldest(channel) + self.below(3);
        let arguments = arguments(&mut self.random);
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
            5 => QueueBind::of(queue)
                .to(
                    ["amq.fanout", "amq.direct"][usize::from(multiple)],
                    consumer_tag,
                )
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
            22 => QueuePurge {
                queue,
                no_wait: false,
            }
            .into(),
            drawn => end_of_delivery(drawn, delivery_tag, multiple, requeue),
        };
        let done = self
            .vhost
            .handle(self.now, channel, &method, &mut self.sink);
        self.ended(connection, channel, done);
    }

    /// A tag that can be acknowledged, if there is one.
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
