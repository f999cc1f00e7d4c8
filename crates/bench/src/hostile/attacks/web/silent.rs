//! Long-poll sessions that subscribe and never ask for what there is for them.

use crosstie_wamp::{Message, PublishOptions, RequestId};
use serde::Deserialize;

use super::super::text_arguments;
use super::{Client, LONGPOLL_PATH};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const SESSIONS: usize = 2_000;
const TOPIC: &str = "crosstie.hostile.unasked";
const EVENT_BYTES: usize = 16 << 10;
const EVENTS: u64 = 64;

#[derive(Deserialize)]
struct Opened {
    transport: String,
}

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let web = strike.web()?.clone();
    let realm = strike.order.ways.any_wamp();
    let realm = realm.map_or_else(String::new, |target| target.realm.clone());
    let client = Client::connect(&web)?;
    let mut sessions = 0;
    for _ in 0..strike.few(SESSIONS) {
        match subscribe(&client, &realm) {
            Ok(()) => sessions += 1,
            Err(error) => {
                strike.end_by(error)?;
                break;
            }
        }
        if strike.is_over() {
            break;
        }
    }
    strike.made("sessions that never ask", sessions);
    let mut publisher = strike.session()?;
    let payload = text_arguments(publisher.serializer(), b'x', EVENT_BYTES);
    for number in 1..=EVENTS {
        publisher.push(&Message::Publish {
            request: RequestId(number),
            options: PublishOptions::default(),
            topic: TOPIC.into(),
            payload: payload.as_payload(),
        })?;
        publisher.flush()?;
    }
    strike.made("events", EVENTS);
    // The publications are there once this is answered.
    super::super::subscribe(&mut publisher, "crosstie.hostile.end")
}

fn subscribe(client: &Client, realm: &str) -> Result<(), WorkerError> {
    let body = r#"{"protocols": ["wamp.2.json"]}"#;
    let opened = client.post(&format!("{LONGPOLL_PATH}/open"), body)?;
    let opened: Opened = serde_json::from_slice(&opened)?;
    let at = format!("{LONGPOLL_PATH}/{}", opened.transport);
    let hello = format!(r#"[1, "{realm}", {{"roles": {{"subscriber": {{}}}}}}]"#);
    client.post(&format!("{at}/send"), &hello)?;
    // Who is welcome is told once.
    client.post(&format!("{at}/receive"), "")?;
    let subscribe = format!(r#"[32, 1, {{}}, "{TOPIC}"]"#);
    client.post(&format!("{at}/send"), &subscribe)?;
    Ok(())
}
