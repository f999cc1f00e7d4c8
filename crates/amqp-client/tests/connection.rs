//! A connection against a scripted broker: its messages, split at any point, and its ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crosstie_amqp::frame::{self, Decoded, HEARTBEAT};
use crosstie_amqp::method::{
    BasicAck, BasicDeliver, ChannelClose, ChannelOpenOk, ConnectionBlocked, ConnectionClose,
    ConnectionOpenOk, ConnectionStart, ConnectionTune, QueueDeclare, QueueDeclareOk,
};
use crosstie_amqp::{FrameKind, Method, PROTOCOL_HEADER, Properties};
use crosstie_amqp_client::{Connection, ConnectionError, ConnectionOptions, TransportUrl};

/// A broker's end of a connection.
struct Broker {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Broker {
    /// Up to the open vhost and channel 1.
    fn accept(listener: &TcpListener, heartbeat: u16) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_nodelay(true).expect("a socket");
        let mut broker = Self {
            stream,
            input: Vec::new(),
        };
        let mut header = [0; 8];
        broker.stream.read_exact(&mut header).expect("a header");
        assert_eq!(header, PROTOCOL_HEADER);
        broker.say(|out| {
            let start = ConnectionStart {
                version_minor: 9,
                mechanisms: b"PLAIN AMQPLAIN",
                locales: b"en_US",
                ..ConnectionStart::default()
            };
            frame::write_method(0, &start, out);
        });
        assert_eq!(broker.hear(), "connection.start-ok");
        broker.say(|out| {
            let tune = ConnectionTune {
                channel_max: 10,
                frame_max: 4096,
                heartbeat,
            };
            frame::write_method(0, &tune, out);
        });
        assert_eq!(broker.hear(), "connection.tune-ok");
        assert_eq!(broker.hear(), "connection.open");
        broker.say(|out| frame::write_method(0, &ConnectionOpenOk::default(), out));
        assert_eq!(broker.hear(), "channel.open");
        broker.say(|out| frame::write_method(1, &ChannelOpenOk::default(), out));
        broker
    }

    fn say(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut out);
        self.stream.write_all(&out).expect("a client");
    }

    /// The next frame: a method's name, or its kind; `end` at the end.
    fn hear(&mut self) -> String {
        loop {
            if let Decoded::Frame { frame, consumed } =
                frame::decode(&self.input, 0).expect("a frame")
            {
                let said = match frame.kind {
                    FrameKind::Method => Method::decode(frame.payload)
                        .expect("a method")
                        .name()
                        .to_owned(),
                    kind => format!("{kind:?}"),
                };
                self.input.drain(..consumed);
                return said;
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return "end".to_owned(),
                Ok(bytes) => self.input.extend_from_slice(&buffer[..bytes]),
            }
        }
    }
}

/// Runs a broker's script beside a client's.
fn between<T>(
    heartbeat: u16,
    broker: impl FnOnce(Broker) -> T + Send,
    client: impl FnOnce(Connection),
) -> T
where
    T: Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let url: TransportUrl = format!("rabbit://127.0.0.1:{port}").parse().expect("a URL");
    thread::scope(|scope| {
        let broker = scope.spawn(|| broker(Broker::accept(&listener, heartbeat)));
        let mut connection = Connection::open(&url, &ConnectionOptions::default()).expect("opened");
        connection.open_channel(1).expect("opened");
        client(connection);
        broker.join().expect("the broker's script")
    })
}

const SOON: Option<Duration> = Some(Duration::from_secs(30));

fn deliver(tag: u64, body: &[u8], out: &mut Vec<u8>) {
    let deliver = BasicDeliver {
        consumer_tag: "1",
        delivery_tag: tag,
        routing_key: "q",
        ..BasicDeliver::default()
    };
    frame::write_method(1, &deliver, out);
    frame::write_content(1, Properties::EMPTY.bytes(), body, 4096, out);
}

