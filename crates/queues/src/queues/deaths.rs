//! The history of a message's deaths in its headers (`x-death`), as RabbitMQ writes it.

use std::collections::BTreeMap;

use crosstie_amqp::{Changes, Properties, Table, TableBuf, Value};

use super::dead_letters::DeadLetter;
use crate::Time;

/// The `x-death` header of a message, the latest death first.
pub(crate) struct Deaths<'a> {
    properties: Properties<'a>,
    tables: Vec<Table<'a>>,
}

const X_DEATH: &str = "x-death";
const COUNT: &str = "count";
const QUEUE: &str = "queue";
const REASON: &str = "reason";
const FIRST_DEATH_EXCHANGE: &str = "x-first-death-exchange";
const FIRST_DEATH_QUEUE: &str = "x-first-death-queue";
const FIRST_DEATH_REASON: &str = "x-first-death-reason";

impl<'a> Deaths<'a> {
    pub(crate) fn of(properties: Properties<'a>) -> Self {
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

    pub(crate) fn count(&self) -> usize {
        self.tables.len()
    }

    /// Whether a message that comes to `queue` from `last` has been there before without a rejection since then: it
    /// would circle for ever.
    pub(crate) fn is_circle(&self, queue: &str, last: &str) -> bool {
        queue == last || self.is_circle_to(queue)
    }

    /// The same for a message whose last death is among these.
    pub(crate) fn is_circle_to(&self, queue: &str) -> bool {
        for table in &self.tables {
            if says(*table, REASON, "rejected") {
                return false;
            }
            if says(*table, QUEUE, queue) {
                return true;
            }
        }
        false
    }

    /// The bytes of the properties with this death in front. Leaves out the expiration, and routing keys that applied
    /// to the first publication only.
    pub(crate) fn with(&self, now: Time, dead: &DeadLetter) -> Vec<u8> {
        let named = self.properties.parse_for_broker();
        let old_headers = named.headers.unwrap_or_default();
        // A message with `x-death` has died before, even if a client wrote that header.
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
        let mut bytes = Vec::new();
        let known = self.grouped();
        let before = known.iter().find(|entry| is_same(entry.table, dead));
        let first = match before {
            Some(before) => before.counted(before.count.unwrap_or(0).saturating_add(1)),
            None => first(now, dead, old_headers, named.expiration),
        };
        push_table(&mut bytes, first.as_table());
        for entry in &known {
            match entry.count {
                _ if is_same(entry.table, dead) => {}
                Some(count) if entry.table.find(COUNT).is_none() => {
                    push_table(&mut bytes, entry.counted(count).as_table());
                }
                _ => push_table(&mut bytes, entry.table),
            }
        }
        let array = array_field(X_DEATH, &bytes);
        if let Some(value) = Table::from_bytes(&array).ok().and_then(|t| t.find(X_DEATH)) {
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

    /// The entries, one for each queue and reason. RabbitMQ before 3.5 wrote one for each death, without a count.
    /// Clients may have written thousands, so that no entry is compared with all others.
    fn grouped(&self) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut known = BTreeMap::new();
        for table in &self.tables {
            let names = [QUEUE, REASON].map(|name| table.find(name).map(bytes));
            let at = *known.entry(names).or_insert(entries.len());
            match entries.get_mut(at) {
                Some(known) => known.deaths += 1,
                None => entries.push(Entry {
                    table: *table,
                    count: table.find(COUNT).and_then(Value::as_i64),
                    deaths: 1,
                }),
            }
        }
        // As in RabbitMQ, a lone entry stays without a count.
        if self.tables.len() > 1 {
            for entry in &mut entries {
                entry.count = entry.count.or(Some(entry.deaths));
            }
        }
        entries
    }
}

/// A queue and a reason in the header.
struct Entry<'a> {
    table: Table<'a>,
    count: Option<i64>,
    /// Entries of that queue and reason.
    deaths: i64,
}

impl Entry<'_> {
    /// The entry with that count; its time is that of the first death, as in RabbitMQ.
    fn counted(&self, count: i64) -> TableBuf {
        let mut table = TableBuf::new();
        if self.table.find(COUNT).is_none() {
            table = table.with(COUNT, Value::I64(count));
        }
        for (name, value) in self.table.iter() {
            table = match name {
                COUNT => table.with(name, Value::I64(count)),
                _ => table.with(name, value),
            };
        }
        table
    }
}

/// The first death in a queue for a reason.
fn first(now: Time, dead: &DeadLetter, headers: Table<'_>, expiration: Option<&str>) -> TableBuf {
    let mut keys = Vec::new();
    push_string(&mut keys, dead.content.routing_key().as_bytes());
    if let Some(Value::Array(array)) = headers.find("CC") {
        for key in array.iter().filter_map(Value::as_str) {
            push_string(&mut keys, key.as_bytes());
        }
    }
    let keys = array_field("routing-keys", &keys);
    let exchange = dead.content.exchange();
    let table = TableBuf::new()
        .with(COUNT, Value::I64(1))
        .with(REASON, Value::LongString(dead.reason.name().as_bytes()))
        .with(QUEUE, Value::LongString(dead.queue.as_bytes()))
        .with("time", Value::Timestamp(now.0 / 1000))
        .with("exchange", Value::LongString(exchange.as_bytes()));
    let mut table = match Table::from_bytes(&keys).ok().and_then(|t| t.iter().next()) {
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

fn is_same(table: Table<'_>, dead: &DeadLetter) -> bool {
    says(table, QUEUE, &dead.queue) && says(table, REASON, dead.reason.name())
}

/// Whether a field is that text.
fn says(table: Table<'_>, name: &str, expected: &str) -> bool {
    table.find(name).and_then(bytes) == Some(expected.as_bytes())
}

/// The bytes of a text; clients may have written it as an array of bytes.
fn bytes(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::LongString(found) | Value::ByteArray(found) => Some(found),
        _ => None,
    }
}

pub(crate) fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    push_long(out, b'S', bytes);
}

fn push_table(out: &mut Vec<u8>, table: Table<'_>) {
    push_long(out, b'F', table.bytes());
}

fn push_long(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A table's bytes with one field: an array of these bytes.
pub(crate) fn array_field(name: &str, values: &[u8]) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend_from_slice(name.as_bytes());
    push_long(&mut out, b'A', values);
    out
}
