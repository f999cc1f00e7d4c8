//! What one input may cost: whatever it is about, it does a part, and leaves the rest for later. What
//! comes of it is what would have come of it at once.

use std::sync::Arc;

use crosstie_amqp::method::{
    BasicAck, BasicConsume, BasicGet, BasicNack, BasicPublish, BasicQos, QueueBind, QueueDeclare,
    QueuePurge,
};
use crosstie_amqp::{Method, Properties, TableBuf, Value};
use crosstie_queues::policy::{Policies, Policy, PolicyKind, PolicyParts, PolicyValue};
use crosstie_queues::{
    ChannelKey, Client, ConnectionKey, Fault, Outbox, QueueStatus, Refused, Time, Vhost,
    VhostConfig,
};

/// What an input may take beyond what it is to do at once: the last of what it does belongs together.
const STEPS_MAX: u32 = 3_000;

/// Remembers the bodies of what was delivered, which are numbers.
#[derive(Default)]
struct Sink {
    delivered: Vec<u32>,
    got: Option<u32>,
    held: isize,
}

impl Outbox<u32> for Sink {
    fn send(&mut self, _to: &u32, _channel: u16, _method: &Method<'_>) {}

    fn send_content(
        &mut self,
        _to: &u32,
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        self.delivered.extend(number(body));
        Ok(())
    }

    fn send_owed(
        &mut self,
        _to: &u32,
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        self.got = number(body);
        Ok(())
    }

    fn close_channel(&mut self, _to: &u32, _channel: u16, _fault: &Fault) {}

    fn hold(&mut self, _to: &u32, delta: isize) {
        self.held += delta;
    }
}

fn number(body: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(body.try_into().ok()?))
}

struct Stage {
    vhost: Vhost<u32>,
    now: Time,
    sink: Sink,
}

impl Stage {
    fn new() -> Self {
        Self {
            vhost: Vhost::new(VhostConfig::named("/"), 42),
            now: Time(1_000),
            sink: Sink::default(),
        }
    }

    fn connect(&mut self) -> (ConnectionKey, ChannelKey) {
        let client = Client::unrestricted("guest");
        let connection = self.vhost.open_connection(1, client);
        let channel = self.vhost.open_channel(connection, 1);
        (connection, channel.expect("is within every bound"))
    }

    /// Any input, which has to be short.
    fn input<T>(&mut self, input: impl FnOnce(&mut Vhost<u32>, Time, &mut Sink) -> T) -> T {
        let result = input(&mut self.vhost, self.now, &mut self.sink);
        self.vhost.flush_confirms(&mut self.sink);
        self.vhost.journal().records.clear();
        let steps = self.vhost.take_steps();
        assert!(steps <= STEPS_MAX, "{steps} steps");
        result
    }

    fn handle<'a>(&mut self, channel: ChannelKey, method: impl Into<Method<'a>>) {
        let method = method.into();
        let done = self.input(|vhost, now, sink| vhost.handle(now, channel, &method, sink));
        done.expect("nothing here is refused");
    }

    fn declare(&mut self, channel: ChannelKey, queue: &str, arguments: &TableBuf) {
        self.handle(
            channel,
            QueueDeclare {
                queue,
                arguments: arguments.as_table(),
                ..QueueDeclare::default()
            },
        );
    }

    fn publish(&mut self, channel: ChannelKey, exchange: &str, routing_key: &str, number: u32) {
        let publish = BasicPublish::to(exchange, routing_key);
        let body = number.to_be_bytes();
        let done = self.input(|vhost, now, sink| {
            vhost.publish(now, channel, &publish, Properties::EMPTY, &body, sink)
        });
        done.expect("nothing here is refused");
    }

    /// What was left for later, and what is due.
    fn work(&mut self) {
        loop {
            let due = self.vhost.next_timeout();
            if due.is_some_and(|due| due <= self.now) {
                self.input(|vhost, now, sink| vhost.handle_timeout(now, sink));
            } else if self.vhost.has_backlog() {
                self.input(|vhost, now, sink| vhost.work(now, 1_000, sink));
            } else {
                return;
            }
        }
    }

    fn consume(&mut self, channel: ChannelKey, queue: &str, no_ack: bool) {
        self.handle(
            channel,
            BasicConsume {
                queue,
                no_ack,
                ..BasicConsume::default()
            },
        );
    }

    /// A queue with so many messages.
    fn fill(&mut self, channel: ChannelKey, count: u32) {
        self.declare(channel, "q", &TableBuf::new());
        for number in 0..count {
            self.publish(channel, "", "q", number);
        }
    }

    fn ready(&self) -> usize {
        self.vhost.counts().messages_ready
    }
}

