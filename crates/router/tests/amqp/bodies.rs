//! Bodies of every size around the limits of frames and reads arrive unchanged, however they are split.

use std::io::Write;
use std::net::TcpStream;

use crosstie_amqp::PROTOCOL_HEADER;
use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::BasicPublish;
use crosstie_amqp::{Arguments, Properties};

use crate::rig::{Client, Rig};

/// A body with a unique beginning.
fn body(number: usize, length: usize) -> Vec<u8> {
    let bytes = (0..length).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ number) as u8);
    bytes.collect()
}

/// The frames of a message to `q`, for that maximum frame size.
fn message(body: &[u8], frame_bytes_max: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let publish = BasicPublish::to("", "q");
    frame::write(FrameKind::Method, 1, &mut bytes, |out| publish.write(out));
    let properties = Properties::EMPTY.bytes();
    frame::write_content(1, properties, body, frame_bytes_max, &mut bytes);
    bytes
}

fn enter(rig: &Rig, frame_bytes_max: u32) -> Client {
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    client.expect("0 connection.start");
    client.start_ok("PLAIN", b"\0guest\0guest");
    client.expect("0 connection.tune");
    client.tune_ok(2047, frame_bytes_max, 0);
    client.open("/");
    client.expect("0 connection.open-ok");
    client.open_channel(1);
    client
}

/// Sizes around limits: of a frame, a read, a buffer.
fn sizes(frame_bytes_max: u32) -> Vec<usize> {
    let frame_body = frame_bytes_max as usize - frame::OVERHEAD_BYTES;
    let borders = [
        1,
        1024,
        4096,
        16_384,
        frame_body,
        2 * frame_body,
        65_536,
        100_000,
        131_072,
        262_144,
        524_288,
    ];
    let around = |border: usize| [border - 1, border, border + 1];
    borders
        .into_iter()
        .flat_map(around)
        .chain([1_100_000, 3, 0, 70_000])
        .collect()
}

/// Sends the bytes in portions of these lengths, repeatedly.
fn send(mut stream: TcpStream, bytes: &[u8], portions: &[usize]) {
    stream.set_nodelay(true).expect("is open");
    let mut rest = bytes;
    for portion in portions.iter().cycle() {
        let (now, later) = rest.split_at((*portion).min(rest.len()));
        stream.write_all(now).expect("is open");
        rest = later;
        if rest.is_empty() {
            return;
        }
    }
}

/// Sends messages to another client, which reads at once or after everything is sent.
fn check(frames: (u32, u32), is_read_at_once: bool, portions: &[usize]) {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut consumer = enter(&rig, frames.1);
    consumer.declare("q", false);
    let bodies: Vec<_> = sizes(frames.0)
        .into_iter()
        .enumerate()
        .map(|(number, length)| body(number, length))
        .collect();
    let bytes: Vec<u8> = bodies
        .iter()
        .flat_map(|body| message(body, frames.0))
        .collect();
    let publisher = enter(&rig, frames.0);
    let stream = publisher.stream.try_clone().expect("a descriptor");
    let portions = portions.to_vec();
    if is_read_at_once {
        consumer.consume("q", true);
    }
    let sending = std::thread::spawn(move || send(stream, &bytes, &portions));
    if !is_read_at_once {
        sending.join().expect("no panic");
        consumer.consume("q", true);
    }
    for (number, body) in bodies.iter().enumerate() {
        let found = consumer.expect_message("1 basic.deliver");
        assert!(found == *body, "message {number} of {} bytes", body.len());
    }
}

#[test]
fn bodies_around_every_border() {
    for frames in [
        (131_072, 131_072),
        (131_072, 4096),
        (4096, 131_072),
        (65_536, 20_000),
    ] {
        check(frames, true, &[usize::MAX]);
        check(frames, false, &[usize::MAX]);
        check(frames, true, &[100_000, 30_000, 7, 70_000]);
    }
}

#[test]
fn a_message_cut_at_every_byte() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut consumer = enter(&rig, 131_072);
    consumer.declare("q", false);
    consumer.consume("q", true);
    let publisher = enter(&rig, 131_072);
    let bodies = [body(1, 40), body(2, 0), body(3, 90)];
    let bytes: Vec<u8> = bodies
        .iter()
        .flat_map(|body| message(body, 131_072))
        .collect();
    for cut in 1..bytes.len() {
        let stream = publisher.stream.try_clone().expect("a descriptor");
        send(stream, &bytes, &[cut, usize::MAX]);
        for body in &bodies {
            assert_eq!(
                consumer.expect_message("1 basic.deliver"),
                *body,
                "cut at {cut}"
            );
        }
    }
}
