//! The measured caller and callee against the smallest router that can route between them, over every transport and
//! serializer; and their reports of a router that misbehaves.

use std::thread;

use crate::load::{Driven, Listener, Load, Stream, Window, drive};
use crate::subject::{Case, Endpoint, Target, Transport};
use crate::wamp::callee::{Callee, Ending};
use crate::wamp::caller::{Caller, PairOrder};
use crosstie_wamp::framing::rawsocket::ServerHandshake;
use crosstie_wamp::framing::{Framing, Item, Step, batched, rawsocket, websocket};
use crosstie_wamp::{
    Dict, Message, Payload, RegistrationId, RequestId, Serializer, SessionId, codec,
};

const CALLS: u64 = 300;

/// The router's treatment of the answer to a call.
#[derive(Clone, Copy)]
enum Behaviour {
    Honest,
    /// Answers the hundredth call with an error.
    Error,
    /// Changes the hundredth answer.
    Change,
    /// Sends the hundredth answer twice.
    Double,
    /// Keeps the hundredth answer until the next.
    Swap,
    /// Closes instead of sending the batch with the hundredth answer.
    Close,
}

#[track_caller]
fn check(case: &str, outstanding: usize, payload_bytes: usize, behaviour: Behaviour) -> Driven {
    let case: Case = case.parse().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Unix(directory.path().join("router.sock"));
    let (listener, endpoint) = Listener::bind(&endpoint).unwrap();
    let target = Target::own(endpoint, case, "/ws");
    let order = PairOrder {
        target,
        procedure: "test.echo".into(),
        payload_bytes,
    };
    thread::scope(|scope| {
        scope.spawn(move || route(&listener, case, behaviour));
        let mut callee = Callee::register(&order).unwrap();
        let leave = callee.leaver().unwrap();
        let serving = scope.spawn(|| callee.serve());
        let mut caller = Caller::join(&order).unwrap();
        let window = Window {
            start_ns: 0,
            end_ns: u64::MAX / 2,
        };
        let load = Load {
            outstanding,
            batch: 100,
            window,
            operations_max: CALLS,
        };
        let mut lines = 0;
        let driven = drive(&mut caller, &load, &mut |_| lines += 1).unwrap();
        assert_eq!(lines, driven.right / load.batch);
        let _ = caller.leave();
        leave();
        let _ = serving.join().unwrap();
        driven
    })
}

#[test]
fn every_transport_and_serializer() {
    for transport in ["rawsocket", "websocket"] {
        for serializer in Serializer::ALL {
            for (outstanding, payload_bytes) in [(1, 0), (16, 0), (4, 70_000)] {
                let case = format!("uds-{transport}-{serializer}");
                let driven = check(&case, outstanding, payload_bytes, Behaviour::Honest);
                assert_eq!(
                    (driven.right, driven.faults.describe()),
                    (CALLS, None),
                    "{case}"
                );
            }
        }
    }
    for serializer in Serializer::ALL {
        let driven = check(
            &format!("uds-websocket-{serializer}-batched"),
            16,
            0,
            Behaviour::Honest,
        );
        assert_eq!((driven.right, driven.faults.describe()), (CALLS, None));
    }
}

#[test]
fn misbehaviour_is_counted() {
    #[track_caller]
    fn misbehave(outstanding: usize, behaviour: Behaviour, right: u64, faults: &str) {
        let driven = check("uds-rawsocket-msgpack", outstanding, 0, behaviour);
        assert_eq!(
            (driven.right, driven.faults.describe().as_deref()),
            (right, Some(faults))
        );
    }
    misbehave(1, Behaviour::Error, CALLS - 1, "1 failed");
    misbehave(1, Behaviour::Change, CALLS - 1, "1 wrong");
    misbehave(8, Behaviour::Double, CALLS, "1 doubled");
    misbehave(8, Behaviour::Swap, CALLS, "1 out of order");
    misbehave(8, Behaviour::Close, 96, "8 lost");
}

