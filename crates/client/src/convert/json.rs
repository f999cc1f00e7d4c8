//! Conversions of JSON values, which lack binary.

use crosstie_wamp::Value;
use serde_json::Value as Json;

use super::{FromValue, IntoValue};

impl IntoValue for Json {
    fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            Self::Number(number) => match number.as_i128() {
                Some(integer) => Value::Integer(integer),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Self::String(text) => Value::String(text),
            Self::Array(values) => values.into_value(),
            Self::Object(fields) => Value::Dict(
                fields
                    .into_iter()
                    .map(|(key, value)| (key, value.into_value()))
                    .collect(),
            ),
        }
    }
}

impl FromValue for Json {
    const EXPECTED: &'static str = "values that JSON can hold";

    fn from_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Integer(number) => Self::Number(serde_json::Number::from_i128(*number)?),
            Value::Float(number) => Self::Number(serde_json::Number::from_f64(*number)?),
            Value::String(text) => Self::String(text.clone()),
            Value::Binary(_) => return None,
            Value::List(values) => {
                Self::Array(values.iter().map(Self::from_value).collect::<Option<_>>()?)
            }
            Value::Dict(dict) => {
                let field =
                    |(key, value): &(String, Value)| Some((key.clone(), Self::from_value(value)?));
                Self::Object(dict.iter().map(field).collect::<Option<_>>()?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_values_survive() {
        let json = serde_json::json!({"a": [1, -2, 2.5, "x", null, true], "b": u64::MAX});
        let value = json.clone().into_value();
        assert_eq!(Json::from_value(&value), Some(json));
        assert_eq!(Json::from_value(&Value::Float(f64::NAN)), None);
    }
}
