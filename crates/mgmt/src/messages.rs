//! Messages by hand: fetched from a queue, published to an exchange; and the test that both work.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_amqp::method::{
    BasicAck, BasicGet, BasicNack, BasicPublish, BasicQos, ConfirmSelect, QueueDeclare,
};
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf};
use crosstie_broker::arguments::to_json;
use serde_json::{Map, Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::health;
use crate::input::{Input, table};
use crate::talk::{Event, Message, Refusal, Talk};
use crate::topology::{check_name, refused};

/// Maximum bytes of the messages of one answer. Fewer messages than requested come then.
const BYTES_MAX: usize = 64 << 20;
/// The queue of the aliveness test.
const ALIVENESS: &str = "aliveness-test";

/// What becomes of fetched messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    is_requeued: bool,
    is_rejected: bool,
}

impl Mode {
    fn parse(text: &str) -> Option<Self> {
        let (is_rejected, is_requeued) = match text {
            "ack_requeue_true" => (false, true),
            "ack_requeue_false" => (false, false),
            "reject_requeue_true" => (true, true),
            "reject_requeue_false" => (true, false),
            _ => return None,
        };
        Some(Self {
            is_requeued,
            is_rejected,
        })
    }
}

/// Fetched messages return to their places.
const BACK: Mode = Mode {
    is_requeued: true,
    is_rejected: false,
};

/// How payloads are written.
#[derive(Clone, Copy, Debug)]
struct Form {
    is_base64: bool,
    truncate: usize,
}

pub(crate) async fn get(
    call: &Call<'_>,
    vhost: &str,
    queue: &str,
    input: &Input,
) -> Result<Answer, Answer> {
    input.require(&["ackmode", "count", "encoding"])?;
    let count = input.integer("count")?.unwrap_or(0);
    let mode = input.text("ackmode")?.unwrap_or_default();
    let mode = Mode::parse(mode).ok_or_else(|| {
        let text = format!(
            "ackmode: expected ack_requeue_true, ack_requeue_false, reject_requeue_true or \
             reject_requeue_false, got {mode}"
        );
        Answer::bad_request(&text)
    })?;
    let is_base64 = match input.text("encoding")? {
        Some("auto") => false,
        Some("base64") => true,
        _ => {
            let text = "Unsupported encoding. Please use auto or base64.";
            return Err(Answer::bad_request(text));
        }
    };
    let truncate = input.integer("truncate")?;
    let truncate = truncate.and_then(|bytes| usize::try_from(bytes).ok());
    let form = Form {
        is_base64,
        truncate: truncate.unwrap_or(usize::MAX),
    };
    check_name(queue)?;
    let mut talk = Talk::open(call, vhost).await.map_err(|e| refused(&e))?;
    let shown_max = call.answer_bytes_max;
    let fetched = fetch(&mut talk, queue, count, form, shown_max).await;
    let fetched = fetched.map_err(|e| not_fetched(&e))?;
    let messages = fetched.iter().map(|message| about(message, form));
    let text = Json::Array(messages.collect()).to_string();
    // Messages leave the queue for an answer that arrives, and for no other.
    if text.len() > shown_max {
        settle(&mut talk, &fetched, BACK).await?;
        return Err(too_long(shown_max));
    }
    settle(&mut talk, &fetched, mode).await?;
    Ok(Answer::of_bytes(text.into_bytes()))
}

fn too_long(bytes_max: usize) -> Answer {
    let text = format!(
        "the messages exceed {bytes_max} bytes of JSON and are in the queue again: ask for fewer, or set truncate"
    );
    Answer::bad_request(&text)
}

/// RabbitMQ shows the name of the code here.
fn not_fetched(refusal: &Refusal) -> Answer {
    match refusal.code {
        404 => Answer::missing(&refusal.text),
        403 => Answer::not_authorised("Access refused."),
        504 => Answer::error(503, "timeout", &refusal.text),
        code => Answer::bad_request(&format!("{code} {}", refusal.text)),
    }
}

/// Fetches that many messages, or all with -1, before any goes back. It ends at so many bytes of shown payloads.
async fn fetch(
    talk: &mut Talk,
    queue: &str,
    count: i64,
    form: Form,
    shown_max: usize,
) -> Result<Vec<Message>, Refusal> {
    let mut fetched: Vec<Message> = Vec::new();
    let (mut bytes, mut shown) = (0, 0);
    let is_wanted = |found: usize| count < 0 || (found as i64) < count;
    while is_wanted(fetched.len()) && bytes < BYTES_MAX && shown < shown_max {
        let get = BasicGet {
            queue,
            no_ack: false,
        };
        match talk.ask(&get).await? {
            Event::Message(message) => {
                bytes += message.body.len() + message.properties.len() + 512;
                shown += message.body.len().min(form.truncate);
                fetched.push(message);
            }
            _ => break,
        }
    }
    Ok(fetched)
}

