//! Dead letters: what was rejected, has expired or had no room goes to another exchange, and its
//! headers say how it died.

use std::sync::Arc;

use crosstie_amqp::{Changes, DeliveryMode, Properties, Table, TableBuf, Value};

use super::Vhost;
use super::enqueue::Incoming;
use super::publish::Handling;
use crate::queue::Entry;
use crate::shrink::shrink;
use crate::{MessageContent, Outbox, QueueId, QueueKey, Record, Time};

/// Why a message died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Rejected,
    Expired,
    MaxLength,
    DeliveryLimit,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

/// A message that has died and is to go to an exchange.
#[derive(Debug)]
pub(super) struct DeadLetter {
    content: Arc<MessageContent>,
    /// What is let go of when it is done; none, if the queue never took it.
    entry: Option<Entry>,
    /// What a store is told then: in the same journal after what it became, so that it is never
    /// in neither.
    stored: Option<QueueId>,
    reason: Reason,
    queue: Arc<str>,
    exchange: Arc<str>,
    routing_key: Option<Arc<str>>,
}

/// A message that has died more often is dropped. Its headers would grow with each death.
const DEATHS_MAX: usize = 64;

/// So many deaths may follow from those of one input at once, whatever they are.
const CAUSED_MAX: usize = 10_000;

/// So many may follow from each of them on average: more hops than anybody's retries have.
const CAUSED_EACH_MAX: usize = 16;

impl<H> Vhost<H> {
    /// A message has left a queue (or a channel) for that reason.
    pub(super) fn die(&mut self, key: QueueKey, entry: Entry, reason: Reason) {
        let queue = self.queues.find(key);
        let Some((queue, exchange)) =
            queue.and_then(|queue| Some((queue, queue.settings.dead_letter_exchange.clone()?)))
        else {
            self.counts.dropped += u64::from(reason != Reason::Expired);
            self.forget(key, entry);
            return;
        };
        self.dead.push_back(DeadLetter {
            content: Arc::clone(&entry.content),
            stored: queue.id.filter(|_| entry.is_stored),
            entry: Some(entry),
            reason,
            queue: queue.name.clone(),
            exchange,
            routing_key: queue.settings.dead_letter_routing_key.clone(),
        });
    }

    /// A message was not taken, and goes where the queue's dead letters go.
    pub(super) fn reject_dead(&mut self, key: QueueKey, content: Arc<MessageContent>) {
        let Some(queue) = self.queues.find(key) else {
            return;
        };
        let Some(exchange) = queue.settings.dead_letter_exchange.clone() else {
            return;
        };
        self.dead.push_back(DeadLetter {
            content,
            entry: None,
            stored: None,
            reason: Reason::MaxLength,
            queue: queue.name.clone(),
            exchange,
            routing_key: queue.settings.dead_letter_routing_key.clone(),
        });
    }

    /// Publishes what has died. The last step of each input: it comes after whatever caused it,
    /// and may cause more of its kind. That has a bound: queues without room or time, each of
    /// which has all others for its dead letters, make the factorial of their number of copies.
    /// What is beyond the bound is dropped, and counted as such.
    pub(super) fn bury(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let caused_max = CAUSED_MAX.max(self.dead.len().saturating_mul(CAUSED_EACH_MAX));
        let mut left = caused_max.saturating_add(self.dead.len());
        while let Some(dead) = self.dead.pop_front() {
            if left > 0 {
                left -= 1;
                self.publish_dead(now, &dead, out);
            } else {
                self.counts.dropped += 1;
            }
            let Some(entry) = dead.entry else {
                continue;
            };
            if let Some(queue) = dead.stored {
                let place = entry.place;
                self.record(Record::Dequeued { queue, place });
            }
            self.release(&entry);
        }
        shrink(&mut self.dead);
    }

    fn publish_dead(&mut self, now: Time, dead: &DeadLetter, out: &mut dyn Outbox<H>) {
        let Some(exchange) = self.topology.exchange(&dead.exchange) else {
            self.counts.dropped += 1;
            return;
        };
        let content = &dead.content;
        let deaths = Deaths::of(content.properties());
        if deaths.count() >= DEATHS_MAX {
            self.counts.dropped += 1;
            return;
        }
        let octets = deaths.with(now, dead);
        let properties = Properties::from_checked_octets(&octets);
        let named = properties.parse_for_broker();
        let mut incoming = Incoming {
            exchange: &dead.exchange,
            routing_key: dead
                .routing_key
                .as_deref()
                .unwrap_or_else(|| content.routing_key()),
            properties,
            body: content.body(),
            handling: Handling {
                is_persistent: named.delivery_mode == Some(DeliveryMode::Persistent as u8),
                ttl_ms: None,
            },
            content: None,
        };
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        let headers = named.headers.unwrap_or_default();
        self.topology
            .route(exchange, incoming.routing_key, headers, &mut targets);
        let mut is_taken = false;
        for target in &targets {
            let is_circle = dead.reason != Reason::Rejected
                && self
                    .queues
                    .find(*target)
                    .is_some_and(|queue| deaths.is_circle(&queue.name, &dead.queue));
            if !is_circle {
                self.enqueue(now, *target, &mut incoming, out);
                is_taken = true;
            }
        }
        self.targets = targets;
        match is_taken {
            true => self.counts.dead_lettered += 1,
            false => self.counts.dropped += 1,
        }
    }
}

/// A message's `x-death`, the latest first.
struct Deaths<'a> {
    properties: Properties<'a>,
    tables: Vec<Table<'a>>,
}

const X_DEATH: &str = "x-death";
const FIRST_DEATH_EXCHANGE: &str = "x-first-death-exchange";
const FIRST_DEATH_QUEUE: &str = "x-first-death-queue";
const FIRST_DEATH_REASON: &str = "x-first-death-reason";

