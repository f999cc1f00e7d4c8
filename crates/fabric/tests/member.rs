//! A node alone, and two nodes: their messages, and the time from which they know of each other.

use crosstie_fabric::{
    Change, Denied, Detached, Engine, Input, Matters, Member, Options, Refused, State, Ticked,
    Versions,
};
use crosstie_routing::{Pattern, Position, Publication, Time, Uncrossed};
use crosstie_wamp::{
    Disclosed, MatchPolicy, Message, Payload, PublicationId, PublishOptions, Receivers, Serializer,
    SessionId,
};

/// A member's messages, in order.
#[derive(Default)]
struct Said {
    lines: Vec<String>,
    messages: Vec<(String, Vec<u8>)>,
    is_full: bool,
}

impl Engine for Said {
    fn subscribe(&mut self, sid: u64, pattern: &str) {
        self.lines.push(format!("SUB {pattern} {sid}"));
    }

    fn unsubscribe(&mut self, sid: u64) {
        self.lines.push(format!("UNSUB {sid}"));
    }

    fn publish(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        if self.is_full {
            return Err(Refused);
        }
        self.lines.push(format!("PUB {subject} {}", frame[1]));
        self.messages.push((subject.to_owned(), frame.to_vec()));
        Ok(())
    }

    fn pack(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        self.publish(subject, frame)
    }

    fn ping(&mut self) {
        self.lines.push("PING".to_owned());
    }
}

fn ms(milliseconds: u64) -> Time {
    Time(0).after_ms(1_000 + milliseconds)
}

fn member(incarnation: u64, detached: Detached) -> Member {
    speaking(Versions::OWN, incarnation, detached)
}

fn speaking(versions: Versions, incarnation: u64, detached: Detached) -> Member {
    Member::new(Options {
        realm: "r".to_owned(),
        node: format!("node{incarnation}"),
        incarnation,
        detached,
        local_prefixes: vec!["here.".to_owned()],
        versions,
    })
}

const TOPIC: Pattern<'static> = Pattern {
    match_policy: MatchPolicy::Exact,
    topic: "a.b",
};

fn publication<'m>(options: &'m PublishOptions, topic: &'m str) -> Publication<'m> {
    Publication {
        id: PublicationId(7),
        publisher: Some(Disclosed {
            session: SessionId(5),
            authid: "joe".into(),
            authrole: "user".into(),
        }),
        options,
        topic,
        payload: Payload::new(Serializer::Json, b"[1]", b"{\"a\":2}"),
        retained: None,
    }
}

/// Attached at a server, without other nodes.
fn attached(incarnation: u64, server: &str) -> (Member, Said) {
    attached_speaking((1, 1), incarnation, server)
}

fn attached_speaking((first, last): (u8, u8), incarnation: u64, server: &str) -> (Member, Said) {
    let versions = Versions { first, last };
    let mut member = speaking(versions, incarnation, Detached::Serve);
    let mut said = Said::default();
    member.attach(ms(0), (server, 1_000), &mut said);
    member.handle_pong(ms(1), &mut said);
    assert_eq!(member.handle_tick(ms(300), Some(&mut said)), Ticked::Live);
    assert_eq!(member.state(), State::Attached);
    (member, said)
}

/// Delivers the messages of one node to another.
fn hand_over(said: &mut Said, to: &mut Member, answers: &mut Said) {
    for (subject, frame) in said.messages.drain(..) {
        let taken = to.handle_message(ms(400), (&subject, &frame), answers);
        assert!(matches!(taken, Ok(None)), "{taken:?}");
    }
}

