//! Measures decoding and encoding of one frame, in nanoseconds: the best of several rounds over a buffer of pipelined
//! frames, as one large read would bring them.
//!
//! Run it on an otherwise idle core: `cargo run --release --example framing_speed`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]
#![allow(clippy::print_stdout)]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{self, DecoderConfig, MessageKind, Role};
use crosstie_wamp::framing::{FrameError, Framing, FramingError, Item, Step, rawsocket};

const ROUNDS: usize = 200;
const FRAMES: usize = 500;

const SERVER: Framing = Framing::WebSocketServer { batched: false };
const CLIENT: Framing = Framing::WebSocketClient {
    batched: false,
    mask: [0x37, 0x7A, 0x21, 0x3D],
};

fn main() {
    println!("{:40} {:>10} {:>12}", "case", "ns/frame", "bytes/ns");
    for length in [0, 20, 100, 125, 1000, 65_536] {
        let body = vec![b'm'; length];
        let frames = FRAMES.min((64 << 20) / (length + 1) / 100).max(10);
        let pipelined = |framing: Framing| {
            let mut out = Vec::new();
            (0..frames).for_each(|_| append(framing, &body, &mut out));
            out
        };

        let input = pipelined(Framing::RawSocket);
        let decoder = || rawsocket::Decoder::new(1 << 24);
        decode(&format!("decode rawsocket {length}"), &input, decoder);
        let config = DecoderConfig {
            validate_text: false,
            expect: Some(MessageKind::Text),
            ..DecoderConfig::default()
        };
        let input = pipelined(CLIENT);
        let decoder = || websocket::Decoder::new(Role::Server, config);
        decode(
            &format!("decode websocket masked {length}"),
            &input,
            decoder,
        );
        let config = DecoderConfig::default();
        let decoder = || websocket::Decoder::new(Role::Server, config);
        decode(
            &format!("decode websocket masked utf-8 {length}"),
            &input,
            decoder,
        );
        let input = pipelined(SERVER);
        let decoder = || websocket::Decoder::new(Role::Client, config);
        decode(
            &format!("decode websocket unmasked utf-8 {length}"),
            &input,
            decoder,
        );

        for (name, framing) in [
            ("rawsocket", Framing::RawSocket),
            ("websocket", SERVER),
            ("websocket masked", CLIENT),
        ] {
            let mut out = Vec::new();
            let time = best(|| {
                out.clear();
                (0..frames).for_each(|_| append(framing, &body, &mut out));
                black_box(&out);
            });
            report(&format!("encode {name} {length}"), time, frames, out.len());
        }
    }
}

fn append(framing: Framing, body: &[u8], out: &mut Vec<u8>) {
    let framed: Result<(), FrameError<Infallible>> =
        framing.frame(Serializer::Json, body.len(), out, |out| {
            out.extend_from_slice(body);
            Ok(())
        });
    assert!(framed.is_ok());
}

trait Decode {
    fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError>;
}

impl Decode for rawsocket::Decoder {
    fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        self.next(input)
    }
}

impl Decode for websocket::Decoder {
    fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        self.next(input)
    }
}

fn decode<D: Decode>(name: &str, input: &[u8], decoder: impl Fn() -> D) {
    let mut frames = 0;
    let mut buffer = input.to_vec();
    let time = best(|| {
        // Decoding unmasks in place: every other round sees masked text, which is ASCII too.
        frames = 0;
        let mut decoder = decoder();
        let mut rest = &mut buffer[..];
        loop {
            let step = decoder.next(rest).expect("well-formed");
            if let Some(Item::Message { bytes, .. }) = step.item {
                black_box(bytes);
                frames += 1;
            }
            let consumed = step.consumed;
            if consumed == 0 {
                break;
            }
            rest = &mut rest[consumed..];
        }
    });
    report(name, time, frames, input.len());
}

fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn report(name: &str, time: Duration, frames: usize, bytes: usize) {
    let nanoseconds = time.as_nanos() as f64;
    println!(
        "{name:40} {:>10.1} {:>12.2}",
        nanoseconds / frames as f64,
        bytes as f64 / nanoseconds
    );
}
