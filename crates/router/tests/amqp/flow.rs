//! Fast publishers are blocked, slow consumers are waited for, and nothing is lost.

use std::collections::BTreeSet;

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::{
    BasicAck, BasicPublish, ChannelClose, ConnectionCloseOk, ExchangeDeclare, ExchangeDelete,
    QueueBind, QueueDeclare,
};
use crosstie_amqp::{Arguments, Method, Properties};

use crate::rig::{Client, Rig, Setting, published};

#[test]
fn a_publisher_waits_while_memory_is_full() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.amqp.limits.memory_bytes_max = 300_000;
    let rig = Rig::start_with(directory.path(), &setting);
    let mut publisher = rig.client();
    publisher.open_channel(1);
    publisher.declare("q", false);
    const MESSAGES: usize = 200;
    let mut writing = publisher.stream.try_clone().expect("a socket");
    let written = std::thread::spawn(move || {
        use std::io::Write as _;
        for place in 0..MESSAGES {
            let body = vec![place as u8; 10_000];
            let bytes = published(1, "q", &body, 1);
            writing.write_all(&bytes).expect("is read in the end");
        }
    });
    let blocked = publisher.expect("0 connection.blocked");
    let Method::ConnectionBlocked(blocked) = blocked.method() else {
        panic!("is blocked");
    };
    assert_eq!(blocked.reason, "low on memory");
    let operators = rig.router.amqp().expect("is on");
    let states = operators.connections();
    assert_eq!(states[0].state, "blocked");
    let memory_bytes = operators.vhosts()[0].memory_bytes;
    assert!(memory_bytes < 800_000, "{memory_bytes}");

    // A consumer is served, and frees memory.
    let mut consumer = rig.client();
    consumer.open_channel(1);
    consumer.consume("q", true);
    for place in 0..MESSAGES {
        let body = consumer.expect_message("1 basic.deliver");
        assert_eq!(body, vec![place as u8; 10_000]);
    }
    written.join().expect("all was written");
    publisher.expect("0 connection.unblocked");
}

#[test]
fn a_consumer_that_does_not_read_is_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut consumer = rig.client();
    consumer.open_channel(1);
    consumer.declare("q", false);
    consumer.consume("q", false);
    let mut publisher = rig.client();
    publisher.open_channel(1);
    publisher.confirms();
    const MESSAGES: usize = 400;
    let body = vec![7; 50_000];
    for _ in 0..MESSAGES {
        publisher.publish("q", &body, 1);
    }
    let mut confirmed = 0;
    while confirmed < MESSAGES as u64 {
        let ack = publisher.expect("1 basic.ack");
        if let Method::BasicAck(ack) = ack.method() {
            confirmed = ack.delivery_tag;
        }
    }
    // 20 MB, of which the sockets hold some, and the connection's queue no more than its limit.
    let operators = rig.router.amqp().expect("is on");
    let queue = operators.queues("/").expect("is there").remove(0);
    assert_eq!(
        queue.messages_ready + queue.messages_unacked,
        MESSAGES as u64
    );
    assert!(queue.messages_ready > 0, "{queue:?}");
    for _ in 0..MESSAGES {
        assert_eq!(consumer.expect_message("1 basic.deliver"), body);
    }
    consumer.send(1, &BasicAck::up_to(0));
    consumer.open_channel(2);
    let queue = operators.queues("/").expect("is there").remove(0);
    assert_eq!((queue.messages_ready, queue.messages_unacked), (0, 0));
}

