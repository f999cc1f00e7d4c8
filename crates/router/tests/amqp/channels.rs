//! Frames of channels: whole, split, and out of order.

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::{
    AccessRequest, BasicAck, BasicPublish, ChannelClose, ChannelCloseOk, ChannelOpen,
    ExchangeDeclare, QueueDeclare, QueueDeclareOk,
};
use crosstie_amqp::{Arguments, BasicProperties, Method};

use crate::rig::{Client, Rig, Setting, no_arguments, published};

/// A client with channel 1, and its router.
fn with_channel() -> (Rig, Client, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    (rig, client, directory)
}

#[test]
fn a_message_arrives_unchanged() {
    let (_rig, mut client, _directory) = with_channel();
    client.declare("q", false);
    client.consume("q", true);
    for size in [0, 1, 100, 131_064, 131_065, 300_000, 5_000_000] {
        let body: Vec<u8> = (0..size).map(|place| (place % 251) as u8).collect();
        client.publish("q", &body, 1);
        assert_eq!(client.expect_message("1 basic.deliver"), body, "{size}");
    }
}

#[test]
fn how_the_bytes_are_cut_does_not_matter() {
    let (_rig, mut client, _directory) = with_channel();
    client.declare("q", false);
    client.consume("q", true);
    let bodies = ["first", "second", "", "fourth"];
    let all = bodies.map(|body| published(1, "q", body.as_bytes(), 1));
    let all = all.concat();
    for part_bytes in [1, 2, 7, 50, all.len()] {
        for part in all.chunks(part_bytes) {
            client.write(part);
        }
        for body in bodies {
            let received = client.expect_message("1 basic.deliver");
            assert_eq!(received, body.as_bytes(), "{part_bytes}");
        }
    }
}

#[test]
fn channels_may_take_turns_within_messages() {
    let (_rig, mut client, _directory) = with_channel();
    client.open_channel(2);
    client.declare("q", false);
    client.consume("q", true);
    let first = frames(&published(1, "q", b"first", 1));
    let second = frames(&published(2, "q", b"second", 1));
    for (first, second) in first.iter().zip(&second) {
        client.write(first);
        client.write(&frame::HEARTBEAT);
        client.write(second);
    }
    assert_eq!(client.expect_message("1 basic.deliver"), b"first");
    assert_eq!(client.expect_message("1 basic.deliver"), b"second");
}

/// Splits `bytes` into frames.
fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let frame::Decoded::Frame { consumed, .. } =
            frame::decode(bytes, u32::MAX).expect("frames")
        else {
            panic!("whole frames");
        };
        frames.push(bytes[..consumed].to_vec());
        bytes = &bytes[consumed..];
    }
    frames
}

#[test]
fn a_fault_of_a_channel_leaves_the_others() {
    let (_rig, mut client, _directory) = with_channel();
    client.open_channel(2);
    client.send(
        1,
        &ExchangeDeclare {
            exchange: "nope",
            passive: true,
            kind: "direct",
            ..ExchangeDeclare::default()
        },
    );
    client.expect("1 channel.close 404 NOT_FOUND - no exchange 'nope' in vhost '/'");
    // Earlier frames of the channel are dropped.
    client.publish("q", b"lost", 1);
    client.send(2, &AccessRequest::default());
    client.expect("2 access.request-ok");
    client.send(1, &ChannelCloseOk {});
    client.open_channel(1);
    client.declare("q", false);
    client.send(1, &ChannelClose::default());
    client.expect("1 channel.close-ok");
    client.open_channel(1);
}

#[test]
fn an_unknown_delivery_tag_is_a_fault_of_its_channel() {
    let (_rig, mut client, _directory) = with_channel();
    client.send(1, &BasicAck::one(7));
    client.expect("1 channel.close 406 PRECONDITION_FAILED - unknown delivery tag 7");
}

#[test]
fn accepted_messages_are_confirmed() {
    let (_rig, mut client, _directory) = with_channel();
    client.declare("q", false);
    client.confirms();
    let all = [published(1, "q", b"a", 1), published(1, "q", b"b", 2)].concat();
    client.write(&all);
    let mut confirmed = 0;
    while confirmed < 2 {
        let ack = client.expect("1 basic.ack");
        let Method::BasicAck(ack) = ack.method() else {
            panic!("is an ack");
        };
        confirmed = ack.delivery_tag;
    }
}

#[test]
fn a_message_has_a_bound() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.amqp.limits.message_bytes_max = 100_000;
    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", false);
    client.publish("q", &[0; 100_000], 1);
    client.publish("q", &[0; 100_001], 1);
    let closed = client.receive().expect("is told").said();
    assert!(
        closed.starts_with("1 channel.close 406 PRECONDITION_FAILED - message size 100001"),
        "{closed}"
    );
    client.send(1, &ChannelCloseOk {});
    client.open_channel(1);
    client.send(
        1,
        &QueueDeclare {
            queue: "q",
            passive: true,
            ..QueueDeclare::default()
        },
    );
    let declared = client.expect("1 queue.declare-ok");
    let Method::QueueDeclareOk(QueueDeclareOk { message_count, .. }) = declared.method() else {
        panic!("is declared");
    };
    assert_eq!(message_count, 1);
}

