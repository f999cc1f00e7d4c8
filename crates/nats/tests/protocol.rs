//! Valid and invalid operations of servers.

use crosstie_nats::{
    Decoded, Growing, Limits, Operation, decode, encode, headers, is_pattern, is_subject,
};

const LIMITS: Limits = Limits {
    line_bytes_max: 64,
    message_bytes_max: 16,
};

/// The result of decoding, in words.
fn said(input: &[u8]) -> String {
    match decode(input, &LIMITS) {
        Err(e) => format!("wrong: {}", e.expected),
        Ok(Decoded::More { wanted }) => format!("more: {wanted}"),
        Ok(Decoded::Operation {
            operation,
            consumed,
        }) => {
            let what = match operation {
                Operation::Info(text) => format!("info {text}"),
                Operation::Ping => "ping".to_owned(),
                Operation::Pong => "pong".to_owned(),
                Operation::Ok => "ok".to_owned(),
                Operation::Error(text) => format!("error {text}"),
                Operation::Message(message) => format!(
                    "{} {} {} [{}] [{}]",
                    message.subject,
                    message.sid,
                    message.reply.unwrap_or("-"),
                    message.headers.escape_ascii(),
                    message.payload.escape_ascii()
                ),
            };
            format!("{what}, {consumed}")
        }
    }
}

#[test]
fn a_message_grows_while_nothing_follows_it() {
    let mut out = b"PING\r\n".to_vec();
    let mut growing = Growing::begin("a.b", [b"1", b"one"], &mut out);
    assert_eq!(out, b"PING\r\nPUB a.b 00000004\r\n1one\r\n");
    assert!(growing.grow("a.b", [b"2", b"two"], 10, &mut out));
    assert!(growing.grow("a.b", [b"", b"33"], 10, &mut out));
    let grown = b"PING\r\nPUB a.b 00000010\r\n1one2two33\r\n";
    assert_eq!(out, grown);
    assert!(!growing.grow("a.b", [b"", b"4"], 10, &mut out), "too long");
    for subject in ["a.c", "a", "a.b.c", "a.b 00000010"] {
        assert!(!growing.grow(subject, [b"", b"4"], 99, &mut out));
    }
    assert_eq!(out, grown);
    // Bytes follow, the message was taken, or other bytes are in its place.
    for other in [&b"PONG\r\n"[..], b"", &[b'x'; 40]] {
        let mut other = [&grown[..other.len().min(1) * 6], other].concat();
        let before = other.clone();
        assert!(!growing.grow("a.b", [b"", b"4"], 99, &mut other));
        assert_eq!(other, before);
    }
}

#[test]
fn operations_of_servers() {
    let long = [b"PING ".as_slice(), &[b'x'; 70]].concat();
    for (input, expected) in [
        (&b""[..], "more: 0"),
        (b"PI", "more: 0"),
        (b"PING\r\nPONG\r\n", "ping, 6"),
        (b"pong\n", "pong, 5"),
        (b"+OK\r\n", "ok, 5"),
        (b"INFO {\"a\":1} \r\n", "info {\"a\":1}, 15"),
        (b"-ERR 'No Such'\r\n", "error No Such, 16"),
        (b"MSG a.b 7 2\r\nhi\r\n", "a.b 7 - [] [hi], 17"),
        (b"MSG a.b 7 r.s 0\r\n\r\n", "a.b 7 r.s [] [], 19"),
        (b"MSG a.b 7 2\r\nhi", "more: 17"),
        (b"HMSG a 1 3 5\r\nN\r\nhi\r\n", "a 1 - [N\\r\\n] [hi], 21"),
        (b"HMSG a 1 r 3 3\r\nN\r\n\r\n", "a 1 r [N\\r\\n] [], 21"),
        (
            b"MSG a.b 7 2\r\nhi!\r\n",
            "wrong: the end of a message where its size says",
        ),
        (b"MSG a.b 7 17\r\n", "wrong: a size within the bound"),
        (b"MSG a.b 7 -1\r\n", "wrong: a size within the bound"),
        (b"MSG a.b 7 +1\r\n", "wrong: a size within the bound"),
        (b"MSG a.b x 1\r\n", "wrong: a subscription's number"),
        (b"MSG a..b 7 1\r\n", "wrong: a subject"),
        (b"MSG a.* 7 1\r\n", "wrong: a subject"),
        (b"MSG a 7\r\n", "wrong: a subject, a number and a size"),
        (b"MSG a 7 b c d e\r\n", "wrong: fewer words"),
        (b"HMSG a 1 6 5\r\n", "wrong: headers within the message"),
        (b"HELLO\r\n", "wrong: an operation of NATS"),
        (b"\xff\r\n", "wrong: text in UTF-8"),
        (&long, "wrong: the end of a line"),
    ] {
        assert_eq!(said(input), expected, "{}", input.escape_ascii());
    }
}

