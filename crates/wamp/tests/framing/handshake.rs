//! The opening handshake from both sides: what is read, what is refused and how, what is sent.

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{
    ClientRequest, HEAD_BYTES_MAX, HandshakeError, Request, ResponseError, accept_key,
    accept_response, closing_response, from_subprotocol, key, parse_request, subprotocol,
};

/// The example of RFC 6455 section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const GOOD: &str = "GET /ws?x=1 HTTP/1.1\r\nHost: example.com:8080\r\nUpgrade: WebSocket\r\n\
    Connection: keep-alive, upgrade\r\nOrigin: http://example.com\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Protocol: wamp.2.cbor , wamp.2.json\r\nsec-websocket-protocol:, wamp.2.msgpack\r\n\
    Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n";

fn parsed(bytes: &str) -> Request<'_> {
    let (length, request) = parse_request(bytes.as_bytes(), HEAD_BYTES_MAX)
        .expect("well-formed")
        .expect("whole");
    assert_eq!(length, bytes.find("\r\n\r\n").map_or(0, |at| at + 4));
    request
}

#[test]
fn a_request_is_read() {
    let bytes = [GOOD, "\x01more"].concat();
    let request = parsed(&bytes);
    assert_eq!((request.method, request.target), ("GET", "/ws?x=1"));
    assert_eq!((request.path(), request.query()), ("/ws", Some("x=1")));
    assert_eq!(request.header("HOST"), Some("example.com:8080"));
    assert!(request.is_websocket_upgrade());
    let upgrade = request.upgrade().expect("a good handshake");
    assert_eq!((upgrade.host, upgrade.key), ("example.com:8080", KEY));
    assert_eq!(upgrade.origin, Some("http://example.com"));
    assert_eq!(
        upgrade.protocols,
        ["wamp.2.cbor", "wamp.2.json", "wamp.2.msgpack"]
    );
    assert_eq!(
        upgrade.extensions,
        ["permessage-deflate; client_max_window_bits"]
    );
}

#[test]
fn a_request_may_come_in_parts() {
    for at in 0..GOOD.len() {
        assert_eq!(
            parse_request(&GOOD.as_bytes()[..at], HEAD_BYTES_MAX),
            Ok(None),
            "{at}"
        );
    }
}

#[test]
fn a_plain_request_is_told_apart() {
    let request = parsed("GET /health HTTP/1.0\r\nAccept: */*\r\n\r\n");
    assert_eq!((request.path(), request.query()), ("/health", None));
    assert_eq!(request.version_minor, 0);
    assert!(!request.is_websocket_upgrade());
    assert_eq!(request.upgrade(), Err(HandshakeError::NotUpgrade));
}

/// What of the good request is replaced, by what, and how that is refused.
#[rustfmt::skip]
const BAD_REQUESTS: &[(&str, &str, u16, &str)] = &[
    ("GET", "POST", 405, "expected an upgrade by GET"),
    ("GET ", "GET", 400, "not an HTTP request"),
    ("GET", "G\u{7F}T", 400, "not an HTTP request"),
    ("HTTP/1.1", "HTTP/1.0", 505, "expected HTTP/1.1"),
    ("HTTP/1.1", "HTTP/2.0", 505, "expected HTTP/1.1"),
    ("Upgrade: WebSocket", "Upgrade: h2c", 426, "expected an upgrade to WebSocket"),
    ("Connection: keep-alive, upgrade", "X: y", 400, "missing or wrong header Connection"),
    ("Connection: keep", "No colon\r\nX: keep", 400, "not an HTTP request"),
    ("Host", "X-Host", 400, "missing or wrong header Host"),
    ("Host:", "Host: other\r\nHost:", 400, "missing or wrong header Host"),
    ("Version: 13", "Version: 8", 426, "expected Sec-WebSocket-Version 13"),
    ("-Version: 13", "-V: 13", 400, "missing or wrong header Sec-WebSocket-Version"),
];

