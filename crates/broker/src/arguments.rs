//! Arguments of queues, exchanges and bindings, in JSON for operators and from definitions.

use crosstie_amqp::{Array, Table, TableBuf, Value};
use crosstie_config::Json;

/// A table as an object. Bytes that are not UTF-8 are replaced; timestamps are in seconds.
pub fn to_json(table: Table<'_>) -> Json {
    let fields = table.iter();
    fields
        .map(|(name, value)| (name.to_owned(), value_to_json(value)))
        .collect()
}

fn value_to_json(value: Value<'_>) -> Json {
    match value {
        Value::Bool(value) => value.into(),
        Value::I8(value) => value.into(),
        Value::U8(value) => value.into(),
        Value::I16(value) => value.into(),
        Value::U16(value) => value.into(),
        Value::I32(value) => value.into(),
        Value::U32(value) => value.into(),
        Value::I64(value) => value.into(),
        Value::F32(value) => value.into(),
        Value::F64(value) => value.into(),
        Value::Decimal { scale, value } => {
            (f64::from(value) / 10_f64.powi(i32::from(scale))).into()
        }
        Value::LongString(bytes) | Value::ByteArray(bytes) => String::from_utf8_lossy(bytes).into(),
        Value::Timestamp(seconds) => seconds.into(),
        Value::Array(array) => array_to_json(array),
        Value::Table(table) => to_json(table),
        Value::Void => Json::Null,
    }
}

fn array_to_json(array: Array<'_>) -> Json {
    array.iter().map(value_to_json).collect()
}

/// Converts the arguments of a definitions file to a table. Whole numbers become `long` (`l`), as in RabbitMQ's own
/// import. Values nested deeper than a table allows are left out.
pub fn from_json(arguments: &[(String, Json)]) -> TableBuf {
    let mut table = TableBuf::new();
    for (name, value) in arguments {
        let mut bytes = Vec::new();
        write_field(name, value, &mut bytes);
        let field = Table::from_bytes(&bytes).ok();
        if let Some((name, value)) = field.and_then(|field| field.iter().next()) {
            table = table.with(name, value);
        }
    }
    table
}

fn write_field(name: &str, value: &Json, out: &mut Vec<u8>) {
    let name = &name[..name.floor_char_boundary(255)];
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
    write_value(value, out);
}

/// Writes a value in its table encoding (section 4.2.5.5).
fn write_value(value: &Json, out: &mut Vec<u8>) {
    let scalar = |value| {
        // The value follows an empty name, whose encoding is one length byte.
        let table = TableBuf::new().with("", value);
        table.as_table().bytes()[1..].to_vec()
    };
    match value {
        Json::Null => out.extend(scalar(Value::Void)),
        Json::Bool(value) => out.extend(scalar(Value::Bool(*value))),
        Json::Number(number) => out.extend(scalar(match number.as_i64() {
            Some(whole) => Value::I64(whole),
            None => Value::F64(number.as_f64().unwrap_or_default()),
        })),
        Json::String(text) => out.extend(scalar(Value::LongString(text.as_bytes()))),
        Json::Array(values) => write_long(b'A', out, |out| {
            values.iter().for_each(|value| write_value(value, out));
        }),
        Json::Object(fields) => write_long(b'F', out, |out| {
            fields
                .iter()
                .for_each(|(name, value)| write_field(name, value, out));
        }),
    }
}

fn write_long(tag: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let mut inner = Vec::new();
    write(&mut inner);
    out.extend_from_slice(&(inner.len() as u32).to_be_bytes());
    out.extend(inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_file_come_back() {
        let text = r#"{"x-max-length": 10, "a": [1, "b", [true, null]], "t": {"u": {"v": -1}}}"#;
        let json: Json = text.parse().expect("is JSON");
        let Json::Object(fields) = &json else {
            panic!("is an object");
        };
        let arguments: Vec<_> = fields.clone().into_iter().collect();
        let table = from_json(&arguments);
        assert_eq!(table.as_table().find("x-max-length"), Some(Value::I64(10)));
        assert_eq!(to_json(table.as_table()), json);
    }
}
