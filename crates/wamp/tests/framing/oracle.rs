//! Another WebSocket implementation as the judge: it reads what is written here, is read here,
//! and accepts whatever is accepted here.

use std::io::{self, Read, Write};

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{
    Decoder, DecoderConfig, HEAD_BYTES_MAX, Opcode, Role, message, parse_request, raw_frame,
};
use crosstie_wamp::framing::{FrameError, Framing};
use proptest::collection::vec;
use proptest::prelude::*;
use tungstenite::protocol::{self, WebSocket};
use tungstenite::{Bytes, Error, Message};

use crate::drive::{Out, drive};

/// A stream whose input was written before and whose output is kept.
#[derive(Default)]
struct Tape {
    input: io::Cursor<Vec<u8>>,
    output: Vec<u8>,
}

impl Read for Tape {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buffer)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            length => Ok(length),
        }
    }
}

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn judge(role: Role, input: Vec<u8>) -> WebSocket<Tape> {
    let tape = Tape {
        input: io::Cursor::new(input),
        output: Vec::new(),
    };
    let role = match role {
        Role::Server => protocol::Role::Server,
        Role::Client => protocol::Role::Client,
    };
    WebSocket::from_raw_socket(tape, role, None)
}

/// What the judge reads, up to a Close or to the end.
fn judged(role: Role, bytes: Vec<u8>) -> Result<Vec<Out>, Error> {
    let mut judge = judge(role, bytes);
    let mut found = Vec::new();
    loop {
        found.push(match judge.read() {
            Ok(Message::Text(text)) => Out::Text(text.as_bytes().to_vec()),
            Ok(Message::Binary(bytes)) => Out::Binary(bytes.to_vec()),
            Ok(Message::Ping(bytes)) => Out::Ping(bytes.to_vec()),
            Ok(Message::Pong(bytes)) => Out::Pong(bytes.to_vec()),
            Ok(Message::Close(frame)) => {
                let code = frame.as_ref().map(|frame| frame.code.into());
                let reason = frame.map(|frame| frame.reason.to_string());
                found.push(Out::Close(code, reason.unwrap_or_default()));
                return Ok(found);
            }
            Ok(Message::Frame(_)) => unreachable!("reading never returns frames"),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(found);
            }
            Err(error) => return Err(error),
        });
    }
}

fn other(role: Role) -> Role {
    match role {
        Role::Server => Role::Client,
        Role::Client => Role::Server,
    }
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Server), Just(Role::Client)]
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => vec(any::<u8>(), 0..140),
        1 => vec(any::<u8>(), 140..2000),
        1 => (65_000..66_000_usize).prop_map(|length| vec![b'.'; length]),
    ]
}

fn sent() -> impl Strategy<Value = Out> {
    prop_oneof![
        4 => ".{0,80}".prop_map(|text| Out::Text(text.into_bytes())),
        4 => payload().prop_map(Out::Binary),
        1 => vec(any::<u8>(), 0..=125).prop_map(Out::Ping),
        1 => vec(any::<u8>(), 0..=125).prop_map(Out::Pong),
    ]
}

