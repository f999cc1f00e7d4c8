//! A message of a broker as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_amqp::{BasicProperties, Table, Value};
use crosstie_amqp_client::Content;
use serde_json::{Map, Value as Json, json};

/// One object: the message's way, its properties, and its body as text, or in base64 if it is no text.
pub(super) fn of(
    exchange: &str,
    routing_key: &str,
    redelivered: bool,
    content: &Content<'_>,
) -> Json {
    let mut message = json!({
        "exchange": exchange,
        "routing_key": routing_key,
        "redelivered": redelivered,
        "properties": properties(&content.properties.parse()),
    });
    match str::from_utf8(&content.body) {
        Ok(text) => message["body"] = text.into(),
        Err(_) => message["body_base64"] = STANDARD.encode(&content.body).into(),
    }
    message
}

/// Those that are present, by RabbitMQ's names.
fn properties(of: &BasicProperties<'_>) -> Json {
    let mut found = Map::new();
    for (name, text) in of.texts() {
        found.extend(text.map(|text| (name.to_owned(), Json::from(text))));
    }
    for (name, number) in of.numbers() {
        found.extend(number.map(|number| (name.to_owned(), Json::from(number))));
    }
    found.extend(
        of.headers
            .map(|headers| ("headers".to_owned(), table(headers))),
    );
    Json::Object(found)
}

fn table(table: Table<'_>) -> Json {
    let pairs = table.iter();
    Json::Object(
        pairs
            .map(|(name, found)| (name.to_owned(), value(found)))
            .collect(),
    )
}

fn value(found: Value<'_>) -> Json {
    match found {
        Value::Bool(is) => is.into(),
        Value::I8(number) => number.into(),
        Value::U8(number) => number.into(),
        Value::I16(number) => number.into(),
        Value::U16(number) => number.into(),
        Value::I32(number) => number.into(),
        Value::U32(number) => number.into(),
        Value::I64(number) => number.into(),
        Value::F32(number) => number.into(),
        Value::F64(number) => number.into(),
        Value::Decimal { scale, value } => {
            (f64::from(value) / 10_f64.powi(i32::from(scale))).into()
        }
        Value::LongString(bytes) | Value::ByteArray(bytes) => match str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => json!({"base64": STANDARD.encode(bytes)}),
        },
        Value::Timestamp(seconds) => seconds.into(),
        Value::Array(array) => array.iter().map(value).collect(),
        Value::Table(found) => table(found),
        Value::Void => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use crosstie_amqp::{Properties, TableBuf};

    use super::*;

    #[test]
    fn messages_are_objects() {
        let headers = TableBuf::new()
            .with("n", Value::I32(-1))
            .with("text", Value::LongString("é\u{1b}".as_bytes()))
            .with("bytes", Value::LongString(&[0xff]));
        let properties = BasicProperties {
            content_type: Some("text/plain"),
            delivery_mode: Some(2),
            headers: Some(headers.as_table()),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        properties.write(&mut bytes);
        let check = |body: &[u8], expected: &str| {
            let content = Content {
                properties: Properties::from_checked_bytes(&bytes),
                body: Cow::Borrowed(body),
            };
            let text = of("e", "k", false, &content).to_string();
            let start = r#"{"exchange":"e","routing_key":"k","redelivered":false,"properties":{"content_type":"text/plain","#;
            assert!(text.starts_with(start), "{text}");
            let headers = r#""headers":{"n":-1,"text":"é\u001b","bytes":{"base64":"/w=="}}"#;
            assert!(text.contains(headers), "{text}");
            assert!(text.ends_with(expected), "{text}");
        };
        check(b"a\nb", r#""body":"a\nb"}"#);
        check(&[0x80], r#""body_base64":"gA=="}"#);
    }
}