fn of(kind: FrameKind, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(kind, channel, &mut bytes, |out| {
        out.extend_from_slice(payload);
    });
    bytes
}

fn written(channel: u16, method: &impl Arguments) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_method(channel, method, &mut bytes);
    bytes
}

fn method(channel: u16, payload: &[u8]) -> Vec<u8> {
    of(FrameKind::Method, channel, payload)
}

/// Checks the answer to each input on channel 1, and that other clients are not affected.
fn check_ended(rows: &[(&str, Vec<u8>, &str)]) {
    let (rig, mut other, _directory) = with_channel();
    for (what, bytes, said) in rows {
        let mut client = rig.client();
        client.open_channel(1);
        client.write(bytes);
        let close = client.receive().expect("is told").said();
        let expected = format!("0 connection.close {said}");
        assert!(close.starts_with(&expected), "{what}: {close}");
    }
    // The other client is not affected.
    other.declare("q", false);
}

#[test]
fn a_malformed_frame_ends_the_connection() {
    let mut unended = method(1, &[0, 20, 0, 10, 0]);
    if let Some(end) = unended.last_mut() {
        *end = 0;
    }
    check_ended(&[
        (
            "an unknown method",
            method(1, &[0, 99, 0, 1]),
            "503 COMMAND_INVALID",
        ),
        ("no method at all", method(1, &[0]), "502 SYNTAX_ERROR"),
        (
            "arguments cut off",
            method(1, &[0, 50, 0, 10, 0, 0, 5, b'q']),
            "502 SYNTAX_ERROR",
        ),
        ("a frame's end", unended, "501 FRAME_ERROR - "),
        (
            "an unknown frame",
            vec![7, 0, 1, 0, 0, 0, 0, 0xce],
            "501 FRAME_ERROR - ",
        ),
        (
            "a frame too long",
            vec![1, 0, 1, 0, 2, 0, 1, 0],
            "501 FRAME_ERROR - ",
        ),
    ]);
}

#[test]
fn a_frame_out_of_place_ends_the_connection() {
    let publish = written(1, &BasicPublish::default());
    let declare = ExchangeDeclare {
        exchange: "e",
        kind: "direct",
        arguments: no_arguments(),
        ..ExchangeDeclare::default()
    };
    check_ended(&[
        (
            "a channel opened twice",
            written(1, &ChannelOpen::default()),
            "504 CHANNEL_ERROR - second 'channel.open' seen",
        ),
        (
            "a channel that is not open",
            written(9, &declare),
            "504 CHANNEL_ERROR - expected 'channel.open'",
        ),
        (
            "a body out of place",
            of(FrameKind::Body, 1, b"body"),
            "505 UNEXPECTED_FRAME - expected method frame, got non method frame instead",
        ),
        (
            "a body before its header",
            [publish.clone(), of(FrameKind::Body, 1, b"body")].concat(),
            "505 UNEXPECTED_FRAME - expected content header for class 60, got non content header \
             frame instead",
        ),
        (
            "a method within a message",
            [publish.clone(), publish].concat(),
            "505 UNEXPECTED_FRAME - expected content header for class 60, got non content header \
             frame instead",
        ),
        (
            "a heartbeat of a channel",
            vec![8, 0, 1, 0, 0, 0, 0, 0xce],
            "505 UNEXPECTED_FRAME - type 8, all octets = <<>>",
        ),
        (
            "a method of channels on none",
            method(0, &[0, 20, 0, 10, 0]),
            "504 CHANNEL_ERROR - unexpected method in connection state running",
        ),
    ]);
}

#[test]
fn channels_have_a_bound() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.transport.channels_max = 3;
    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = Client::connect(rig.address);
    client.write(&crosstie_amqp::PROTOCOL_HEADER);
    client.expect("0 connection.start");
    client.start_ok("PLAIN", b"\0guest\0guest");
    client.expect("0 connection.tune");
    client.tune_ok(3, 131_072, 0);
    client.open("/");
    client.expect("0 connection.open-ok");
    for channel in [5, 1, 3] {
        client.open_channel(channel);
    }
    client.send(2, &ChannelOpen::default());
    client.expect(
        "0 connection.close 530 NOT_ALLOWED - number of channels opened (3) has reached the \
         negotiated channel_max (3)",
    );
}

#[test]
fn only_an_impersonator_publishes_in_the_name_of_others() {
    for (tags, said) in [
        (
            vec!["administrator"],
            "1 channel.close 406 PRECONDITION_FAILED - user_id property set to 'another' but \
             authenticated user was 'guest'",
        ),
        (vec!["monitoring", "impersonator"], "1 queue.declare-ok"),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut setting = Setting::default();
        setting.amqp.users[0].tags = tags.into_iter().map(str::to_owned).collect();
        let rig = Rig::start_with(directory.path(), &setting);
        let mut client = rig.client();
        client.open_channel(1);
        let mut properties = Vec::new();
        BasicProperties {
            user_id: Some("another"),
            ..BasicProperties::default()
        }
        .write(&mut properties);
        let mut bytes = Vec::new();
        let publish = BasicPublish::default();
        frame::write_method(1, &publish, &mut bytes);
        frame::write_content(1, &properties, b"message", 131_072, &mut bytes);
        client.write(&bytes);
        client.send(1, &QueueDeclare::named("after"));
        client.expect(said);
    }
}
