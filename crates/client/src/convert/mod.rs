//! Conversions between an application's types and [`Value`].

#[cfg(feature = "serde_json")]
mod json;

use crosstie_wamp::{Dict, Value};

/// Types of arguments to send.
pub trait IntoValue {
    /// The value to send.
    fn into_value(self) -> Value;
}

/// Types as which an argument can be read.
pub trait FromValue: Sized {
    /// The expectation in error messages.
    const EXPECTED: &'static str;

    /// `None` if the value is of another kind, or out of range.
    fn from_value(value: &Value) -> Option<Self>;
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}

impl FromValue for Value {
    const EXPECTED: &'static str = "a value";

    fn from_value(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

macro_rules! integers {
    ($($kind:ty)*) => {$(
        impl IntoValue for $kind {
            fn into_value(self) -> Value {
                // Each of them fits: `usize` has at most 64 bits.
                Value::Integer(self as i128)
            }
        }

        impl FromValue for $kind {
            const EXPECTED: &'static str = "an integer";

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(number) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

impl IntoValue for f64 {
    fn into_value(self) -> Value {
        Value::Float(self)
    }
}

impl FromValue for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Float(number) => Some(*number),
            // A JSON peer may write 2.0 as 2.
            Value::Integer(number) => Some(*number as Self),
            _ => None,
        }
    }
}

impl IntoValue for bool {
    fn into_value(self) -> Value {
        Value::Bool(self)
    }
}

impl FromValue for bool {
    const EXPECTED: &'static str = "a boolean";

    fn from_value(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl IntoValue for &str {
    fn into_value(self) -> Value {
        Value::String(self.to_owned())
    }
}

impl IntoValue for String {
    fn into_value(self) -> Value {
        Value::String(self)
    }
}

impl IntoValue for &String {
    fn into_value(self) -> Value {
        Value::String(self.clone())
    }
}

impl FromValue for String {
    const EXPECTED: &'static str = "text";

    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(Self::from)
    }
}

/// Bytes that travel as binary, not as a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binary(pub Vec<u8>);

impl IntoValue for Binary {
    fn into_value(self) -> Value {
        Value::Binary(self.0)
    }
}

impl FromValue for Binary {
    const EXPECTED: &'static str = "bytes";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Binary(bytes) => Some(Self(bytes.clone())),
            _ => None,
        }
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::Null, T::into_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl<T: IntoValue> IntoValue for Vec<T> {
    fn into_value(self) -> Value {
        Value::List(self.into_iter().map(T::into_value).collect())
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const EXPECTED: &'static str = "a list of one kind";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(values) => values.iter().map(T::from_value).collect(),
            _ => None,
        }
    }
}

impl IntoValue for Dict {
    fn into_value(self) -> Value {
        Value::Dict(self)
    }
}

impl FromValue for Dict {
    const EXPECTED: &'static str = "a dictionary";

    fn from_value(value: &Value) -> Option<Self> {
        value.as_dict().cloned()
    }
}
