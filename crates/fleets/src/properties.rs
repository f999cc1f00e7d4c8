//! Properties between MQTT and AMQP, in the forms of RabbitMQ 3.10 (quality of service) and 3.13 (MQTT 5).

use std::collections::HashSet;

use crosstie_amqp::{BasicProperties, Table, TableBuf, Value};
use crosstie_mqtt::{PropertiesBuf, Property, QoS};

use crate::names;

const QUALITY: &str = "x-mqtt-publish-qos";
const DUP: &str = "x-mqtt-dup";
const RESPONSE_TOPIC: &str = "x-reply-to-topic";
/// For correlation data that is no short text.
const CORRELATION: &str = "x-correlation-id";
/// Of headers in which the broker tells where a message has died, as delayed wills do.
const DEATH: &str = "x-first-death-";

/// A message's properties as MQTT has them.
pub(crate) struct Received {
    pub(crate) qos: QoS,
    pub(crate) expiry_s: Option<u32>,
    pub(crate) properties: PropertiesBuf,
}

/// The AMQP properties of a publication at `now_s`, in the form of a content header.
pub(crate) fn to_amqp(
    qos: QoS,
    dup: bool,
    properties: crosstie_mqtt::Properties<'_>,
    now_s: u64,
) -> Vec<u8> {
    let at_least_once = qos != QoS::AtMostOnce;
    let mut headers = TableBuf::new()
        .with(QUALITY, Value::I8(at_least_once.into()))
        .with(DUP, Value::Bool(dup));
    let mut names = HashSet::from([QUALITY, DUP, RESPONSE_TOPIC, CORRELATION]);
    let response = properties.response_topic().and_then(names::key);
    if let Some(key) = &response {
        headers = headers.with(RESPONSE_TOPIC, Value::LongString(key.as_bytes()));
    }
    let correlation = properties.correlation_data();
    let short = correlation.and_then(short_text);
    if let (Some(data), None) = (correlation, short) {
        headers = headers.with(CORRELATION, Value::LongString(data));
    }
    for (name, value) in properties.user_properties() {
        // A table has each name once, and the first one counts.
        if name.len() <= names::NAME_BYTES_MAX && names.insert(name) {
            headers = headers.with(name, Value::LongString(value.as_bytes()));
        }
    }
    let expiry_s = properties.message_expiry();
    let expiration = expiry_s.map(|seconds| (u64::from(seconds) * 1_000).to_string());
    let mut bytes = Vec::new();
    BasicProperties {
        content_type: properties
            .content_type()
            .and_then(|t| short_text(t.as_bytes())),
        headers: Some(headers.as_table()),
        delivery_mode: Some(if at_least_once { 2 } else { 1 }),
        correlation_id: short,
        expiration: expiration.as_deref(),
        // What is left of the expiry is counted from here.
        timestamp: expiry_s.map(|_| now_s),
        ..BasicProperties::default()
    }
    .write(&mut bytes);
    bytes
}

/// The MQTT properties of a message with these AMQP properties. MQTT 3 needs the quality alone.
pub(crate) fn from_amqp(found: &BasicProperties<'_>, is_v5: bool, now_s: u64) -> Received {
    let headers = found.headers.unwrap_or_default();
    let quality = headers.find(QUALITY).and_then(Value::as_i64);
    let mut received = Received {
        qos: match quality {
            Some(..=0) => QoS::AtMostOnce,
            _ => QoS::AtLeastOnce,
        },
        expiry_s: None,
        properties: PropertiesBuf::new(),
    };
    if !is_v5 {
        return received;
    }
    let properties = &mut received.properties;
    if let Some(text) = found.content_type {
        properties.push(Property::ContentType(text));
    }
    let response = text(headers, RESPONSE_TOPIC).and_then(names::topic);
    if let Some(topic) = &response {
        properties.push(Property::ResponseTopic(topic));
    }
    let correlation = match (found.correlation_id, headers.find(CORRELATION)) {
        (Some(id), _) => Some(id.as_bytes()),
        (None, Some(Value::LongString(data))) => Some(data),
        _ => None,
    };
    if let Some(data) = correlation.filter(|data| data.len() <= u16::MAX.into()) {
        properties.push(Property::CorrelationData(data));
    }
    for (name, value) in headers.iter() {
        let is_own = [QUALITY, DUP, RESPONSE_TOPIC, CORRELATION].contains(&name);
        if is_own || name.starts_with(DEATH) {
            continue;
        }
        let number;
        let value = match value {
            Value::Bool(value) => {
                if value {
                    "true"
                } else {
                    "false"
                }
            }
            value => match (value.as_str(), value.as_i64()) {
                (Some(text), _) => text,
                (None, Some(found)) => {
                    number = found.to_string();
                    &number
                }
                (None, None) => continue,
            },
        };
        if is_text(name) && is_text(value) {
            properties.push(Property::User((name, value)));
        }
    }
    received.expiry_s = found
        .expiration
        .and_then(|text| text.parse().ok())
        .map(|ms: u64| {
            let waited = found.timestamp.map_or(0, |at| now_s.saturating_sub(at));
            let left = (ms / 1_000).saturating_sub(waited);
            u32::try_from(left).unwrap_or(u32::MAX)
        });
    received
}