/// Acknowledges or returns the messages. The next request finds that done: the answer to another method follows it.
async fn settle(talk: &mut Talk, fetched: &[Message], mode: Mode) -> Result<(), Answer> {
    if fetched.is_empty() {
        return Ok(());
    }
    let said = match (mode.is_requeued, mode.is_rejected) {
        (false, false) => talk.say(&BasicAck::up_to(0)),
        (requeue, _) => talk.say(&BasicNack {
            delivery_tag: 0,
            multiple: true,
            requeue,
        }),
    };
    said.map_err(|e| refused(&e))?;
    let last = BasicQos::of_each(0);
    talk.ask(&last).await.map_err(|e| refused(&e))?;
    Ok(())
}

fn about(message: &Message, form: Form) -> Json {
    let Ok(Method::BasicGetOk(ok)) = Method::decode(&message.method) else {
        return Json::Null;
    };
    let body = &message.body[..message.body.len().min(form.truncate)];
    let text = match form.is_base64 {
        true => None,
        false => std::str::from_utf8(body).ok(),
    };
    let (payload, encoding) = match text {
        Some(text) => (text.to_owned(), "string"),
        None => (STANDARD.encode(body), "base64"),
    };
    json!({
        "payload_bytes": message.body.len(),
        "redelivered": ok.redelivered,
        "exchange": ok.exchange,
        "routing_key": ok.routing_key,
        "message_count": ok.message_count,
        "properties": properties(Properties::from_checked_bytes(&message.properties).parse()),
        "payload": payload,
        "payload_encoding": encoding,
    })
}

/// Without any they are an empty list, as in RabbitMQ.
fn properties(found: BasicProperties<'_>) -> Json {
    let mut all = Map::new();
    for (name, text) in found.texts() {
        all.extend(text.map(|text| (name.to_owned(), Json::from(text))));
    }
    for (name, number) in found.numbers() {
        all.extend(number.map(|number| (name.to_owned(), Json::from(number))));
    }
    if let Some(headers) = found.headers {
        all.insert("headers".to_owned(), to_json(headers));
    }
    match all.is_empty() {
        true => json!([]),
        false => Json::Object(all),
    }
}

pub(crate) async fn publish(
    call: &Call<'_>,
    vhost: &str,
    exchange: &str,
    input: &Input,
) -> Result<Answer, Answer> {
    input.require(&["routing_key", "properties", "payload", "payload_encoding"])?;
    let routing_key = input.text("routing_key")?.unwrap_or_default();
    check_name(routing_key)?;
    check_name(exchange)?;
    let Some(Json::String(payload)) = input.get("payload") else {
        return Err(Answer::bad_request("payload_not_string"));
    };
    let body = match input.text("payload_encoding")? {
        Some("string") => payload.clone().into_bytes(),
        Some("base64") => STANDARD
            .decode(payload)
            .map_err(|_| Answer::bad_request("not_base64"))?,
        other => {
            let text = format!("unsupported_encoding: {}", other.unwrap_or_default());
            return Err(Answer::bad_request(&text));
        }
    };
    let properties = encoded_properties(input.get("properties").unwrap_or(&Json::Null))?;
    let mut talk = Talk::open(call, vhost).await.map_err(|e| refused(&e))?;
    let publish = BasicPublish {
        mandatory: true,
        ..BasicPublish::to(exchange, routing_key)
    };
    let is_routed = published(&mut talk, &publish, &properties, &body).await;
    let is_routed = is_routed.map_err(|e| not_published(&e))?;
    Ok(Answer::json(&json!({"routed": is_routed})))
}

/// An absent exchange is a fault of the request here.
fn not_published(refusal: &Refusal) -> Answer {
    match refusal.code {
        504 => Answer::error(503, "timeout", &refusal.text),
        403 if refusal.text.contains("access to vhost") => {
            Answer::not_authorised("Access refused.")
        }
        code => Answer::bad_request(&format!("{code} {}", refusal.text)),
    }
}

/// Publishes, and waits until the broker has confirmed. Returns whether a queue got the message.
async fn published(
    talk: &mut Talk,
    publish: &BasicPublish<'_>,
    properties: &[u8],
    body: &[u8],
) -> Result<bool, Refusal> {
    talk.ask(&ConfirmSelect { no_wait: false }).await?;
    talk.send(publish, properties, body)?;
    let mut is_routed = true;
    loop {
        match talk.answer().await? {
            // Returned; its confirm follows.
            Event::Message(_) => is_routed = false,
            _ => return Ok(is_routed),
        }
    }
}

