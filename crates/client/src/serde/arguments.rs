//! The shape of arguments: which fields are positional, and which are keywords.

use crosstie_wamp::{Dict, Value};
use serde_core::de::{DeserializeOwned, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_core::forward_to_deserialize_any;
use serde_core::ser::{Serialize, Serializer};

use super::error::SerdeError;
use super::from_value::{FromValue, visit_dict};
use super::to_value::{DictBuilder, ListBuilder, ToValue, to_value};
use crate::arguments::Arguments;

/// Types that are serializable as the arguments of a message; see [the module](crate::serde).
pub trait SerializeArguments {
    /// The arguments, or the reason why the type has none.
    fn serialize_arguments(&self) -> Result<Arguments, SerdeError>;
}

/// Types that the arguments of a message are deserialized as; see [the module](crate::serde).
pub trait DeserializeArguments: Sized {
    /// The value, or the reason why the arguments are of another type.
    fn deserialize_arguments(arguments: &Arguments) -> Result<Self, SerdeError>;
}

/// Keyword arguments, without positional ones: a struct or a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keywords<K>(pub K);

/// Positional arguments, and keyword arguments: a struct or a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithKeywords<A, K>(pub A, pub K);

impl Arguments {
    /// Arguments from a type of the application; see [the module](crate::serde).
    pub fn serialize<T: SerializeArguments + ?Sized>(value: &T) -> Result<Self, SerdeError> {
        value.serialize_arguments()
    }

    /// These arguments as a type of the application; see [the module](crate::serde).
    ///
    /// ```
    /// let arguments = crosstie_client::args![20, "apples"];
    /// let (count, kind): (u32, String) = arguments.deserialize()?;
    /// assert_eq!((count, kind.as_str()), (20, "apples"));
    ///
    /// let error = arguments.deserialize::<(u32, f64)>().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#"argument 1: invalid type: string "apples", expected f64"#,
    /// );
    /// # Ok::<(), crosstie_client::serde::SerdeError>(())
    /// ```
    pub fn deserialize<T: DeserializeArguments>(&self) -> Result<T, SerdeError> {
        T::deserialize_arguments(self)
    }
}

impl<T: Serialize + ?Sized> SerializeArguments for T {
    fn serialize_arguments(&self) -> Result<Arguments, SerdeError> {
        Ok(Arguments::new(positional(self)?, Dict::new()))
    }
}

impl<K: Serialize> SerializeArguments for Keywords<K> {
    fn serialize_arguments(&self) -> Result<Arguments, SerdeError> {
        Ok(Arguments::new(Vec::new(), keywords(&self.0)?))
    }
}

impl<A: Serialize, K: Serialize> SerializeArguments for WithKeywords<A, K> {
    fn serialize_arguments(&self) -> Result<Arguments, SerdeError> {
        Ok(Arguments::new(positional(&self.0)?, keywords(&self.1)?))
    }
}

impl<T: DeserializeOwned> DeserializeArguments for T {
    fn deserialize_arguments(arguments: &Arguments) -> Result<Self, SerdeError> {
        Self::deserialize(Positional(args(arguments)?))
    }
}

impl<K: DeserializeOwned> DeserializeArguments for Keywords<K> {
    fn deserialize_arguments(arguments: &Arguments) -> Result<Self, SerdeError> {
        match args(arguments)? {
            [] => Ok(Self(keywords_as(arguments)?)),
            more => Err(SerdeError::new(format!(
                "expected only keyword arguments, got {} positional",
                more.len()
            ))),
        }
    }
}

impl<A: DeserializeOwned, K: DeserializeOwned> DeserializeArguments for WithKeywords<A, K> {
    fn deserialize_arguments(arguments: &Arguments) -> Result<Self, SerdeError> {
        let positional = A::deserialize(Positional(args(arguments)?))?;
        Ok(Self(positional, keywords_as(arguments)?))
    }
}

fn args(arguments: &Arguments) -> Result<&[Value], SerdeError> {
    let args = arguments.args();
    args.map_err(|error| SerdeError::new(error.to_string()))
}

fn keywords_as<K: DeserializeOwned>(arguments: &Arguments) -> Result<K, SerdeError> {
    let kwargs = arguments.kwargs();
    let kwargs = kwargs.map_err(|error| SerdeError::new(error.to_string()))?;
    K::deserialize(Named(kwargs)).map_err(|error| error.at("keyword arguments"))
}

fn keywords<K: Serialize>(value: &K) -> Result<Dict, SerdeError> {
    match to_value(value)? {
        Value::Dict(dict) => Ok(dict),
        _ => Err(SerdeError::new(
            "keyword arguments: expected a struct or a map",
        )),
    }
}

fn positional<T: Serialize + ?Sized>(value: &T) -> Result<Vec<Value>, SerdeError> {
    value.serialize(ToPositional)
}

/// Converts a value to positional arguments.
struct ToPositional;

/// Fields that are arguments.
struct Fields(ListBuilder);

macro_rules! single {
    ($($name:ident($($argument:ident: $kind:ty),*)),* $(,)?) => {$(
        fn $name(self, $($argument: $kind),*) -> Result<Vec<Value>, SerdeError> {
            Ok(vec![ToValue.$name($($argument),*)?])
        }
    )*};
}

/// Values of several parts that are one argument together.
struct Single<B>(B);

impl Serializer for ToPositional {
    type Ok = Vec<Value>;
    type Error = SerdeError;
    type SerializeSeq = Single<ListBuilder>;
    type SerializeTuple = Fields;
    type SerializeTupleStruct = Fields;
    type SerializeTupleVariant = Single<ListBuilder>;
    type SerializeMap = Single<DictBuilder>;
    type SerializeStruct = Single<DictBuilder>;
    type SerializeStructVariant = Single<DictBuilder>;

    single! {
        serialize_bool(value: bool), serialize_i8(value: i8), serialize_i16(value: i16), serialize_i32(value: i32),
        serialize_i64(value: i64), serialize_i128(value: i128), serialize_u8(value: u8), serialize_u16(value: u16),
        serialize_u32(value: u32), serialize_u64(value: u64), serialize_u128(value: u128), serialize_f32(value: f32),
        serialize_f64(value: f64), serialize_char(value: char), serialize_str(value: &str),
        serialize_bytes(value: &[u8]), serialize_none(),
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str),
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<Value>, SerdeError> {
        Ok(vec![to_value(value)?])
    }

    fn serialize_unit(self) -> Result<Vec<Value>, SerdeError> {
        Ok(Vec::new())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Vec<Value>, SerdeError> {
        Ok(Vec::new())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Vec<Value>, SerdeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Vec<Value>, SerdeError> {
        let value = ToValue.serialize_newtype_variant(name, index, variant, value);
        Ok(vec![value?])
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Single<ListBuilder>, SerdeError> {
        ToValue.serialize_seq(length).map(Single)
    }

    fn serialize_tuple(self, length: usize) -> Result<Fields, SerdeError> {
        ToValue.serialize_tuple(length).map(Fields)
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Fields, SerdeError> {
        ToValue.serialize_tuple(length).map(Fields)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Single<ListBuilder>, SerdeError> {
        let builder = ToValue.serialize_tuple_variant(name, index, variant, length);
        builder.map(Single)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Single<DictBuilder>, SerdeError> {
        ToValue.serialize_map(length).map(Single)
    }

    fn serialize_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Single<DictBuilder>, SerdeError> {
        ToValue.serialize_struct(name, length).map(Single)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Single<DictBuilder>, SerdeError> {
        let builder = ToValue.serialize_struct_variant(name, index, variant, length);
        builder.map(Single)
    }
}

macro_rules! parts {
    ($($kind:ident for $own:ty: $part:ident($($key:ty)?) => $end:expr),* $(,)?) => {$(
        impl serde_core::ser::$kind for $own {
            type Ok = Vec<Value>;
            type Error = SerdeError;

            parts!(@part $kind $part $($key)?);

            fn end(self) -> Result<Vec<Value>, SerdeError> {
                let end: fn(_) -> _ = $end;
                end(self.0)
            }
        }
    )*};
    (@part $kind:ident $part:ident) => {
        fn $part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
            serde_core::ser::$kind::$part(&mut self.0, value)
        }
    };
    (@part $kind:ident $part:ident $key:ty) => {
        fn $part<T: Serialize + ?Sized>(&mut self, key: $key, value: &T) -> Result<(), SerdeError> {
            serde_core::ser::$kind::$part(&mut self.0, key, value)
        }
    };
}

fn single<B: serde_core::ser::SerializeStruct<Ok = Value, Error = SerdeError>>(
    builder: B,
) -> Result<Vec<Value>, SerdeError> {
    Ok(vec![builder.end()?])
}

fn single_list(builder: ListBuilder) -> Result<Vec<Value>, SerdeError> {
    Ok(vec![serde_core::ser::SerializeSeq::end(builder)?])
}

parts! {
    SerializeSeq for Single<ListBuilder>: serialize_element() => single_list,
    SerializeTupleVariant for Single<ListBuilder>: serialize_field() => single_list,
    SerializeStruct for Single<DictBuilder>: serialize_field(&'static str) => single,
    SerializeStructVariant for Single<DictBuilder>: serialize_field(&'static str) => single,
    SerializeTuple for Fields: serialize_element() => |fields: ListBuilder| Ok(fields.into_values()),
    SerializeTupleStruct for Fields: serialize_field() => |fields: ListBuilder| Ok(fields.into_values()),
}

impl serde_core::ser::SerializeMap for Single<DictBuilder> {
    type Ok = Vec<Value>;
    type Error = SerdeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerdeError> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
        self.0.serialize_value(value)
    }

    fn end(self) -> Result<Vec<Value>, SerdeError> {
        single(self.0)
    }
}

/// Received positional arguments.
struct Positional<'de>(&'de [Value]);

impl<'de> Positional<'de> {
    fn fields<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, SerdeError> {
        if self.0.len() != length {
            return Err(wrong_count(length, self.0.len()));
        }
        visitor.visit_seq(Elements {
            values: self.0.iter(),
            index: 0,
        })
    }

    fn only(self) -> Result<FromValue<'de>, SerdeError> {
        match self.0 {
            [value] => Ok(FromValue(value)),
            values => Err(wrong_count(1, values.len())),
        }
    }
}

fn wrong_count(expected: usize, found: usize) -> SerdeError {
    let noun = if expected == 1 {
        "argument"
    } else {
        "arguments"
    };
    SerdeError::new(format!("expected {expected} {noun}, got {found}"))
}

macro_rules! only {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
            self.only()?.$name(visitor).map_err(|error| error.at("argument 0"))
        }
    )*};
}

impl<'de> Deserializer<'de> for Positional<'de> {
    type Error = SerdeError;

    only! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_seq deserialize_map deserialize_identifier
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            [] => visitor.visit_none(),
            _ => {
                let read = self.only()?.deserialize_option(visitor);
                read.map_err(|error| error.at("argument 0"))
            }
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            [] | [Value::Null] => visitor.visit_unit(),
            values => Err(wrong_count(0, values.len())),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        self.fields(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        self.fields(length, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        let read = self.only()?.deserialize_struct(name, fields, visitor);
        read.map_err(|error| error.at("argument 0"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        let read = self.only()?.deserialize_enum(name, variants, visitor);
        read.map_err(|error| error.at("argument 0"))
    }
}

/// The elements of a tuple, with their places in errors.
struct Elements<'de> {
    values: std::slice::Iter<'de, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = SerdeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SerdeError> {
        let Some(value) = self.values.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        let read = seed.deserialize(FromValue(value));
        read.map(Some)
            .map_err(|error| error.at(format_args!("argument {index}")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

/// Received keyword arguments.
struct Named<'de>(&'de [(String, Value)]);

impl<'de> Deserializer<'de> for Named<'de> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        visit_dict(self.0, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
