//! MQTT, beside WAMP in one realm: exact packets of MQTT 5.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crosstie_config::{Transport, transport_from_json};
use crosstie_router::Rows;
use crosstie_routing::Role;

use crate::rig::{Peer, Rig, limits};

/// A client of MQTT 5.
struct Mqtt(TcpStream);

impl Mqtt {
    /// Sends CONNECT with a clean start and a keep alive of a minute.
    fn connect(address: SocketAddr, id: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("somebody listens");
        let timeout = Some(Duration::from_secs(20));
        stream.set_read_timeout(timeout).expect("a timeout");
        let mut body = b"\x00\x04MQTT\x05\x02\x00\x3c\x00".to_vec();
        text(id, &mut body);
        send(&mut stream, 0x10, &body);
        Self(stream)
    }

    fn joined(address: SocketAddr, id: &str) -> Self {
        let mut client = Self::connect(address, id);
        let (first, body) = client.receive();
        assert_eq!((first, &body[..2]), (0x20, &[0, 0][..]), "a CONNACK");
        client
    }

    /// Sends SUBSCRIBE with QoS 1; returns the reason.
    fn subscribe(&mut self, filter: &str) -> u8 {
        let mut body = b"\x00\x01\x00".to_vec();
        text(filter, &mut body);
        body.push(1);
        send(&mut self.0, 0x82, &body);
        let (first, body) = self.receive();
        assert_eq!(first, 0x90, "a SUBACK");
        body[3]
    }

    /// Sends PUBLISH with QoS 1; returns the reason.
    fn publish(&mut self, topic: &str, payload: &str) -> u8 {
        let mut body = Vec::new();
        text(topic, &mut body);
        body.extend_from_slice(b"\x00\x07\x00");
        body.extend_from_slice(payload.as_bytes());
        send(&mut self.0, 0x32, &body);
        let (first, body) = self.receive();
        assert_eq!((first, &body[..2]), (0x40, &[0, 7][..]), "a PUBACK");
        body.get(2).copied().unwrap_or(0)
    }

    /// Expects a PUBLISH with QoS 1.
    fn expect(&mut self, topic: &str, payload: &str) {
        let (first, body) = self.receive();
        let (topic_bytes, rest) = (usize::from(body[1]), &body[2..]);
        let found = std::str::from_utf8(&rest[..topic_bytes]).expect("a topic");
        let found_payload = std::str::from_utf8(&rest[topic_bytes + 3..]).expect("a text");
        assert_eq!((first, found, found_payload), (0x32, topic, payload));
    }