/// Properties of a publication, each of AMQP's type. Unknown ones are ignored.
fn encoded_properties(value: &Json) -> Result<Vec<u8>, Answer> {
    let empty = Map::new();
    let map = match value {
        Json::Object(map) => map,
        Json::Array(list) if list.is_empty() => &empty,
        _ => {
            let text = "properties: expected an object";
            return Err(Answer::bad_request(text));
        }
    };
    let text = |name: &str| match map.get(name) {
        None => Ok(None),
        Some(Json::String(text)) => match check_name(text) {
            Ok(()) => Ok(Some(text.as_str())),
            Err(answer) => Err(answer),
        },
        Some(_) => Err(Answer::bad_request(&format!("not_string: {name}"))),
    };
    let number = |name: &str| match map.get(name) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| Answer::bad_request(&format!("not_int: {name}"))),
    };
    let octet = |name: &str| {
        let found = number(name)?.map(u8::try_from).transpose();
        found.map_err(|_| Answer::bad_request(&format!("{name}: expected at most 255")))
    };
    let headers: Option<TableBuf> = map
        .get("headers")
        .map(|value| table("headers", value))
        .transpose()?;
    let properties = BasicProperties {
        content_type: text("content_type")?,
        content_encoding: text("content_encoding")?,
        headers: headers.as_ref().map(TableBuf::as_table),
        delivery_mode: octet("delivery_mode")?,
        priority: octet("priority")?,
        correlation_id: text("correlation_id")?,
        reply_to: text("reply_to")?,
        expiration: text("expiration")?,
        message_id: text("message_id")?,
        timestamp: number("timestamp")?,
        kind: text("type")?,
        user_id: text("user_id")?,
        app_id: text("app_id")?,
        cluster_id: text("cluster_id")?,
    };
    let mut out = Vec::new();
    properties.write(&mut out);
    Ok(out)
}

/// Declares a queue, publishes to it and fetches from it. The queue stays, as in RabbitMQ.
pub(crate) async fn aliveness(call: &Call<'_>, vhost: &str) -> Result<Answer, Answer> {
    if !call.api.operators.broker().has_vhost(vhost) {
        return Err(Answer::not_found());
    }
    let tested = async {
        let mut talk = Talk::open(call, vhost).await?;
        let none = TableBuf::new();
        let declare = QueueDeclare {
            queue: ALIVENESS,
            passive: false,
            durable: false,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: none.as_table(),
        };
        talk.ask(&declare).await?;
        let publish = BasicPublish::to("", ALIVENESS);
        let properties = Properties::EMPTY;
        published(&mut talk, &publish, properties.bytes(), b"test_message").await?;
        let get = BasicGet {
            queue: ALIVENESS,
            no_ack: true,
        };
        talk.ask(&get).await
    };
    tested.await.map_err(|e| refused(&e))?;
    Ok(health::ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_come_back() {
        let given = json!({
            "content_type": "text/plain",
            "headers": {"a": 1, "c": [1, "x"], "d": {"e": true}},
            "delivery_mode": 2,
            "priority": 3,
            "timestamp": 123,
            "type": "t",
            "unknown": 5,
        });
        let bytes = encoded_properties(&given).unwrap_or_else(|e| panic!("status {}", e.status));
        let mut expected = given;
        expected.as_object_mut().expect("is one").remove("unknown");
        let found = properties(Properties::from_checked_bytes(&bytes).parse());
        assert_eq!(found, expected);
        let none = encoded_properties(&json!([])).unwrap_or_default();
        assert_eq!(
            properties(Properties::from_checked_bytes(&none).parse()),
            json!([])
        );
    }

    #[test]
    fn properties_have_types() {
        for bad in [
            json!({"delivery_mode": "x"}),
            json!({"delivery_mode": 300}),
            json!({"content_type": 5}),
            json!({"message_id": "x".repeat(256)}),
            json!({"headers": 5}),
            json!({"headers": {"x": null}}),
            json!(5),
        ] {
            let refused = encoded_properties(&bad).map_err(|e| e.status);
            assert_eq!(refused, Err(400), "{bad}");
        }
    }

    #[test]
    fn modes_are_words() {
        let both = |is_rejected, is_requeued| {
            Some(Mode {
                is_requeued,
                is_rejected,
            })
        };
        assert_eq!(Mode::parse("ack_requeue_true"), both(false, true));
        assert_eq!(Mode::parse("reject_requeue_false"), both(true, false));
        assert_eq!(Mode::parse("x"), None);
    }
}
