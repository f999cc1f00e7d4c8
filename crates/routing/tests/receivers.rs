//! The look ahead shows whoever the message then reaches.

use std::borrow::Cow;

use crosstie_routing::{
    ClientFeatures, CloseReason, Identity, Outbox, Realm, RealmConfig, Refused, SessionKey, Time,
};
use crosstie_wamp::{
    CallOptions, MatchPolicy, Message, Payload, PublishOptions, RegisterOptions, RequestId,
    Serializer, SubscribeOptions, YieldOptions,
};

/// Notes who is sent a message with a payload.
#[derive(Default)]
struct Noted(Vec<char>);

impl Outbox<char> for Noted {
    fn send(&mut self, to: &char, message: &Message<'_>) -> Result<(), Refused> {
        if message.payload().is_some() {
            self.0.push(*to);
        }
        Ok(())
    }

    fn publish(&mut self, _: &Message<'_>, receivers: &mut dyn Iterator<Item = &char>) {
        self.0.extend(receivers);
    }

    fn close(&mut self, _: &char, _: CloseReason) {}
}

const PAYLOAD: Payload<'_> = Payload::new(Serializer::Json, b"[1]", b"");

fn join(realm: &mut Realm<char>, name: char) -> SessionKey {
    let identity = Identity::new("x", "anonymous", "anonymous", "static");
    realm
        .join(Time(0), name, identity, ClientFeatures::default())
        .expect("the realm is open")
        .0
}

#[track_caller]
fn check(realm: &mut Realm<char>, from: SessionKey, message: &Message<'_>, expected: &[char]) {
    let mut shown = Vec::new();
    realm.receivers(from, message, &mut |name| {
        shown.push(*name);
        true
    });
    let mut noted = Noted::default();
    realm
        .handle(Time(0), from, message, &mut noted)
        .expect("a fair message");
    shown.sort_unstable();
    noted.0.sort_unstable();
    assert_eq!(shown, expected, "shown");
    assert!(
        noted.0.iter().all(|name| shown.contains(name)),
        "{:?} of {shown:?}",
        noted.0
    );
}

#[test]
fn the_look_ahead_shows_the_receivers_of_a_payload() {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let [a, b, c] = ['A', 'B', 'C'].map(|name| join(&mut realm, name));
    let subscribe = |request, topic, match_policy| Message::Subscribe {
        request: RequestId(request),
        options: SubscribeOptions::matching(match_policy),
        topic: Cow::Borrowed(topic),
    };
    check(
        &mut realm,
        b,
        &subscribe(1, "com.topic", MatchPolicy::Exact),
        &[],
    );
    check(
        &mut realm,
        c,
        &subscribe(1, "com.", MatchPolicy::Prefix),
        &[],
    );
    let publish = |topic| Message::Publish {
        request: RequestId(1),
        options: PublishOptions::default(),
        topic: Cow::Borrowed(topic),
        payload: PAYLOAD,
    };
    check(&mut realm, a, &publish("com.topic"), &['B', 'C']);
    check(&mut realm, a, &publish("com.other"), &['C']);
    check(&mut realm, a, &publish("org.other"), &[]);

    let register = Message::Register {
        request: RequestId(2),
        options: RegisterOptions::default(),
        procedure: Cow::Borrowed("com.echo"),
    };
    check(&mut realm, b, &register, &[]);
    let call = |procedure| Message::Call {
        request: RequestId(2),
        options: CallOptions::default(),
        procedure: Cow::Borrowed(procedure),
        payload: PAYLOAD,
    };
    let unknown = Message::Call {
        request: RequestId(9),
        options: CallOptions::default(),
        procedure: Cow::Borrowed("com.nothing"),
        payload: Payload::EMPTY,
    };
    let mut shown = 0;
    realm.receivers(a, &unknown, &mut |_| {
        shown += 1;
        true
    });
    assert_eq!(shown, 0, "nobody serves it");
    check(&mut realm, a, &call("com.echo"), &['B']);
    let answer = Message::Yield {
        request: RequestId(1),
        options: YieldOptions::default(),
        payload: PAYLOAD,
    };
    check(&mut realm, b, &answer, &['A']);
}