fn text<'t>(headers: Table<'t>, name: &str) -> Option<&'t str> {
    headers.find(name)?.as_str()
}

/// Whether MQTT can carry a text.
fn is_text(text: &str) -> bool {
    text.len() <= u16::MAX.into() && !text.contains('\0')
}

fn short_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (text.len() <= names::NAME_BYTES_MAX).then_some(text)
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::Properties;

    use super::*;

    fn parsed(bytes: &[u8]) -> BasicProperties<'_> {
        Properties::from_bytes(bytes).expect("is valid").parse()
    }

    #[test]
    fn mqtt_3_has_the_headers_of_rabbitmq_and_nothing_else() {
        for (qos, mode) in [
            (QoS::AtMostOnce, 1),
            (QoS::AtLeastOnce, 2),
            (QoS::ExactlyOnce, 2),
        ] {
            let bytes = to_amqp(qos, true, crosstie_mqtt::Properties::EMPTY, 7);
            let found = parsed(&bytes);
            let headers = found.headers.expect("are there");
            let quality = (mode - 1) as i8;
            assert_eq!(
                headers.iter().collect::<Vec<_>>(),
                [(QUALITY, Value::I8(quality)), (DUP, Value::Bool(true)),]
            );
            assert_eq!(found.delivery_mode, Some(mode));
            let others = BasicProperties {
                headers: None,
                delivery_mode: None,
                ..found
            };
            assert_eq!(others, BasicProperties::default());
        }
    }

    #[test]
    fn properties_of_mqtt_5_come_back() {
        let sent = PropertiesBuf::new()
            .with(Property::ContentType("text/plain"))
            .with(Property::ResponseTopic("a/b"))
            .with(Property::CorrelationData(b"\xff"))
            .with(Property::MessageExpiry(60))
            .with(Property::User(("k", "1")))
            .with(Property::User(("k", "2")));
        let bytes = to_amqp(QoS::AtLeastOnce, false, sent.as_properties(), 100);
        let found = parsed(&bytes);
        assert_eq!(found.expiration, Some("60000"));
        assert_eq!(found.correlation_id, None);
        let received = from_amqp(&found, true, 110);
        assert_eq!(
            (received.qos, received.expiry_s),
            (QoS::AtLeastOnce, Some(50))
        );
        let expected = PropertiesBuf::new()
            .with(Property::ContentType("text/plain"))
            .with(Property::ResponseTopic("a/b"))
            .with(Property::CorrelationData(b"\xff"))
            .with(Property::User(("k", "1")));
        assert_eq!(received.properties, expected);
        assert!(
            from_amqp(&found, false, 110)
                .properties
                .as_properties()
                .is_empty()
        );
    }

    #[test]
    fn the_quality_may_have_any_width() {
        for (value, expected) in [
            (Value::I8(0), QoS::AtMostOnce),
            (Value::I32(0), QoS::AtMostOnce),
            (Value::I64(1), QoS::AtLeastOnce),
            (Value::I64(2), QoS::AtLeastOnce),
            (Value::Bool(true), QoS::AtLeastOnce),
        ] {
            let headers = TableBuf::new().with(QUALITY, value);
            let found = BasicProperties {
                headers: Some(headers.as_table()),
                ..Default::default()
            };
            assert_eq!(from_amqp(&found, false, 0).qos, expected, "{value:?}");
        }
    }
}
