//! Accepted and refused clients.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::{ConnectionClose, ConnectionCloseOk, ConnectionStartOk};
use crosstie_amqp::{Arguments, Method, PROTOCOL_HEADER, TableBuf, Value};
use crosstie_config::{AmqpIdentity, AmqpPermission, AmqpUser, AmqpVhost, Endpoint};

use crate::rig::{Client, Rig, Setting, transport};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A client that has received `connection.start`.
fn started(rig: &Rig) -> Client {
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    client.expect("0 connection.start");
    client
}

#[test]
fn the_server_properties_name_the_server() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    let mut client = Client::connect(rig.address);
    // Byte by byte works like all at once.
    for byte in PROTOCOL_HEADER {
        client.write(&[byte]);
    }
    let start = client.expect("0 connection.start");
    let Method::ConnectionStart(start) = start.method() else {
        panic!("is connection.start");
    };
    assert_eq!(start.mechanisms, b"PLAIN AMQPLAIN");
    let property = |name| start.server_properties.find(name);
    let text = |name| property(name).and_then(Value::as_str).unwrap_or_default();
    assert_eq!((text("product"), text("version")), ("RabbitMQ", "3.13.7"));
    assert_eq!(text("platform"), itself());
    assert!(text("information").starts_with(&itself()), "{start:?}");
    assert!(text("cluster_name").starts_with("crosstie@"), "{start:?}");
    let Some(Value::Table(capabilities)) = property("capabilities") else {
        panic!("capabilities are a table");
    };
    let knows = |name| capabilities.find(name) == Some(Value::Bool(true));
    for capability in [
        "publisher_confirms",
        "connection.blocked",
        "consumer_priorities",
    ] {
        assert!(knows(capability), "{capability}");
    }

    client.start_ok("PLAIN", b"\0guest\0guest");
    let tune = client.expect("0 connection.tune");
    let Method::ConnectionTune(tune) = tune.method() else {
        panic!("is connection.tune");
    };
    let tuned = (tune.channel_max, tune.frame_max, tune.heartbeat);
    assert_eq!(tuned, (2047, 131_072, 60));
    client.tune_ok(2047, 131_072, 60);
    client.open("/");
    client.expect("0 connection.open-ok");
    client.send(0, &ConnectionClose::default());
    client.expect("0 connection.close-ok");
}

#[test]
fn configured_server_properties_are_sent() {
    let directory = directory();
    let mut setting = Setting::default();
    setting.amqp.identity = AmqpIdentity {
        product: "another".to_owned(),
        version: "1".to_owned(),
        cluster_name: Some("here".to_owned()),
    };
    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    let start = client.expect("0 connection.start");
    let Method::ConnectionStart(start) = start.method() else {
        panic!("is connection.start");
    };
    let text = |name| start.server_properties.find(name).and_then(Value::as_str);
    let said = ["product", "version", "cluster_name", "platform"].map(text);
    let itself = itself();
    let wanted = ["another", "1", "here", &itself];
    assert_eq!(said, wanted.map(Some));
}

fn itself() -> String {
    format!("Crosstie {}", env!("CARGO_PKG_VERSION"))
}

#[test]
fn a_frame_before_tuning_is_a_small_one() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    // Before tuning, the minimum frame size applies; the envelope does not count.
    for (payload_bytes, said) in [
        (4096, "0 connection.tune"),
        (
            4097,
            "0 connection.close 501 FRAME_ERROR - a frame's payload of 4097 bytes, where frames of 4096 are the longest",
        ),
    ] {
        let start_ok = |padding: &[u8]| {
            let properties = TableBuf::new().with("padding", Value::LongString(padding));
            let mut bytes = Vec::new();
            ConnectionStartOk {
                client_properties: properties.as_table(),
                mechanism: "PLAIN",
                response: b"\0guest\0guest",
                locale: "en_US",
            }
            .write(&mut bytes);
            bytes
        };
        let padding = payload_bytes - start_ok(b"").len();
        let mut client = started(&rig);
        let mut bytes = Vec::new();
        frame::write(FrameKind::Method, 0, &mut bytes, |out| {
            out.extend(start_ok(&vec![b'x'; padding]));
        });
        client.write(&bytes);
        client.expect(said);
    }
}

#[test]
fn another_protocol_gets_the_supported_header() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    for header in [
        b"AMQP\x03\x01\x00\x00".as_slice(),
        b"AMQP\x01\x01\x07\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x7f\xf1\x00\x00",
        b"x",
    ] {
        let mut client = Client::connect(rig.address);
        client.write(header);
        assert_eq!(client.read_to_end(), PROTOCOL_HEADER, "{header:?}");
    }
}

/// A user without a password, and a vhost for this user only.
fn setting_with_another_vhost() -> Setting {
    let mut setting = Setting::default();
    setting.amqp.users.push(AmqpUser {
        name: "certified".to_owned(),
        password: None,
        tags: Vec::new(),
        is_remote_allowed: true,
        is_default: false,
    });
    setting.amqp.vhosts.push(AmqpVhost {
        name: "other".to_owned(),
        permissions: vec![AmqpPermission {
            user: "certified".to_owned(),
            configure: ".*".to_owned(),
            write: ".*".to_owned(),
            read: ".*".to_owned(),
        }],
        replicated: None,
        is_default: false,
    });
    setting
}