#[test]
fn contents_come_however_they_are_cut() {
    let bodies = [0, 1, 4088, 4089, 100_000].map(|bytes| vec![7; bytes]);
    between(
        0,
        |mut broker| {
            let mut bytes = Vec::new();
            for (tag, body) in bodies.iter().enumerate() {
                deliver(tag as u64, body, &mut bytes);
                bytes.extend_from_slice(&HEARTBEAT);
            }
            for piece in bytes.chunks(997) {
                broker.say(|out| out.extend_from_slice(piece));
            }
            assert_eq!(broker.hear(), "connection.close");
            assert_eq!(broker.hear(), "end");
        },
        |mut connection| {
            assert_eq!(
                (connection.frame_bytes_max(), connection.channel_max()),
                (4096, 10)
            );
            for (tag, body) in bodies.iter().enumerate() {
                let event = connection
                    .next_event(SOON)
                    .expect("alive")
                    .expect("in time");
                assert!(
                    matches!(event.method, Method::BasicDeliver(d) if d.delivery_tag == tag as u64)
                );
                assert_eq!(event.content.expect("a content").body, *body);
            }
            let nothing = connection.next_event(Some(Duration::ZERO));
            assert!(matches!(nothing, Ok(None)));
            connection.send(0, &ConnectionClose::default());
            connection.flush().expect("written");
        },
    );
}

#[test]
fn events_before_an_answer_are_kept() {
    between(
        0,
        |mut broker| {
            assert_eq!(broker.hear(), "queue.declare");
            broker.say(|out| {
                deliver(1, b"first", out);
                frame::write_method(
                    1,
                    &QueueDeclareOk {
                        queue: "q",
                        ..Default::default()
                    },
                    out,
                );
                deliver(2, b"second", out);
            });
            assert_eq!(broker.hear(), "end");
        },
        |mut connection| {
            let declared = connection
                .call(1, &QueueDeclare::default())
                .expect("declared");
            assert!(matches!(declared, Method::QueueDeclareOk(ok) if ok.queue == "q"));
            for body in [b"first".as_slice(), b"second"] {
                let event = connection
                    .next_event(SOON)
                    .expect("alive")
                    .expect("in time");
                assert_eq!(event.content.expect("a content").body, body);
            }
        },
    );
}

#[test]
fn buffered_methods_leave_in_order_with_the_next_wait() {
    between(
        0,
        |mut broker| {
            assert_eq!(broker.hear(), "basic.ack");
            assert_eq!(broker.hear(), "basic.publish");
            assert_eq!(broker.hear(), "Header");
            assert_eq!(broker.hear(), "Body");
            assert_eq!(broker.hear(), "Body");
            broker.say(|out| frame::write_method(1, &BasicAck::default(), out));
            assert_eq!(broker.hear(), "end");
        },
        |mut connection| {
            connection.send(1, &BasicAck::default());
            let properties = Properties::EMPTY.bytes();
            connection.publish(1, &Default::default(), properties, &[0; 5000]);
            let event = connection
                .next_event(SOON)
                .expect("alive")
                .expect("in time");
            assert!(matches!(event.method, Method::BasicAck(_)));
        },
    );
}

#[test]
fn heartbeats_are_sent_and_missed() {
    let heard = between(
        1,
        |mut broker| {
            let heard = [broker.hear(), broker.hear()];
            while broker.hear() != "end" {}
            heard
        },
        |mut connection| {
            // The broker sends nothing at all.
            let error = connection.next_event(SOON).expect_err("silence");
            assert_eq!(
                error.to_string(),
                "the broker has been silent for twice the heartbeat of 1 s"
            );
        },
    );
    assert_eq!(heard, ["Heartbeat", "Heartbeat"]);
}

