//! Calls in MessagePack to callees with JSON that do not read: one byte here is six there.

use std::time::Duration;

use crosstie_wamp::{CallOptions, Message, RequestId, Serializer};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::{Answers, hold, register, text_arguments};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;
use crate::subject::Transport;

const CALLEES: usize = 60;
/// With its head it is just below the longest message.
const ARGUMENT_BYTES: usize = (16 << 20) - 1024;
const CONTROL_CHARACTER: u8 = 1;
const HELD: Duration = Duration::from_secs(3);

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let json = strike
        .target(Transport::WebSocket, Serializer::Json)?
        .clone();
    let msgpack = strike.target(Transport::RawSocket, Serializer::MsgPack);
    let msgpack = match msgpack {
        Ok(target) => target.clone(),
        Err(_) => strike
            .target(Transport::WebSocket, Serializer::MsgPack)?
            .clone(),
    };
    let mut callees = Vec::new();
    for number in 0..strike.few(CALLEES) {
        let mut callee = strike.join(&json)?;
        set_socket_recv_buffer_size(&callee, 4096).map_err(std::io::Error::from)?;
        register(&mut callee, &procedure(number))?;
        callees.push(callee);
    }
    let mut caller = strike.join(&msgpack)?;
    let argument = text_arguments(Serializer::MsgPack, CONTROL_CHARACTER, ARGUMENT_BYTES);
    for number in 0..callees.len() {
        caller.push(&Message::Call {
            request: RequestId(1 + number as u64),
            options: CallOptions::default(),
            procedure: procedure(number).into(),
            payload: argument.as_payload(),
        })?;
        caller.flush()?;
        strike.made("calls", 1);
        if strike.is_over() {
            break;
        }
    }
    let streams: Vec<_> = callees.iter().map(|callee| callee.stream()).collect();
    hold(strike, &streams, HELD)?;
    Answers::waiting(&mut caller)?.note_refusals(strike);
    Ok(())
}

fn procedure(number: usize) -> String {
    format!("crosstie.hostile.transcoded{number}")
}