#[test]
fn a_login_that_fails_is_refused() {
    let directory = directory();
    let rig = Rig::start_with(directory.path(), &setting_with_another_vhost());
    let refused = "0 connection.close 403 ACCESS_REFUSED - Login was refused using authentication \
                   mechanism PLAIN. For details see the broker logfile.";
    for response in [
        b"\0guest\0wrong".as_slice(),
        b"\0nobody\0guest",
        b"\0certified\0",
        b"guest",
        b"",
    ] {
        let mut client = started(&rig);
        client.start_ok("PLAIN", response);
        client.expect(refused);
        client.send(0, &ConnectionCloseOk {});
        client.expect_end();
    }

    let mut client = started(&rig);
    client.start_ok("NTLM", b"");
    client
        .expect("0 connection.close 503 COMMAND_INVALID - unknown authentication mechanism 'NTLM'");
    assert_eq!(rig.router.amqp().expect("is on").connections(), []);
}

#[test]
fn invalid_limits_are_refused() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    for (channels, frame, said) in [
        (
            2048,
            131_072,
            "negotiated channel_max = 2048 is higher than the maximum allowed value (2047)",
        ),
        (
            10,
            200_000,
            "negotiated frame_max = 200000 is higher than the maximum allowed value (131072)",
        ),
        (
            10,
            100,
            "negotiated frame_max = 100 is lower than the minimum allowed value (4096)",
        ),
    ] {
        let mut client = started(&rig);
        client.start_ok("PLAIN", b"\0guest\0guest");
        client.expect("0 connection.tune");
        client.tune_ok(channels, frame, 0);
        client.expect(&format!("0 connection.close 530 NOT_ALLOWED - {said}"));
    }
    assert_eq!(rig.router.amqp().expect("is on").connections(), []);
}

#[test]
fn a_vhost_that_a_user_may_not_enter_is_refused() {
    let directory = directory();
    let rig = Rig::start_with(directory.path(), &setting_with_another_vhost());
    for (vhost, said) in [
        ("nope", "vhost nope not found"),
        ("other", "access to vhost 'other' refused for user 'guest'"),
    ] {
        let mut client = started(&rig);
        client.start_ok("PLAIN", b"\0guest\0guest");
        client.expect("0 connection.tune");
        client.tune_ok(10, 131_072, 0);
        client.open(vhost);
        client.expect(&format!("0 connection.close 530 NOT_ALLOWED - {said}"));
    }
    assert_eq!(rig.router.amqp().expect("is on").connections(), []);
}

#[test]
fn a_method_out_of_its_turn_is_refused() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    let mut client = started(&rig);
    client.open("/");
    client.expect(
        "0 connection.close 503 COMMAND_INVALID - expected connection.start-ok, got \
         connection.open",
    );
    assert_eq!(rig.router.amqp().expect("is on").connections(), []);
}

#[test]
fn a_client_without_the_capability_gets_no_refusal() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    let mut client = started(&rig);
    client.send(
        0,
        &ConnectionStartOk {
            mechanism: "PLAIN",
            response: b"\0guest\0wrong",
            locale: "en_US",
            ..ConnectionStartOk::default()
        },
    );
    client.expect_end();
}

#[test]
fn amqplain_credentials_are_accepted() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    let mut client = started(&rig);
    let response = TableBuf::new()
        .with("LOGIN", Value::LongString(b"guest"))
        .with("PASSWORD", Value::LongString(b"guest"));
    client.start_ok("AMQPLAIN", response.as_table().bytes());
    client.expect("0 connection.tune");
}

#[test]
fn a_unix_socket_is_as_good() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    let path = directory.path().join("amqp.sock");
    let mut transport = transport(&Setting::default());
    transport.id = "unix".to_owned();
    transport.endpoint = Endpoint::Unix {
        path: "amqp.sock".to_owned(),
        backlog: 10,
        proxies: None,
    };
    let urls = rig.router.start_transport(&transport).expect("a free path");
    assert_eq!(urls, [format!("amqp+unix://{}", path.display())]);
    let mut client = Client::over(UnixStream::connect(path).expect("somebody listens"));
    client.enter();
    client.open_channel(1);
    let connections = rig.router.amqp().expect("is on").connections();
    assert!(connections[0].peer.starts_with("unix"), "{connections:?}");
}

#[test]
fn one_connection_too_many_is_closed() {
    let directory = directory();
    let setting = Setting {
        connections_max: Some(1),
        ..Setting::default()
    };
    let rig = Rig::start_with(directory.path(), &setting);
    let mut first = rig.client();
    let mut second = Client::connect(rig.address);
    second.write(&PROTOCOL_HEADER);
    second.expect_end();
    first.open_channel(1);
}

#[test]
fn heartbeats_go_both_ways() {
    let directory = directory();
    let rig = Rig::start(directory.path());
    let mut client = started(&rig);
    client.start_ok("PLAIN", b"\0guest\0guest");
    client.expect("0 connection.tune");
    client.tune_ok(10, 131_072, 1);
    client.open("/");
    client.expect("0 connection.open-ok");
    let heartbeat = client.receive().expect("a heartbeat");
    assert_eq!(heartbeat.said(), "0 Heartbeat");
    // A client that is silent for two intervals is closed.
    client.read_to_end();
}

#[test]
fn a_handshake_has_a_timeout() {
    let directory = directory();
    let mut setting = Setting::default();
    setting.transport.handshake_timeout = Duration::from_secs(1);
    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = started(&rig);
    client.expect_end();
}
