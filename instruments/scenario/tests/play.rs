//! Scenarios that are played against a router of a few lines: its messages are data, and so is the verdict.

use std::collections::BTreeMap;

use crosstie_scenario::{Action, Happened, Labels, Outcome, Play, parse};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Serializer, Value};

/// Plays `lines`; the router sends each session its messages from `says`, in JSON; `-` is the end of the connection.
fn play(lines: &str, says: &[(char, &str)]) -> Outcome {
    let text = ["feature F\nsection x\n== one\n", lines].concat();
    let feature = parse("x.txt", &text).unwrap();
    let mut labels = Labels::default();
    labels.set("u", Value::from("com.u"));
    labels.set("realm", Value::from("realm1"));
    let mut left: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    for (who, said) in says.iter().rev() {
        left.entry(*who).or_default().push(said);
    }
    let mut play = Play::new(&feature.scenarios[0], labels);
    loop {
        let happened = match play.next_action() {
            Action::Done => return play.outcome(),
            Action::Join { who, .. } => Happened::Joined {
                session: Value::from(u64::from(who as u32)),
                details: Value::Dict(Vec::new()),
            },
            Action::Receive { who } => match left.get_mut(&who).and_then(Vec::pop) {
                None => Happened::Else("nothing".to_owned()),
                Some("-") => Happened::Closed,
                Some(json) => Happened::Message(value(json)),
            },
            _ => Happened::Done,
        };
        play.handle(happened);
    }
}

fn value(json: &str) -> Value {
    codec::decode_value(Serializer::Json, json.as_bytes(), &Limits::default()).unwrap()
}

/// One expectation, and a received value.
#[track_caller]
fn passes(expected: &str, came: &str) {
    let lines = ["A: connect\nA< ", expected].concat();
    assert_eq!(play(&lines, &[('A', came)]), Outcome::Passes, "{expected}");
}

#[track_caller]
fn fails(expected: &str, came: &str, why: &str) {
    let lines = ["A: connect\nA< ", expected].concat();
    match play(&lines, &[('A', came)]) {
        Outcome::Fails(failure) => {
            assert!(failure.why.contains(why), "{failure:?}");
            assert_eq!(failure.line, 5);
        }
        outcome => panic!("{expected}: {outcome:?}"),
    }
}

#[test]
fn messages() {
    passes("EVENT 1 *id {}", "[36, 1, 2, {}]");
    passes("EVENT 1 *id {}", "[36, 1, 2, {\"more\": 1}]");
    passes("EVENT 1 *id {}", "[36, 1, 2, {}, []]");
    passes("EVENT 1 *id {}", "[36, 1, 2, {}, [], {}]");
    passes("EVENT 1 *id {} [] {a=1}", "[36, 1, 2, {}, [], {\"a\": 1}]");
    passes("EVENT 1 *id {a=1} [1] {}", "[36, 1, 2, {\"a\": 1}, [1]]");
    passes("EVENT 1 1 {} *", "[36, 1, 1, {}, [1], {\"a\": 1}]");
    passes("EVENT #s #s {} [1.0]", "[36, 5, 5, {}, [1]]");
    passes("EVENT 1 1 {} [0x00ff]", "[36, 1, 1, {}, [\"\\u0000AP8=\"]]");
    passes(
        "EVENT 1 1 {topic=#u.x}",
        "[36, 1, 1, {\"topic\": \"com.u.x\"}]",
    );
    passes("EVENT 1 1 {!topic}", "[36, 1, 1, {}]");
    passes("ERROR CALL 1 {} x.y", "[8, 48, 1, {}, \"x.y\"]");
    passes(
        "RESULT 1 {} [{a=1, ...}]",
        "[50, 1, {}, [{\"b\": 2, \"a\": 1}]]",
    );
    passes("RESULT 1 {} [[..., 2, ...]]", "[50, 1, {}, [[1, 2, 3]]]");
    passes("RESULT 1 {} [[..., 3]]", "[50, 1, {}, [[1, 2, 3]]]");
    passes(
        "WELCOME *id {roles={broker={}}}",
        "[2, 1, {\"roles\": {\"broker\": {\"x\": 1}}}]",
    );
}