fn check_refused(from: &str, to: &str, status: u16, text: &str) {
    assert!(GOOD.contains(from), "{from}");
    let bytes = GOOD.replacen(from, to, 1);
    let error = parse_request(bytes.as_bytes(), HEAD_BYTES_MAX).and_then(|parsed| {
        let (_, request) = parsed.expect("whole");
        request.upgrade().map(drop)
    });
    let error = error.expect_err(text);
    assert_eq!((error.status(), &*error.to_string()), (status, text));
}

#[test]
fn bad_requests_are_refused() {
    for &(from, to, status, text) in BAD_REQUESTS {
        check_refused(from, to, status, text);
    }
}

#[test]
fn a_key_that_is_not_16_bytes_is_refused() {
    let text = "missing or wrong header Sec-WebSocket-Key";
    for key in [
        "",
        "short",
        "dGhlIHNhbXBsZSBub25jZQ",
        "dGhlIHNhbXBsZSBub25jZTE=",
    ] {
        check_refused(KEY, key, 400, text);
    }
    let header = format!("Sec-WebSocket-Key: {KEY}\r\n");
    check_refused(&header, "", 400, text);
    check_refused(&header, &header.repeat(2), 400, text);
}

#[test]
fn a_head_beyond_its_bounds_is_refused() {
    let text = "expected a head of at most 32768 bytes, got more";
    let long = format!("Origin: {}", "o".repeat(HEAD_BYTES_MAX));
    check_refused("Origin: ", &long, 431, text);
    let text = "expected at most 100 headers, got more";
    let many = format!("{}Origin:", "A: b\r\n".repeat(100));
    check_refused("Origin:", &many, 431, text);
}

#[test]
fn a_request_without_an_end_is_not_awaited_forever() {
    let endless = [
        b"GET / HTTP/1.1\r\nX: "[..].to_vec(),
        vec![b'x'; HEAD_BYTES_MAX],
    ]
    .concat();
    assert_eq!(
        parse_request(&endless[..HEAD_BYTES_MAX - 1], HEAD_BYTES_MAX),
        Ok(None)
    );
    let too_large = Err(HandshakeError::TooLarge {
        bytes_max: HEAD_BYTES_MAX,
    });
    assert_eq!(
        parse_request(&endless[..HEAD_BYTES_MAX], HEAD_BYTES_MAX),
        too_large
    );
    assert_eq!(parse_request(&endless, HEAD_BYTES_MAX), too_large);
}

#[test]
fn a_long_head_is_read_as_far_as_it_may_go() {
    let cookie = format!("Cookie: sid={}\r\n\r\n", "c".repeat(8_800));
    for end in ["\r\n\r\n", "\n\n", "\n\r\n"] {
        let bytes = GOOD.replacen("\r\n\r\n", "\r\n", 1) + &cookie.replace("\r\n\r\n", end);
        let whole = bytes.as_bytes();
        for at in [4_000, 4_097, 8_192, whole.len() - 1] {
            assert_eq!(
                parse_request(&whole[..at], HEAD_BYTES_MAX),
                Ok(None),
                "{at}"
            );
        }
        let parsed = parse_request(whole, whole.len()).expect("well-formed");
        assert_eq!(parsed.expect("whole").0, whole.len());
        let refused = parse_request(whole, whole.len() - 1).expect_err("too long");
        assert_eq!(refused.status(), 431);
    }
}

#[test]
fn responses_have_the_expected_bytes() {
    assert_eq!(accept_key(KEY), ACCEPT);
    assert_eq!(key(*b"the sample nonce"), KEY);
    let accepted = accept_response(KEY, Some("wamp.2.json"), None, &[("Server", "a\r\nb")]);
    let expected = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
        Sec-WebSocket-Protocol: wamp.2.json\r\nServer: a  b\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&accepted), expected);
    let rejected = closing_response(426, "expected 13", &[]);
    let expected = "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nConnection: Upgrade, close\r\n\
        Content-Type: text/plain; charset=utf-8\r\nContent-Length: 12\r\n\r\nexpected 13\n";
    assert_eq!(String::from_utf8_lossy(&rejected), expected);
    for status in [400, 403, 404, 431, 503] {
        let rejected = String::from_utf8(closing_response(status, "no", &[])).expect("text");
        assert!(
            rejected.starts_with(&format!("HTTP/1.1 {status} ")),
            "{rejected}"
        );
        assert!(rejected.contains("Connection: close\r\n"), "{rejected}");
    }
}

