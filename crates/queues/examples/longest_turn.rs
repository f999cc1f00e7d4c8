//! Measures the longest single input of a vhost that holds hundreds of thousands of entries, and the longest turn of
//! removing them.
//!
//! `cargo run --release -p crosstie-queues --example longest_turn [COUNT]`

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "an example that measures reads the clock, and its output is what it is for"
)]

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_amqp::method::{ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare};
use crosstie_amqp::{Method, Properties, TableBuf, Value};
use crosstie_queues::policy::{Policies, Policy, PolicyKind, PolicyParts, PolicyValue};
use crosstie_queues::{
    ChannelKey, Client, ConnectionKey, Fault, Outbox, Refused, Time, Vhost, VhostConfig,
};

/// The default bounds allow this many of most things.
const COUNT: u64 = 300_000;
/// The default maximum number of queues in a vhost.
const QUEUES_MAX: u64 = 99_999;
/// Steps of backlog that a thread does before other inputs have their turn.
const STEPS: u32 = 1024;

fn main() {
    let argument = std::env::args().nth(1);
    let count = argument.map_or(COUNT, |text| text.parse().expect("a number"));
    for kind in ["direct", "topic", "fanout", "headers"] {
        Given::default().bindings(kind, count);
    }
    Given::default().queues(count.min(QUEUES_MAX));
}

struct Given {
    vhost: Vhost<u32>,
    connection: ConnectionKey,
    channel: ChannelKey,
    inputs: Longest,
}

impl Default for Given {
    fn default() -> Self {
        let mut vhost = Vhost::new(VhostConfig::named("/"), 42);
        let client = Client::unrestricted("guest");
        let connection = vhost.open_connection(1, client);
        let channel = vhost.open_channel(connection, 1);
        Self {
            vhost,
            connection,
            channel: channel.expect("the first channel is within every bound"),
            inputs: Longest::default(),
        }
    }
}

impl Given {
    fn bindings(mut self, kind: &str, count: u64) {
        self.handle(&Method::ExchangeDeclare(ExchangeDeclare {
            exchange: "e",
            kind,
            ..ExchangeDeclare::default()
        }));
        self.declare("q");
        for number in 0..count {
            let text = format!("a.key.of.{number:08}");
            let arguments = match kind {
                "headers" => TableBuf::new().with("k", Value::LongString(text.as_bytes())),
                _ => TableBuf::new(),
            };
            self.handle(&Method::QueueBind(QueueBind {
                queue: "q",
                exchange: "e",
                routing_key: if kind == "headers" { "" } else { &text },
                arguments: arguments.as_table(),
                ..QueueBind::default()
            }));
        }
        let delete = Method::ExchangeDelete(ExchangeDelete {
            exchange: "e",
            ..ExchangeDelete::default()
        });
        self.end(&format!("bindings, {kind}"), Some(&delete));
    }

    fn queues(mut self, count: u64) {
        for number in 0..count {
            self.declare(&format!("a.queue.n{number:08}"));
        }
        self.policy();
        self.end("queues", None);
    }

    /// Applies a policy to all queues, and withdraws it.
    fn policy(&mut self) {
        let definition = [("max-length", 5), ("message-ttl", 60_000)];
        let definition = definition.map(|(key, value)| (key.to_owned(), PolicyValue::from(value)));
        let parts = PolicyParts {
            name: "p",
            pattern: &PolicyValue::from(r"^a\.queue"),
            definition: &PolicyValue::Map(definition.into()),
            priority: None,
            apply_to: None,
        };
        let policy = Policy::parse(PolicyKind::User, parts).expect("it is valid");
        let policies = Policies::new([policy], []);
        let vhost = &mut self.vhost;
        for (what, policies) in [("applied", policies), ("withdrawn", Policies::default())] {
            let mut turns = Longest::default();
            let policies = Arc::new(policies);
            turns.time(|| vhost.set_policies(Time(1), policies, &mut Discard));
            while vhost.has_backlog() {
                turns.time(|| vhost.work(Time(1), STEPS, &mut Discard));
            }
            println!("a policy, {what:9} a turn: {turns}");
        }
    }

    fn declare(&mut self, queue: &str) {
        self.handle(&Method::QueueDeclare(QueueDeclare::named(queue)));
    }

    fn handle(&mut self, method: &Method<'_>) {
        let Self {
            vhost,
            channel,
            inputs,
            ..
        } = self;
        inputs.time(|| {
            let done = vhost.handle(Time(1), *channel, method, &mut Discard);
            done.expect("nothing here is refused");
        });
        while vhost.has_backlog() {
            inputs.time(|| vhost.work(Time(1), STEPS, &mut Discard));
        }
    }

    /// Prints the longest input and turn up to the last method and the connection's end.
    fn end(mut self, what: &str, last: Option<&Method<'_>>) {
        let Self {
            vhost,
            connection,
            channel,
            ..
        } = &mut self;
        let mut turns = Longest::default();
        if let Some(last) = last {
            turns.time(|| {
                let done = vhost.handle(Time(1), *channel, last, &mut Discard);
                done.expect("nothing here is refused");
            });
        }
        turns.time(|| vhost.close_connection(Time(1), *connection, &mut Discard));
        while vhost.has_backlog() {
            turns.time(|| vhost.work(Time(1), STEPS, &mut Discard));
        }
        println!(
            "{what:18} an input: {};  a turn of the end: {turns}",
            self.inputs
        );
    }
}

/// The longest timed input.
#[derive(Default)]
struct Longest {
    longest: Duration,
    above_ms: u32,
    all: Duration,
}

impl Longest {
    fn time(&mut self, run: impl FnOnce()) {
        let began = Instant::now();
        run();
        let took = began.elapsed();
        self.longest = self.longest.max(took);
        self.above_ms += u32::from(took > Duration::from_millis(1));
        self.all += took;
    }
}

impl fmt::Display for Longest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "longest {:.1?}, {} above 1 ms, {:.0?} in all",
            self.longest, self.above_ms, self.all
        )
    }
}

struct Discard;

impl Outbox<u32> for Discard {
    fn send(&mut self, _: &u32, _: u16, _: &Method<'_>) {}

    fn send_content(
        &mut self,
        _: &u32,
        _: u16,
        _: &Method<'_>,
        _: Properties<'_>,
        _: &[u8],
    ) -> Result<(), Refused> {
        Ok(())
    }

    fn send_owed(
        &mut self,
        _: &u32,
        _: u16,
        _: &Method<'_>,
        _: Properties<'_>,
        _: &[u8],
    ) -> Result<(), Refused> {
        Ok(())
    }

    fn close_channel(&mut self, _: &u32, _: u16, _: &Fault) {}
}
