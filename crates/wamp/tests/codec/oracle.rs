//! The same values in the words of three kept libraries, which serve as oracles.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crosstie_wamp::{Serializer, Value};

/// `value` as the oracle of `serializer` writes it.
pub(crate) fn encode(value: &Value, serializer: Serializer) -> Vec<u8> {
    let mut bytes = Vec::new();
    match serializer {
        Serializer::Json => serde_json::to_writer(&mut bytes, &to_json(value)).unwrap(),
        Serializer::MsgPack => rmpv::encode::write_value(&mut bytes, &to_msgpack(value)).unwrap(),
        Serializer::Cbor => ciborium::into_writer(&to_cbor(value), &mut bytes).unwrap(),
    }
    bytes
}

/// What the oracle of `serializer` reads in `bytes`, which must hold exactly one value; or its
/// complaint.
pub(crate) fn decode(bytes: &[u8], serializer: Serializer) -> Result<Value, String> {
    let mut rest = bytes;
    let value = match serializer {
        Serializer::Json => {
            return serde_json::from_slice(bytes)
                .map(|value| from_json(&value))
                .map_err(|error| error.to_string());
        }
        Serializer::MsgPack => {
            from_msgpack(&rmpv::decode::read_value(&mut rest).map_err(|error| error.to_string())?)
        }
        Serializer::Cbor => from_cbor(
            &ciborium::from_reader::<ciborium::Value, _>(&mut rest)
                .map_err(|error| error.to_string())?,
        ),
    }?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("{} bytes are left", rest.len()))
    }
}

/// A value from JSON text, read by the oracle.
pub(crate) fn value(json: &str) -> Value {
    from_json(&serde_json::from_str(json).unwrap())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Integer(number) => match u64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => i64::try_from(*number).unwrap().into(),
        },
        Value::Float(number) => serde_json::Number::from_f64(*number).unwrap().into(),
        Value::String(text) => text.as_str().into(),
        Value::Binary(bytes) => format!("\0{}", BASE64.encode(bytes)).into(),
        Value::List(values) => values.iter().map(to_json).collect(),
        Value::Dict(dict) => dict
            .iter()
            .map(|(key, value)| (key.clone(), to_json(value)))
            .collect(),
    }
}

fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Value::Integer(number.into()),
            (_, Some(number)) => Value::Integer(number.into()),
            _ => Value::Float(number.as_f64().unwrap()),
        },
        serde_json::Value::String(text) => {
            match text
                .strip_prefix('\0')
                .and_then(|rest| BASE64.decode(rest).ok())
            {
                Some(bytes) => Value::Binary(bytes),
                None => Value::String(text.clone()),
            }
        }
        serde_json::Value::Array(values) => Value::List(values.iter().map(from_json).collect()),
        serde_json::Value::Object(dict) => Value::Dict(
            dict.iter()
                .map(|(key, value)| (key.clone(), from_json(value)))
                .collect(),
        ),
    }
}

fn to_msgpack(value: &Value) -> rmpv::Value {
    match value {
        Value::Null => rmpv::Value::Nil,
        Value::Bool(flag) => (*flag).into(),
        Value::Integer(number) => match u64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => i64::try_from(*number).unwrap().into(),
        },
        Value::Float(number) => (*number).into(),
        Value::String(text) => text.as_str().into(),
        Value::Binary(bytes) => bytes.as_slice().into(),
        Value::List(values) => rmpv::Value::Array(values.iter().map(to_msgpack).collect()),
        Value::Dict(dict) => rmpv::Value::Map(
            dict.iter()
                .map(|(key, value)| (key.as_str().into(), to_msgpack(value)))
                .collect(),
        ),
    }
}

fn from_msgpack(value: &rmpv::Value) -> Result<Value, String> {
    Ok(match value {
        rmpv::Value::Nil => Value::Null,
        rmpv::Value::Boolean(flag) => Value::Bool(*flag),
        rmpv::Value::Integer(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Value::Integer(number.into()),
            (_, Some(number)) => Value::Integer(number.into()),
            _ => unreachable!("an integer is in one of the two ranges"),
        },
        rmpv::Value::F32(number) => Value::Float((*number).into()),
        rmpv::Value::F64(number) => Value::Float(*number),
        rmpv::Value::String(text) => Value::String(text.as_str().ok_or("not UTF-8")?.to_owned()),
        rmpv::Value::Binary(bytes) => Value::Binary(bytes.clone()),
        rmpv::Value::Array(values) => {
            Value::List(values.iter().map(from_msgpack).collect::<Result<_, _>>()?)
        }
        rmpv::Value::Map(entries) => Value::Dict(
            entries
                .iter()
                .map(|(key, value)| {
                    let key = key.as_str().ok_or("a key that is not text")?;
                    Ok((key.to_owned(), from_msgpack(value)?))
                })
                .collect::<Result<_, String>>()?,
        ),
        rmpv::Value::Ext(..) => return Err("an extension".to_owned()),
    })
}

fn to_cbor(value: &Value) -> ciborium::Value {
    match value {
        Value::Null => ciborium::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Integer(number) => {
            ciborium::Value::Integer(ciborium::value::Integer::try_from(*number).unwrap())
        }
        Value::Float(number) => (*number).into(),
        Value::String(text) => text.as_str().into(),
        Value::Binary(bytes) => bytes.as_slice().into(),
        Value::List(values) => ciborium::Value::Array(values.iter().map(to_cbor).collect()),
        Value::Dict(dict) => ciborium::Value::Map(
            dict.iter()
                .map(|(key, value)| (key.as_str().into(), to_cbor(value)))
                .collect(),
        ),
    }
}

fn from_cbor(value: &ciborium::Value) -> Result<Value, String> {
    Ok(match value {
        ciborium::Value::Null => Value::Null,
        ciborium::Value::Bool(flag) => Value::Bool(*flag),
        ciborium::Value::Integer(number) => Value::Integer((*number).into()),
        ciborium::Value::Float(number) => Value::Float(*number),
        ciborium::Value::Text(text) => Value::String(text.clone()),
        ciborium::Value::Bytes(bytes) => Value::Binary(bytes.clone()),
        ciborium::Value::Array(values) => {
            Value::List(values.iter().map(from_cbor).collect::<Result<_, _>>()?)
        }
        ciborium::Value::Map(entries) => Value::Dict(
            entries
                .iter()
                .map(|(key, value)| {
                    let key = key.as_text().ok_or("a key that is not text")?;
                    Ok((key.to_owned(), from_cbor(value)?))
                })
                .collect::<Result<_, String>>()?,
        ),
        _ => return Err("a tag".to_owned()),
    })
}