fn client() -> ClientRequest<'static> {
    ClientRequest {
        host: "example.com",
        target: "/ws",
        key: KEY,
        protocols: &["wamp.2.cbor", "wamp.2.json"],
        extensions: Some("permessage-deflate"),
        headers: &[("Cookie", "a=b")],
    }
}

#[test]
fn a_server_reads_the_request_of_a_client() {
    let bytes = String::from_utf8(client().to_bytes()).expect("text");
    let request = parsed(&bytes);
    let upgrade = request.upgrade().expect("a good handshake");
    assert_eq!(request.target, "/ws");
    assert_eq!(request.header("cookie"), Some("a=b"));
    assert_eq!(upgrade.protocols, client().protocols);
    assert_eq!(upgrade.extensions, ["permessage-deflate"]);
    let bytes = accept_response(upgrade.key, Some("wamp.2.json"), None, &[]);
    for at in 0..bytes.len() {
        assert_eq!(client().accept(&bytes[..at]), Ok(None));
    }
    let (length, accepted) = client().accept(&bytes).expect("good").expect("whole");
    assert_eq!(length, bytes.len());
    assert_eq!(
        (accepted.protocol, accepted.extensions.len()),
        (Some("wamp.2.json"), 0)
    );
}

#[test]
fn bad_responses_are_refused() {
    let good = accept_response(KEY, Some("wamp.2.json"), Some("permessage-deflate"), &[]);
    let good = String::from_utf8(good).expect("text");
    let header = |name| ResponseError::Header { name };
    let check = |from: &str, to: &str, expected| {
        assert!(good.contains(from), "{from}");
        let bytes = good.replacen(from, to, 1);
        let error = client().accept(bytes.as_bytes()).expect_err(to);
        assert_eq!(error, expected, "{bytes}");
    };
    check("101", "404", ResponseError::Status { status: 404 });
    check(
        "HTTP/1.1",
        "HTTP/9.1",
        ResponseError::Head(HandshakeError::HttpVersion),
    );
    check(
        "HTTP/1.1 101",
        "HTTP/1.1 1x1",
        ResponseError::Head(HandshakeError::Malformed),
    );
    check("Upgrade: websocket", "Upgrade: h2c", header("Upgrade"));
    check(
        "Connection: Upgrade",
        "Connection: close",
        header("Connection"),
    );
    check(ACCEPT, KEY, header("Sec-WebSocket-Accept"));
    check(
        "wamp.2.json",
        "wamp.2.msgpack",
        header("Sec-WebSocket-Protocol"),
    );
    check(
        "wamp.2.json",
        "wamp.2.json, wamp.2.cbor",
        header("Sec-WebSocket-Protocol"),
    );
    let unasked = ClientRequest {
        extensions: None,
        ..client()
    };
    let error = unasked.accept(good.as_bytes()).expect_err("not asked for");
    assert_eq!(error, header("Sec-WebSocket-Extensions"));
}

#[test]
fn a_sent_head_has_one_header_per_line() {
    let request = ClientRequest {
        target: "/a b\r\nX: y",
        host: "h\r\nX: y",
        ..client()
    };
    let bytes = String::from_utf8(request.to_bytes()).expect("text");
    assert!(
        bytes.starts_with("GET /a_b__X:_y HTTP/1.1\r\nHost: h  X: y\r\n"),
        "{bytes}"
    );
}

#[test]
fn subprotocols_name_serializers() {
    for serializer in Serializer::ALL {
        for batched in [false, true] {
            let name = subprotocol(serializer, batched);
            assert_eq!(from_subprotocol(name), Some((serializer, batched)));
        }
    }
    assert_eq!(
        subprotocol(Serializer::MsgPack, true),
        "wamp.2.msgpack.batched"
    );
    for name in [
        "",
        "wamp",
        "wamp.2",
        "wamp.1.json",
        "wamp.2.ubjson",
        "WAMP.2.JSON",
    ] {
        assert_eq!(from_subprotocol(name), None);
    }
}
