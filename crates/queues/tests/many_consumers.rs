//! What a hostile peer could have consumers cost: each step here is done so often that it would not
//! end in hours if it cost as much as there are consumers.

use crosstie_amqp::method::{BasicAck, BasicConsume, BasicPublish, BasicQos, QueueDeclare};
use crosstie_amqp::{Method, Properties, TableBuf, Value};
use crosstie_queues::{
    ChannelKey, Client, ConnectionKey, Fault, Outbox, Refused, Time, Vhost, VhostConfig,
};

/// Counts the messages.
#[derive(Default)]
struct Sink {
    delivered: u64,
}

impl Outbox<u32> for Sink {
    fn send(&mut self, _to: &u32, _channel: u16, _method: &Method<'_>) {}

    fn send_content(
        &mut self,
        _to: &u32,
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        _body: &[u8],
    ) -> Result<(), Refused> {
        self.delivered += 1;
        Ok(())
    }

    fn send_owed(
        &mut self,
        _to: &u32,
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        _body: &[u8],
    ) -> Result<(), Refused> {
        Ok(())
    }

    fn close_channel(&mut self, _to: &u32, _channel: u16, _fault: &Fault) {}
}

struct Stage {
    vhost: Vhost<u32>,
    connection: ConnectionKey,
    sink: Sink,
}

impl Stage {
    fn new() -> Self {
        let mut config = VhostConfig::named("/");
        config.limits.connection_consumers_max = 1_000_000;
        let mut vhost = Vhost::new(config, 42);
        let connection = vhost.open_connection(1, client());
        let mut stage = Self {
            vhost,
            connection,
            sink: Sink::default(),
        };
        let channel = stage.channel();
        stage.handle(channel, QueueDeclare::named("q"));
        stage
    }

    fn channel(&mut self) -> ChannelKey {
        let number = self.vhost.channels(self.connection).count() as u16 + 1;
        self.vhost
            .open_channel(self.connection, number)
            .expect("is within every bound")
    }

    fn handle<'a>(&mut self, channel: ChannelKey, method: impl Into<Method<'a>>) {
        self.vhost
            .handle(Time(1), channel, &method.into(), &mut self.sink)
            .expect("nothing here is refused");
    }

    /// As many as a channel may have, all of other priorities if they are asked for.
    fn consume(&mut self, channel: ChannelKey, with_priorities: bool) {
        for number in 0..10_000 {
            let mut arguments = TableBuf::new();
            if with_priorities {
                // Neither rising nor falling.
                let priority = (number * 7_919) % 10_007 - 5_000;
                arguments = arguments.with("x-priority", Value::I64(priority));
            }
            let tag = number.to_string();
            self.handle(
                channel,
                BasicConsume {
                    queue: "q",
                    consumer_tag: &tag,
                    arguments: arguments.as_table(),
                    ..BasicConsume::default()
                },
            );
        }
    }

    fn publish(&mut self, channel: ChannelKey) {
        let publish = BasicPublish::to("", "q");
        self.vhost
            .publish(
                Time(1),
                channel,
                &publish,
                Properties::EMPTY,
                b"",
                &mut self.sink,
            )
            .expect("nothing here is refused");
    }

    /// What is left for later is done.
    fn work(&mut self) {
        while self.vhost.has_backlog() {
            self.vhost.work(Time(1), 1_000, &mut self.sink);
        }
    }

    fn leave(mut self) {
        self.vhost
            .close_connection(Time(1), self.connection, &mut self.sink);
        self.work();
        assert_eq!(self.vhost.consumers().count(), 0);
    }
}

fn client() -> Client {
    Client::unrestricted("guest")
}

fn ack(delivery_tag: u64) -> BasicAck {
    BasicAck::one(delivery_tag)
}

#[test]
fn a_connection_with_many_consumers_of_a_queue_ends() {
    for with_priorities in [false, true] {
        let mut stage = Stage::new();
        for _ in 0..12 {
            let channel = stage.channel();
            stage.consume(channel, with_priorities);
        }
        stage.leave();
    }
}

/// Every publication finds all consumers of the channel without room, every acknowledgement makes
/// room for one message.
#[test]
fn a_limit_of_all_consumers_together_stops_them_together() {
    for with_priorities in [false, true] {
        let mut stage = Stage::new();
        let channel = stage.channel();
        stage.handle(channel, BasicQos::of_all(1));
        stage.consume(channel, with_priorities);
        stage.publish(channel);
        for number in 1..=40_000 {
            stage.publish(channel);
            stage.handle(channel, ack(number));
        }
        assert_eq!(stage.sink.delivered, 40_001);
        stage.leave();
    }
}

/// The highest of so many is looked for with each message, and the last acknowledgement is that of
/// one who is in no line any more.
#[test]
fn limits_of_their_own_cost_each_only_its_own() {
    let mut stage = Stage::new();
    let channel = stage.channel();
    stage.handle(channel, BasicQos::of_each(1));
    stage.consume(channel, true);
    for _ in 0..10_000 {
        stage.publish(channel);
    }
    for number in 1..=30_000 {
        stage.publish(channel);
        stage.handle(channel, ack(number));
    }
    assert_eq!(stage.sink.delivered, 40_000);
    stage.leave();
}

#[test]
fn a_limit_is_set_and_taken_back_among_many_deliveries() {
    let mut stage = Stage::new();
    let channel = stage.channel();
    let consume = BasicConsume {
        queue: "q",
        consumer_tag: "c",
        ..BasicConsume::default()
    };
    stage.handle(channel, consume);
    for _ in 0..100_000 {
        stage.publish(channel);
    }
    for number in 0..100_000 {
        let qos = BasicQos {
            prefetch_count: 10,
            global: number % 2 == 0,
            ..BasicQos::default()
        };
        stage.handle(channel, qos);
    }
    stage.leave();
}
