//! Delayed messages that are due at about the same time, and more than are held near at once.

use crosstie_amqp::method::{BasicConsume, BasicPublish, ExchangeDeclare, QueueBind, QueueDeclare};
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf, Value};
use crosstie_queues::{
    ChannelKey, Client, Fault, Outbox, Paging, Refused, Time, Vhost, VhostConfig,
};

/// Remembers the numbers that the messages begin with.
#[derive(Default)]
struct Sink(Vec<u32>);

impl Outbox<()> for Sink {
    fn send(&mut self, _to: &(), _channel: u16, _method: &Method<'_>) {}

    fn send_content(
        &mut self,
        _to: &(),
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        let number = body[..4].try_into().expect("a number");
        self.0.push(u32::from_be_bytes(number));
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

struct Stage {
    vhost: Vhost<()>,
    channel: ChannelKey,
    sink: Sink,
    now: Time,
}

impl Stage {
    fn new() -> Self {
        let mut config = VhostConfig::named("/");
        // About 1 MiB of them are held near.
        config.paging = Paging {
            memory_bytes: 0,
            crowded_messages: 3,
            crowded_body_bytes: u64::MAX,
            spills: false,
            ..Paging::OFF
        };
        let mut vhost = Vhost::new(config, 7);
        let client = Client::unrestricted("guest");
        let connection = vhost.open_connection((), client);
        let channel = vhost.open_channel(connection, 1).expect("a channel");
        let mut stage = Self {
            vhost,
            channel,
            sink: Sink::default(),
            now: Time(1_000_000),
        };
        stage.handle(ExchangeDeclare {
            exchange: "late",
            kind: "x-delayed-message",
            arguments: TableBuf::new()
                .with("x-delayed-type", Value::LongString(b"direct"))
                .as_table(),
            ..ExchangeDeclare::default()
        });
        stage.handle(QueueDeclare::named("q"));
        stage.handle(QueueBind::of("q").to("late", "q"));
        stage.handle(BasicConsume {
            queue: "q",
            no_ack: true,
            ..BasicConsume::default()
        });
        stage
    }

    fn handle<'m>(&mut self, method: impl Into<Method<'m>>) {
        let method = method.into();
        let done = self
            .vhost
            .handle(self.now, self.channel, &method, &mut self.sink);
        done.expect("is accepted");
    }

    fn publish(&mut self, number: u32, delay_ms: i32) {
        let headers = TableBuf::new().with("x-delay", Value::I32(delay_ms));
        let named = BasicProperties {
            headers: Some(headers.as_table()),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        named.write(&mut bytes);
        let properties = Properties::from_bytes(&bytes).expect("was written so");
        let publish = BasicPublish::to("late", "q");
        let mut body = number.to_be_bytes().to_vec();
        body.resize(100_000, 0);
        let done = self.vhost.publish(
            self.now,
            self.channel,
            &publish,
            properties,
            &body,
            &mut self.sink,
        );
        done.expect("is accepted");
        self.work();
    }

    fn work(&mut self) {
        loop {
            let due = self.vhost.next_timeout();
            if due.is_some_and(|due| due <= self.now) {
                self.vhost.handle_timeout(self.now, &mut self.sink);
            } else if self.vhost.has_backlog() {
                self.vhost.work(self.now, 100, &mut self.sink);
            } else {
                return;
            }
            self.vhost.journal().records.clear();
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now.0 += ms;
        self.work();
    }
}

const COUNT: u32 = 120;

fn check(mut stage: Stage, count: u32) {
    for _ in 0..100 {
        stage.pass(100);
    }
    let mut numbers = stage.sink.0;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    assert_eq!(stage.vhost.memory_bytes(), 0);
}

#[test]
fn buckets_that_had_no_room_move_on_once_there_is_some() {
    let mut stage = Stage::new();
    // Due within four seconds: in buckets of a second each.
    (0..COUNT).for_each(|number| stage.publish(number, 6_000 + (number as i32 * 1_700) % 4_000));
    check(stage, COUNT);
}

#[test]
fn messages_of_an_open_bucket_without_room_are_delivered() {
    let mut stage = Stage::new();
    // These take the room; the next ones are due before them, and later.
    (0..COUNT).for_each(|number| stage.publish(number, 1_500));
    (COUNT..2 * COUNT).for_each(|number| stage.publish(number, 100 + number as i32));
    stage.pass(500);
    (2 * COUNT..3 * COUNT).for_each(|number| stage.publish(number, 1_800));
    check(stage, 3 * COUNT);
}