#[test]
fn a_single_node_waits_for_its_server_only() {
    let (mut member, mut said) = attached(1, "s1");
    assert_eq!(
        said.lines,
        [
            "SUB W1.r.c 1",
            "SUB W1.r.n.0000000000000001 2",
            "PUB W1.r.c 2",
            "PING"
        ]
    );
    said.lines.clear();
    let position = member.interest(ms(300), TOPIC, true, Some(&mut said));
    assert!(position > member.in_force());
    assert_eq!(said.lines, ["SUB W1.r.e.a.b 3", "PING"]);
    member.handle_pong(ms(301), &mut said);
    assert_eq!(member.in_force(), position);
    // It is subscribed already, and lingers.
    assert_eq!(
        member.interest(ms(302), TOPIC, true, Some(&mut said)),
        position
    );
    member.interest(ms(303), TOPIC, false, Some(&mut said));
    member.interest(ms(304), TOPIC, false, Some(&mut said));
    said.lines.clear();
    member.handle_tick(ms(500), Some(&mut said));
    assert!(said.lines.is_empty(), "{:?}", said.lines);
    member.handle_tick(ms(2_304), Some(&mut said));
    assert_eq!(said.lines[0], "UNSUB 3");
    let options = PublishOptions::default();
    said.lines.clear();
    let published = member.publish(&publication(&options, "a.b"), Some(&mut said));
    assert_eq!((published, said.lines.len()), (Ok(()), 0));
    assert!(member.is_alone());
}

#[test]
fn a_barrier_waits_for_the_other_server() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = (attached(1, "s1"), attached(2, "s2"));
    hand_over(&mut from_one, &mut two, &mut from_two);
    hand_over(&mut from_two, &mut one, &mut from_one);
    hand_over(&mut from_one, &mut two, &mut from_two);
    assert_eq!(one.active().collect::<Vec<_>>(), [("node2", "s2")]);
    assert!(!one.is_alone());
    from_one.lines.clear();
    let position = one.interest(ms(400), TOPIC, true, Some(&mut from_one));
    assert_eq!(from_one.lines, ["SUB W1.r.e.a.b 3", "PUB W1.r.c 5", "PING"]);
    one.handle_pong(ms(401), &mut from_one);
    assert!(one.in_force() < position);
    from_two.messages.clear();
    hand_over(&mut from_one, &mut two, &mut from_two);
    hand_over(&mut from_two, &mut one, &mut from_one);
    assert_eq!(one.in_force(), position);
    // A silent node is waited for until it is suspected.
    let other = Pattern {
        topic: "c",
        ..TOPIC
    };
    let position = one.interest(ms(402), other, true, Some(&mut from_one));
    one.handle_pong(ms(403), &mut from_one);
    for at in [1_000, 2_000, 3_000] {
        one.handle_pong(ms(at), &mut from_one);
        assert_eq!(one.handle_tick(ms(at), Some(&mut from_one)), Ticked::Live);
        assert!(one.in_force() < position, "{at}");
    }
    // The next pong shows that nothing of that node waits to be read.
    one.handle_pong(ms(3_450), &mut from_one);
    one.handle_tick(ms(3_500), Some(&mut from_one));
    assert!(one.in_force() < position);
    one.handle_pong(ms(3_501), &mut from_one);
    one.handle_tick(ms(3_600), Some(&mut from_one));
    assert_eq!((one.in_force(), one.suspected()), (position, 1));
    let states: Vec<_> = one.neighbours(ms(0)).map(|other| other.state).collect();
    assert_eq!(states, ["suspected"]);
}

/// Two nodes that know each other.
fn pair() -> ((Member, Said), (Member, Said)) {
    let ((mut one, mut from_one), (mut two, mut from_two)) = (attached(1, "s1"), attached(2, "s1"));
    hand_over(&mut from_two, &mut one, &mut from_one);
    hand_over(&mut from_one, &mut two, &mut from_two);
    from_one.lines.clear();
    ((one, from_one), (two, from_two))
}

#[test]
fn a_node_that_misses_a_heartbeat_is_probed_and_answers_while_it_reads() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = pair();
    for at in (500..10_000).step_by(100) {
        from_one.messages.clear();
        one.handle_tick(ms(at), Some(&mut from_one));
        one.handle_pong(ms(at), &mut from_one);
        // Its timer does not run: it hears the probes alone.
        let probes = from_one.messages.drain(..).filter(|(_, f)| f[1] == 2);
        for (subject, frame) in probes {
            let taken = two.handle_message(ms(at), (&subject, &frame), &mut from_two);
            assert!(matches!(taken, Ok(None)), "{taken:?}");
        }
        for (subject, frame) in from_two.messages.drain(..) {
            let taken = one.handle_message(ms(at), (&subject, &frame), &mut from_one);
            assert!(matches!(taken, Ok(None)), "{taken:?}");
        }
        assert_eq!((one.active().count(), one.suspected()), (1, 0), "{at}");
    }
}

