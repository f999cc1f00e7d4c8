//! The cost of publications, as far as the outbox and the number of steps show it.

use crosstie_mqtt::{Options, PacketId, Properties, QoS, ReasonCode, Version};
use crosstie_topics::{
    Answer, Connect, ConnectionKey, Content, Outbox, Packet, Refused, Reply, Space, SpaceConfig,
    SpaceLimits, Time, Wanted,
};

#[derive(Default)]
struct Recorder {
    sent: usize,
    /// Where the shared octets were, and how many receivers have filled an empty place for them.
    places: Vec<*const u8>,
    filled: usize,
    heads: usize,
}

impl Outbox<u32> for Recorder {
    type Shared = usize;

    fn publish(
        &mut self,
        _to: &u32,
        packet: Packet<'_>,
        shared: &mut Option<usize>,
    ) -> Result<(), Refused> {
        self.sent += 1;
        self.heads += usize::from(!packet.head.is_empty());
        self.places.push(packet.rest.as_ptr());
        self.places.dedup();
        self.filled += usize::from(shared.is_none());
        shared.get_or_insert(packet.rest.len());
        Ok(())
    }

    fn acknowledge(&mut self, _to: &u32, _answer: Answer) {}

    fn reply(&mut self, _to: &u32, _reply: &Reply) {}

    fn close(&mut self, _connection: &u32, _reason: ReasonCode) {}
}

fn space() -> Space<u32> {
    Space::new(SpaceConfig::default(), 1)
}

fn connect(space: &mut Space<u32>, number: u32, out: &mut Recorder) -> ConnectionKey {
    let connect = Connect {
        client_id: &format!("client{number}"),
        ..PLAIN
    };
    let connected = space.connect(Time(0), number, &connect, out);
    let connected = connected.expect("there is room");
    space.open(Time(0), &connected, out);
    connected.key
}

const PLAIN: Connect<'static> = Connect {
    version: Version::V5,
    client_id: "",
    is_clean: true,
    session_expiry_s: 0,
    receive_max: u16::MAX,
    packet_bytes_max: u32::MAX,
    topic_alias_max: 0,
    will: None,
};

fn subscribe(
    space: &mut Space<u32>,
    key: ConnectionKey,
    (filter, qos): (&str, QoS),
    out: &mut Recorder,
) {
    let options = Options {
        qos,
        ..Options::default()
    };
    let wanted = Wanted {
        filter,
        options,
        refusal: None,
    };
    let subscribed = space.subscribe(Time(0), key, 0, &[wanted], &mut Vec::new(), out);
    subscribed.expect("is valid");
}

fn content(topic: &str, qos: QoS) -> Content<'_> {
    Content {
        topic,
        qos,
        retain: false,
        expiry_s: None,
        properties: Properties::EMPTY,
        payload: b"payload",
    }
}

#[test]
fn the_receivers_of_one_message_share_its_octets() {
    for (qos, heads) in [(QoS::AtMostOnce, 0), (QoS::AtLeastOnce, 500)] {
        let (mut space, mut out) = (space(), Recorder::default());
        for number in 0..500 {
            let key = connect(&mut space, number, &mut out);
            subscribe(&mut space, key, ("a/b", qos), &mut out);
        }
        space.publish_from_outside(Time(0), &content("a/b", qos), &mut out);
        assert_eq!((out.sent, out.heads), (500, heads));
        assert_eq!((out.places.len(), out.filled), (1, 1));
        assert!(!space.has_backlog());
    }
}

/// The turns that a publication takes.
fn turns(space: &mut Space<u32>, topic: &str, out: &mut Recorder) -> usize {
    space.publish_from_outside(Time(0), &content(topic, QoS::AtMostOnce), out);
    let mut turns = 1;
    while space.has_backlog() {
        space.work(Time(0), SpaceLimits::default().steps_max, out);
        turns += 1;
    }
    turns
}

