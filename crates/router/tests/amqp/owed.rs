//! Answers arrive, however many; and a client whose answers cannot be queued is closed.

use crosstie_amqp::frame::{self, Decoded, FrameKind};
use crosstie_amqp::method::{BasicConsume, BasicGet, BasicPublish};
use crosstie_amqp::{Arguments, BasicProperties, Method, Properties};

use crate::rig::{Client, Rig, Setting};

/// The frames of a mandatory message.
fn mandatory(routing_key: &str, body: &[u8], reply_to: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let publish = BasicPublish {
        mandatory: true,
        ..BasicPublish::to("", routing_key)
    };
    frame::write(FrameKind::Method, 1, &mut bytes, |out| publish.write(out));
    let mut properties = Vec::new();
    BasicProperties {
        reply_to,
        ..BasicProperties::default()
    }
    .write(&mut properties);
    let properties = Properties::from_bytes(&properties).expect("properties");
    frame::write_content(1, properties.bytes(), body, 131_072, &mut bytes);
    bytes
}

fn expect_acks(client: &mut Client, last: u64) {
    let mut acked = 0;
    while acked < last {
        let ack = client.expect("1 basic.ack");
        let Method::BasicAck(ack) = ack.method() else {
            panic!("is an ack");
        };
        acked = ack.delivery_tag;
    }
}

#[test]
fn returns_wait_for_a_client_that_does_not_read() {
    const MESSAGES: u64 = 100;
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.confirms();
    for message in 0..MESSAGES {
        let body = vec![message as u8; 100_000];
        client.write(&mandatory("nowhere", &body, None));
    }
    let mut acked = 0;
    let mut returned = 0;
    while acked < MESSAGES {
        let received = client.receive().expect("more");
        if received.kind != FrameKind::Method {
            continue;
        }
        match received.method() {
            Method::BasicReturn(_) => returned += 1,
            Method::BasicAck(ack) => {
                acked = ack.delivery_tag;
                assert!(acked <= returned, "{acked} confirmed, {returned} returned");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(returned, MESSAGES);
}

#[test]
fn a_client_that_overruns_its_queue_is_closed_without_a_false_confirm() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.limits.queue_bytes_max = 65_536;
    setting.amqp.limits.message_bytes_max = 65_536;
    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = rig.client();
    client.open_channel(1);
    client.confirms();
    let message = mandatory("nowhere", &[1; 60_000], None);
    // The sockets' buffers are finite.
    while std::io::Write::write_all(&mut client.stream, &message).is_ok() {}
    let bytes = client.read_to_end();
    let mut rest = &bytes[..];
    let mut returned = 0;
    while let Ok(Decoded::Frame { frame, consumed }) = frame::decode(rest, u32::MAX) {
        if frame.kind == FrameKind::Method {
            match Method::decode(frame.payload).expect("a method") {
                Method::BasicReturn(_) => returned += 1,
                Method::BasicAck(ack) => assert!(ack.delivery_tag <= returned),
                Method::BasicNack(nack) => assert!(nack.delivery_tag > returned),
                other => panic!("{other:?}"),
            }
        }
        rest = &rest[consumed..];
    }
    // Other clients are not affected.
    rig.client().open_channel(1);
}

#[test]
fn replies_wait_for_a_late_reader() {
    const REPLIES: u64 = 40;
    const REPLY_QUEUE: &str = "amq.rabbitmq.reply-to";
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut caller = rig.client();
    caller.open_channel(1);
    caller.consume(REPLY_QUEUE, true);
    let mut server = rig.client();
    server.open_channel(1);
    server.declare("requests", false);
    caller.write(&mandatory("requests", b"ask", Some(REPLY_QUEUE)));
    server.send(
        1,
        &BasicConsume {
            queue: "requests",
            no_ack: true,
            ..BasicConsume::default()
        },
    );
    server.expect("1 basic.consume-ok");
    server.expect("1 basic.deliver");
    let header = server.receive().expect("a header");
    let header = crosstie_amqp::ContentHeader::decode(&header.payload).expect("a header");
    let reply_to = header.properties.parse().reply_to.expect("an address");
    server.receive().expect("a body");
    server.confirms();
    for reply in 0..REPLIES {
        let body = vec![reply as u8; 200_000];
        server.write(&mandatory(reply_to, &body, None));
    }
    // None of them has been returned.
    expect_acks(&mut server, REPLIES);
    for reply in 0..REPLIES {
        let body = caller.expect_message("1 basic.deliver");
        assert_eq!(body, vec![reply as u8; 200_000]);
    }
}

#[test]
fn pipelined_gets_are_all_answered() {
    const MESSAGES: u8 = 40;
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", false);
    for message in 0..MESSAGES {
        client.publish("q", &vec![message; 200_000], 1);
    }
    for _ in 0..=MESSAGES {
        let get = BasicGet {
            queue: "q",
            no_ack: true,
        };
        client.send(1, &get);
    }
    for message in 0..MESSAGES {
        let body = client.expect_message("1 basic.get-ok");
        assert_eq!(body, vec![message; 200_000]);
    }
    client.expect("1 basic.get-empty");
}