/// Cuts `bytes` after each of `lengths` in turn, again and again.
fn pieces<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for &length in lengths.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at(length.min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fn config() -> DecoderConfig {
    DecoderConfig::default()
}

proptest! {
    #[test]
    fn reads_the_output_of_the_other(
        role in role(),
        script in vec(sent(), 0..8),
        lengths in vec(1..200_usize, 1..5),
    ) {
        let mut writer = judge(other(role), Vec::new());
        for item in &script {
            let message = match item.clone() {
                Out::Text(text) => Message::text(String::from_utf8(text).expect("text")),
                Out::Binary(bytes) => Message::binary(bytes),
                Out::Ping(bytes) => Message::Ping(bytes.into()),
                Out::Pong(bytes) => Message::Pong(bytes.into()),
                other => unreachable!("never sent: {other:?}"),
            };
            writer.write(message).expect("a tape takes everything");
            writer.flush().expect("a tape takes everything");
        }
        let bytes = &writer.get_ref().output;
        let mut decoder = Decoder::new(role, config());
        let (found, _) = drive(&mut decoder, pieces(bytes, &lengths));
        prop_assert_eq!(found, script);
    }

    #[test]
    fn is_read_by_the_other(role in role(), mask: [u8; 4], script in vec(sent(), 0..8)) {
        let framing = match role {
            Role::Server => Framing::WebSocketServer { batched: false },
            Role::Client => Framing::WebSocketClient { batched: false, mask },
        };
        let mut bytes = Vec::new();
        for item in &script {
            let (serializer, body) = match item {
                Out::Ping(payload) => {
                    framing.ping(payload, &mut bytes);
                    continue;
                }
                Out::Pong(payload) => {
                    framing.pong(payload, &mut bytes);
                    continue;
                }
                Out::Text(body) => (Serializer::Json, body),
                Out::Binary(body) => (Serializer::Cbor, body),
                other => unreachable!("never sent: {other:?}"),
            };
            let framed: Result<(), FrameError<()>> =
                framing.frame(serializer, 100, &mut bytes, |out| {
                    out.extend_from_slice(body);
                    Ok(())
                });
            framed.expect("it fits");
        }
        framing.close(1000, "done", &mut bytes);
        let found = judged(other(role), bytes).expect("well-formed");
        let close = Out::Close(Some(1000), "done".to_owned());
        prop_assert_eq!(found, [&script[..], &[close]].concat());
    }

    /// Frames in any order, right and wrong: every cut gives the same, and what passes here
    /// passes there.
    #[test]
    fn accepts_nothing_the_other_refuses(
        role in role(),
        mask: [u8; 4],
        frames in vec((0..11_u8, any::<bool>(), vec(any::<u8>(), 0..4), 0..100_u8), 0..8),
        lengths in vec(1..9_usize, 1..5),
    ) {
        let mask = (role == Role::Server).then_some(mask);
        let mut bytes = Vec::new();
        for (opcode, fin, payload, oddity) in frames {
            let start = bytes.len();
            raw_frame(Opcode::Ping, fin, oddity == 0, mask, &payload, &mut bytes);
            // Mostly continuations: otherwise few scripts come far.
            let opcode = if opcode > 2 && opcode < 8 { 0 } else { opcode };
            bytes[start] = bytes[start] & 0xF0 | opcode;
        }
        let (found, _) = drive(&mut Decoder::new(role, config()), [&bytes[..]]);
        let mut decoder = Decoder::new(role, config());
        let (cut, _) = drive(&mut decoder, pieces(&bytes, &lengths));
        prop_assert_eq!(&found, &cut);
        if !matches!(found.last(), Some(Out::Fault(_))) {
            let judged = judged(role, bytes);
            prop_assert_eq!(judged.map_err(|error| error.to_string()), Ok(found));
        }
    }

    /// Any bytes at all: no panic, and every cut gives the same.
    #[test]
    fn any_bytes(
        role in role(),
        bytes in vec(any::<u8>(), 0..200),
        lengths in vec(1..20_usize, 1..5),
    ) {
        let (found, _) = drive(&mut Decoder::new(role, config()), [&bytes[..]]);
        let mut decoder = Decoder::new(role, config());
        let (cut, _) = drive(&mut decoder, pieces(&bytes, &lengths));
        prop_assert_eq!(found, cut);
    }

    #[test]
    fn any_request(bytes in vec(any::<u8>(), 0..200)) {
        let bytes = [b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n", &bytes[..], b"\r\n\r\n"].concat();
        if let Ok(Some((length, request))) = parse_request(&bytes, HEAD_BYTES_MAX) {
            prop_assert!(length <= bytes.len());
            let _ = request.upgrade();
        }
    }
}

#[test]
fn shakes_hands_with_the_other() {
    use crosstie_wamp::framing::websocket::{ClientRequest, accept_response, key};

    // The other as a server.
    let key = key(*b"sixteen bytes...");
    let request = ClientRequest {
        host: "localhost",
        target: "/ws",
        key: &key,
        protocols: &[],
        extensions: None,
        headers: &[],
    };
    let tape = Tape {
        input: io::Cursor::new(request.to_bytes()),
        output: Vec::new(),
    };
    let server = tungstenite::accept(tape).map_err(|error| error.to_string());
    let output = server.expect("it accepts").get_ref().output.clone();
    let (length, accepted) = request.accept(&output).expect("good").expect("whole");
    assert_eq!((length, accepted.protocol), (output.len(), None));

    // The other as a client: it stops where the answer is missing, and goes on when it is there.
    let client = tungstenite::client("ws://localhost/", Tape::default());
    let Err(tungstenite::HandshakeError::Interrupted(mut half)) = client else {
        panic!("expected it to wait for an answer");
    };
    let tape = half.get_mut().get_mut();
    let (_, request) = parse_request(&tape.output, HEAD_BYTES_MAX)
        .expect("good")
        .expect("whole");
    let upgrade = request.upgrade().expect("a good handshake");
    let mut answer = accept_response(upgrade.key, None, None, &[]);
    message(true, None, b"hi", &mut answer);
    tape.input = io::Cursor::new(answer);
    let (mut client, _) = half
        .handshake()
        .map_err(|error| error.to_string())
        .expect("agreed");
    let read = client.read().expect("a message");
    assert_eq!(
        read,
        Message::Text(Bytes::from("hi").try_into().expect("text"))
    );
}