impl<'a> Deaths<'a> {
    fn of(properties: Properties<'a>) -> Self {
        let headers = properties.parse_for_broker().headers.unwrap_or_default();
        let mut tables = Vec::new();
        if let Some(Value::Array(array)) = headers.find(X_DEATH) {
            tables.extend(array.iter().filter_map(|value| match value {
                Value::Table(table) => Some(table),
                _ => None,
            }));
        }
        Self { properties, tables }
    }

    fn count(&self) -> usize {
        self.tables.len()
    }

    /// Whether a message that comes to `queue` from `last` has been there before, and nobody
    /// rejected it since: it would go round for ever.
    fn is_circle(&self, queue: &str, last: &str) -> bool {
        if queue == last {
            return true;
        }
        for table in &self.tables {
            if text(*table, "reason") == Some("rejected") {
                return false;
            }
            if text(*table, "queue") == Some(queue) {
                return true;
            }
        }
        false
    }

    /// The octets of the properties with this death in front; without what must not go further:
    /// the expiration, and routing keys that were for the first way only.
    fn with(&self, now: Time, dead: &DeadLetter) -> Vec<u8> {
        let named = self.properties.parse_for_broker();
        let old_headers = named.headers.unwrap_or_default();
        // Who comes with deaths, whoever says so, has had its first.
        let is_first = old_headers.find(X_DEATH).is_none();
        let mut headers = TableBuf::new();
        for (name, value) in old_headers.iter() {
            let is_dropped = match name {
                "CC" => dead.routing_key.is_some(),
                X_DEATH | "BCC" => true,
                FIRST_DEATH_EXCHANGE | FIRST_DEATH_QUEUE | FIRST_DEATH_REASON => is_first,
                _ => false,
            };
            if !is_dropped {
                headers = headers.with(name, value);
            }
        }
        let mut octets = Vec::new();
        let first = self.first(now, dead, old_headers, named.expiration);
        push_table(&mut octets, first.as_table());
        for table in &self.tables {
            if !is_same(*table, dead) {
                push_table(&mut octets, *table);
            }
        }
        let array = array_field(X_DEATH, &octets);
        if let Some(value) = Table::from_octets(&array)
            .ok()
            .and_then(|t| t.find(X_DEATH))
        {
            headers = headers.with(X_DEATH, value);
        }
        if is_first {
            for (name, value) in [
                (FIRST_DEATH_EXCHANGE, dead.content.exchange()),
                (FIRST_DEATH_QUEUE, &*dead.queue),
                (FIRST_DEATH_REASON, dead.reason.name()),
            ] {
                headers = headers.with(name, Value::LongString(value.as_bytes()));
            }
        }
        let changes = Changes {
            headers: Some(headers.as_table()),
            removes_expiration: true,
            ..Changes::default()
        };
        let mut written = Vec::new();
        self.properties.write_changed(&changes, &mut written);
        written
    }

    /// This death; one more, where the message died so in this queue before.
    fn first(
        &self,
        now: Time,
        dead: &DeadLetter,
        headers: Table<'_>,
        expiration: Option<&str>,
    ) -> TableBuf {
        let before = self.tables.iter().find(|table| is_same(**table, dead));
        let string = |text: &'_ str| text.as_bytes().to_owned();
        let count = before
            .and_then(|table| table.find("count")?.as_i64())
            .unwrap_or(0)
            .saturating_add(1);
        if let Some(before) = before {
            let mut table = TableBuf::new();
            for (name, value) in before.iter() {
                table = match name {
                    "count" => table.with(name, Value::I64(count)),
                    "time" => table.with(name, Value::Timestamp(now.0 / 1000)),
                    _ => table.with(name, value),
                };
            }
            return table;
        }
        let mut keys = Vec::new();
        push_string(&mut keys, dead.content.routing_key().as_bytes());
        if let Some(Value::Array(array)) = headers.find("CC") {
            for key in array.iter().filter_map(Value::as_str) {
                push_string(&mut keys, key.as_bytes());
            }
        }
        let keys = array_field("routing-keys", &keys);
        let table = TableBuf::new()
            .with("count", Value::I64(count))
            .with("reason", Value::LongString(dead.reason.name().as_bytes()))
            .with("queue", Value::LongString(&string(&dead.queue)))
            .with("time", Value::Timestamp(now.0 / 1000))
            .with(
                "exchange",
                Value::LongString(dead.content.exchange().as_bytes()),
            );
        let mut table = match Table::from_octets(&keys).ok().and_then(|t| t.iter().next()) {
            Some((name, value)) => table.with(name, value),
            None => table,
        };
        if let Some(expiration) = expiration {
            table = table.with(
                "original-expiration",
                Value::LongString(expiration.as_bytes()),
            );
        }
        table
    }
}

fn is_same(table: Table<'_>, dead: &DeadLetter) -> bool {
    text(table, "queue") == Some(&dead.queue) && text(table, "reason") == Some(dead.reason.name())
}

fn text<'a>(table: Table<'a>, name: &str) -> Option<&'a str> {
    table.find(name)?.as_str()
}

fn push_string(out: &mut Vec<u8>, octets: &[u8]) {
    push_long(out, b'S', octets);
}

fn push_table(out: &mut Vec<u8>, table: Table<'_>) {
    push_long(out, b'F', table.octets());
}

fn push_long(out: &mut Vec<u8>, tag: u8, octets: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(octets.len() as u32).to_be_bytes());
    out.extend_from_slice(octets);
}

/// A table's octets with one field: an array of these octets.
fn array_field(name: &str, values: &[u8]) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend_from_slice(name.as_bytes());
    push_long(&mut out, b'A', values);
    out
}