#[test]
fn many_at_once_lose_nothing_and_keep_their_order() {
    const PUBLISHERS: u64 = 4;
    const MESSAGES: u64 = 3000;
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut consumer = rig.client();
    consumer.open_channel(1);
    consumer.declare("q", true);
    consumer.consume("q", false);
    let publishers = (0..PUBLISHERS).map(|publisher| {
        let mut client = rig.client();
        std::thread::spawn(move || {
            client.open_channel(1);
            client.confirms();
            for first in (0..MESSAGES).step_by(100) {
                // Some to be stored, some not; a window at a time.
                let window = first..first + 100;
                let bytes = window.flat_map(|message| {
                    let body = format!("{publisher} {message}");
                    published(1, "q", body.as_bytes(), 1 + (message % 2) as u8)
                });
                client.write(&bytes.collect::<Vec<_>>());
                // Messages that need no store are confirmed first.
                let mut awaited: BTreeSet<_> = (first + 1..=first + 100).collect();
                while !awaited.is_empty() {
                    let ack = client.expect("1 basic.ack");
                    let Method::BasicAck(ack) = ack.method() else {
                        panic!("is an ack");
                    };
                    match ack.multiple {
                        true => awaited.retain(|tag| *tag > ack.delivery_tag),
                        false => assert!(awaited.remove(&ack.delivery_tag), "{ack:?}"),
                    }
                }
            }
        })
    });
    let publishers: Vec<_> = publishers.collect();
    let mut next = [0; PUBLISHERS as usize];
    for place in 1..=PUBLISHERS * MESSAGES {
        let body = consumer.expect_message("1 basic.deliver");
        let text = String::from_utf8(body).expect("text");
        let (publisher, message) = text.split_once(' ').expect("two numbers");
        let publisher: usize = publisher.parse().expect("a number");
        assert_eq!(message.parse(), Ok(next[publisher]), "of {publisher}");
        next[publisher] += 1;
        consumer.send(1, &BasicAck::one(place));
    }
    for publisher in publishers {
        publisher.join().expect("all is confirmed");
    }
    consumer.send(1, &ChannelClose::default());
    consumer.expect("1 channel.close-ok");
    let operators = rig.router.amqp().expect("is on");
    let queue = operators.queues("/").expect("is there").remove(0);
    assert_eq!((queue.messages_ready, queue.messages_unacked), (0, 0));
    assert_eq!(operators.vhosts()[0].memory_bytes, 0);
}

#[test]
fn answers_have_room_behind_a_large_message() {
    let directory = tempfile::tempdir().expect("a directory");
    let setting = Setting::default();
    let rig = Rig::start_with(directory.path(), &setting);
    let mut consumer = rig.client();
    consumer.open_channel(1);
    consumer.declare("q", false);
    consumer.consume("q", false);
    let mut publisher = rig.client();
    publisher.open_channel(1);
    let body = vec![1; setting.limits.queue_bytes_max + 4_000_000];
    publisher.publish("q", &body, 1);
    let operators = rig.router.amqp().expect("is on");
    let is_delivered = || operators.vhosts()[0].messages_unacked == 1;
    while !is_delivered() {
        std::thread::yield_now();
    }
    consumer.send(1, &QueueDeclare::default());
    while operators.vhosts()[0].queues == 1 {
        std::thread::yield_now();
    }
    assert_eq!(consumer.expect_message("1 basic.deliver"), body);
    consumer.expect("1 queue.declare-ok");
}

#[test]
fn a_lost_client_leaves_nothing_behind() {
    const MESSAGES: u64 = 50;
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", false);
    client.confirms();
    for _ in 0..MESSAGES {
        client.publish("q", b"stays", 1);
    }
    let operators = rig.router.amqp().expect("is on");
    for round in 0..100_usize {
        let mut other = rig.client();
        other.open_channel(1);
        // Unacknowledged messages, an exclusive queue, and an end at any byte of a message.
        other.consume("q", false);
        other.send(
            1,
            &QueueDeclare {
                queue: "",
                exclusive: true,
                ..QueueDeclare::default()
            },
        );
        let unfinished = published(1, "q", &[1; 1000], 1);
        other.write(&unfinished[..round * unfinished.len() / 101]);
    }
    let is_over = || {
        let vhost = operators.vhosts().remove(0);
        let only_ours = (vhost.connections, vhost.queues, vhost.consumers) == (1, 1, 0);
        only_ours && operators.connections().len() == 1
    };
    while !is_over() {
        std::thread::yield_now();
    }
    let queue = operators.queues("/").expect("is there").remove(0);
    assert_eq!(
        (queue.messages_ready, queue.messages_unacked),
        (MESSAGES, 0)
    );
    assert_eq!(operators.purge_queue("/", "q"), Ok(MESSAGES));
    assert_eq!(operators.vhosts()[0].memory_bytes, 0);
}