#[test]
fn endings_say_why() {
    let check = |say: fn(&mut Vec<u8>), answer: &str, expected: &str| {
        between(
            0,
            |mut broker| {
                broker.say(say);
                if answer != "nothing" {
                    assert_eq!(broker.hear(), answer);
                }
            },
            |mut connection| {
                let error = connection.next_event(SOON).expect_err("an end");
                assert_eq!(error.to_string(), expected);
            },
        );
    };
    check(
        |out| {
            let close = ConnectionClose {
                reply_code: 320,
                reply_text: "CONNECTION_FORCED - bye",
                ..Default::default()
            };
            frame::write_method(0, &close, out);
        },
        "connection.close-ok",
        "the broker closed the connection: 320 CONNECTION_FORCED - bye",
    );
    check(
        |out| {
            let close = ChannelClose {
                reply_code: 404,
                reply_text: "NOT_FOUND - no exchange 'x'",
                ..Default::default()
            };
            frame::write_method(1, &close, out);
        },
        "channel.close-ok",
        "the broker closed channel 1: 404 NOT_FOUND - no exchange 'x'",
    );
    check(
        |_| {},
        "nothing",
        "the broker closed the socket without saying why",
    );
    check(
        |out| out.extend_from_slice(b"HTTP/1.1"),
        "nothing",
        "the broker sent a frame of type 72, expected 1 (method), 2 (header), 3 (body) or 8 (heartbeat)",
    );
    check(
        |out| {
            let mut content = Vec::new();
            deliver(1, b"body", &mut content);
            // Another method in place of the body.
            out.extend_from_slice(&content[..content.len() - 12]);
            frame::write_method(1, &BasicAck::default(), out);
        },
        "nothing",
        "the broker sent another frame within a content",
    );
}

#[test]
fn a_broker_that_takes_no_messages_is_named_as_the_reason() {
    between(
        0,
        |mut broker| {
            broker.say(|out| {
                let blocked = ConnectionBlocked {
                    reason: "low on memory",
                };
                frame::write_method(0, &blocked, out);
                frame::write_method(1, &BasicAck::default(), out);
            });
            assert_eq!(broker.hear(), "end");
        },
        |mut connection| {
            assert_eq!(connection.blocked(), None);
            connection
                .next_event(SOON)
                .expect("alive")
                .expect("in time");
            assert_eq!(connection.blocked(), Some("low on memory"));
        },
    );
}

#[test]
fn other_servers_are_not_mistaken_for_brokers() {
    let check = |say: &'static [u8], expected: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let url = format!("rabbit://127.0.0.1:{port}").parse().expect("a URL");
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.read_exact(&mut [0; 8]).expect("a header");
                stream.write_all(say).expect("a client");
            });
            let opened = Connection::open(&url, &ConnectionOptions::default());
            let error = opened.err().expect("no broker");
            assert_eq!(error.to_string(), expected);
        });
    };
    check(b"", "the broker closed the socket without saying why");
    check(
        b"AMQP\0\x01\0\0",
        r#"expected AMQP 0-9-1, the peer says "AMQP\x00\x01\x00\x00""#,
    );
    check(
        b"HTTP/1.1 400",
        r#"expected AMQP 0-9-1, the peer says "HTTP/1.1 400""#,
    );
}

#[test]
fn a_host_without_a_broker_behind_it_is_passed_over() {
    let [ends, is_mute, is_there] =
        [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let hosts = [port(&ends), port(&is_mute), port(&is_there)];
    let url = |hosts: &[u16]| -> TransportUrl {
        let hosts: Vec<_> = hosts
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        format!("rabbit://{}", hosts.join(","))
            .parse()
            .expect("a URL")
    };
    let options = ConnectionOptions {
        connect_timeout: Duration::from_millis(300),
        ..ConnectionOptions::default()
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 {
                drop(ends.accept().expect("a client"));
            }
        });
        scope.spawn(|| assert_eq!(Broker::accept(&is_there, 0).hear(), "end"));
        let mut connection = Connection::open(&url(&hosts), &options).expect("the third");
        assert_eq!(connection.host().port, hosts[2]);
        connection.open_channel(1).expect("opened");
        drop(connection);
        // The last reason is reported if none of them is a broker.
        let error = Connection::open(&url(&hosts[..2]), &options).err();
        let Some(ConnectionError::Timeout { waited, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(waited, options.connect_timeout);
    });
}

#[test]
fn unreachable_hosts_are_named() {
    let url = "rabbit://127.0.0.1:1,[::1]:1".parse().expect("a URL");
    let error = Connection::open(&url, &ConnectionOptions::default()).err();
    let Some(ConnectionError::Unreachable(tried)) = error else {
        panic!("{error:?}");
    };
    let hosts: Vec<_> = tried.iter().map(|(host, _)| host.as_str()).collect();
    assert_eq!(hosts, ["127.0.0.1:1", "[::1]:1"]);
}