#[test]
fn operators_see_how_long_a_node_is_silent() {
    let ((one, _), _) = pair();
    let seen = |at| {
        let seen: Vec<_> = one.neighbours(ms(at)).collect();
        assert_eq!(seen.len(), 1);
        (seen[0].state, seen[0].silent_ms)
    };
    let ((state, early), (_, late)) = (seen(1_000), seen(3_500));
    assert_eq!((state, late - early), ("active", 2_500));
}

#[test]
fn a_node_that_did_not_run_reads_before_it_suspects_others() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = pair();
    from_two.messages.clear();
    for second in 1..=20 {
        two.handle_pong(ms(second * 1_000), &mut from_two);
        two.handle_tick(ms(second * 1_000), Some(&mut from_two));
    }
    // It is starved, and its timer runs every 2.9 seconds. Its server is not given up either.
    for at in [500, 3_400, 6_300] {
        assert_eq!(one.handle_tick(ms(at), Some(&mut from_one)), Ticked::Live);
        assert_eq!((one.active().count(), one.suspected()), (1, 0));
    }
    for (subject, frame) in from_two.messages.drain(..) {
        let taken = one.handle_message(ms(6_400), (&subject, &frame), &mut from_one);
        assert!(matches!(taken, Ok(None)), "{taken:?}");
    }
    for _ in 0..9 {
        one.handle_pong(ms(6_400), &mut from_one);
    }
    assert_eq!(
        one.handle_tick(ms(6_500), Some(&mut from_one)),
        Ticked::Live
    );
    assert_eq!((one.active().count(), one.suspected()), (1, 0));
    assert!(one.take_changes().is_empty());
}

#[test]
fn a_node_that_was_stopped_begins_anew_and_declares_nobody_dead() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = pair();
    assert_eq!(one.handle_tick(ms(500), Some(&mut from_one)), Ticked::Live);
    // Others have suspected it meanwhile.
    assert_eq!(
        one.handle_tick(ms(20_500), Some(&mut from_one)),
        Ticked::Silent
    );
    let left = Change::GivenUp {
        node: 2,
        has_ended: false,
    };
    assert_eq!(one.take_changes(), [left]);
    one.detach();
    one.attach(ms(20_600), ("s1", 1_000), &mut from_one);
    from_one.messages.clear();
    for at in (20_600..34_000).step_by(100) {
        one.handle_pong(ms(at), &mut from_one);
        one.handle_tick(ms(at), Some(&mut from_one));
    }
    // Not even then does it speak for a node that died while it was stopped: others do.
    let dead = Change::Dead {
        node: 2,
        is_missed: true,
    };
    assert_eq!(one.take_changes(), [dead]);
    two.handle_tick(ms(34_000), Some(&mut from_two));
    hand_over(&mut from_two, &mut one, &mut from_one);
    assert_eq!((one.active().count(), one.suspected()), (1, 0));
}

#[test]
fn events_cross_with_their_lists_once() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = (attached(1, "s1"), attached(2, "s1"));
    hand_over(&mut from_two, &mut one, &mut from_one);
    from_one.messages.clear();
    let options = PublishOptions {
        acknowledge: true,
        receivers: Some(Box::new(Receivers {
            eligible: Some(vec![SessionId(9)]),
            exclude_authrole: Some(vec!["x".to_owned()]),
            ..Receivers::default()
        })),
        passthru: Some(Box::new(vec![
            ("_a".to_owned(), true.into()),
            ("trustlevel".to_owned(), 5_u64.into()),
        ])),
        ..PublishOptions::default()
    };
    let sent = publication(&options, "a.é b");
    assert_eq!(one.publish(&sent, Some(&mut from_one)), Ok(()));
    let here = publication(&options, "here.x");
    assert_eq!(one.publish(&here, Some(&mut from_one)), Ok(()));
    let (subject, frame) = from_one.messages.pop().expect("one was sent");
    assert!(from_one.messages.is_empty(), "local prefixes stay");
    let came = two.handle_message(ms(400), (&subject, &frame), &mut from_two);
    let Ok(Some(Input::Event(_, came))) = came else {
        panic!("an event is expected: {came:?}");
    };
    let publication = came.publication().expect("a publication");
    assert_eq!(
        (publication.id, &publication.publisher),
        (sent.id, &sent.publisher)
    );
    assert_eq!(
        (publication.topic, publication.payload),
        (sent.topic, sent.payload)
    );
    assert_eq!(publication.options.receivers, options.receivers);
    assert_eq!(publication.options.passthru, options.passthru);
    assert!(matches!(came.message, Message::Publish { .. }));
    let again = two.handle_message(ms(401), (&subject, &frame), &mut from_two);
    assert!(matches!(again, Ok(None)));
    assert_eq!(two.counts().duplicates, 1);
    let elsewhere = two.handle_message(ms(402), ("W1.r.e.other", &frame), &mut from_two);
    assert!(matches!(elsewhere, Ok(None)), "it is no newer");
}