/// A caller that waits for the procedure calls it before the callee has read that it is registered; and after GOODBYE
/// nothing more is sent.
#[test]
fn a_callee_is_called_at_once_and_silent_at_last() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Unix(directory.path().join("router.sock"));
    let (listener, endpoint) = Listener::bind(&endpoint).unwrap();
    let case: Case = "uds-rawsocket-msgpack".parse().unwrap();
    let target = Target::own(endpoint, case, "/ws");
    let order = PairOrder {
        target,
        procedure: "test.echo".into(),
        payload_bytes: 0,
    };
    let invocation = |request| Message::Invocation {
        request: RequestId(request),
        registration: RegistrationId(1),
        details: Default::default(),
        payload: Payload::EMPTY,
    };
    thread::scope(|scope| {
        let router = scope.spawn(|| {
            let mut callee = End::accept(&listener, case);
            callee.let_register();
            callee.send(&invocation(1));
            callee.flush();
            let mut came = Vec::new();
            while came.len() < 2 {
                callee.receive(|message| {
                    came.push(message.kind().name());
                    None
                });
            }
            assert_eq!(came, ["YIELD", "GOODBYE"]);
            callee.send(&invocation(2));
            callee.send(&goodbye());
            callee.flush();
            // The end of the stream, and no YIELD before it.
            callee.stream.read(&mut [0; 16]).unwrap()
        });
        let mut callee = Callee::register(&order).unwrap();
        let leave = callee.leaver().unwrap();
        leave();
        let served = callee.serve().unwrap();
        assert_eq!(
            served.ending,
            Ending::Goodbye("wamp.close.goodbye_and_out".to_owned())
        );
        assert_eq!(router.join().unwrap(), 0);
    });
}

/// Routes between the first two connections: the callee comes first.
fn route(listener: &Listener, case: Case, behaviour: Behaviour) {
    let mut callee = End::accept(listener, case);
    callee.let_register();
    callee.flush();
    let mut caller = End::accept(listener, case);
    let mut answered = 0;
    let mut kept: Vec<u8> = Vec::new();
    loop {
        let mut calls = 0;
        let mut gone = false;
        caller.receive(|message| match message {
            Message::Call {
                request, payload, ..
            } => {
                calls += 1;
                callee.send(&Message::Invocation {
                    request: *request,
                    registration: RegistrationId(1),
                    details: Default::default(),
                    payload: *payload,
                });
                None
            }
            Message::Goodbye { .. } => {
                gone = true;
                Some(goodbye())
            }
            other => panic!("{other:?}"),
        });
        if gone {
            caller.flush();
            break;
        }
        callee.flush();
        let mut yields = 0;
        while yields < calls {
            callee.receive(|message| {
                let Message::Yield {
                    request, payload, ..
                } = message
                else {
                    panic!("{message:?}")
                };
                yields += 1;
                answered += 1;
                answer(
                    &mut caller,
                    *request,
                    *payload,
                    behaviour,
                    answered == 100,
                    &mut kept,
                );
                None
            });
        }
        if matches!(behaviour, Behaviour::Close) && answered >= 100 {
            drop(caller);
            break;
        }
        caller.flush();
    }
    callee.receive(|message| {
        assert!(matches!(message, Message::Goodbye { .. }));
        Some(goodbye())
    });
    callee.flush();
}

fn goodbye() -> Message<'static> {
    Message::Goodbye {
        details: Dict::new(),
        reason: "wamp.close.goodbye_and_out".into(),
    }
}

fn answer(
    caller: &mut End,
    request: RequestId,
    payload: Payload<'_>,
    behaviour: Behaviour,
    hundredth: bool,
    kept: &mut Vec<u8>,
) {
    let result = Message::Result {
        request,
        details: Default::default(),
        payload,
    };
    match (behaviour, hundredth) {
        (Behaviour::Error, true) => caller.send(&Message::Error {
            request_type: crosstie_wamp::MessageType::Call,
            request,
            details: Dict::new(),
            error: "test.error".into(),
            payload: Payload::EMPTY,
        }),
        (Behaviour::Change, true) => {
            let payload = Payload {
                args: &[0x91, 0x07],
                ..payload
            };
            caller.send(&Message::Result {
                request,
                details: Default::default(),
                payload,
            });
        }
        (Behaviour::Double, true) => {
            caller.send(&result);
            caller.send(&result);
        }
        (Behaviour::Swap, true) => {
            let before = caller.output.len();
            caller.send(&result);
            *kept = caller.output.split_off(before);
        }
        _ => {
            caller.send(&result);
            caller.output.append(kept);
        }
    }
}

/// One connection of the smallest router.
struct End {
    stream: Stream,
    serializer: Serializer,
    framing: Framing,
    decoder: Decoder,
    input: Vec<u8>,
    output: Vec<u8>,
}

