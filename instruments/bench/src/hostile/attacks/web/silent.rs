//! Long-poll sessions that subscribe and never fetch their messages.

use crosstie_wamp::{Message, PublishOptions, RequestId};

use super::super::text_arguments;
use super::LONGPOLL_PATH;
use crate::hostile::strike::Strike;
use crate::http::client::{Client, LongPoll};
use crate::process::WorkerError;

const SESSIONS: usize = 2_000;
const TOPIC: &str = "crosstie.hostile.unasked";
const EVENT_BYTES: usize = 16 << 10;
const EVENTS: u64 = 64;

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let web = strike.web()?.clone();
    let realm = strike.order.ways.any_wamp();
    let realm = realm.map_or_else(String::new, |target| target.realm.clone());
    let mut client = Client::connect(web.address, &web.host)?;
    let mut sessions = 0;
    for _ in 0..strike.few(SESSIONS) {
        match LongPoll::open(&mut client, LONGPOLL_PATH, &realm)
            .and_then(|session| session.subscribe(&mut client, TOPIC))
        {
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
    // The publications have arrived once this is answered.
    super::super::subscribe(&mut publisher, "crosstie.hostile.end")
}
