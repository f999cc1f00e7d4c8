//! Any records restore a space that works, and of which nothing is left at its end.

use std::sync::Arc;

use crosstie_collections::SplitMix;
use crosstie_mqtt::{Options, PacketId, Properties, QoS, ReasonCode, RetainHandling, Version};
use crosstie_topics::{
    Answer, Connect, Content, Message, MessageNumber, Outbox, Packet, Position, Record, Refused,
    Reply, SessionNumber, Space, SpaceConfig, Time,
};

#[derive(Default)]
struct Sink {
    held: isize,
}

impl Outbox<u32> for Sink {
    type Shared = ();

    fn publish(&mut self, _: &u32, _: Packet<'_>, _: &mut Option<()>) -> Result<(), Refused> {
        Ok(())
    }

    fn acknowledge(&mut self, _to: &u32, _answer: Answer) {}

    fn reply(&mut self, _to: &u32, _reply: &Reply) {}

    fn close(&mut self, _connection: &u32, _reason: ReasonCode) {}

    fn hold(&mut self, _to: &u32, delta: isize) {
        self.held += delta;
    }
}

fn pick<T: Clone>(random: &mut SplitMix, of: &[T]) -> T {
    of[random.number() as usize % of.len()].clone()
}

fn message(random: &mut SplitMix) -> Arc<Message> {
    let content = Content {
        topic: pick(random, &["a", "a/b", "$x"]),
        qos: pick(
            random,
            &[QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce],
        ),
        retain: true,
        expiry_s: pick(random, &[None, None, Some(1), Some(100)]),
        properties: Properties::EMPTY,
        payload: b"payload",
    };
    Arc::new(Message::new(&content, MessageNumber(0), Time(0)))
}

fn record(random: &mut SplitMix) -> Record {
    let session = SessionNumber(random.number() % 4);
    let message_number = MessageNumber(random.number() % 4);
    let place = random.number() % 5;
    let packet_id = PacketId::new(1 + (random.number() % 3) as u16).expect("is not 0");
    let filter = pick(random, &["a", "+", "#", "$share/g/a", "$share/", "a/+/#"]);
    let qos = pick(
        random,
        &[QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce],
    );
    let options = Options {
        qos,
        no_local: random.number().is_multiple_of(4),
        retain_as_published: false,
        retain_handling: RetainHandling::Always,
    };
    match random.number() % 20 {
        0..4 => Record::Session {
            session,
            client_id: pick(random, &["a", "b", "c", ""]).into(),
            expiry_s: pick(random, &[0, 1, 60, u32::MAX]),
            ends_at: pick(random, &[None, Some(Time(0)), Some(Time(1 << 30))]),
            known_before: random.number() % 6,
            known_max: random.number() as u32 % 4,
        },
        4 => Record::SessionEnded { session },
        5..8 => Record::Subscribed {
            session,
            filter: filter.into(),
            options,
            identifier: place as u32,
            is_scanned: random.number().is_multiple_of(2),
        },
        8 => Record::Unsubscribed {
            session,
            filter: filter.into(),
        },
        9..11 => Record::Message {
            message: message_number,
            content: message(random),
        },
        11 => Record::MessageGone {
            message: message_number,
        },
        12..15 => Record::Queued {
            session,
            place,
            message: message_number,
            qos,
            is_retained: random.number().is_multiple_of(2),
            is_shared: random.number().is_multiple_of(2),
            is_forwarded: random.number().is_multiple_of(2),
            identifiers: vec![3; (place % 3) as usize],
        },
        15 => Record::Departed { session, place },
        16 => Record::Received { session, packet_id },
        17 => Record::Released { session, packet_id },
        18 => Record::Will {
            session,
            content: message(random),
            expiry_s: None,
            delay_s: place as u32,
        },
        _ => Record::Retained {
            content: message(random),
        },
    }
}

#[test]
fn any_records_restore_a_space() {
    let config = SpaceConfig {
        is_stored: true,
        ..SpaceConfig::default()
    };
    let mut restored = 0;
    for seed in 0..2_000 {
        let mut random = SplitMix(seed);
        let records: Vec<_> = (0..60).map(|_| record(&mut random)).collect();
        let (mut space, mut out) = (Space::new(config.clone(), seed), Sink::default());
        space.restore(Time(500), records, &mut out);
        restored += space.counts().queued;
        for (number, client_id) in ["a", "b"].into_iter().enumerate() {
            let connect = Connect {
                version: Version::V311,
                client_id,
                is_clean: false,
                session_expiry_s: 0,
                receive_max: u16::MAX,
                packet_bytes_max: u32::MAX,
                topic_alias_max: 0,
                will: None,
            };
            let connected = space.connect(Time(600), number as u32, &connect, &mut out);
            let connected = connected.expect("there is room");
            space.open(Time(600), &connected, &mut out);
        }
        while space.next_timeout().is_some_and(|at| at <= Time(20_000)) {
            space.handle_timeout(Time(20_000), &mut out);
        }
        for session in space.sessions(0, usize::MAX).items {
            let reason = ReasonCode::AdministrativeAction;
            space.end_session(Time(20_000), &session.client_id, reason, &mut out);
        }
        for topic in space.retained(None, usize::MAX).items {
            let content = Content {
                topic: &topic.topic,
                qos: QoS::AtMostOnce,
                retain: true,
                expiry_s: None,
                properties: Properties::EMPTY,
                payload: &[],
            };
            space.publish_from_outside(Time(20_000), &content, &mut out);
        }
        let position = space.journal().position;
        space.handle_committed(Time(20_000), Position(position.0), &mut out);
        while space.has_backlog() {
            space.work(Time(20_000), 10, &mut out);
        }
        assert!(space.is_empty(), "seed {seed}: {:?}", space.counts());
        assert_eq!(out.held, 0);
    }
    assert!(restored > 1_000, "{restored}");
}
