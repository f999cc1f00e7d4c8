//! The attacks. Each prepares its bytes, so that it costs little itself.

pub(super) mod batch;
pub(super) mod bodies;
pub(super) mod calls;
pub(super) mod consumers;
pub(super) mod dead_letters;
pub(super) mod deaf;
pub(super) mod flood;
pub(super) mod partial;
pub(super) mod patterns;
mod readers;
pub(super) mod timed;
pub(super) mod topology;
pub(super) mod transcoded;
pub(super) mod unacked;
pub(super) mod web;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crosstie_amqp::method::QueueDeclare;
use crosstie_amqp::{TableBuf, Value};
use crosstie_wamp::{Message, Payload, RegisterOptions, RequestId, Serializer, SubscribeOptions};

use super::amqp::AmqpPeer;
use super::strike::Strike;
use crate::load::Stream;
use crate::process::WorkerError;
use crate::wamp::pipe::Pipe;

/// Lifetime of an unused queue.
const EXPIRES_MS: i32 = 60_000;

/// A name that no other run uses.
fn own_name(what: &str) -> String {
    format!("crosstie-hostile-{}-{what}", std::process::id())
}

/// Declares a queue that expires once it is unused.
fn declare_queue(peer: &mut AmqpPeer, queue: &str) -> Result<(), WorkerError> {
    let arguments = TableBuf::new().with("x-expires", Value::I32(EXPIRES_MS));
    let declare = QueueDeclare {
        queue,
        arguments: arguments.as_table(),
        ..QueueDeclare::default()
    };
    peer.ask(1, &declare)
}

fn subscribe(pipe: &mut Pipe, topic: &str) -> Result<(), WorkerError> {
    pipe.push(&Message::Subscribe {
        request: RequestId(1),
        options: SubscribeOptions::default(),
        topic: topic.into(),
    })?;
    pipe.flush()?;
    Answers::read(pipe, 1)?.none_refused()
}

fn register(pipe: &mut Pipe, procedure: &str) -> Result<(), WorkerError> {
    pipe.push(&Message::Register {
        request: RequestId(1),
        options: RegisterOptions::default(),
        procedure: procedure.into(),
    })?;
    pipe.flush()?;
    Answers::read(pipe, 1)?.none_refused()
}

/// A session's answers.
#[derive(Debug, Default)]
struct Answers {
    granted: u64,
    /// By the error's URI.
    refused: BTreeMap<String, u64>,
}

impl Answers {
    /// Waits for so many.
    fn read(pipe: &mut Pipe, wanted: u64) -> Result<Self, WorkerError> {
        let mut answers = Self::default();
        while answers.granted + answers.refused.values().sum::<u64>() < wanted {
            let received = pipe.receive(|message, _| {
                match message {
                    Message::Error { error, .. } => {
                        *answers.refused.entry(error.to_string()).or_default() += 1;
                    }
                    Message::Abort { reason, details } => {
                        let why = format!("{reason} {details:?}");
                        return Err(WorkerError::Dismissed(why));
                    }
                    Message::Goodbye { reason, .. } => {
                        return Err(WorkerError::Dismissed(reason.to_string()));
                    }
                    Message::Event { .. } | Message::Invocation { .. } => {}
                    _ => answers.granted += 1,
                }
                Ok(())
            })?;
            if !received {
                return Err(WorkerError::Closed("answering"));
            }
        }
        Ok(answers)
    }

    /// Those that have arrived or arrive before the answer to one more request.
    fn waiting(pipe: &mut Pipe) -> Result<Self, WorkerError> {
        pipe.push(&Message::Subscribe {
            request: RequestId(1 << 40),
            options: SubscribeOptions::default(),
            topic: "crosstie.hostile.end".into(),
        })?;
        pipe.flush()?;
        let mut all = Self::default();
        while all.granted == 0 {
            let more = Self::read(pipe, 1)?;
            all.granted += more.granted;
            for (why, count) in more.refused {
                *all.refused.entry(why).or_default() += count;
            }
        }
        Ok(all)
    }

    fn none_refused(self) -> Result<(), WorkerError> {
        match self.refused.into_iter().next() {
            Some((why, _)) => Err(WorkerError::Refused(why)),
            None => Ok(()),
        }
    }

    fn note(self, strike: &mut Strike, what: &str) {
        strike.made(what, self.granted);
        self.note_refusals(strike);
    }

    fn note_refusals(self, strike: &mut Strike) {
        for (why, count) in self.refused {
            strike.refused_often(&why, count);
        }
    }
}

/// Leaves connections alone for so long; connections closed meanwhile are refusals.
fn hold(strike: &mut Strike, streams: &[&Stream], longest: Duration) -> Result<(), WorkerError> {
    let end = (Instant::now() + longest).min(strike.deadline);
    let mut closed = 0;
    let mut open: Vec<_> = streams.iter().collect();
    let mut buffer = [0; 4096];
    while !open.is_empty() && Instant::now() < end {
        open.retain(|stream| {
            let ended = stream_has_ended(stream, &mut buffer);
            closed += u64::from(ended);
            !ended
        });
        std::thread::sleep(Duration::from_millis(50));
    }
    if closed > 0 {
        strike.refused_often("the connection was closed", closed);
    }
    Ok(())
}

/// Reads a little, so that the end behind it shows.
fn stream_has_ended(stream: &Stream, buffer: &mut [u8]) -> bool {
    match stream.try_read(buffer) {
        Ok(length) => length == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// One text as a message's arguments.
struct TextArguments {
    serializer: Serializer,
    bytes: Vec<u8>,
}

impl TextArguments {
    fn as_payload(&self) -> Payload<'_> {
        Payload::new(self.serializer, &self.bytes, &[])
    }
}

/// A list of one text, which repeats one character.
fn text_arguments(serializer: Serializer, character: u8, length: usize) -> TextArguments {
    let mut bytes = Vec::with_capacity(length + 8);
    match serializer {
        Serializer::Json => bytes.extend_from_slice(b"[\""),
        Serializer::MsgPack => bytes.extend_from_slice(&[0x91, 0xDB]),
        Serializer::Cbor => bytes.extend_from_slice(&[0x81, 0x7A]),
    }
    if serializer.is_binary() {
        bytes.extend_from_slice(&(length as u32).to_be_bytes());
    }
    bytes.resize(bytes.len() + length, character);
    if !serializer.is_binary() {
        bytes.extend_from_slice(b"\"]");
    }
    TextArguments { serializer, bytes }
}