#[test]
fn events_that_cannot_cross_are_refused() {
    let ((mut one, mut from_one), (_, mut from_two)) = (attached(1, "s1"), attached(2, "s1"));
    hand_over(&mut from_two, &mut one, &mut from_one);
    let options = PublishOptions::default();
    let long = "x".repeat(5_000);
    let outcome = one.publish(&publication(&options, &long), Some(&mut from_one));
    assert_eq!(outcome, Err(Uncrossed::TooLong));
    let args = format!("[\"{}\"]", "x".repeat(2_000));
    let large = Publication {
        payload: Payload::new(Serializer::Json, args.as_bytes(), b""),
        ..publication(&options, "a")
    };
    assert_eq!(
        one.publish(&large, Some(&mut from_one)),
        Err(Uncrossed::TooLong)
    );
    from_one.is_full = true;
    assert_eq!(
        one.publish(&publication(&options, "a"), Some(&mut from_one)),
        Ok(())
    );
    assert_eq!(one.counts().dropped, 1);
}

#[test]
fn a_detached_node_serves_or_refuses() {
    let options = PublishOptions::default();
    for (detached, outcome, waits) in [
        (Detached::Serve, Ok(()), false),
        (Detached::Refuse, Err(Uncrossed::Detached), true),
    ] {
        let (mut member, mut said) = (member(1, detached), Said::default());
        assert_eq!(member.is_refusing(), waits);
        assert_eq!(member.publish(&publication(&options, "a"), None), outcome);
        assert_eq!(member.is_alone(), outcome.is_ok());
        let position = member.interest(ms(0), TOPIC, true, None);
        assert_eq!(position > member.in_force(), waits);
        member.attach(ms(1), ("s1", 1_000), &mut said);
        assert_eq!(said.lines[2], "SUB W1.r.e.a.b 3");
        // Other nodes may exist that have not answered yet.
        assert!(!member.is_alone());
        member.handle_pong(ms(2), &mut said);
        member.handle_tick(ms(400), Some(&mut said));
        member.handle_pong(ms(401), &mut said);
        assert!(member.in_force() >= position);
        // A waiting subscription is in force when the connection ends, or waits for the next connection.
        let other = Pattern {
            topic: "c",
            ..TOPIC
        };
        let position = member.interest(ms(402), other, true, Some(&mut said));
        member.detach();
        assert_eq!(member.in_force() < position, waits);
    }
    assert_eq!(Position::default(), Position(0));
}

#[test]
fn a_server_that_does_not_answer_is_left() {
    let (mut member, mut said) = attached(1, "s1");
    for at in [1_200, 2_100, 3_000] {
        assert_eq!(member.handle_tick(ms(at), Some(&mut said)), Ticked::Live);
    }
    assert_eq!(
        member.handle_tick(ms(3_100), Some(&mut said)),
        Ticked::Silent
    );
}

