//! Records of a topic space, as a store hands them back.

use crosstie_mqtt::{Options, PacketId, Properties, QoS, ReasonCode};
use crosstie_topics::{
    Answer, Content, Message, MessageNumber, Outbox, Packet, Record, Refused, Reply, SessionNumber,
    Space, SpaceConfig, Time,
};

/// Records, each with an octet of its length before it: one that is read is the same when it was written and read again.
/// All of them together restore a space, of which nothing is left when its sessions have ended.
pub fn records(input: &[u8]) {
    let mut rest = input;
    let mut records = Vec::new();
    while let Some((length, behind)) = rest.split_first() {
        let length = usize::from(*length).min(behind.len());
        let (octets, behind) = behind.split_at(length);
        if let Ok(record) = Record::decode(octets) {
            let mut again = Vec::new();
            record.encode(&mut again);
            assert_eq!(Record::decode(&again).as_ref(), Ok(&record));
            records.push(record);
        }
        rest = behind;
    }
    let config = SpaceConfig {
        is_stored: true,
        ..SpaceConfig::default()
    };
    let mut space = Space::new(config, 1);
    space.restore(Time(1), records, &mut Sink);
    for session in space.sessions(0, usize::MAX).items {
        let reason = ReasonCode::AdministrativeAction;
        space.end_session(Time(1), &session.client_id, reason, &mut Sink);
    }
    for retained in space.retained(None, usize::MAX).items {
        let content = Content {
            topic: &retained.topic,
            retain: true,
            payload: &[],
            ..content()
        };
        space.publish_from_outside(Time(1), &content, &mut Sink);
    }
    let position = space.journal().position;
    space.handle_committed(Time(1), position, &mut Sink);
    while space.has_backlog() {
        space.work(Time(1), 100, &mut Sink);
    }
    assert!(space.is_empty(), "{:?}", space.counts());
}

/// Records of a session with a subscription and a message, one of each kind that is not a removal.
pub fn record_seeds() -> Vec<Vec<u8>> {
    let session = SessionNumber(1);
    let message = || Message::new(&content(), MessageNumber(0), Time(0)).into();
    let records = [
        Record::Session {
            session,
            client_id: "client".into(),
            expiry_s: 60,
            ends_at: Some(Time(9)),
            known_before: 0,
            known_max: 1,
        },
        Record::Subscribed {
            session,
            filter: "$share/g/a/+".into(),
            options: Options::default(),
            identifier: 3,
            is_scanned: true,
        },
        Record::Message {
            message: MessageNumber(2),
            content: message(),
        },
        Record::Queued {
            session,
            place: 4,
            message: MessageNumber(2),
            qos: QoS::ExactlyOnce,
            is_retained: false,
            is_shared: true,
            is_forwarded: false,
            identifiers: vec![3],
        },
        Record::Received {
            session,
            packet_id: PacketId::FIRST,
        },
        Record::Will {
            session,
            content: message(),
            expiry_s: Some(1),
            delay_s: 2,
        },
        Record::Retained { content: message() },
    ];
    let mut all = Vec::new();
    for record in records {
        let mut octets = Vec::new();
        record.encode(&mut octets);
        all.push(octets.len() as u8);
        all.extend(octets);
    }
    vec![all]
}

fn content() -> Content<'static> {
    Content {
        topic: "a/b",
        qos: QoS::AtLeastOnce,
        retain: true,
        expiry_s: Some(60),
        properties: Properties::EMPTY,
        payload: b"payload",
    }
}

struct Sink;

impl Outbox<()> for Sink {
    type Shared = ();

    fn publish(
        &mut self,
        _to: &(),
        _packet: Packet<'_>,
        _shared: &mut Option<()>,
    ) -> Result<(), Refused> {
        Ok(())
    }

    fn acknowledge(&mut self, _to: &(), _answer: Answer) {}

    fn reply(&mut self, _to: &(), _reply: &Reply) {}

    fn close(&mut self, _connection: &(), _reason: ReasonCode) {}
}
