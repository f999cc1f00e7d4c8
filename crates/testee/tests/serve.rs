//! One connection of a testee over real sockets: its echoes, its end, its counts.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crosstie_testee::{Mode, Served, Serving, Statistics, Testee, Totals, WebSocketOptions, serve};
use crosstie_transport::{PeerAddress, Socket, WorkerOptions, Workers};

/// The result of a connection.
struct Outcome {
    /// The bytes that the peer received.
    received: Vec<u8>,
    served: Served,
    totals: Totals,
}

/// Sends `bytes` and the end to a testee.
fn exchange(testee: Testee, bytes: &[u8]) -> Outcome {
    let options = WorkerOptions {
        threads: 1,
        ..WorkerOptions::default()
    };
    let workers = Arc::new(Workers::start(options).expect("threads"));
    let statistics = Arc::<Statistics>::default();
    let serving = Serving::new(
        Arc::new(testee),
        Arc::clone(&workers),
        None,
        Arc::clone(&statistics),
    );
    let (ours, mut peer) = UnixStream::pair().expect("a pair");
    ours.set_nonblocking(true).expect("non-blocking");
    let socket = Socket::new(ours.into(), PeerAddress::Unix(None));
    let (sender, served) = std::sync::mpsc::channel();
    workers.spawn(async move {
        let _ = sender.send(serve(serving, socket).await);
    });
    peer.write_all(bytes).expect("sent");
    peer.shutdown(Shutdown::Write).expect("shut down");
    let mut received = Vec::new();
    peer.read_to_end(&mut received).expect("an end");
    let served = served.recv().expect("served");
    assert_eq!(statistics.connected(), 0, "counted out");
    workers.stop();
    Outcome {
        received,
        served,
        totals: statistics.totals(),
    }
}

#[test]
fn streams() {
    for (mode, bytes, expected) in [
        (Mode::Echo, &b"bytes"[..], &b"bytes"[..]),
        (Mode::Echo, b"", b""),
        (Mode::Discard, b"bytes", b""),
    ] {
        let outcome = exchange(Testee::Stream(mode), bytes);
        assert_eq!(outcome.received, expected);
        assert_eq!(outcome.served, Served::Ended);
        let count = |bytes: &[u8]| bytes.len() as u64;
        let totals = Totals {
            handshakes: 1,
            messages: 0,
            bytes: count(expected),
            wire_in: count(bytes),
            wire_out: count(expected),
        };
        assert_eq!(outcome.totals, totals);
    }
    let outcome = exchange(Testee::Stream(Mode::Chargen), b"bytes");
    assert_eq!(outcome.received.len() as u64, outcome.totals.wire_out);
    assert!(
        b" !\"#$%&'()*+,"
            .iter()
            .zip(&outcome.received)
            .all(|(a, b)| a == b)
    );
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The example of RFC 6455 section 1.3.
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// After its opening handshake a client sends `frames`; expects `answer` back, and `fault` as the reported fault.
fn check(options: WebSocketOptions, frames: &[u8], answer: &[u8], fault: Option<&str>) {
    let outcome = exchange(Testee::WebSocket(options), &[REQUEST, frames].concat());
    let text = String::from_utf8_lossy(&outcome.received);
    assert!(text.starts_with("HTTP/1.1 101 "), "{text}");
    assert!(text.contains(ACCEPT), "{text}");
    assert_eq!(text.contains("\r\nServer: "), options.show_server_version);
    assert_eq!(outcome.totals.handshakes, 1);
    let end = b"\r\n\r\n";
    let head = outcome.received.windows(end.len()).position(|w| w == end);
    let answered = &outcome.received[head.expect("a head") + end.len()..];
    match fault {
        None => {
            assert_eq!(answered, answer, "{frames:x?}");
            assert_eq!(outcome.served, Served::Ended);
        }
        Some(fault) => {
            assert!(answered.starts_with(answer), "{answered:x?}");
            assert!(outcome.served.is_fault());
            assert!(
                outcome.served.to_string().contains(fault),
                "{}",
                outcome.served
            );
        }
    }
}

#[test]
fn websockets() {
    let usual = WebSocketOptions::default();
    let small = WebSocketOptions {
        message_bytes_max: 3,
        show_server_version: true,
        ..usual
    };
    let narrow = WebSocketOptions {
        frame_bytes_max: 2,
        ..usual
    };
    let echoing = WebSocketOptions {
        echo_close: true,
        ..usual
    };
    let dropping = WebSocketOptions {
        fail_by_drop: true,
        ..usual
    };
    let text = b"\x81\x83\0\0\0\0abc";
    let close = b"\x88\x84\0\0\0\0\x03\xe9hi";
    check(usual, b"", b"", None);
    check(usual, text, b"\x81\x03abc", None);
    check(small, text, b"\x81\x03abc", None);
    check(narrow, text, b"\x88", Some("at most 2 bytes, got 3"));
    check(usual, close, b"\x88\x02\x03\xe9", None);
    check(echoing, close, b"\x88\x04\x03\xe9hi", None);
    check(
        small,
        b"\x82\x84\0\0\0\0",
        b"\x88",
        Some("at most 3 bytes, got 4"),
    );
    check(
        usual,
        b"\x81\x81\0\0\0\0\xff",
        b"\x88\x0f\x03\xefinvalid UTF-8",
        Some("UTF-8"),
    );
    check(
        dropping,
        b"\x81\x83\0\0\0\0abc\x83\x80",
        b"\x81\x03abc",
        Some("opcode 3"),
    );
}

#[test]
fn a_request_that_opens_nothing() {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let outcome = exchange(Testee::WebSocket(WebSocketOptions::default()), request);
    assert!(outcome.received.starts_with(b"HTTP/1.1 426 "));
    assert_eq!(outcome.totals.handshakes, 0);
    assert!(outcome.served.is_fault());
}