enum Decoder {
    RawSocket(rawsocket::Decoder),
    WebSocket(websocket::Decoder),
}

impl End {
    /// Grants the one registration that comes.
    fn let_register(&mut self) {
        self.receive(|message| {
            let Message::Register { request, .. } = message else {
                panic!("{message:?}")
            };
            Some(Message::Registered {
                request: *request,
                registration: RegistrationId(1),
            })
        });
    }

    fn accept(listener: &Listener, case: Case) -> Self {
        let stream = listener.accept().unwrap();
        let (framing, decoder) = match case.transport {
            Transport::RawSocket => {
                let mut request = [0; 4];
                stream.read_exact(&mut request).unwrap();
                let accepted =
                    ServerHandshake::accept(request, &[case.serializer], 1 << 24).unwrap();
                stream.write_all(&accepted.reply).unwrap();
                (
                    Framing::RawSocket,
                    Decoder::RawSocket(rawsocket::Decoder::new(1 << 24)),
                )
            }
            transport => {
                let batched = transport == Transport::WebSocketBatched;
                upgrade(&stream, websocket::subprotocol(case.serializer, batched));
                let config = websocket::DecoderConfig::default();
                let decoder = websocket::Decoder::new(websocket::Role::Server, config);
                (
                    Framing::WebSocketServer { batched },
                    Decoder::WebSocket(decoder),
                )
            }
        };
        let mut end = Self {
            stream,
            serializer: case.serializer,
            framing,
            decoder,
            input: Vec::new(),
            output: Vec::new(),
        };
        end.receive(|message| {
            assert!(matches!(message, Message::Hello { .. }));
            Some(Message::Welcome {
                session: SessionId(1),
                details: Dict::new(),
            })
        });
        end.flush();
        end
    }

    /// Reads until a complete message is there, and queues `answer`'s reply to each message.
    fn receive(&mut self, mut answer: impl FnMut(&Message<'_>) -> Option<Message<'static>>) {
        let mut found = 0;
        while found == 0 {
            let mut bytes = [0; 65_536];
            let length = self.stream.read(&mut bytes).unwrap();
            assert!(length > 0, "the peer closed");
            self.input.extend_from_slice(&bytes[..length]);
            let mut input = std::mem::take(&mut self.input);
            let mut begin = 0;
            loop {
                let step = match &mut self.decoder {
                    Decoder::RawSocket(decoder) => decoder.next(&mut input[begin..]),
                    Decoder::WebSocket(decoder) => decoder.next(&mut input[begin..]),
                };
                let Step { consumed, item, .. } = step.unwrap();
                let Some(Item::Message { bytes, .. }) = item else {
                    assert_eq!(consumed, 0);
                    break;
                };
                let messages: Vec<&[u8]> = match self.framing {
                    Framing::WebSocketServer { batched: true } => {
                        batched::split(self.serializer, bytes)
                            .map(Result::unwrap)
                            .collect()
                    }
                    _ => vec![bytes],
                };
                for bytes in messages {
                    let limits = codec::Limits::default();
                    let message = codec::decode(self.serializer, bytes, &limits).unwrap();
                    found += 1;
                    if let Some(reply) = answer(&message) {
                        append(self.framing, self.serializer, &reply, &mut self.output);
                    }
                }
                begin += consumed;
            }
            self.input = input.split_off(begin);
        }
    }

    fn send(&mut self, message: &Message<'_>) {
        append(self.framing, self.serializer, message, &mut self.output);
    }

    fn flush(&mut self) {
        self.stream
            .write_all(&std::mem::take(&mut self.output))
            .unwrap();
    }
}

fn append(framing: Framing, serializer: Serializer, message: &Message<'_>, out: &mut Vec<u8>) {
    framing
        .frame(serializer, 0, out, |out| {
            codec::encode(message, serializer, out)
        })
        .unwrap();
}

fn upgrade(stream: &Stream, subprotocol: &str) {
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    while !bytes[..length].ends_with(b"\r\n\r\n") {
        length += stream.read(&mut bytes[length..]).unwrap();
    }
    let (_, request) = websocket::parse_request(&bytes[..length], websocket::HEAD_BYTES_MAX)
        .unwrap()
        .unwrap();
    let upgrade = request.upgrade().unwrap();
    assert!(upgrade.protocols.contains(&subprotocol));
    let response = websocket::accept_response(upgrade.key, Some(subprotocol), None, &[]);
    stream.write_all(&response).unwrap();
}