#[test]
fn filters_that_match_in_many_ways_take_turns() {
    let (mut space, mut out) = (space(), Recorder::default());
    // All of the 2^13 filters with thirteen levels `a` or `+`, and as many that only begin so.
    let key = connect(&mut space, 0, &mut out);
    for bits in 0..1_u32 << 13 {
        let level = |at: u32| if bits >> at & 1 == 0 { "a" } else { "+" };
        let filter: Vec<_> = (0..13).map(level).collect();
        subscribe(
            &mut space,
            key,
            (&filter.join("/"), QoS::AtMostOnce),
            &mut out,
        );
    }
    // 16,383 nodes are visited, 2,000 in a turn.
    let topic = vec!["a"; 13].join("/");
    assert_eq!(turns(&mut space, &topic, &mut out), 9);
    assert_eq!(out.sent, 1);
    // A topic with other levels visits those that match.
    let topic = vec!["b"; 13].join("/");
    assert_eq!(turns(&mut space, &topic, &mut out), 1);
    // A topic that is longer visits them all, and none matches.
    let topic = vec!["a"; 20].join("/");
    assert_eq!(turns(&mut space, &topic, &mut out), 9);
    assert_eq!(out.sent, 2);
}

#[test]
fn deep_filters_are_visited_once() {
    let (mut space, mut out) = (space(), Recorder::default());
    let key = connect(&mut space, 0, &mut out);
    for levels in 0..127 {
        for wildcard in ["+", "#"] {
            let filter = format!("{}{wildcard}", "+/".repeat(levels));
            subscribe(&mut space, key, (&filter, QoS::AtMostOnce), &mut out);
        }
    }
    let topic = "/".repeat(127);
    assert_eq!(turns(&mut space, &topic, &mut out), 1);
    assert_eq!(out.sent, 1);
}

#[test]
fn many_receivers_take_turns() {
    let (mut space, mut out) = (space(), Recorder::default());
    for number in 0..20_000 {
        let key = connect(&mut space, number, &mut out);
        subscribe(&mut space, key, ("#", QoS::AtMostOnce), &mut out);
    }
    assert_eq!(turns(&mut space, "a", &mut out), 11);
    assert_eq!(out.sent, 20_000);
}

#[test]
fn identifiers_of_all_numbers_are_acknowledged() {
    let (mut space, mut out) = (space(), Recorder::default());
    let key = connect(&mut space, 0, &mut out);
    subscribe(&mut space, key, ("a", QoS::AtLeastOnce), &mut out);
    for number in 0..70_000_u32 {
        space.publish_from_outside(Time(0), &content("a", QoS::AtLeastOnce), &mut out);
        let id = PacketId::new((number % 65_535) as u16 + 1).expect("is not 0");
        space.handle_puback(Time(0), key, id, &mut out);
        assert_eq!(space.counts().queued, 0, "{number}");
    }
}

#[test]
fn a_session_with_many_parts_ends_in_turns() {
    let (mut space, mut out) = (space(), Recorder::default());
    let key = connect(&mut space, 0, &mut out);
    for number in 0..5_000 {
        let filter = format!("{}{number}", "a/".repeat(100));
        subscribe(&mut space, key, (&filter, QoS::AtLeastOnce), &mut out);
    }
    let other = connect(&mut space, 1, &mut out);
    for filter in ["b", "$share/g/c"] {
        subscribe(&mut space, key, (filter, QoS::AtLeastOnce), &mut out);
    }
    for _ in 0..500 {
        space.publish_from_outside(Time(0), &content("c", QoS::AtLeastOnce), &mut out);
    }
    subscribe(
        &mut space,
        other,
        ("$share/g/c", QoS::AtLeastOnce),
        &mut out,
    );
    space.lose(Time(0), key, &mut out);
    assert!(space.session("client0").is_none());
    assert_eq!(space.counts().sessions, 1);
    let left = space.counts().subscriptions;
    assert!((4_900..5_003).contains(&left), "{left}");
    // The identifier is free at once, and the former session is sent nothing more.
    connect(&mut space, 0, &mut out);
    let sent = out.sent;
    space.publish_from_outside(Time(0), &content("b", QoS::AtLeastOnce), &mut out);
    assert_eq!(out.sent, sent);
    let mut turns = 0;
    while space.has_backlog() {
        space.work(Time(0), SpaceLimits::default().steps_max, &mut out);
        turns += 1;
    }
    assert!(turns > 5, "{turns}");
    // What the group had dealt to it went to the other member.
    let of_other = space.session("client1").expect("is there");
    assert_eq!(of_other.in_flight + of_other.queued, 500);
    assert_eq!(
        (space.counts().subscriptions, space.counts().queued),
        (1, 500)
    );
}

