//! What nodes are told by NATS, and what they tell each other.

use crosstie_fabric::crossing::{self, Came};
use crosstie_fabric::{
    Detached, Engine, Frame, Input, Member, Options, Refused, Subjects, Versions, event, pack,
};
use crosstie_jetstream::answer::{self, Got, StreamInfo};
use crosstie_jetstream::{Greeting, Message};
use crosstie_nats::{Decoded, Limits, Operation, decode, headers, nkey};
use crosstie_routing::Time;

/// Nobody.
struct Nowhere;

impl Engine for Nowhere {
    fn subscribe(&mut self, _: u64, _: &str) {}

    fn unsubscribe(&mut self, _: u64) {}

    fn publish(&mut self, _: &str, _: &[u8]) -> Result<(), Refused> {
        Ok(())
    }

    fn pack(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        self.publish(subject, frame)
    }

    fn ping(&mut self) {}
}

/// A server's operations: what is found is within the input, and is found again when it comes in two parts.
pub fn nats(input: &[u8]) {
    let limits = Limits {
        line_bytes_max: 256,
        message_bytes_max: 1_024,
    };
    let mut rest = input;
    while let Ok(Decoded::Operation {
        operation,
        consumed,
    }) = decode(rest, &limits)
    {
        assert!(0 < consumed && consumed <= rest.len());
        if let Operation::Message(message) = operation {
            let bytes = message.headers.len() + message.payload.len();
            assert!(bytes <= limits.message_bytes_max);
            assert!(crosstie_nats::is_subject(message.subject));
            assert!(headers::status(message.headers).is_none_or(|status| status < 1_000));
            let _ = headers::value(message.headers, "A");
        }
        if let Ok(Decoded::More { wanted }) = decode(&rest[..consumed - 1], &limits) {
            assert!(wanted == 0 || wanted == consumed);
        }
        rest = &rest[consumed..];
    }
    if let Ok(text) = std::str::from_utf8(input) {
        let _ = nkey::read_user_seed(text);
    }
}

/// What a server answers about streams, and says of itself.
pub fn answer(input: &[u8]) {
    let _ = Greeting::decode(input);
    if let Ok(Ok(json)) = answer::decode(input) {
        let _ = StreamInfo::read(&json);
    }
    let (headers, payload) = input.split_at(input.len() / 2);
    let message = Message {
        headers: headers.to_vec(),
        payload: payload.to_vec(),
        ..Message::default()
    };
    if let Ok(Got::Entry { payload: got, .. }) = Got::read(message) {
        assert!(got == payload);
    }
}

