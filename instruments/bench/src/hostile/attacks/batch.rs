//! One message of a batched subprotocol with as many publications as fit, to subscribers that read.

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket;

use super::readers::Readers;
use super::{Answers, subscribe};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;
use crate::subject::Transport;
use crate::wamp::pipe::CLIENT_MASK;

const SUBSCRIBERS: usize = 150;
const PUBLICATIONS: usize = 800_000;
const PUBLICATION: &[u8] = br#"[16,1,{},"t",[]]"#;
/// The separator of messages in a JSON batch.
const SEPARATOR: u8 = 0x1E;

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let batched = strike.target(Transport::WebSocketBatched, Serializer::Json)?;
    let mut publisher = strike.join(batched)?;
    let mut subscribers = Vec::new();
    for _ in 0..strike.few(SUBSCRIBERS) {
        let mut subscriber = strike.session()?;
        subscribe(&mut subscriber, "t")?;
        subscribers.push(subscriber);
    }
    let publications = strike.size(PUBLICATIONS);
    let mut batch = Vec::with_capacity(publications * (PUBLICATION.len() + 1));
    for _ in 0..publications {
        batch.extend_from_slice(PUBLICATION);
        batch.push(SEPARATOR);
    }
    let mut bytes = Vec::new();
    websocket::message(true, Some(CLIENT_MASK), &batch, &mut bytes);

    let readers = Readers::start(&subscribers)?;
    publisher.write_raw(&bytes)?;
    strike.made("publications", publications as u64);
    let outcome = Answers::waiting(&mut publisher);
    readers.await_silence(strike.deadline);
    let read = readers.finish();
    strike.made("subscribers", subscribers.len() as u64);
    strike.made("KiB that they got", read.bytes >> 10);
    if read.closed > 0 {
        strike.made("subscribers lost", read.closed);
    }
    outcome?.note_refusals(strike);
    Ok(())
}
