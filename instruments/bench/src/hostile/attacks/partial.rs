//! Messages that are never completed.

use std::time::Duration;

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{ClientRequest, key, subprotocol};

use super::hold;
use crate::hostile::strike::Strike;
use crate::load::Stream;
use crate::process::WorkerError;
use crate::subject::Transport;
use crate::wamp::pipe::CLIENT_MASK;

const SESSIONS: usize = 150;
/// The longest message of a RawSocket.
const MESSAGE_BYTES: usize = (16 << 20) - 1;

const BEFORE_HELLO: usize = 100;
const COMPRESSED_BYTES: usize = 12 << 20;

/// How long incomplete messages are left alone.
const HELD: Duration = Duration::from_secs(5);

/// A RawSocket message of 16 MiB without its last byte, on many sessions.
pub(in crate::hostile) fn messages(strike: &mut Strike) -> Result<(), WorkerError> {
    let target = strike
        .target(Transport::RawSocket, Serializer::MsgPack)?
        .clone();
    let mut bytes = vec![0; 4 + MESSAGE_BYTES - 1];
    bytes[..4].copy_from_slice(&(MESSAGE_BYTES as u32).to_be_bytes());
    let mut sessions = Vec::new();
    for _ in 0..strike.few(SESSIONS) {
        let outcome = strike.join(&target).and_then(|session| {
            session.write_raw(&bytes)?;
            Ok(session)
        });
        match outcome {
            Ok(session) => sessions.push(session),
            Err(error) => strike.end_by(error)?,
        }
        if strike.is_over() {
            break;
        }
    }
    strike.made("sessions with a message cut short", sessions.len() as u64);
    let streams: Vec<_> = sessions.iter().map(|session| session.stream()).collect();
    hold(strike, &streams, HELD)
}

/// A compressed frame of 16 MiB, of which 12 are sent, before any HELLO.
pub(in crate::hostile) fn compressed(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut bytes = vec![0xC2, 0xFF];
    bytes.extend_from_slice(&(MESSAGE_BYTES as u64).to_be_bytes());
    bytes.extend_from_slice(&CLIENT_MASK);
    bytes.resize(bytes.len() + COMPRESSED_BYTES, 0x55);
    let mut streams = Vec::new();
    for _ in 0..strike.few(BEFORE_HELLO) {
        let stream = open_compressed(strike)?;
        match stream.write_all(&bytes).map_err(crate::hostile::amqp::gone) {
            Ok(()) => streams.push(stream),
            Err(error) => strike.end_by(error)?,
        }
        if strike.is_over() {
            break;
        }
    }
    strike.made("connections before HELLO", streams.len() as u64);
    let streams: Vec<_> = streams.iter().collect();
    hold(strike, &streams, HELD)
}

fn open_compressed(strike: &Strike) -> Result<Stream, WorkerError> {
    let target = strike.target(Transport::WebSocket, Serializer::MsgPack)?;
    let stream = Stream::connect(&target.endpoint)
        .map_err(|error| WorkerError::Connect(target.endpoint.to_string(), error))?;
    stream.limit_waiting(Some(Duration::from_secs(5)))?;
    let key = key(*b"crosstie hostile");
    let request = ClientRequest {
        host: &target.host,
        target: &target.resource,
        key: &key,
        protocols: &[subprotocol(Serializer::MsgPack, false)],
        extensions: Some("permessage-deflate"),
        headers: &[],
    };
    stream.write_all(&request.to_bytes())?;
    let mut answer = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..length]);
        match request.accept(&answer).map_err(WorkerError::handshake)? {
            Some((_, accepted)) if accepted.extensions.is_empty() => {
                return Err(WorkerError::Refused("permessage-deflate".to_owned()));
            }
            Some(_) => return Ok(stream),
            None if length == 0 => {
                return Err(WorkerError::Closed("answering the WebSocket handshake"));
            }
            None => {}
        }
    }
}
