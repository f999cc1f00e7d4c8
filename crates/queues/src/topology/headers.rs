//! Patterns of headers exchanges: fields that all, or any, have to be there.

use crosstie_amqp::{Table, TableBuf, Value};

use super::term;

/// A binding's arguments as a pattern. `x-match` says how; fields whose names begin with `x-`
/// count only where it says `-with-x`.
#[derive(Debug)]
pub(super) struct HeadersPattern {
    is_any: bool,
    with_x: bool,
    arguments: TableBuf,
}

/// A message's headers, found by name without a walk through all of them for each name: both
/// sides may have thousands, and a pattern asks for as many as it has.
pub(super) struct Headers<'a> {
    table: Table<'a>,
    /// By name, where there are many.
    sorted: Option<Vec<(&'a str, Value<'a>)>>,
}

/// Up to so many, walking costs less than sorting, and needs no memory.
const WALKED_MAX: usize = 16;

impl HeadersPattern {
    /// What is wrong with `x-match`, in RabbitMQ's words, if something is.
    pub(super) fn parse(arguments: &TableBuf) -> Result<Self, String> {
        let mode = match arguments.as_table().find("x-match") {
            None => "all".into(),
            Some(Value::LongString(octets)) => String::from_utf8_lossy(octets),
            Some(other) => {
                return Err(format!(
                    "Invalid x-match field type {} (value {}); expected longstr",
                    term::kind(other),
                    term::term(other)
                ));
            }
        };
        let (is_any, with_x) = match &*mode {
            "all" => (false, false),
            "any" => (true, false),
            "all-with-x" => (false, true),
            "any-with-x" => (true, true),
            other => {
                return Err(format!(
                    "Invalid x-match field value <<\"{other}\">>; \
                     expected all, any, all-with-x, or any-with-x"
                ));
            }
        };
        Ok(Self {
            is_any,
            with_x,
            arguments: arguments.clone(),
        })
    }

    pub(super) fn matches(&self, headers: &Headers<'_>) -> bool {
        let mut asked = self
            .arguments
            .as_table()
            .iter()
            .filter(|(name, _)| *name != "x-match" && (self.with_x || !name.starts_with("x-")));
        let is_there = |(name, value): (&str, Value<'_>)| match headers.find(name) {
            // A field without value asks for the name alone.
            Some(found) => value == Value::Void || is_equal(found, value),
            None => false,
        };
        if self.is_any {
            asked.any(is_there)
        } else {
            asked.all(is_there)
        }
    }
}

impl<'a> Headers<'a> {
    pub(super) fn new(table: Table<'a>) -> Self {
        let is_long = table.iter().nth(WALKED_MAX).is_some();
        let sorted = is_long.then(|| {
            let mut fields: Vec<_> = table.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            fields
        });
        Self { table, sorted }
    }

    fn find(&self, name: &str) -> Option<Value<'a>> {
        let Some(sorted) = &self.sorted else {
            return self.table.find(name);
        };
        let first = sorted.partition_point(|(found, _)| *found < name);
        let (found, value) = sorted.get(first)?;
        (*found == name).then_some(*value)
    }
}

/// As RabbitMQ compares: numbers by what they count, whatever their kinds, a time among them; text
/// and octets alike; everything else by kind too.
fn is_equal(one: Value<'_>, other: Value<'_>) -> bool {
    if let (Some(one), Some(other)) = (Number::of(one), Number::of(other)) {
        return match (one, other) {
            (Number::Integer(one), Number::Integer(other)) => one == other,
            (one, other) => one.to_float() == other.to_float(),
        };
    }
    match (octets(one), octets(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

enum Number {
    Float(f64),
    Integer(i128),
}

impl Number {
    fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::F32(value) => Some(Self::Float(value.into())),
            Value::F64(value) => Some(Self::Float(value)),
            Value::Timestamp(value) => Some(Self::Integer(value.into())),
            value => value.as_i64().map(|value| Self::Integer(value.into())),
        }
    }

    fn to_float(&self) -> f64 {
        match self {
            Self::Float(value) => *value,
            Self::Integer(value) => *value as f64,
        }
    }
}

fn octets(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::LongString(octets) | Value::ByteArray(octets) => Some(octets),
        _ => None,
    }
}
