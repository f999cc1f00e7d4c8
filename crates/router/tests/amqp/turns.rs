//! Inputs that exceed a turn: nothing is lost, and the order is kept.

use std::io::Write as _;

use crosstie_amqp::frame;
use crosstie_amqp::method::{BasicGet, ConnectionClose};

use crate::rig::{Rig, framed, published};

/// A turn handles some thousands of these frames, on machines of any speed.
const HEARTBEATS: usize = 10;

#[test]
fn frames_of_several_channels_stay_in_their_order() {
    const CHANNELS: u16 = 3;
    const MESSAGES: u32 = 3000;
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    for channel in 1..=CHANNELS {
        client.open_channel(channel);
    }
    client.declare("q", false);
    client.consume("q", true);
    let mut bytes = Vec::new();
    for number in 0..MESSAGES {
        let channel = (number % u32::from(CHANNELS)) as u16 + 1;
        let body = number.to_be_bytes();
        bytes.extend(published(channel, "q", &body, 1));
        bytes.extend(frame::HEARTBEAT.repeat(HEARTBEATS));
    }
    client.write(&bytes);
    for number in 0..MESSAGES {
        let body = client.expect_message("1 basic.deliver");
        assert_eq!(body, number.to_be_bytes());
    }
}

#[test]
fn a_close_behind_many_turns_of_input_is_answered_last() {
    const GETS: usize = 20_000;
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", false);
    let mut writer = client.stream.try_clone().expect("a socket");
    let writing = std::thread::spawn(move || {
        let get = BasicGet {
            queue: "q",
            ..BasicGet::default()
        };
        let mut bytes = framed(1, &get).repeat(GETS);
        bytes.extend(framed(0, &ConnectionClose::default()));
        writer.write_all(&bytes).expect("is read");
    });
    for _ in 0..GETS {
        client.expect("1 basic.get-empty");
    }
    client.expect("0 connection.close-ok");
    writing.join().expect("was written");
}

#[test]
fn unacknowledged_messages_return_in_order() {
    const MESSAGES: u32 = 10_000;
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut holder = rig.client();
    holder.open_channel(1);
    holder.declare("q", false);
    holder.consume("q", false);
    let mut publisher = rig.client();
    publisher.open_channel(1);
    let bodies = (0..MESSAGES).map(u32::to_be_bytes);
    let bytes = bodies.flat_map(|body| published(1, "q", &body, 1));
    publisher.write(&bytes.collect::<Vec<_>>());
    for number in 0..MESSAGES {
        let body = holder.expect_message("1 basic.deliver");
        assert_eq!(body, number.to_be_bytes());
    }
    drop(holder);
    // More than a turn's work, interleaved with other connections.
    publisher.consume("q", true);
    for number in 0..MESSAGES {
        let body = publisher.expect_message("1 basic.deliver");
        assert_eq!(body, number.to_be_bytes());
    }
}