#[test]
fn hostile_frames_are_counted() {
    let (mut member, mut said) = attached(1, "s1");
    let (_, mut other) = attached(2, "s1");
    let (subject, hello) = other.messages.remove(0);
    let (mut version, mut kind) = (hello.clone(), hello.clone());
    version[0] = 9;
    version[1] = 1;
    kind[1] = 99;
    let mut event = hello.clone();
    event[1] = 1;
    event[23] = 1;
    for (frame, cause) in [
        (&hello[..10], "frame"),
        (&version, "version"),
        (&kind, "kind"),
        (&hello[..40], "field"),
        (&event, "event"),
    ] {
        let refused = member.handle_message(ms(1), (&subject, frame), &mut said);
        assert_eq!(refused.err().map(|refusal| refusal.name()), Some(cause));
    }
    assert_eq!(member.counts().refused, [1, 1, 1, 1, 1, 0, 0]);
    for number in 0..2_000_u64 {
        let mut frame = hello.clone();
        frame[8..16].copy_from_slice(&(number + 10).to_be_bytes());
        let _ = member.handle_message(ms(1), (&subject, &frame), &mut said);
    }
    assert_eq!(member.active().count(), 1_023);
}

#[test]
fn the_last_version_that_both_take_is_spoken() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = (
        attached_speaking((1, 2), 1, "s1"),
        attached_speaking((2, 3), 2, "s1"),
    );
    hand_over(&mut from_two, &mut one, &mut from_one);
    hand_over(&mut from_one, &mut two, &mut from_two);
    assert_eq!((one.active().count(), two.active().count()), (1, 1));
    assert_eq!((one.strangers().count(), two.strangers().count()), (0, 0));
    from_two.messages.clear();
    let options = PublishOptions::default();
    let sent = publication(&options, "a");
    assert_eq!(two.publish(&sent, Some(&mut from_two)), Ok(()));
    let (subject, frame) = from_two.messages.pop().expect("an event is sent");
    assert_eq!(frame[0], 2);
    let came = one.handle_message(ms(401), (&subject, &frame), &mut from_one);
    assert!(matches!(came, Ok(Some(Input::Event(..)))), "{came:?}");
}

#[test]
fn nodes_without_a_common_version_refuse_each_other() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = (
        attached_speaking((1, 2), 1, "s1"),
        attached_speaking((3, 4), 2, "s2"),
    );
    hand_over(&mut from_two, &mut one, &mut from_one);
    hand_over(&mut from_one, &mut two, &mut from_two);
    for (member, stranger, versions) in [(&one, "node2", "3 to 4"), (&two, "node1", "1 to 2")] {
        let strangers: Vec<_> = member.strangers().collect();
        assert_eq!(strangers.len(), 1);
        assert_eq!(strangers[0].0, stranger);
        assert_eq!(strangers[0].1.to_string(), format!("versions {versions}"));
        assert_eq!((member.active().count(), member.pairs()), (0, 0));
    }
    // It is not waited for, and its messages are rejected.
    let position = one.interest(ms(402), TOPIC, true, Some(&mut from_one));
    one.handle_pong(ms(403), &mut from_one);
    assert_eq!(one.in_force(), position);
    let (_, mut third) = attached_speaking((2, 2), 3, "s1");
    hand_over(&mut third, &mut one, &mut from_one);
    assert_eq!((one.active().count(), one.strangers().count()), (1, 1));
    let mut event = hello_of(2);
    event[0] = 2;
    event[1] = 1;
    let refused = one.handle_message(ms(404), ("W1.r.e.a.b", &event), &mut from_one);
    assert_eq!(refused.err().map(|refusal| refusal.name()), Some("version"));
}

/// The version is chosen when a node changes; a tick, which checks all nodes, finds nothing to change.
#[test]
fn the_version_fits_all_nodes_after_any_changes() {
    for seed in 0..200_u64 {
        let mut drawn = seed;
        let mut below = |most: u64| {
            drawn = drawn
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (drawn >> 33) % most
        };
        let (mut one, mut said) = attached_speaking((1, 3), 1, "s1");
        for _ in 0..12 {
            let first = 1 + u8::try_from(below(4)).unwrap_or(1);
            let last = first + u8::try_from(below(2)).unwrap_or(0);
            let (_, mut other) = attached_speaking((first, last), 2 + below(4), "s2");
            hand_over(&mut other, &mut one, &mut said);
            let spoken = |one: &mut Member| {
                let mut said = Said::default();
                let options = PublishOptions::default();
                let _ = one.publish(&publication(&options, "a.b"), Some(&mut said));
                let version = said.messages.first().map(|(_, frame)| frame[0]);
                let strangers: Vec<_> = one.strangers().map(|(node, _)| node.to_owned()).collect();
                (version, strangers)
            };
            let before = spoken(&mut one);
            assert_eq!(one.handle_tick(ms(410), Some(&mut said)), Ticked::Live);
            assert_eq!(spoken(&mut one), before, "seed {seed}");
        }
    }
}

