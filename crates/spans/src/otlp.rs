//! Spans as a request of OTLP over HTTP, in its JSON form.

use serde_json::{Value, json};

use crate::span::{Attribute, Span};

/// The media type of a request.
pub const MEDIA_TYPE: &str = "application/json";

/// A span inside of a service that neither begins nor ends a request of its own.
const INTERNAL: u32 = 1;
const STATUS_ERROR: u32 = 2;
/// The trace is sampled; the parent is known to be another process's.
const FLAGS: u32 = 0x301;

/// The process whose spans they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub service: String,
    pub instance: String,
    pub version: String,
}

/// The body of a request that brings the spans.
pub fn request(source: &Source, spans: &[Span]) -> Vec<u8> {
    let resource = [
        attribute("service.name", json!({"stringValue": source.service})),
        attribute(
            "service.instance.id",
            json!({"stringValue": source.instance}),
        ),
        attribute("service.version", json!({"stringValue": source.version})),
    ];
    let spans: Vec<Value> = spans.iter().map(written).collect();
    let scope = json!({"name": "crosstie", "version": source.version});
    let request = json!({
        "resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }],
    });
    request.to_string().into_bytes()
}

/// The number of spans that the answer to a request rejects.
pub fn rejected(answer: &[u8]) -> usize {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    // Numbers of 64 bits are texts in JSON, and some servers write them as numbers.
    let rejected = &answer["partialSuccess"]["rejectedSpans"];
    let text = rejected.as_str().and_then(|text| text.parse().ok());
    text.or(rejected.as_u64()).unwrap_or(0) as usize
}

fn written(span: &Span) -> Value {
    let attributes = span.attributes.iter().map(|(name, value)| {
        let value = match value {
            Attribute::Text(text) => json!({"stringValue": text}),
            // Numbers of 64 bits are texts in JSON.
            Attribute::Number(number) => json!({"intValue": number.to_string()}),
        };
        attribute(name, value)
    });
    let status = match &span.failure {
        Some(why) => json!({"code": STATUS_ERROR, "message": why}),
        None => json!({}),
    };
    json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.id),
        "parentSpanId": format!("{:016x}", span.context.parent),
        "flags": FLAGS,
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": span.begun.to_string(),
        "endTimeUnixNano": span.ended.to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
        "status": status,
    })
}

fn attribute(name: &str, value: Value) -> Value {
    json!({"key": name, "value": value})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Failure};

    #[test]
    fn a_request_has_the_form_of_otlp() {
        let context = Context {
            trace: 0x1a,
            parent: 0x2b,
        };
        let mut span = Span::new(context, "call", "com.a")
            .with_text("realm", "r")
            .with_number("bytes", 5)
            .failed(Failure {
                kind: "404",
                why: "NOT_FOUND",
            });
        (span.id, span.begun, span.ended) = (0x3c, 7, 9);
        let source = Source {
            service: "s".to_owned(),
            instance: "node1".to_owned(),
            version: "1".to_owned(),
        };
        let request: Value = serde_json::from_slice(&request(&source, &[span])).expect("JSON");
        let resource = &request["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0];
        assert_eq!(
            service,
            &json!({"key": "service.name", "value": {"stringValue": "s"}})
        );
        let expected = json!({
            "traceId": "0000000000000000000000000000001a",
            "spanId": "000000000000003c",
            "parentSpanId": "000000000000002b",
            "flags": 769,
            "name": "call com.a",
            "kind": 1,
            "startTimeUnixNano": "7",
            "endTimeUnixNano": "9",
            "attributes": [
                {"key": "realm", "value": {"stringValue": "r"}},
                {"key": "bytes", "value": {"intValue": "5"}},
                {"key": "error.type", "value": {"stringValue": "404"}},
            ],
            "status": {"code": 2, "message": "NOT_FOUND"},
        });
        assert_eq!(resource["scopeSpans"][0]["spans"], json!([expected]));
    }

    #[test]
    fn rejected_spans_are_read() {
        for (answer, expected) in [
            (
                r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"old"}}"#,
                2,
            ),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, 3),
            (r#"{"partialSuccess":{}}"#, 0),
            ("{}", 0),
            ("", 0),
            ("<html>", 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), expected, "{answer}");
        }
    }
}
