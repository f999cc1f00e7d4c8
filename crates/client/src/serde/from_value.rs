//! Values as deserializable types.

use crosstie_wamp::Value;
use serde_core::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde_core::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    Unexpected, VariantAccess, Visitor,
};
use serde_core::forward_to_deserialize_any;

use super::error::SerdeError;
use super::key::Key;
use crate::convert::Binary;

/// A received value.
#[derive(Clone, Copy)]
pub(super) struct FromValue<'de>(pub(super) &'de Value);

impl<'de> IntoDeserializer<'de, SerdeError> for FromValue<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A dictionary.
pub(super) fn visit_dict<'de, V: Visitor<'de>>(
    dict: &'de [(String, Value)],
    visitor: V,
) -> Result<V::Value, SerdeError> {
    let entries = dict.iter().map(|(key, value)| (Key(key), FromValue(value)));
    let mut map = MapDeserializer::new(entries);
    let value = visitor.visit_map(&mut map)?;
    map.end()?;
    Ok(value)
}

fn visit_list<'de, V: Visitor<'de>>(
    list: &'de [Value],
    visitor: V,
) -> Result<V::Value, SerdeError> {
    let mut seq = SeqDeserializer::new(list.iter().map(FromValue));
    let value = visitor.visit_seq(&mut seq)?;
    seq.end()?;
    Ok(value)
}

fn visit_integer<'de, V: Visitor<'de>>(number: i128, visitor: V) -> Result<V::Value, SerdeError> {
    if let Ok(number) = u64::try_from(number) {
        visitor.visit_u64(number)
    } else if let Ok(number) = i64::try_from(number) {
        visitor.visit_i64(number)
    } else {
        visitor.visit_i128(number)
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(flag) => Unexpected::Bool(*flag),
        Value::Integer(number) => match i64::try_from(*number) {
            Ok(number) => Unexpected::Signed(number),
            Err(_) => Unexpected::Other("a large integer"),
        },
        Value::Float(number) => Unexpected::Float(*number),
        Value::String(text) => Unexpected::Str(text),
        Value::Binary(bytes) => Unexpected::Bytes(bytes),
        Value::List(_) => Unexpected::Seq,
        Value::Dict(_) => Unexpected::Map,
    }
}

impl<'de> Deserializer<'de> for FromValue<'de> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Integer(number) => visit_integer(*number, visitor),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Binary(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::List(list) => visit_list(list, visitor),
            Value::Dict(dict) => visit_dict(dict, visitor),
        }
    }

    /// Bytes are also read as a list of numbers, which `Vec<u8>` expects.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            Value::Binary(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        let (name, value) = match self.0 {
            Value::String(name) => (name, None),
            Value::Dict(dict) => match &dict[..] {
                [(name, value)] => (name, Some(value)),
                _ => {
                    let expected = &"a dictionary with the variant as its only key";
                    return Err(SerdeError::invalid_length(dict.len(), expected));
                }
            },
            other => {
                let expected = &"the name of a variant, or a dictionary";
                return Err(SerdeError::invalid_type(unexpected(other), expected));
            }
        };
        visitor.visit_enum(Variant { name, value })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant, with its value if it has one.
struct Variant<'de> {
    name: &'de str,
    value: Option<&'de Value>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = SerdeError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), SerdeError> {
        let name: StrDeserializer<'_, SerdeError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> Variant<'de> {
    fn value(self, expected: &str) -> Result<FromValue<'de>, SerdeError> {
        let missing = || SerdeError::invalid_type(Unexpected::UnitVariant, &expected);
        self.value.map(FromValue).ok_or_else(missing)
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = SerdeError;

    fn unit_variant(self) -> Result<(), SerdeError> {
        match self.value {
            None | Some(Value::Null) => Ok(()),
            Some(value) => Err(SerdeError::invalid_type(
                unexpected(value),
                &"a variant without a value",
            )),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, SerdeError> {
        seed.deserialize(self.value("a variant with a value")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, SerdeError> {
        self.value("a variant with a list")?
            .deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        self.value("a variant with a dictionary")?
            .deserialize_any(visitor)
    }
}

impl<'de> Deserialize<'de> for Binary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Binary;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Binary, E> {
                Ok(Binary(bytes.to_owned()))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}
