//! Decoded values, for the rare dictionaries that a router must look into or build.

use crate::ID_MAX;

/// A dictionary in the order it was written.
pub type Dict = Vec<(String, Value)>;

/// Any WAMP value. Heads on the hot path are read without it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// JSON `null`, MessagePack nil, CBOR null or undefined.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer; the range covers 64-bit signed and unsigned.
    Integer(i128),
    /// A double.
    Float(f64),
    /// Text.
    String(String),
    /// Bytes; in JSON a string of U+0000 and Base64.
    Binary(Vec<u8>),
    /// A list.
    List(Vec<Self>),
    /// A dictionary.
    Dict(Dict),
}

impl Value {
    /// The text, when this is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, when this is one in the range of `u64`.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The integer that is not negative, also one that was written as a double: clients in JavaScript write ids
    /// beyond 32 bits so. A double is exact up to 2^53.
    pub fn as_whole(&self) -> Option<u64> {
        match self {
            Self::Float(number) => whole(*number),
            other => other.as_u64(),
        }
    }

    /// The boolean, when this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The dictionary, when this is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The value under `key`, when this is a dictionary that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_dict()?
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }
}

/// The integer from 0 to 2^53 that a double is, if it is one.
pub(crate) fn whole(number: f64) -> Option<u64> {
    let is_whole = (0.0..=ID_MAX as f64).contains(&number) && number.fract() == 0.0;
    is_whole.then_some(number as u64)
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}
