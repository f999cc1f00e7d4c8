//! Malformed files: the named line, and the expectation.

use crosstie_scenario::parse;

const HEAD: &str = "feature F\nsection basic/x\n== one\nA: join\n";

/// The error of `lines` behind a head of four lines.
#[track_caller]
fn refused(lines: &str, line: usize, reason: &str) {
    let error = parse("x.txt", &[HEAD, lines].concat()).unwrap_err();
    let shown = error.to_string();
    assert!(shown.starts_with(&format!("x.txt:{line}: ")), "{shown}");
    assert!(shown.contains(reason), "{shown}");
}

#[test]
fn lines_that_mean_nothing() {
    #[rustfmt::skip]
    let rows = [
        ("B> CALL 1 {} x", 5, "expected B: join or B: connect before"),
        ("A> CALLS 1 {} x", 5, "a message's name such as SUBSCRIBE, or a list, found \"CALLS\""),
        ("A> CALL 1 {", 5, "the line ends"),
        ("nodes", 5, "expected a sentence: the difference"),
        ("A> CALL 1 {a=1 b=2} x", 5, "expected , or }, found \"b=2} x\""),
        ("A> CALL 1 {a, a=2} x", 5, "a is there twice"),
        ("A> CALL 1 {!a} x", 5, "! is for received ones"),
        ("A> CALL * {} x", 5, "* is for received ones"),
        ("A< EVENT *session 1 {}", 5, "*session: expected one of *, *id"),
        ("A< EVENT 1 1 {!a=1}", 5, "expected no value for !a"),
        ("A> CALL 1 {} x [0x0]", 5, "an even number of hexadecimal digits"),
        ("A> CALL 1 {} x [\"a]", 5, "a quotation mark at the end"),
        ("A> CALL 1 {} x [\"\\x\"]", 5, "text as JSON has it"),
        ("A> CALL 1 {} #.x", 5, "expected a name behind #"),
        ("A> CALL 1 {} #g", 5, "#g: expected a message before that binds it"),
        ("A> CALL 1 {} #g.x", 5, "#g: expected a message before that binds it"),
        ("A< EVENT #g #p {topic=#h.x}", 5, "#h: expected a message before"),
    ];
    for (lines, line, reason) in rows {
        refused(lines, line, reason);
    }
}

#[test]
fn sessions_that_cannot_be() {
    #[rustfmt::skip]
    let rows = [
        ("A: sleep 3", 5, "expected join, connect, leave, drop or nothing"),
        ("A: join", 5, "expected A to leave before it starts again"),
        ("B: join feature=x", 5, "expected features=… or serializer=…"),
        ("B: join features=callee", 5, "expected ROLE.FEATURE, found \"callee\""),
        ("B: join serializer=bson", 5, "expected json, msgpack or cbor"),
        ("A: nothing", 5, "expected the number of a request"),
        ("a> CALL 1 {} x", 5, "expected A: …, A> …"),
        ("A: leave\nA> CALL 1 {} x", 6, "expected A: join"),
        ("[1", 5, "found \"[1\""),
    ];
    for (lines, line, reason) in rows {
        refused(lines, line, reason);
    }
}

#[test]
fn blocks() {
    #[rustfmt::skip]
    let rows = [
        ("any order\nA< EVENT 1 1 {}\nend", 7, "two messages or more to one session"),
        ("any order\nA> CALL 1 {} x\nend", 6, "expected messages that come"),
        ("any order\nA<? EVENT 1 1 {}\nend", 6, "nothing optional"),
        ("either\nA< EVENT 1 1 {}\nend", 7, "two alternatives or more"),
        ("either\nA> CALL 1 {} x\nor\nA< closed\nend", 9, "begins with a message"),
        ("either\nA< closed\nor crossbar:\n", 7, "the difference"),
        ("either\neither", 6, "no block within another"),
        ("or", 5, "between either and end"),
        ("end", 5, "behind either or any order"),
        ("either\nA< closed\n", 3, "expected the end of the block of line 5"),
    ];
    for (lines, line, reason) in rows {
        refused(lines, line, reason);
    }
}

#[test]
fn files() {
    #[track_caller]
    fn check(text: &str, line: usize, reason: &str) {
        let error = parse("x.txt", text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
    check("", 1, "a line that begins with feature");
    check("feature F", 1, "a line that begins with section");
    check("feature F\nsection x", 1, "expected a scenario");
    check("\n// a comment\nA: join", 3, "expected feature, section");
    check("announced callee\n", 1, "expected ROLE.FEATURE");
    check("needs a-b\n", 1, "names of letters, digits and _");
    check(
        "feature F\nsection x\n== a\n== b\nA: join",
        3,
        "expected lines behind == NAME",
    );
    let twice = [HEAD, "== one\nB: join\n"].concat();
    check(&twice, 5, "\"one\" is there twice");
    let deep = ["A> CALL 1 {} x ", &"[".repeat(40)].concat();
    refused(&deep, 5, "at most 32 lists");
    check(&"x".repeat(2 << 20), 1, "bytes");
    let long = [HEAD, &"A> CALL 1 {} x\n".repeat(1_001)].concat();
    check(&long, 1_004, "at most 1000 lines");
}

#[test]
fn names_of_labels() {
    let text = [
        HEAD,
        "A< WELCOME #B {}\nA> CALL 1 {} #u.x [#A, #authid_A, #realm, #B]\n",
    ]
    .concat();
    assert!(parse("x.txt", &text).is_ok());
    let needs = "feature F\nsection x\nneeds topic\n== one\nA: join\nA> SUBSCRIBE 1 {} #topic\n";
    assert!(parse("x.txt", needs).is_ok());
}
