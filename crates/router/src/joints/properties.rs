//! A message's properties as a keyword argument.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crosstie_amqp::{Array, Table, Value as Field};
use serde_json::{Map, Value};

use super::deliveries::Delivery;

/// The properties of a delivery, with AMQP's names; absent ones are omitted.
pub(super) fn of(delivery: &Delivery) -> Value {
    let properties = delivery.properties().parse();
    let mut said = Map::new();
    let mut say = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            said.insert(name.to_owned(), value);
        }
    };
    say("exchange", Some(delivery.exchange.as_str().into()));
    say("routing_key", Some(delivery.routing_key.as_str().into()));
    for (name, text) in properties.texts() {
        say(name, text.map(Value::from));
    }
    for (name, number) in properties.numbers() {
        say(name, number.map(Value::from));
    }
    say("headers", properties.headers.map(table));
    Value::Object(said)
}

/// The depth of tables was limited when they were read.
fn table(fields: Table<'_>) -> Value {
    let fields = fields.iter();
    Value::Object(
        fields
            .map(|(name, field)| (name.to_owned(), value(field)))
            .collect(),
    )
}

fn array(values: Array<'_>) -> Value {
    Value::Array(values.iter().map(value).collect())
}

fn value(field: Field<'_>) -> Value {
    match field {
        Field::Bool(value) => value.into(),
        Field::F32(number) => f64::from(number).into(),
        Field::F64(number) => number.into(),
        Field::U32(number) => number.into(),
        Field::Timestamp(seconds) => seconds.into(),
        Field::Decimal { scale, value } => {
            (f64::from(value) / 10_f64.powi(i32::from(scale))).into()
        }
        Field::LongString(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => binary(bytes),
        },
        Field::ByteArray(bytes) => binary(bytes),
        Field::Array(values) => array(values),
        Field::Table(fields) => table(fields),
        Field::Void => Value::Null,
        number => number.as_i64().map_or(Value::Null, Value::from),
    }
}

/// WAMP's JSON form of binary values.
fn binary(bytes: &[u8]) -> Value {
    format!("\0{}", BASE64.encode(bytes)).into()
}
