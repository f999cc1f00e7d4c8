//! Keys of dictionaries: text, also for maps whose keys are numbers or booleans, as in JSON.

use serde_core::de::{Deserializer, IntoDeserializer, Visitor, value::StrDeserializer};
use serde_core::forward_to_deserialize_any;
use serde_core::ser::{Impossible, Serialize, Serializer};

use super::error::SerdeError;

/// The text of a key.
pub(super) fn key<T: Serialize + ?Sized>(value: &T) -> Result<String, SerdeError> {
    value.serialize(ToKey)
}

struct ToKey;

/// What no key is made of.
type Never = Impossible<String, SerdeError>;

fn no_key(found: &str) -> SerdeError {
    SerdeError::new(format!("expected text as the key of a map, got {found}"))
}

macro_rules! texts {
    ($($name:ident: $kind:ty),*) => {$(
        fn $name(self, value: $kind) -> Result<String, SerdeError> {
            Ok(value.to_string())
        }
    )*};
}

impl Serializer for ToKey {
    type Ok = String;
    type Error = SerdeError;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    texts! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_bool: bool, serialize_char: char, serialize_str: &str
    }

    fn serialize_f32(self, _: f32) -> Result<String, SerdeError> {
        Err(no_key("a float"))
    }

    fn serialize_f64(self, _: f64) -> Result<String, SerdeError> {
        Err(no_key("a float"))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<String, SerdeError> {
        Err(no_key("bytes"))
    }

    fn serialize_none(self) -> Result<String, SerdeError> {
        Err(no_key("null"))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String, SerdeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<String, SerdeError> {
        Err(no_key("null"))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<String, SerdeError> {
        Err(no_key("null"))
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<String, SerdeError> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<String, SerdeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, SerdeError> {
        Err(no_key("a variant with a value"))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Never, SerdeError> {
        Err(no_key("a list"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Never, SerdeError> {
        Err(no_key("a list"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never, SerdeError> {
        Err(no_key("a list"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, SerdeError> {
        Err(no_key("a variant with a value"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Never, SerdeError> {
        Err(no_key("a dictionary"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Never, SerdeError> {
        Err(no_key("a dictionary"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, SerdeError> {
        Err(no_key("a variant with a value"))
    }
}

/// A received key, as text or as the number or boolean that it spells.
#[derive(Clone, Copy)]
pub(super) struct Key<'de>(pub(super) &'de str);

macro_rules! spelled {
    ($($name:ident $visit:ident: $kind:ty),*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
            match self.0.parse::<$kind>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        visitor.visit_borrowed_str(self.0)
    }

    spelled! {
        deserialize_bool visit_bool: bool, deserialize_i8 visit_i8: i8, deserialize_i16 visit_i16: i16,
        deserialize_i32 visit_i32: i32, deserialize_i64 visit_i64: i64, deserialize_i128 visit_i128: i128,
        deserialize_u8 visit_u8: u8, deserialize_u16 visit_u16: u16, deserialize_u32 visit_u32: u32,
        deserialize_u64 visit_u64: u64, deserialize_u128 visit_u128: u128
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        visitor.visit_some(self)
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
        let name: StrDeserializer<'_, SerdeError> = self.0.into_deserializer();
        visitor.visit_enum(name)
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

impl<'de> IntoDeserializer<'de, SerdeError> for Key<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