fn nack(delivery_tag: u64, multiple: bool) -> BasicNack {
    BasicNack {
        delivery_tag,
        multiple,
        requeue: true,
    }
}

const MANY: u32 = 50_000;
/// Queues, if they are many.
const QUEUES: u32 = 5_000;

#[test]
fn messages_of_many_channels_return_in_order_to_other_consumers() {
    let mut stage = Stage::new();
    let (_, publisher) = stage.connect();
    let (connection, first) = stage.connect();
    let second = stage.vhost.open_channel(connection, 2);
    let second = second.expect("is within every bound");
    stage.fill(publisher, MANY);
    for channel in [first, second] {
        stage.handle(channel, BasicQos::of_each(30_000));
        stage.consume(channel, "q", false);
    }
    stage.work();
    assert_eq!(stage.vhost.counts().messages_unacknowledged, MANY as usize);
    assert!(stage.sink.held > 0);
    stage.sink.delivered.clear();
    stage.consume(publisher, "q", true);
    stage.input(|vhost, now, sink| vhost.close_connection(now, connection, sink));
    stage.publish(publisher, "", "q", MANY);
    stage.work();
    assert!(stage.sink.delivered.iter().copied().eq(0..=MANY));
    assert_eq!(stage.vhost.counts().connections, 1);
}

#[test]
fn nacks_and_acknowledgements_of_many() {
    let mut stage = Stage::new();
    let (connection, channel) = stage.connect();
    stage.fill(channel, MANY);
    stage.consume(channel, "q", false);
    stage.work();
    let limit = BasicQos::of_all(1);
    // All of them at once, and then one by one from anywhere.
    stage.handle(channel, limit);
    stage.handle(channel, nack(0, true));
    stage.work();
    stage.handle(
        channel,
        BasicQos {
            global: true,
            ..BasicQos::default()
        },
    );
    stage.now.0 += 10;
    stage.work();
    assert_eq!(stage.ready(), 0);
    stage.handle(channel, limit);
    let count = u64::from(MANY);
    // The first is the one that the limit left room for.
    for number in 0..count {
        // Neither rising nor falling.
        let tag = count + 1 + (number * 7_919) % count;
        stage.handle(channel, nack(tag, false));
        if number + 1 < count {
            assert_eq!(stage.ready(), number as usize + 1);
        }
    }
    stage.sink.delivered.clear();
    stage.consume(channel, "q", true);
    stage.handle(
        channel,
        BasicQos {
            global: true,
            ..BasicQos::default()
        },
    );
    stage.now.0 += 10;
    stage.work();
    let mut delivered = std::mem::take(&mut stage.sink.delivered);
    // The one before was on its way when there was room for no other.
    delivered.sort_unstable();
    delivered.dedup();
    assert!(delivered.len() as u32 >= MANY - 1);
    stage.handle(channel, BasicAck::up_to(0));
    stage.work();
    assert_eq!(stage.vhost.memory_bytes(), 0);
    stage.input(|vhost, now, sink| vhost.close_connection(now, connection, sink));
    stage.work();
    assert_eq!(stage.sink.held, 0);
}

#[test]
fn many_that_expire_at_once_die_once_each() {
    let mut stage = Stage::new();
    let (_, channel) = stage.connect();
    stage.declare(channel, "d", &TableBuf::new());
    let arguments = TableBuf::new()
        .with("x-message-ttl", Value::I32(10))
        .with("x-dead-letter-exchange", Value::LongString(b""))
        .with("x-dead-letter-routing-key", Value::LongString(b"d"));
    stage.declare(channel, "q", &arguments);
    for number in 0..MANY {
        stage.publish(channel, "", "q", number);
    }
    stage.now.0 += 10;
    stage.work();
    let counts = stage.vhost.counts();
    assert_eq!(counts.dead_lettered, u64::from(MANY));
    assert_eq!((counts.dropped, counts.dead_letters_cut), (0, 0));
    stage.consume(channel, "d", true);
    stage.work();
    assert!(stage.sink.delivered.iter().copied().eq(0..MANY));
}

