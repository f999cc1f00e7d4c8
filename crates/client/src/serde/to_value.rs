//! Serializable values as [`Value`]s.

use crosstie_wamp::{Dict, Value};
use serde_core::ser::{self, Serialize, Serializer};

use super::error::SerdeError;
use super::key::key;
use crate::convert::Binary;

/// Converts any value.
pub(super) struct ToValue;

pub(super) fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, SerdeError> {
    value.serialize(ToValue)
}

/// The fields of a list, or of a variant with that name.
pub(super) struct ListBuilder {
    values: Vec<Value>,
    variant: Option<&'static str>,
}

/// The entries of a dictionary, or of a variant with that name.
pub(super) struct DictBuilder {
    entries: Dict,
    key: Option<String>,
    variant: Option<&'static str>,
}

fn variant_of(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::Dict(vec![(name.to_owned(), value)]),
        None => value,
    }
}

impl ListBuilder {
    fn new(length: usize, variant: Option<&'static str>) -> Self {
        // A length may be wrong, so that only a small one is trusted.
        Self {
            values: Vec::with_capacity(length.min(1024)),
            variant,
        }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
        self.values.push(to_value(value)?);
        Ok(())
    }

    /// The fields alone.
    pub(super) fn into_values(self) -> Vec<Value> {
        self.values
    }

    fn build(self) -> Value {
        variant_of(self.variant, Value::List(self.values))
    }
}

impl DictBuilder {
    fn new(variant: Option<&'static str>) -> Self {
        Self {
            entries: Dict::new(),
            key: None,
            variant,
        }
    }

    fn insert<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), SerdeError> {
        let value = to_value(value).map_err(|error| error.at(format_args!("{key:?}")))?;
        self.entries.push((key.to_owned(), value));
        Ok(())
    }

    fn build(self) -> Value {
        variant_of(self.variant, Value::Dict(self.entries))
    }
}

macro_rules! integers {
    ($($name:ident: $kind:ty),*) => {$(
        fn $name(self, number: $kind) -> Result<Value, SerdeError> {
            Ok(Value::Integer(number.into()))
        }
    )*};
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = SerdeError;
    type SerializeSeq = ListBuilder;
    type SerializeTuple = ListBuilder;
    type SerializeTupleStruct = ListBuilder;
    type SerializeTupleVariant = ListBuilder;
    type SerializeMap = DictBuilder;
    type SerializeStruct = DictBuilder;
    type SerializeStructVariant = DictBuilder;

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_u128(self, number: u128) -> Result<Value, SerdeError> {
        let number = i128::try_from(number);
        number
            .map(Value::Integer)
            .map_err(|_| SerdeError::new("an integer of more than 64 bits"))
    }

    fn serialize_bool(self, flag: bool) -> Result<Value, SerdeError> {
        Ok(Value::Bool(flag))
    }

    fn serialize_f32(self, number: f32) -> Result<Value, SerdeError> {
        Ok(Value::Float(number.into()))
    }

    fn serialize_f64(self, number: f64) -> Result<Value, SerdeError> {
        Ok(Value::Float(number))
    }

    fn serialize_char(self, letter: char) -> Result<Value, SerdeError> {
        Ok(Value::String(letter.into()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, SerdeError> {
        Ok(Value::String(text.to_owned()))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, SerdeError> {
        Ok(Value::Binary(bytes.to_owned()))
    }

    fn serialize_none(self) -> Result<Value, SerdeError> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, SerdeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, SerdeError> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, SerdeError> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, SerdeError> {
        Ok(Value::String(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, SerdeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, SerdeError> {
        Ok(variant_of(Some(variant), to_value(value)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListBuilder, SerdeError> {
        Ok(ListBuilder::new(length.unwrap_or_default(), None))
    }

    fn serialize_tuple(self, length: usize) -> Result<ListBuilder, SerdeError> {
        Ok(ListBuilder::new(length, None))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<ListBuilder, SerdeError> {
        Ok(ListBuilder::new(length, None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ListBuilder, SerdeError> {
        Ok(ListBuilder::new(length, Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<DictBuilder, SerdeError> {
        Ok(DictBuilder::new(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<DictBuilder, SerdeError> {
        Ok(DictBuilder::new(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<DictBuilder, SerdeError> {
        Ok(DictBuilder::new(Some(variant)))
    }
}

macro_rules! lists {
    ($($kind:ident $push:ident),*) => {$(
        impl ser::$kind for ListBuilder {
            type Ok = Value;
            type Error = SerdeError;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
                self.push(value)
            }

            fn end(self) -> Result<Value, SerdeError> {
                Ok(self.build())
            }
        }
    )*};
}

lists! {
    SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
}

macro_rules! structs {
    ($($kind:ident),*) => {$(
        impl ser::$kind for DictBuilder {
            type Ok = Value;
            type Error = SerdeError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), SerdeError> {
                self.insert(key, value)
            }

            fn end(self) -> Result<Value, SerdeError> {
                Ok(self.build())
            }
        }
    )*};
}

structs! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for DictBuilder {
    type Ok = Value;
    type Error = SerdeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
        self.key = Some(key(value)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
        let key = self.key.take();
        let key = key.ok_or_else(|| SerdeError::new("a value of a map without its key"))?;
        self.insert(&key, value)
    }

    fn end(self) -> Result<Value, SerdeError> {
        Ok(self.build())
    }
}

impl Serialize for Binary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}
