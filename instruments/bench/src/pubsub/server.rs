//! The server between a publisher and its subscribers, a router or the floor's relay: the form of publications and
//! events.

use crosstie_wamp::framing::{FrameError, Framing};
use crosstie_wamp::{
    EventDetails, Message, Payload, PublicationId, PublishOptions, RequestId, Serializer,
    SubscriptionId, Value, codec,
};
use serde::{Deserialize, Serialize};

use crate::process::WorkerError;
use crate::subject::{Case, Endpoint, Target, Transport};
use crate::wamp::argument::Arguments;
use crate::wamp::pipe::CLIENT_MASK;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Server {
    Router {
        target: Target,
        topic: String,
    },
    Floor {
        endpoint: Endpoint,
        lengths: Lengths,
    },
}

/// Bytes on the wire of the two hops of a publication, framing included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lengths {
    pub publication: usize,
    pub event: usize,
}

/// The number of the publication is in the first bytes of each of the floor's messages.
pub(super) const NUMBER_BYTES: usize = 8;

impl Lengths {
    /// Measures them by encoding a publication as it is after some thousands, and its event.
    pub(super) fn of(case: &Case, topic: &str, payload_bytes: usize) -> Result<Self, WorkerError> {
        let mut arguments = Arguments::new(case.serializer, payload_bytes)?;
        let payload = Payload::new(case.serializer, arguments.numbered(1), &[]);
        let (client, server) = framings(case.transport);
        let length = |framing, message: &Message<'_>| {
            let mut out = Vec::new();
            push(framing, case.serializer, message, &mut out)?;
            Ok::<usize, WorkerError>(out.len())
        };
        Ok(Self {
            publication: length(
                client,
                &Message::Publish {
                    request: RequestId(10_000),
                    options: PublishOptions::default(),
                    topic: topic.into(),
                    payload,
                },
            )?,
            event: length(
                server,
                &Message::Event {
                    subscription: SubscriptionId(1),
                    // WAMP's global ids are random up to 2^53: most have as many digits.
                    publication: PublicationId(1 << 52),
                    details: EventDetails::default(),
                    payload,
                },
            )?,
        })
    }
}

/// The framing of messages by a client and a server on `transport`.
pub(super) fn framings(transport: Transport) -> (Framing, Framing) {
    let websocket = |batched| {
        let client = Framing::WebSocketClient {
            batched,
            mask: CLIENT_MASK,
        };
        (client, Framing::WebSocketServer { batched })
    };
    match transport {
        Transport::RawSocket => (Framing::RawSocket, Framing::RawSocket),
        websocket_kind => websocket(websocket_kind.is_batched()),
    }
}

fn push(
    framing: Framing,
    serializer: Serializer,
    message: &Message<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WorkerError> {
    let length_hint = 48 + message.payload().map_or(0, |payload| payload.len());
    framing
        .frame(serializer, length_hint, out, |out| {
            codec::encode(message, serializer, out)
        })
        .map_err(|error: FrameError<_>| WorkerError::Encode(error.to_string()))
}

pub(super) enum Writer {
    Router {
        topic: String,
        framing: Framing,
        arguments: Arguments,
        acknowledge: bool,
    },
    Floor {
        length: usize,
    },
}

impl Writer {
    pub(super) fn new(
        server: &Server,
        payload_bytes: usize,
        acknowledge: bool,
    ) -> Result<Self, WorkerError> {
        Ok(match server {
            Server::Router { target, topic } => Self::Router {
                topic: topic.clone(),
                framing: framings(target.transport).0,
                arguments: Arguments::new(target.serializer, payload_bytes)?,
                acknowledge,
            },
            Server::Floor { lengths, .. } => Self::Floor {
                length: lengths.publication,
            },
        })
    }

    /// Appends the publication with that number.
    pub(super) fn push(&mut self, number: u64, out: &mut Vec<u8>) -> Result<(), WorkerError> {
        match self {
            Self::Floor { length } => {
                out.extend_from_slice(&number.to_be_bytes());
                out.resize(out.len() + *length - NUMBER_BYTES, b'x');
                Ok(())
            }
            Self::Router {
                topic,
                framing,
                arguments,
                acknowledge,
            } => {
                let serializer = arguments.serializer();
                let message = Message::Publish {
                    // The session's first requests were its set-up.
                    request: RequestId(number),
                    options: PublishOptions {
                        acknowledge: *acknowledge,
                        ..PublishOptions::default()
                    },
                    topic: topic.as_str().into(),
                    payload: Payload::new(serializer, arguments.numbered(number), &[]),
                };
                push(*framing, serializer, &message, out)
            }
        }
    }
}

/// The meaning of a server's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The event of the publication with this number, with its content.
    Event(u64),
    Wrong,
    Published,
    /// The text of a refusal, or of a GOODBYE.
    Farewell(String),
    Other,
}

/// Reads events.
///
/// The same few events arrive at every subscriber, in order. So it compares bytes with the expected event, and decodes
/// only other ones: the instrument must cost less than its subject.
pub(super) enum Reader {
    Router {
        serializer: Serializer,
        arguments: Arguments,
        /// The number in `expected`.
        number: u64,
        /// The arguments of the expected event.
        expected: Vec<u8>,
    },
    Floor,
}

impl Reader {
    pub(super) fn new(server: &Server, payload_bytes: usize) -> Result<Self, WorkerError> {
        let Server::Router { target, .. } = server else {
            return Ok(Self::Floor);
        };
        let mut arguments = Arguments::new(target.serializer, payload_bytes)?;
        Ok(Self::Router {
            serializer: target.serializer,
            number: 0,
            expected: arguments.numbered(0).to_vec(),
            arguments,
        })
    }