#[test]
fn operations_of_clients() {
    let mut out = Vec::new();
    encode::connect("{}", &mut out);
    encode::subscribe("a.*", 3, &mut out);
    encode::publish("a.b", b"hi", &mut out);
    encode::unsubscribe(3, &mut out);
    encode::ping(&mut out);
    encode::pong(&mut out);
    let expected = "CONNECT {}\r\nSUB a.* 3\r\nPUB a.b 2\r\nhi\r\nUNSUB 3\r\nPING\r\nPONG\r\n";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

#[test]
fn subjects_and_patterns() {
    for (text, subject, pattern) in [
        ("a", true, true),
        ("a.b-c.$d", true, true),
        ("", false, false),
        ("a.", false, false),
        (".a", false, false),
        ("a b", false, false),
        ("a\r\n", false, false),
        ("*", false, true),
        ("a.*.b", false, true),
        (">", false, true),
        ("a.>", false, true),
        (">.a", false, false),
        ("a*.b", true, true),
    ] {
        assert_eq!(is_subject(text), subject, "{text}");
        assert_eq!(is_pattern(text), pattern, "{text}");
    }
}

#[test]
fn requests_with_headers() {
    let mut out = Vec::new();
    let fields = [("Nats-Expected-Last-Sequence", "0"), ("A", "")];
    encode::request(("a.b", "r.s"), &fields, b"hi", &mut out);
    let expected =
        "HPUB a.b r.s 49 51\r\nNATS/1.0\r\nNats-Expected-Last-Sequence: 0\r\nA: \r\n\r\nhi\r\n";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
    let mut out = Vec::new();
    encode::request(("a", "r"), &[], b"hi", &mut out);
    assert_eq!(out, b"PUB a r 2\r\nhi\r\n");
}

#[test]
fn headers_are_read() {
    for (input, status, value) in [
        (&b""[..], None, None),
        (b"NATS/1.0\r\n\r\n", None, None),
        (
            b"NATS/1.0 503\r\nNats-Subject: nobody\r\n\r\n",
            Some(503),
            None,
        ),
        (
            b"NATS/1.0 408 Request Timeout\r\nA: b\r\n\r\n",
            Some(408),
            Some("b"),
        ),
        (
            b"NATS/1.0\r\nAB: no\r\nA:  first \r\nA: b\r\n\r\n",
            None,
            Some("first"),
        ),
        (b"NATS/1.0\r\na: b\r\n\r\n", None, None),
        (b"NATS/1.0\r\nA: \xff\r\n\r\n", None, None),
        (b"NATS/1.0 5\r\n\r\n", None, None),
        (b"NATS/1.0 +50\r\nA", None, None),
        (b"A: b\r\n", None, None),
    ] {
        let shown = input.escape_ascii();
        assert_eq!(headers::status(input), status, "{shown}");
        assert_eq!(headers::value(input, "A"), value, "{shown}");
    }
}