#[test]
fn messages_that_differ() {
    #[rustfmt::skip]
    let rows = [
        ("EVENT 1 *id {}", "[36, 1, 0, {}]", "0 instead of *id"),
        ("EVENT 1 *id {}", "[36, 1, 9007199254740993, {}]", "instead of *id"),
        ("EVENT 1 *id {}", "[36, 1, 2]", "it ends before {}"),
        ("EVENT 1 *id {}", "[36, 1, 2, {}, [1]]", "[1] is behind the expected values"),
        ("EVENT 1 *id {} [1]", "[36, 1, 2, {}]", "it ends before [1]"),
        ("EVENT 1 *id {} [1]", "[36, 1, 2, {}, [1, 2]]", "2 is one too many"),
        ("EVENT 1 *id {} [1, 2]", "[36, 1, 2, {}, [1]]", "it ends before 2"),
        ("EVENT 1 *id {} [] {a=1}", "[36, 1, 2, {}, [], {\"a\": 1, \"b\": 2}]", "b is there"),
        ("EVENT #s #s {}", "[36, 5, 6, {}]", "6 instead of 5, which is #s"),
        ("EVENT 1 1 {topic=#u.x}", "[36, 1, 1, {\"topic\": \"com.x\"}]", "instead of com.u.x"),
        ("EVENT 1 1 {!topic}", "[36, 1, 1, {\"topic\": \"x\"}]", "must not be"),
        ("EVENT 1 1 {a=true}", "[36, 1, 1, {}]", "a is not there"),
        ("ERROR CALL 1 {} x.y", "[8, 64, 1, {}, \"x.y\"]", "64 instead of 48"),
        ("RESULT 1 {} [[..., 4, ...]]", "[50, 1, {}, [[1, 2, 3]]]", "4 is not in it"),
        ("RESULT 1 {} [*text]", "[50, 1, {}, [1]]", "1 instead of *text"),
        ("RESULT 1 {} *", "{\"a\": 1}", "it is no list"),
    ];
    for (expected, came, why) in rows {
        fails(expected, came, why);
    }
}

#[test]
fn courses() {
    #[track_caller]
    fn check(lines: &str, says: &[(char, &str)], outcome: &str) {
        let shown = format!("{:?}", play(lines, says));
        assert!(shown.contains(outcome), "{lines}: {shown}");
    }
    let order = "A: connect\nany order\nA< [91]\nA< [92]\nend\n";
    check(order, &[('A', "[92]"), ('A', "[91]")], "Passes");
    check(order, &[('A', "[92]"), ('A', "[92]")], "any of: 91");
    let either = "A: connect\nA> CALL 1 {} x\neither\nA< [91]\nA< [94]\nor crossbar: other\nA< [92]\nor\nA< closed\nend\n";
    check(either, &[('A', "[91]"), ('A', "[94]")], "Passes");
    check(either, &[('A', "[91]"), ('A', "[92]")], "Fails");
    check(either, &[('A', "[92]")], "AsCrossbar([\"other\"])");
    check(either, &[('A', "-")], "Passes");
    check(
        either,
        &[('A', "[93]")],
        "92 (as Crossbar.io), or the end of the connection",
    );
    check(either, &[], "came: \"nothing\"");
    let optional = "A: connect\nA<? [91]\nA< [92]\n";
    check(optional, &[('A', "[91]"), ('A', "[92]")], "Passes");
    check(optional, &[('A', "[92]")], "Passes");
    check(optional, &[('A', "[93]")], "Fails");
    let nothing = "A: connect\nA: nothing 7\n";
    check(nothing, &[('A', "[8, 48, 7, {}, \"x\"]")], "Passes");
    check(
        nothing,
        &[('A', "[36, 1, 1, {}]")],
        "nothing before the answer to CALL 7",
    );
    check(nothing, &[('A', "[8, 48, 6, {}, \"x\"]")], "Fails");
    check("A: connect\nA< closed\n", &[('A', "-")], "Passes");
    check(
        "A: connect\nA< closed\n",
        &[('A', "[91]")],
        "the end of the connection",
    );
}

#[test]
fn ends() {
    let goodbye = ('A', "[6, {}, \"wamp.close.goodbye_and_out\"]");
    assert_eq!(play("A: join\n", &[goodbye]), Outcome::Passes);
    // A silent router is judged by the scenarios about GOODBYE.
    assert_eq!(play("A: join\n", &[]), Outcome::Passes);
    assert_eq!(play("A: join\n", &[('A', "-")]), Outcome::Passes);
    let more = play("A: join\n", &[('A', "[36, 1, 1, {}]"), goodbye]);
    assert!(format!("{more:?}").contains("nothing more"), "{more:?}");
    let silent = play("A: join\nA: leave\n", &[]);
    assert!(format!("{silent:?}").contains("GOODBYE"), "{silent:?}");
    let same = play("A: join\ndiffer #A #A\n", &[]);
    assert!(matches!(same, Outcome::Undecided(_)), "{same:?}");
}