#[test]
fn a_router_that_stops_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    let stopping = std::thread::spawn(move || rig.router.stop());
    client.expect(
        "0 connection.close 320 CONNECTION_FORCED - broker forced connection closure with reason \
         'shutdown'",
    );
    client.send(0, &ConnectionCloseOk {});
    client.expect_end();
    stopping.join().expect("has stopped");
}

#[test]
fn a_transport_that_stops_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    rig.router.stop_transport("amqp").expect("it runs");
    client.expect(
        "0 connection.close 320 CONNECTION_FORCED - broker forced connection closure with reason \
         'shutdown'",
    );
    client.send(0, &ConnectionCloseOk {});
    client.expect_end();
}

#[test]
fn a_large_message_for_many_is_sent_to_a_few_at_a_time() {
    const CONSUMERS: usize = 12;
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.limits.queue_bytes_total_max = 24 << 20;
    let rig = Rig::start_with(directory.path(), &setting);
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|place| {
            let mut client = rig.client();
            client.open_channel(1);
            let queue = format!("q{place}");
            client.declare(&queue, false);
            let bind = QueueBind::of(&queue).to("amq.fanout", "");
            client.send(1, &bind);
            client.expect("1 queue.bind-ok");
            client.consume(&queue, false);
            client
        })
        .collect();
    let mut publisher = rig.client();
    publisher.open_channel(1);
    publisher.confirms();
    let body = vec![7; 16 << 20];
    let publish = BasicPublish::to("amq.fanout", "");
    let mut bytes = Vec::new();
    frame::write(FrameKind::Method, 1, &mut bytes, |out| publish.write(out));
    frame::write_content(1, Properties::EMPTY.bytes(), &body, 131_072, &mut bytes);
    publisher.write(&bytes);
    publisher.expect("1 basic.ack");
    // One leaves no room for a second in the shared account.
    let vhost = rig.router.amqp().expect("is on").vhosts().remove(0);
    assert!(vhost.messages_unacked < 8, "{vhost:?}");
    assert!(vhost.messages_ready > 4, "{vhost:?}");
    let reading = consumers.into_iter().map(|mut consumer| {
        let body = body.clone();
        std::thread::spawn(move || {
            assert_eq!(consumer.expect_message("1 basic.deliver"), body);
        })
    });
    let reading: Vec<_> = reading.collect();
    for thread in reading {
        thread.join().expect("has its message");
    }
}

/// A durable queue with two messages, and another one.
fn two_queues_and_two_messages() -> Vec<u8> {
    let mut bytes = Vec::new();
    for method in [true, false].map(|durable| QueueDeclare {
        queue: if durable { "durable" } else { "transient" },
        durable,
        no_wait: true,
        ..QueueDeclare::default()
    }) {
        frame::write(FrameKind::Method, 1, &mut bytes, |out| method.write(out));
    }
    for _ in 0..2 {
        bytes.extend(published(1, "durable", b"kept", 2));
    }
    bytes
}

/// Declares and deletes durable exchanges until the client is blocked.
fn declare_until_blocked(other: &mut Client) {
    let declare = ExchangeDeclare {
        exchange: "kept",
        kind: "fanout",
        durable: true,
        ..ExchangeDeclare::default()
    };
    let delete = ExchangeDelete {
        exchange: "kept",
        ..ExchangeDelete::default()
    };
    let mut is_blocked = false;
    while !is_blocked {
        other.send(1, &declare);
        other.expect("1 exchange.declare-ok");
        other.send(1, &delete);
        // The delete is not read if the declaration was too much.
        is_blocked = match other.receive().expect("an answer").said().as_str() {
            "1 exchange.delete-ok" => false,
            "0 connection.blocked" => true,
            said => panic!("{said}"),
        };
    }
}