#[test]
fn a_purge_is_done_when_it_is_answered() {
    let mut stage = Stage::new();
    let (_, channel) = stage.connect();
    stage.fill(channel, MANY);
    stage.handle(
        channel,
        QueuePurge {
            queue: "q",
            no_wait: false,
        },
    );
    assert_eq!(stage.ready(), 0);
    stage.publish(channel, "", "q", 7);
    let get = BasicGet {
        queue: "q",
        no_ack: true,
    };
    stage.handle(channel, get);
    assert_eq!(stage.sink.got, Some(7));
    stage.work();
    assert_eq!(stage.vhost.memory_bytes(), 0);
}

#[test]
fn a_policy_is_applied_to_many_queues_in_turns() {
    let mut stage = Stage::new();
    let (_, channel) = stage.connect();
    stage.declare(channel, "d", &TableBuf::new());
    for queue in 0..QUEUES {
        let name = format!("q{queue}");
        stage.declare(channel, &name, &TableBuf::new());
        for number in 0..3 {
            stage.publish(channel, "", &name, number);
        }
    }
    let definition = [
        ("max-length", PolicyValue::from(1)),
        ("dead-letter-exchange", PolicyValue::from("")),
        ("dead-letter-routing-key", PolicyValue::from("d")),
    ];
    let definition = definition.map(|(key, value)| (key.to_owned(), value));
    let parts = PolicyParts {
        name: "p",
        pattern: &PolicyValue::from("^q"),
        definition: &PolicyValue::Map(definition.into()),
        priority: None,
        apply_to: None,
    };
    let policy = Policy::parse(PolicyKind::User, parts).expect("it is valid");
    let policies = Arc::new(Policies::new([policy], []));
    stage.input(|vhost, now, sink| vhost.set_policies(now, policies, sink));
    assert!(stage.vhost.has_backlog());
    // Later queues have it at once, and so have others when all is done.
    stage.declare(channel, "q-later", &TableBuf::new());
    stage.publish(channel, "", "q-later", 1);
    stage.publish(channel, "", "q-later", 2);
    stage.work();
    let is_applied = |queue: &QueueStatus| queue.applied.is_some() == queue.name.starts_with('q');
    assert!(stage.vhost.queues().all(|queue| is_applied(&queue)));
    let counts = stage.vhost.counts();
    let queues = QUEUES as usize;
    assert_eq!(counts.messages_ready, queues + 1 + 2 * queues + 1);
    assert_eq!(counts.dead_lettered as usize, 2 * queues + 1);
    // Gone again, it leaves all as it is.
    stage.input(|vhost, now, sink| vhost.set_policies(now, Arc::default(), sink));
    stage.work();
    assert!(stage.vhost.queues().all(|queue| queue.applied.is_none()));
    assert_eq!(stage.vhost.counts().dead_lettered, counts.dead_lettered);
}

/// Queues without room, each of which has all others for its dead letters.
#[test]
fn dead_letters_in_a_ring_have_an_end_and_a_bound() {
    let mut stage = Stage::new();
    let (_, channel) = stage.connect();
    let arguments = TableBuf::new()
        .with("x-max-length", Value::I32(1))
        .with("x-dead-letter-exchange", Value::LongString(b"amq.fanout"));
    for number in 0..10 {
        let name = number.to_string();
        stage.declare(channel, &name, &arguments);
        let bind = QueueBind::of(&name).to("amq.fanout", "");
        stage.handle(channel, bind);
    }
    // Nobody works off what is left for later but who publishes: he is slowed, and it stays bounded.
    for number in 0..200 {
        let publish = BasicPublish::to("amq.fanout", "");
        let body = u32::to_be_bytes(number);
        let (now, sink) = (stage.now, &mut stage.sink);
        let done = stage
            .vhost
            .publish(now, channel, &publish, Properties::EMPTY, &body, sink);
        done.expect("nothing here is refused");
        let waiting = stage.vhost.counts().dead_letters_waiting;
        assert!(waiting < 13_000, "{waiting} wait");
        stage.vhost.take_steps();
    }
    stage.work();
    let counts = stage.vhost.counts();
    assert!(counts.dead_letters_cut > 0);
    assert_eq!(
        (counts.messages_ready, counts.dead_letters_waiting),
        (10, 0)
    );
}
