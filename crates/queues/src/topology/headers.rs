//! Patterns of headers exchanges: fields of which all or any must be present.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use ahash::RandomState;
use crosstie_amqp::{Table, TableBuf, Value};

use super::term;

/// A binding's arguments as a pattern.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct HeadersPattern {
    pub(super) is_any: bool,
    /// The required fields: without `x-match`, which selects the mode, and without names that begin with `x-`, unless
    /// the mode is `-with-x`.
    pub(super) asked: TableBuf,
}

/// A message's headers, found by name without a walk through all of them for each name: both sides may have thousands.
pub(super) struct Headers<'a> {
    table: Table<'a>,
    /// By name, if there are many.
    by_name: Option<HashMap<&'a str, Value<'a>, RandomState>>,
}

/// Up to this number, walking costs less than a map, and needs no memory.
const WALKED_MAX: usize = 16;

impl HeadersPattern {
    /// Parses a binding's arguments; the fault of `x-match` is in RabbitMQ's words.
    pub(super) fn parse(arguments: &TableBuf) -> Result<Self, String> {
        let mode = match arguments.as_table().find("x-match") {
            None => "all".into(),
            Some(Value::LongString(bytes)) => String::from_utf8_lossy(bytes),
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
        let asked = arguments
            .as_table()
            .iter()
            .filter(|(name, _)| *name != "x-match" && (with_x || !name.starts_with("x-")))
            .fold(TableBuf::new(), |asked, (name, value)| {
                asked.with(name, value)
            });
        Ok(Self { is_any, asked })
    }

    pub(super) fn matches(&self, headers: &Headers<'_>) -> bool {
        let mut asked = self.asked.as_table().iter();
        let is_there = |(name, value): (&str, Value<'_>)| match headers.find(name) {
            Some(found) => is_asked(value, found),
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
    pub(super) fn new(table: Table<'a>, hasher: &RandomState) -> Self {
        let is_long = table.iter().nth(WALKED_MAX).is_some();
        let by_name = is_long.then(|| {
            let mut fields = HashMap::with_hasher(hasher.clone());
            for (name, value) in table.iter() {
                // The first field of a name counts.
                fields.entry(name).or_insert(value);
            }
            fields
        });
        Self { table, by_name }
    }

    pub(super) fn find(&self, name: &str) -> Option<Value<'a>> {
        match &self.by_name {
            Some(fields) => fields.get(name).copied(),
            None => self.table.find(name),
        }
    }

    /// Shows each name once, in any order.
    pub(super) fn each(&self, mut found: impl FnMut(&'a str, Value<'a>)) {
        if let Some(fields) = &self.by_name {
            fields.iter().for_each(|(name, value)| found(name, *value));
            return;
        }
        for (position, (name, value)) in self.table.iter().enumerate() {
            let mut earlier = self.table.iter().take(position);
            if !earlier.any(|(other, _)| other == name) {
                found(name, value);
            }
        }
    }
}

/// Whether a message's field satisfies a pattern; a field without value requires the name alone.
pub(super) fn is_asked(asked: Value<'_>, found: Value<'_>) -> bool {
    asked == Value::Void || is_equal(found, asked)
}

/// Compares as RabbitMQ does: numbers by value, whatever their types, and times as numbers; text and bytes alike;
/// everything else also by type.
fn is_equal(one: Value<'_>, other: Value<'_>) -> bool {
    if let (Some(one), Some(other)) = (Number::of(one), Number::of(other)) {
        return match (one, other) {
            (Number::Integer(one), Number::Integer(other)) => one == other,
            (one, other) => one.to_float() == other.to_float(),
        };
    }
    match (bytes(one), bytes(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// Values that are equal in the sense of [`is_equal`] hash alike.
pub(super) struct Hashed<'a>(pub(super) Value<'a>);

impl Hash for Hashed<'_> {
    fn hash<S: Hasher>(&self, state: &mut S) {
        if let Some(number) = Number::of(self.0) {
            // Both zeros are one number.
            (number.to_float() + 0.0).to_bits().hash(state);
        } else if let Some(bytes) = bytes(self.0) {
            bytes.hash(state);
        } else {
            self.0.tag().hash(state);
            match self.0 {
                Value::Bool(value) => value.hash(state),
                Value::Decimal { scale, value } => (scale, value).hash(state),
                Value::Array(array) => array.iter().for_each(|value| Self(value).hash(state)),
                Value::Table(table) => table.bytes().hash(state),
                _ => {}
            }
        }
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

fn bytes(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::LongString(bytes) | Value::ByteArray(bytes) => Some(bytes),
        _ => None,
    }
}