    /// Classifies a message, if the event with the number `next` is expected.
    pub(super) fn read(&mut self, message: &[u8], next: u64) -> Result<Arrival, WorkerError> {
        let Self::Router {
            serializer,
            arguments,
            number,
            expected,
        } = self
        else {
            let number = message.first_chunk().map(|head| u64::from_be_bytes(*head));
            return Ok(number.map_or(Arrival::Wrong, Arrival::Event));
        };
        if *number != next {
            *number = next;
            expected.clear();
            expected.extend_from_slice(arguments.numbered(next));
        }
        let (head, tail): (&[u8], &[u8]) = match serializer {
            Serializer::Json => (b"[36,", b"]"),
            Serializer::MsgPack => (b"\x95\x24", b""),
            Serializer::Cbor => (b"\x85\x18\x24", b""),
        };
        let body = message.strip_suffix(tail);
        if body.is_some_and(|body| body.ends_with(expected)) && message.starts_with(head) {
            return Ok(Arrival::Event(next));
        }
        decode(*serializer, arguments, message)
    }
}

/// Any message, in any equivalent encoding.
#[cold]
fn decode(
    serializer: Serializer,
    arguments: &mut Arguments,
    message: &[u8],
) -> Result<Arrival, WorkerError> {
    let limits = codec::Limits::default();
    Ok(match codec::decode(serializer, message, &limits)? {
        Message::Event { payload, .. } => {
            let number_in = |bytes: &[u8]| match codec::decode_value(serializer, bytes, &limits) {
                Ok(Value::List(list)) => list.first().and_then(Value::as_u64),
                _ => None,
            };
            let base = number_in(arguments.numbered(0)).unwrap_or(0);
            match number_in(payload.args).and_then(|number| number.checked_sub(base)) {
                Some(number)
                    if payload.kwargs.is_empty() && arguments.matches(payload.args, number) =>
                {
                    Arrival::Event(number)
                }
                _ => Arrival::Wrong,
            }
        }
        Message::Published { .. } => Arrival::Published,
        Message::Goodbye { reason, .. } => Arrival::Farewell(format!("GOODBYE {reason}")),
        Message::Abort { reason, .. } => Arrival::Farewell(format!("ABORT {reason}")),
        Message::Error {
            request_type,
            error,
            ..
        } => Arrival::Farewell(format!("{} of {}", error, request_type.name())),
        _ => Arrival::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Socket;

    fn target(serializer: Serializer, transport: Transport) -> Target {
        let case = Case {
            socket: Socket::Unix,
            transport,
            serializer,
        };
        Target::own(Endpoint::Unix("/x".into()), case, "/ws")
    }

    fn event(serializer: Serializer, args: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let message = Message::Event {
            subscription: SubscriptionId(7),
            publication: PublicationId(9_007_199_254_740_991),
            details: EventDetails::default(),
            payload: Payload::new(serializer, args, &[]),
        };
        codec::encode(&message, serializer, &mut out).unwrap();
        out
    }

    #[test]
    fn events_are_identified_by_their_number() {
        for serializer in Serializer::ALL {
            let server = Server::Router {
                target: target(serializer, Transport::WebSocket),
                topic: "x".to_owned(),
            };
            let mut arguments = Arguments::new(serializer, 32).unwrap();
            let mut reader = Reader::new(&server, 32).unwrap();
            for (number, next) in [(5, 5), (6, 5), (5, 6), (5, 5)] {
                let event = event(serializer, arguments.numbered(number));
                assert_eq!(reader.read(&event, next).unwrap(), Arrival::Event(number));
            }
            let other = Arguments::new(serializer, 31).unwrap().numbered(5).to_vec();
            let event = event(serializer, &other);
            assert_eq!(reader.read(&event, 5).unwrap(), Arrival::Wrong);
        }
    }

    #[test]
    fn other_bytes_for_the_same_are_the_same() {
        #[track_caller]
        fn check(message: &str, expected: Arrival) {
            let server = Server::Router {
                target: target(Serializer::Json, Transport::WebSocket),
                topic: "x".to_owned(),
            };
            let mut reader = Reader::new(&server, 0).unwrap();
            assert_eq!(reader.read(message.as_bytes(), 5).unwrap(), expected);
        }
        check("[36,1,2,{},[1000000005]]", Arrival::Event(5));
        check("[36, 1, 2, {}, [1000000005]]", Arrival::Event(5));
        check("[36,1,2,{},[ 1000000005 ],{}]", Arrival::Wrong);
        check("[36,1,2,{},[5]]", Arrival::Wrong);
        check("[36,1,2,{}]", Arrival::Wrong);
        check("[17,1,2]", Arrival::Published);
        check(
            "[6,{},\"wamp.close.normal\"]",
            Arrival::Farewell("GOODBYE wamp.close.normal".to_owned()),
        );
    }

    #[test]
    fn lengths_are_those_on_the_wire() {
        #[track_caller]
        fn check(case: &str, payload_bytes: usize, publication: usize, event: usize) {
            let lengths = Lengths::of(&case.parse().unwrap(), "com.x", payload_bytes).unwrap();
            assert_eq!(lengths, Lengths { publication, event });
            assert!(lengths.publication.min(lengths.event) >= NUMBER_BYTES);
        }
        check("uds-rawsocket-msgpack", 0, 22, 23);
        check("tcp-websocket-json", 32, 75, 76);
    }
}