#[test]
fn durable_changes_wait_for_a_failing_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.amqp.store = "missing/store".to_owned();
    let missing = directory.path().join("missing");
    std::fs::create_dir(&missing).expect("a directory");
    let rig = Rig::start_with(directory.path(), &setting);
    std::fs::remove_dir_all(&missing).expect("nothing needs it");
    let mut consumer = rig.client();
    consumer.open_channel(1);
    let mut publisher = rig.client();
    publisher.open_channel(1);
    // One input, so that all of it is handled whatever the store does meanwhile.
    publisher.write(&two_queues_and_two_messages());
    let operators = rig.router.amqp().expect("is on");
    while operators.vhosts()[0].messages_ready < 2 {
        std::thread::yield_now();
    }
    consumer.consume("durable", false);
    for _ in 0..2 {
        consumer.expect_message("1 basic.deliver");
    }

    // A client that only declares is blocked, too.
    let mut other = rig.client();
    other.open_channel(1);
    declare_until_blocked(&mut other);
    // Removing durable messages does not block.
    for delivery_tag in 1..=2 {
        let ack = BasicAck::one(delivery_tag);
        consumer.send(1, &ack);
        let passive = QueueDeclare {
            queue: "transient",
            passive: true,
            ..QueueDeclare::default()
        };
        consumer.send(1, &passive);
        consumer.expect("1 queue.declare-ok");
    }
    std::fs::create_dir(&missing).expect("a directory");
    loop {
        match other.receive().expect("goes on").said().as_str() {
            "0 connection.unblocked" => break,
            "1 exchange.delete-ok" => {}
            said => panic!("{said}"),
        }
    }
}

/// Half of a message of 2 MiB, in whole frames.
fn half(channel: u16) -> Vec<u8> {
    let mut bytes = published(channel, "q", &[1; 2 << 20], 1);
    bytes.truncate(published(channel, "q", &[], 1).len() + 8 * 131_072);
    bytes
}

#[test]
fn incomplete_messages_block_no_other_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.amqp.limits.memory_bytes_max = 8 << 20;
    setting.amqp.limits.message_bytes_max = 3 << 20;
    let rig = Rig::start_with(directory.path(), &setting);
    let mut publisher = rig.client();
    publisher.open_channel(1);
    publisher.declare("q", false);
    publisher.confirms();

    // Beyond its share, only the message's channel is closed.
    let mut greedy = rig.client();
    for channel in 1..=4 {
        greedy.open_channel(channel);
    }
    for channel in 1..=4 {
        greedy.write(&half(channel));
    }
    greedy.expect(
        "3 channel.close 311 CONTENT_TOO_LARGE - the connection has 3145728 bytes of incomplete \
         messages and open transactions, which is as much as one may have",
    );
    // If all exceed the limit together, a connection with the most bytes is closed.
    let mut others: Vec<_> = (0..4).map(|_| rig.client()).collect();
    for other in &mut others {
        for channel in 1..=2 {
            other.open_channel(channel);
            // It may be closed by now.
            let _ = std::io::Write::write_all(&mut other.stream, &half(channel));
        }
    }
    let operators = rig.router.amqp().expect("is on");
    while operators.connections().len() > 5 {
        std::thread::yield_now();
    }
    for body in [&b"small"[..], &[1; 300_000]] {
        publisher.publish("q", body, 1);
        publisher.expect("1 basic.ack");
    }
}

#[test]
fn an_incomplete_message_times_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.amqp.limits.incomplete_timeout = Some(std::time::Duration::from_secs(1));
    let rig = Rig::start_with(directory.path(), &setting);
    let mut idle = rig.client();
    idle.open_channel(1);
    idle.write(&half(1));
    if let Some(received) = idle.receive() {
        let said = received.said();
        assert!(said.ends_with("'a message stays incomplete'"), "{said}");
    }
    let operators = rig.router.amqp().expect("is on");
    while !operators.connections().is_empty() {
        std::thread::yield_now();
    }
}