    /// The next packet: its first byte, and the bytes behind its length; empty at the end.
    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        match self.0.read_exact(&mut head) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return (0, Vec::new()),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return (0, Vec::new()),
            Err(e) => panic!("{e}"),
        }
        assert!(head[1] < 0x80, "a short packet");
        let mut body = vec![0; usize::from(head[1])];
        self.0.read_exact(&mut body).expect("a whole packet");
        (head[0], body)
    }

    fn expect_end(&mut self) {
        assert_eq!(self.receive(), (0, Vec::new()), "the end without a packet");
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn send(stream: &mut TcpStream, first: u8, body: &[u8]) {
    let length = u8::try_from(body.len()).expect("a short packet");
    assert!(length < 0x80, "a short packet");
    let mut packet = vec![first, length];
    packet.extend_from_slice(body);
    stream.write_all(&packet).expect("is open");
}

/// A transport of that type with these further keys.
fn transport(kind: &str, keys: &str) -> Transport {
    let endpoint = r#""endpoint": {"type": "tcp", "interface": "127.0.0.1", "port": 0}"#;
    let json = format!(r#"{{"id": "mqtt", "type": "{kind}", {endpoint}, {keys}}}"#);
    let json = serde_json::from_str(&json).expect("is JSON");
    transport_from_json(&json).expect("a transport")
}

fn alone(role: &str) -> Transport {
    let auth = format!(r#"{{"anonymous": {{"type": "static", "role": "{role}"}}}}"#);
    let options = format!(r#""options": {{"realm": "realm1", "auth": {auth}}}"#);
    transport("mqtt", &options)
}

fn start(rig: &Rig, transport: &Transport) -> SocketAddr {
    let urls = rig.router.start_transport(transport).expect("a free port");
    let url = urls.iter().find_map(|url| url.strip_prefix("mqtt://"));
    url.expect("an address of MQTT")
        .parse()
        .expect("an address")
}

#[test]
fn clients_of_both_protocols_meet_on_one_name() {
    let rig = Rig::start();
    let address = start(&rig, &alone("anonymous"));
    let mut subscriber = Mqtt::joined(address, "subscriber");
    assert_eq!(subscriber.subscribe("home/+/t"), 1);
    let mut wamp = rig.joined("realm1");
    wamp.send(r#"[32,1,{"match":"prefix"},"home."]"#);
    wamp.expect("[33,1,");
    wamp.send(r#"[16,2,{"acknowledge":true},"home.kitchen.t",["21.5"]]"#);
    wamp.expect("[17,2,");
    subscriber.expect("home/kitchen/t", "21.5");

    let mut publisher = Mqtt::joined(address, "publisher");
    assert_eq!(publisher.publish("home/hall/t", r#"{"t":1}"#), 0);
    subscriber.expect("home/hall/t", r#"{"t":1}"#);
    let event = wamp.receive();
    assert!(
        event.ends_with(r#"{"topic":"home.hall.t"},[],{"t":1}]"#),
        "{event}"
    );
    // It has no URI.
    assert_eq!(subscriber.subscribe("home//t"), 1);
    assert_eq!(publisher.publish("home//t", "x"), 0);
    subscriber.expect("home//t", "x");
    wamp.expect_served();
}

#[test]
fn the_realm_decides_on_each_topic() {
    let rig = Rig::start();
    let mut role = Role::everything("sensor");
    role.permissions[0].uri = "home.".to_owned();
    rig.router.start_role("realm1", &role).expect("is new");
    let address = start(&rig, &alone("sensor"));
    let mut client = Mqtt::joined(address, "client");
    for (filter, expected) in [
        ("home/#", 1),
        ("home/+/t", 1),
        ("other/t", 0x87),
        ("#", 0x87),
        ("+/t", 0x87),
        ("wamp/session/on_join", 0x87),
        ("$share/g/other/t", 0x87),
    ] {
        assert_eq!(client.subscribe(filter), expected, "{filter}");
    }
    let mut publisher = Mqtt::joined(address, "publisher");
    for (topic, expected) in [("other/t", 0x87), ("home.t", 0x87), ("wamp/t", 0x87)] {
        assert_eq!(publisher.publish(topic, "x"), expected, "{topic}");
    }
    assert_eq!(publisher.publish("home/t", "x"), 0);
    client.expect("home/t", "x");
}

#[test]
fn clients_end_without_a_packet_at_a_stop_and_with_one_at_a_kill() {
    let rig = Rig::start();
    let address = start(&rig, &alone("anonymous"));
    let mut killed = Mqtt::joined(address, "killed");
    let rows = Rows {
        realm: None,
        text: "",
        offset: 0,
        limit: 10,
    };
    let sessions = rig.router.sessions(&rows);
    let its = |peer: &str| peer.ends_with(&killed.0.local_addr().expect("is open").to_string());
    let session = sessions.iter().find(|session| its(&session.peer));
    let session = session.expect("it is listed");
    assert_eq!(session.framing, "mqtt");
    rig.router.close_session(session.id, "x").expect("is there");
    assert_eq!(killed.receive(), (0xe0, vec![0x98]));
    killed.expect_end();

    let mut stopped = Mqtt::joined(address, "stopped");
    rig.router.stop_transport("mqtt").expect("runs");
    stopped.expect_end();
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
}

#[test]
fn a_client_beyond_the_limit_ends_without_a_packet() {
    let rig = Rig::start();
    let options = r#""max_connections": 1, "options": {"realm": "realm1"}"#;
    let address = start(&rig, &transport("mqtt", options));
    let first = Mqtt::joined(address, "first");
    Mqtt::connect(address, "second").expect_end();
    drop(first);
}

#[test]
fn the_first_byte_tells_mqtt_apart() {
    let rig = Rig::start_with(&limits());
    let keys = r#""rawsocket": {}, "mqtt": {"options": {"realm": "realm1"}}"#;
    let address = start(&rig, &transport("universal", keys));
    let mut client = Mqtt::joined(address, "client");
    assert_eq!(client.subscribe("a"), 1);
    let mut wamp = Peer::connect(address);
    wamp.join("realm1");
    wamp.send(r#"[16,1,{"acknowledge":true},"a",[1,2]]"#);
    wamp.expect("[17,1,");
    client.expect("a", "[1,2]");
}

#[test]
fn another_connection_takes_a_session_over() {
    let rig = Rig::start();
    let address = start(&rig, &alone("anonymous"));
    let mut first = Mqtt::joined(address, "same");
    let _second = Mqtt::joined(address, "same");
    assert_eq!(first.receive(), (0xe0, vec![0x8e]));
    first.expect_end();
}