pub fn answer_seeds() -> Vec<Vec<u8>> {
    [
        &b"INFO {\"server_id\":\"a\",\"version\":\"2.15.3\",\"max_payload\":1,\"jetstream\":true}\r\n"[..],
        br#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 1"}}"#,
        br#"{"config":{"subjects":["a"],"num_replicas":3},"state":{"first_seq":1,"last_seq":2,"messages":2},"cluster":{"leader":"n","replicas":[{"current":true}]}}"#,
        b"NATS/1.0\r\nNats-Sequence: 5\r\n\r\nthe payload of an entry of it.",
        b"NATS/1.0 204 EOB\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .into()
}

/// A frame of another node, on a subject: the first octet says how long that is.
pub fn frame(input: &[u8]) {
    let Some((length, rest)) = input.split_first() else {
        return;
    };
    let (subject, message) = rest.split_at(rest.len().min(usize::from(*length)));
    let Ok(subject) = std::str::from_utf8(subject) else {
        return;
    };
    let subjects = Subjects::new("realm1");
    let (mut topic, mut again) = (String::new(), String::new());
    if subjects.read_topic(subject, &mut topic) && subjects.write_topic(&topic, &mut again) {
        assert!(crosstie_nats::is_subject(&again), "{again}");
        let mut same = String::new();
        assert!(subjects.read_topic(&again, &mut same) && same == topic);
    }
    let mut member = Member::new(Options {
        realm: "realm1".to_owned(),
        node: "here".to_owned(),
        incarnation: 1,
        detached: Detached::Serve,
        local_prefixes: Vec::new(),
        versions: Versions::OWN,
    });
    member.attach(Time(1), ("server", 1_024), &mut Nowhere);
    for bytes in pack::frames(message) {
        one(&mut member, subject, bytes);
    }
}

/// One frame of a message.
fn one(member: &mut Member, subject: &str, bytes: &[u8]) {
    if let Ok(frame) = Frame::decode(bytes)
        && let Ok(came) = crossing::read(&frame)
    {
        said_again(&frame, &came);
    }
    let taken = member.handle_message(Time(2), (subject, bytes), &mut Nowhere);
    if let Ok(Some(Input::Event(_, came))) = taken {
        // What was taken can be said again, and is the same.
        let publication = came.publication().expect("it is an event");
        let head = Frame::decode(bytes).expect("it was one").head;
        let mut out = Vec::new();
        event::write(&head, &publication, &mut out);
        let frame = Frame::decode(&out).expect("it is one");
        let read = event::read(&frame).expect("it is an event");
        let read = read.publication().expect("it is an event");
        assert_eq!(read.topic, publication.topic);
        assert_eq!(read.publisher, publication.publisher);
        assert_eq!(read.payload, publication.payload);
    }
}

/// What a realm says to another one's, said again, is the same.
fn said_again(frame: &Frame<'_>, came: &Came<'_>) {
    let crossing = came.crossing().expect("it was read whole");
    let mut once = Vec::new();
    crossing::write(&frame.head, 7, &crossing, &mut once);
    let again = Frame::decode(&once).expect("it is a frame");
    let came = crossing::read(&again).expect("it was one before");
    let crossing = came.crossing().expect("it was read whole");
    let mut twice = Vec::new();
    crossing::write(&again.head, 7, &crossing, &mut twice);
    assert_eq!(once, twice);
}

/// Keeps the frames that a member sends, each behind its subject.
struct Kept(Vec<Vec<u8>>);

impl Engine for Kept {
    fn subscribe(&mut self, _: u64, _: &str) {}

    fn unsubscribe(&mut self, _: u64) {}

    fn publish(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        let length = [subject.len() as u8];
        self.0.push([&length, subject.as_bytes(), frame].concat());
        Ok(())
    }

    fn pack(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        self.publish(subject, frame)
    }

    fn ping(&mut self) {}
}

/// Examples of frames on their subjects.
pub fn frame_seeds() -> Vec<Vec<u8>> {
    use crosstie_routing::{Pattern, Publication};
    use crosstie_wamp::{
        Disclosed, MatchPolicy, Payload, PublicationId, PublishOptions, Serializer, SessionId,
    };

    let mut kept = Kept(Vec::new());
    let mut member = Member::new(Options {
        realm: "realm1".to_owned(),
        node: "there".to_owned(),
        incarnation: 2,
        detached: Detached::Serve,
        local_prefixes: Vec::new(),
        versions: Versions::OWN,
    });
    member.attach(Time(1), ("server", 1 << 20), &mut kept);
    let pattern = Pattern {
        match_policy: MatchPolicy::Prefix,
        topic: "com.",
    };
    member.interest(Time(1), pattern, true, Some(&mut kept));
    for (serializer, args) in [
        (Serializer::Json, &b"[1,\"a\"]"[..]),
        (Serializer::MsgPack, b"\x92\x01\xa1a"),
        (Serializer::Cbor, b"\x82\x01aa"),
    ] {
        let options = PublishOptions::default();
        let publication = Publication {
            id: PublicationId(3),
            publisher: Some(Disclosed {
                session: SessionId(4),
                authid: "joe".into(),
                authrole: "user".into(),
            }),
            options: &options,
            topic: "com.example..a b",
            payload: Payload::new(serializer, args, b""),
            retained: None,
        };
        let _ = member.publish(&publication, Some(&mut kept));
    }
    member.handle_pong(Time(2), &mut kept);
    member.handle_tick(Time(2), Some(&mut kept));
    member.handle_tick(Time(1_000_000), Some(&mut kept));
    member.leave(&mut kept);
    kept.0
}
