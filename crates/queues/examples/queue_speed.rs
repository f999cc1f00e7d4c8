//! Times the way of a message through a vhost, without wire or socket: publish to delivery.
//!
//! `cargo run --release -p crosstie-queues --example queue_speed [MESSAGES]`
//!
//! Instructions hardly vary: `valgrind --tool=callgrind --dump-before='*Stage*::time*'` of a build
//! with the profile `profiling`, with 20000 messages, writes a file for each section.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]

use std::sync::Arc;
use std::time::Instant;

use crosstie_amqp::method::{
    BasicAck, BasicConsume, BasicPublish, ConfirmSelect, QueueBind, QueueDeclare,
};
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf};
use crosstie_auth::Permissions;
use crosstie_queues::{ChannelKey, Client, Fault, Outbox, Refused, Time, Vhost, VhostConfig};

/// Takes bytes as a connection's queue does, and forgets them when there are many.
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

/// If the command line says no other number.
const MESSAGES: u64 = 1_000_000;

fn messages() -> u64 {
    let argument = std::env::args().nth(1);
    argument.map_or(MESSAGES, |number| {
        number.parse().expect("a number of messages")
    })
}

struct Stage {
    vhost: Vhost<u32>,
    channel: ChannelKey,
    sink: Sink,
    messages: u64,
}

impl Stage {
    fn new() -> Self {
        let mut vhost = Vhost::new(VhostConfig::named("/"), 42);
        let client = Client {
            user: "guest".into(),
            permissions: Arc::new(Permissions::all()),
            consumer_cancel_notify: true,
            is_impersonator: false,
        };
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
        let publish = BasicPublish {
            exchange,
            routing_key,
            mandatory: false,
            immediate: false,
        };
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

    // A profiler finds the sections by it.
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

fn main() {
    let body = [b'x'; 100];
    let none = Properties::EMPTY.bytes();
    let headers = TableBuf::new();
    let mut oslo = Vec::new();
    BasicProperties {
        content_type: Some("application/json"),
        content_encoding: Some("utf-8"),
        headers: Some(headers.as_table()),
        delivery_mode: Some(2),
        priority: Some(0),
        expiration: Some("60000"),
        ..BasicProperties::default()
    }
    .write(&mut oslo);
    let queue = |durable| {
        Method::QueueDeclare(QueueDeclare {
            queue: "q",
            durable,
            ..QueueDeclare::default()
        })
    };
    let consume = |no_ack| {
        Method::BasicConsume(BasicConsume {
            queue: "q",
            consumer_tag: "1",
            no_ack,
            ..BasicConsume::default()
        })
    };
    let ack = |delivery_tag| {
        Method::BasicAck(BasicAck {
            delivery_tag,
            multiple: false,
        })
    };

    let mut stage = Stage::new();
    stage.handle(queue(false));
    stage.handle(consume(true));
    stage.time("default exchange, no acknowledgement", |stage, _| {
        stage.publish("", "q", none, &body);
    });

    let mut stage = Stage::new();
    stage.handle(queue(false));
    stage.handle(consume(false));
    stage.time("default exchange, acknowledged", |stage, number| {
        stage.publish("", "q", none, &body);
        stage.handle(ack(number));
    });

    let mut stage = Stage::new();
    stage.handle(queue(false));
    stage.handle(consume(false));
    stage.handle(Method::QueueBind(QueueBind {
        queue: "q",
        exchange: "amq.topic",
        routing_key: "q",
        ..QueueBind::default()
    }));
    stage.handle(Method::ConfirmSelect(ConfirmSelect { no_wait: true }));
    let what = "topic exchange, oslo's properties, confirmed, acknowledged";
    stage.time(what, |stage, number| {
        stage.publish("amq.topic", "q", &oslo, &body);
        stage.handle(ack(number));
    });

    let mut stage = Stage::new();
    stage.handle(queue(true));
    stage.handle(consume(false));
    stage.handle(Method::ConfirmSelect(ConfirmSelect { no_wait: true }));
    let what = "the same, durable, its records thrown away";
    stage.time(what, |stage, number| {
        stage.publish("", "q", &oslo, &body);
        stage.handle(ack(number));
    });

    let mut stage = Stage::new();
    stage.handle(queue(false));
    stage.time("into a queue that grows", |stage, _| {
        stage.publish("", "q", none, &body);
    });
    stage.time("out of it", |stage, number| {
        if number == 1 {
            stage.handle(consume(true));
        }
    });
}
