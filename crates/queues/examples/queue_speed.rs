//! Times the way of a message through a vhost, without wire or socket: publish to delivery.
//!
//! `cargo run --release -p crosstie-queues --example queue_speed [MESSAGES]`
//!
//! Instructions hardly vary: `valgrind --tool=callgrind --dump-before='*Bench*::time*'` of a build
//! with the profile `profiling`, with 20000 messages, writes a file for each section.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]

use std::time::Instant;

use crosstie_amqp::method::{
    BasicAck, BasicConsume, BasicPublish, ConfirmSelect, QueueBind, QueueDeclare,
};
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf};
use crosstie_queues::{ChannelKey, Client, Fault, Outbox, Refused, Time, Vhost, VhostConfig};

/// Accepts bytes as a connection's queue does, and drops them when there are many.
#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
    messages: u64,
}

impl Outbox<u32> for Sink {
    fn send(&mut self, _to: &u32, _channel: u16, method: &Method<'_>) {
        method.write(&mut self.bytes);
        self.drain();
    }

    fn send_content(
        &mut self,
        _to: &u32,
        _channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        method.write(&mut self.bytes);
        self.bytes.extend_from_slice(properties.bytes());
        self.bytes.extend_from_slice(body);
        self.messages += 1;
        self.drain();
        Ok(())
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

impl Sink {
    fn drain(&mut self) {
        if self.bytes.len() > 60_000 {
            self.bytes.clear();
        }
    }
}

/// The default, unless the command line has another number.
const MESSAGES: u64 = 1_000_000;

fn messages() -> u64 {
    let argument = std::env::args().nth(1);
    argument.map_or(MESSAGES, |number| {
        number.parse().expect("a number of messages")
    })
}

struct Bench {
    vhost: Vhost<u32>,
    channel: ChannelKey,
    sink: Sink,
    messages: u64,
}

impl Bench {
    fn new() -> Self {
        let mut vhost = Vhost::new(VhostConfig::named("/"), 42);
        let client = Client::unrestricted("guest");
        let connection = vhost.open_connection(1, client);
        let channel = vhost
            .open_channel(connection, 1)
            .expect("the first channel is within every bound");
        Self {
            vhost,
            channel,
            sink: Sink::default(),
            messages: messages(),
        }
    }

    fn handle(&mut self, method: Method<'_>) {
        let done = self
            .vhost
            .handle(Time(1), self.channel, &method, &mut self.sink);
        done.expect("nothing here is refused");
        while self.vhost.has_backlog() {
            self.vhost.work(Time(1), 10_000, &mut self.sink);
        }
        self.forget_records();
    }

    fn publish(&mut self, exchange: &str, routing_key: &str, properties: &[u8], body: &[u8]) {
        let publish = BasicPublish::to(exchange, routing_key);
        let properties = Properties::from_bytes(properties).unwrap_or(Properties::EMPTY);
        let sink = &mut self.sink;
        let done = self
            .vhost
            .publish(Time(1), self.channel, &publish, properties, body, sink);
        done.expect("nothing here is refused");
        self.vhost.flush_confirms(sink);
        self.forget_records();
    }

    fn forget_records(&mut self) {
        let journal = self.vhost.journal();
        if !journal.records.is_empty() {
            journal.records.clear();
            let position = journal.position;
            self.vhost.handle_committed(position, &mut self.sink);
        }
    }

    // A separate function, so that a profiler finds the sections.
    #[inline(never)]
    fn time(&mut self, what: &str, mut message: impl FnMut(&mut Self, u64)) {
        let start = Instant::now();
        for number in 1..=self.messages {
            message(self, number);
        }
        let took = start.elapsed();
        #[allow(clippy::print_stdout, reason = "an example's result")]
        {
            let ns = took.as_nanos() as f64 / self.messages as f64;
            println!("{what:<60} {ns:>7.0} ns a message");
        }
    }
}

const BODY: [u8; 100] = [b'x'; 100];

fn main() {
    directly();
    by_topic();
    durably();
    through_a_growing_queue();
}

fn queue(durable: bool) -> Method<'static> {
    Method::QueueDeclare(QueueDeclare {
        queue: "q",
        durable,
        ..QueueDeclare::default()
    })
}

fn consume(no_ack: bool) -> Method<'static> {
    Method::BasicConsume(BasicConsume {
        queue: "q",
        consumer_tag: "1",
        no_ack,
        ..BasicConsume::default()
    })
}

fn ack(delivery_tag: u64) -> Method<'static> {
    Method::BasicAck(BasicAck::one(delivery_tag))
}

/// The properties that oslo.messaging gives its messages.
fn oslo_properties() -> Vec<u8> {
    let headers = TableBuf::new();
    let mut bytes = Vec::new();
    BasicProperties {
        content_type: Some("application/json"),
        content_encoding: Some("utf-8"),
        headers: Some(headers.as_table()),
        delivery_mode: Some(2),
        priority: Some(0),
        expiration: Some("60000"),
        ..BasicProperties::default()
    }
    .write(&mut bytes);
    bytes
}

/// From the default exchange to one consumer.
fn directly() {
    let none = Properties::EMPTY.bytes();
    let mut bench = Bench::new();
    bench.handle(queue(false));
    bench.handle(consume(true));
    bench.time("default exchange, no acknowledgement", |bench, _| {
        bench.publish("", "q", none, &BODY);
    });

    let mut bench = Bench::new();
    bench.handle(queue(false));
    bench.handle(consume(false));
    bench.time("default exchange, acknowledged", |bench, number| {
        bench.publish("", "q", none, &BODY);
        bench.handle(ack(number));
    });
}

fn by_topic() {
    let oslo = oslo_properties();
    let mut bench = Bench::new();
    bench.handle(queue(false));
    bench.handle(consume(false));
    bench.handle(Method::QueueBind(QueueBind::of("q").to("amq.topic", "q")));
    bench.handle(Method::ConfirmSelect(ConfirmSelect { no_wait: true }));
    let what = "topic exchange, oslo's properties, confirmed, acknowledged";
    bench.time(what, |bench, number| {
        bench.publish("amq.topic", "q", &oslo, &BODY);
        bench.handle(ack(number));
    });
}

fn durably() {
    let oslo = oslo_properties();
    let mut bench = Bench::new();
    bench.handle(queue(true));
    bench.handle(consume(false));
    bench.handle(Method::ConfirmSelect(ConfirmSelect { no_wait: true }));
    let what = "the same, durable, its records thrown away";
    bench.time(what, |bench, number| {
        bench.publish("", "q", &oslo, &BODY);
        bench.handle(ack(number));
    });
}

fn through_a_growing_queue() {
    let none = Properties::EMPTY.bytes();
    let mut bench = Bench::new();
    bench.handle(queue(false));
    bench.time("into a queue that grows", |bench, _| {
        bench.publish("", "q", none, &BODY);
    });
    bench.time("out of it", |bench, number| {
        if number == 1 {
            bench.handle(consume(true));
        }
    });
}