/// A hello of that node.
fn hello_of(incarnation: u64) -> Vec<u8> {
    let (_, mut said) = attached(incarnation, "s1");
    said.messages.remove(0).1
}

#[test]
fn a_mute_node_is_waited_for_no_longer() {
    let ((mut one, mut from_one), (mut two, mut from_two)) = (attached(1, "s1"), attached(2, "s2"));
    hand_over(&mut from_two, &mut one, &mut from_one);
    let position = one.interest(ms(400), TOPIC, true, Some(&mut from_one));
    one.handle_pong(ms(401), &mut from_one);
    for second in 1..=6 {
        // It is alive, and ignores its input.
        assert!(one.in_force() < position);
        two.handle_tick(ms(second * 1_000), Some(&mut from_two));
        two.handle_pong(ms(second * 1_000), &mut from_two);
        for (subject, frame) in from_two.messages.drain(..) {
            let now = ms(second * 1_000);
            let taken = one.handle_message(now, (&subject, &frame), &mut from_one);
            assert!(matches!(taken, Ok(None)), "{taken:?}");
        }
        one.handle_pong(ms(second * 1_000), &mut from_one);
        one.handle_tick(ms(second * 1_000 + 400), Some(&mut from_one));
    }
    assert_eq!(one.in_force(), position);
    assert_eq!((one.active().count(), one.suspected()), (0, 1));
}

#[test]
fn hellos_by_the_thousand_are_answered_together() {
    let (mut one, mut said) = attached(1, "s1");
    let mut hello = Said::default();
    member(2, Detached::Serve).attach(ms(0), ("s2", 1_000), &mut hello);
    let (subject, frame) = hello.messages.remove(0);
    said.messages.clear();
    for number in 2..1_000_u64 {
        let mut frame = frame.clone();
        frame[8..16].copy_from_slice(&number.to_be_bytes());
        let taken = one.handle_message(ms(400), (&subject, &frame), &mut said);
        assert!(matches!(taken, Ok(None)), "{taken:?}");
    }
    // Heartbeats are the only frames that name all nodes.
    let long = |said: &Said| said.messages.iter().filter(|(_, f)| f[1] == 3).count();
    assert_eq!(long(&said), 1);
    one.handle_tick(ms(450), Some(&mut said));
    assert_eq!(long(&said), 2);
}

#[test]
fn a_denial_concerns_an_event_a_pattern_or_the_link() {
    let (mut one, mut said) = attached(1, "s1");
    let position = one.interest(ms(400), TOPIC, true, Some(&mut said));
    for (denied, expected) in [
        (Denied::Publish("W1.r.e.a.b"), Matters::Event),
        (Denied::Publish("W1.r.c"), Matters::Link),
        (Denied::Publish("W1.r.n.0000000000000002"), Matters::Link),
        (Denied::Subscribe("W1.r.c"), Matters::Link),
        (Denied::Subscribe("W1.r.e.a.b"), Matters::Interest),
        (Denied::Unknown, Matters::Link),
    ] {
        assert_eq!(one.handle_denied(denied), expected, "{denied:?}");
    }
    assert_eq!(one.counts().denied, [3, 3]);
    assert!(one.is_denied(TOPIC));
    assert_eq!(one.interests_denied(), 1);
    // A new subscription is requested again.
    one.interest(ms(401), TOPIC, false, Some(&mut said));
    one.handle_pong(ms(402), &mut said);
    said.lines.clear();
    assert!(one.interest(ms(403), TOPIC, true, Some(&mut said)) > position);
    assert_eq!(said.lines[0], "SUB W1.r.e.a.b 4");
    assert!(!one.is_denied(TOPIC));
}
