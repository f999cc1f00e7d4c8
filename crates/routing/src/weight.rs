//! Approximate memory of values: precise enough for bounds, and deterministic.

use crosstie_wamp::{Dict, Value};

/// Bytes of attributes, with their names.
pub(crate) fn dict_bytes(dict: &Dict) -> usize {
    let entry =
        |(key, value): &(String, Value)| key.len() + size_of::<String>() + value_bytes(value);
    dict.iter().map(entry).sum()
}

fn value_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Binary(bytes) => bytes.len(),
        Value::List(values) => values.iter().map(value_bytes).sum(),
        Value::Dict(dict) => dict_bytes(dict),
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => 0,
    };
    size_of::<Value>() + inside
}