#[test]
fn sessions_that_expire_together_end_in_turns() {
    let (mut space, mut out) = (space(), Recorder::default());
    for number in 0..1_000 {
        let connect = Connect {
            client_id: &format!("client{number}"),
            session_expiry_s: 1,
            ..PLAIN
        };
        let connected = space.connect(Time(0), number, &connect, &mut out);
        let key = connected.expect("there is room").key;
        for filter in 0..20 {
            let filter = format!("{number}/{filter}");
            subscribe(&mut space, key, (&filter, QoS::AtLeastOnce), &mut out);
        }
        space.lose(Time(0), key, &mut out);
    }
    space.handle_timeout(Time(5_000), &mut out);
    let left = space.counts().sessions;
    assert!((900..1_000).contains(&left), "{left}");
    while space.next_timeout().is_some() || space.has_backlog() {
        space.handle_timeout(Time(5_000), &mut out);
        space.work(Time(5_000), 100, &mut out);
    }
    assert!(space.is_empty());
}

#[test]
fn a_publication_beyond_the_bound_pays_a_part() {
    let limits = SpaceLimits {
        steps_max: 10,
        postponed_max: 100,
        ..SpaceLimits::default()
    };
    let config = SpaceConfig {
        limits,
        ..SpaceConfig::default()
    };
    let (mut space, mut out) = (Space::new(config, 1), Recorder::default());
    for number in 0..1_000 {
        let key = connect(&mut space, number, &mut out);
        subscribe(&mut space, key, ("#", QoS::AtMostOnce), &mut out);
    }
    let content = content("a", QoS::AtMostOnce);
    let mut before = 0;
    for _ in 0..3 {
        space.publish_from_outside(Time(0), &content, &mut out);
        assert!(out.sent <= before + 5 * 10, "{}", out.sent);
        before = out.sent;
    }
    // Those from outside are dropped while too many wait.
    assert_eq!(
        (space.counts().postponed, space.counts().dropped_postponed),
        (1, 2)
    );
    while space.has_backlog() {
        space.work(Time(0), 100, &mut out);
    }
    assert_eq!(out.sent, 1_000);
}

#[test]
fn what_waits_and_what_is_retained_is_on_the_account() {
    let (mut space, mut out) = (space(), Recorder::default());
    for number in 0..10_000 {
        let key = connect(&mut space, number, &mut out);
        subscribe(&mut space, key, ("#", QoS::AtMostOnce), &mut out);
    }
    assert_eq!(space.kept_bytes(), 0);
    space.publish_from_outside(Time(0), &content("a", QoS::AtMostOnce), &mut out);
    assert!(space.kept_bytes() > 160_000, "{}", space.kept_bytes());
    while space.has_backlog() {
        space.work(Time(0), 1_000, &mut out);
    }
    assert_eq!(space.kept_bytes(), 0);
    let topic = "t".repeat(1_000);
    let retained = Content {
        retain: true,
        ..content(&topic, QoS::AtMostOnce)
    };
    let mut out = Recorder::default();
    let mut space = self::space();
    space.publish_from_outside(Time(0), &retained, &mut out);
    assert!(space.kept_bytes() > 2_000, "{}", space.kept_bytes());
}

#[test]
fn sessions_with_many_matching_filters_are_sent_one_copy_each() {
    let (mut space, mut out) = (space(), Recorder::default());
    // 40 sessions with 1,024 filters each, in runs of 16,000.
    for number in 0..40 {
        let key = connect(&mut space, number, &mut out);
        for bits in 0..1_u32 << 10 {
            let level = |at: u32| if bits >> at & 1 == 0 { "a" } else { "+" };
            let filter: Vec<_> = (0..10).map(level).collect();
            let filter = filter.join("/");
            subscribe(&mut space, key, (&filter, QoS::AtMostOnce), &mut out);
        }
    }
    let topic = ["a"; 10].join("/");
    // 2,560 steps each to collect, to sort and to serve, and 2,047 nodes.
    let turns = turns(&mut space, &topic, &mut out);
    assert!((4..8).contains(&turns), "{turns}");
    assert_eq!(out.sent, 40);
}
