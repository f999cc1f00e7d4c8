//! The history of a message's deaths in its headers (`x-death`), as RabbitMQ writes it.

use crosstie_amqp::{Changes, Properties, Table, TableBuf, Value};

use super::dead_letters::DeadLetter;
use crate::Time;

/// The `x-death` header of a message, the latest death first.
pub(crate) struct Deaths<'a> {
    properties: Properties<'a>,
    tables: Vec<Table<'a>>,
}

const X_DEATH: &str = "x-death";
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
            if says(*table, "reason", "rejected") {
                return false;
            }
            if says(*table, "queue", queue) {
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
        let first = self.first(now, dead, old_headers, named.expiration);
        push_table(&mut bytes, first.as_table());
        for table in &self.tables {
            if !is_same(*table, dead) {
                push_table(&mut bytes, *table);
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

    /// This death; with a higher count, if the message died before in this queue for this reason.
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
            // A client wrote the entry, without `count`: this death is the first that counts.
            if before.find("count").is_none() {
                table = table.with("count", Value::I64(count));
            }
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
}

fn is_same(table: Table<'_>, dead: &DeadLetter) -> bool {
    says(table, "queue", &dead.queue) && says(table, "reason", dead.reason.name())
}

/// Whether a field is that text; clients may have written it as bytes.
fn says(table: Table<'_>, name: &str, expected: &str) -> bool {
    matches!(
        table.find(name),
        Some(Value::LongString(found) | Value::ByteArray(found)) if found == expected.as_bytes()
    )
}

fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
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
fn array_field(name: &str, values: &[u8]) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend_from_slice(name.as_bytes());
    push_long(&mut out, b'A', values);
    out
}
