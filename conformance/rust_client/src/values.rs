//! Tables and properties: JSON here, amqprs's types there.

use amqprs::{BasicProperties, FieldArray, FieldTable, FieldValue};
use serde_json::{Map, Value, json};

/// Return bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Return the bytes that a text of pairs of digits stands for; what is none is left out.
pub fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .filter_map(|at| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok())
        .collect()
}

/// Return a table.
pub fn table(value: &Value) -> Result<FieldTable, String> {
    let mut fields = FieldTable::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let name = name.as_str().try_into().map_err(|_| "a name is too long")?;
        fields.insert(name, field(value)?);
    }
    Ok(fields)
}

fn field(value: &Value) -> Result<FieldValue, String> {
    Ok(match value {
        Value::Null => FieldValue::V,
        Value::Bool(is_set) => FieldValue::t(*is_set),
        Value::Number(number) => match number.as_i64() {
            Some(number) => match i32::try_from(number) {
                Ok(number) => FieldValue::I(number),
                Err(_) => FieldValue::l(number),
            },
            None => FieldValue::d(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => {
            FieldValue::S(text.as_str().try_into().map_err(|_| "a text is too long")?)
        }
        Value::Array(values) => {
            let values = values.iter().map(field).collect::<Result<Vec<_>, _>>()?;
            FieldValue::A(FieldArray::try_from(values).map_err(|error| error.to_string())?)
        }
        Value::Object(_) => FieldValue::F(table(value)?),
    })
}

fn table_told(table: &FieldTable) -> Value {
    let fields = table.as_ref().iter();
    Value::Object(
        fields
            .map(|(name, value)| (name.to_string(), field_told(value)))
            .collect(),
    )
}

fn field_told(value: &FieldValue) -> Value {
    match value {
        FieldValue::t(value) => json!(value),
        FieldValue::b(value) => json!(value),
        FieldValue::B(value) => json!(value),
        FieldValue::s(value) => json!(value),
        FieldValue::u(value) => json!(value),
        FieldValue::I(value) => json!(value),
        FieldValue::i(value) => json!(value),
        FieldValue::l(value) => json!(value),
        FieldValue::f(value) => json!(value),
        FieldValue::d(value) => json!(value),
        FieldValue::S(text) => json!(text.to_string()),
        FieldValue::A(values) => {
            let values: Vec<FieldValue> = values.clone().into();
            Value::Array(values.iter().map(field_told).collect())
        }
        FieldValue::F(table) => table_told(table),
        FieldValue::V => Value::Null,
        // Times differ from run to run, the others from client to client.
        FieldValue::T(_) => json!("a time"),
        FieldValue::D(_) => json!("a decimal"),
        FieldValue::x(_) => json!("bytes"),
    }
}

/// Return properties.
pub fn properties(value: &Value) -> Result<BasicProperties, String> {
    let mut made = BasicProperties::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let number = value.as_u64().unwrap_or_default();
        let octet = u8::try_from(number).unwrap_or_default();
        match name.as_str() {
            "content_type" => made.with_content_type(text),
            "content_encoding" => made.with_content_encoding(text),
            "headers" => made.with_headers(table(value)?),
            "delivery_mode" => made.with_delivery_mode(octet),
            "priority" => made.with_priority(octet),
            "correlation_id" => made.with_correlation_id(text),
            "reply_to" => made.with_reply_to(text),
            "expiration" => made.with_expiration(text),
            "message_id" => made.with_message_id(text),
            "timestamp" => made.with_timestamp(number),
            "type" => made.with_message_type(text),
            "user_id" => made.with_user_id(text),
            "app_id" => made.with_app_id(text),
            "cluster_id" => made.with_cluster_id(text),
            _ => return Err(format!("there is no property {name}")),
        };
    }
    Ok(made)
}

/// Return the properties that are there.
pub fn properties_told(properties: &BasicProperties) -> Value {
    #[rustfmt::skip]
    let fields = [
        ("content_type", properties.content_type().map(|text| json!(text))),
        ("content_encoding", properties.content_encoding().map(|text| json!(text))),
        ("headers", properties.headers().map(table_told)),
        ("delivery_mode", properties.delivery_mode().map(|octet| json!(octet))),
        ("priority", properties.priority().map(|octet| json!(octet))),
        ("correlation_id", properties.correlation_id().map(|text| json!(text))),
        ("reply_to", properties.reply_to().map(|text| json!(text))),
        ("expiration", properties.expiration().map(|text| json!(text))),
        ("message_id", properties.message_id().map(|text| json!(text))),
        ("timestamp", properties.timestamp().map(|number| json!(number))),
        ("type", properties.message_type().map(|text| json!(text))),
        ("user_id", properties.user_id().map(|text| json!(text))),
        ("app_id", properties.app_id().map(|text| json!(text))),
        ("cluster_id", properties.cluster_id().map(|text| json!(text))),
    ];
    let told = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(told.collect::<Map<String, Value>>())
}
