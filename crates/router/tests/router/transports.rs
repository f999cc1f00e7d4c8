//! Transports.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use crosstie_client::Client;
use crosstie_config::Endpoint;

use crate::rig::{Peer, Rig, address, limits, tcp, unix};

const STOP_TRANSPORT: &str = concat!(
    r#"[6,{"message":"this transport of the router is shutting down"},"#,
    r#""wamp.close.system_shutdown"]"#
);

#[test]
fn running_transports_are_listed() {
    let rig = Rig::start();
    let urls = rig.router.start_transport(&unix("local", "s.sock"));
    let urls = urls.expect("a free path");
    let _peer = rig.joined("realm1");
    let listed = rig.router.transports();
    assert_eq!(listed[0].id, "tcp");
    assert_eq!(listed[0].kind, "universal");
    assert_eq!(listed[0].connections, 1);
    assert_eq!(listed[1].id, "local");
    assert_eq!(listed[1].urls, urls);
    assert_eq!(listed[1].connections, 0);
}

#[test]
fn the_connections_of_a_stopped_transport_end_and_no_others() {
    let mut limits = limits();
    limits.shutdown_timeout = Duration::from_millis(100);
    let rig = Rig::start_with(&limits);
    let urls = rig.router.start_transport(&tcp("second", 0));
    let second = address(&urls.expect("a free port"));

    let mut other = rig.joined("realm1");
    let (mut polite, mut silent) = (Peer::connect(second), Peer::connect(second));
    polite.join("realm1");
    silent.join("realm1");
    let mut opening = Peer::connect(second);
    rig.router.stop_transport("second").expect("runs");
    opening.expect_end();
    polite.expect(STOP_TRANSPORT);
    polite.answer_goodbye();
    polite.expect_end();
    silent.expect(STOP_TRANSPORT);
    silent.expect_end();
    assert!(TcpStream::connect(second).is_err(), "nobody listens");

    other.expect_served();
    assert_eq!(rig.router.transports().len(), 1);
    assert_eq!(
        rig.router.stop_transport("second").unwrap_err().to_string(),
        "cannot stop transport second of worker worker1: none of that name runs"
    );
}

#[test]
fn a_transport_is_started_again_at_its_port() {
    let rig = Rig::start();
    let port = rig.address.port();
    let mut before = rig.joined("realm1");
    rig.router.stop_transport("tcp").expect("runs");
    let again = rig.router.start_transport(&tcp("tcp", port));
    again.expect("the port is free");
    rig.joined("realm1").expect_served();
    before.expect(STOP_TRANSPORT);
    before.answer_goodbye();
    before.expect_end();
}

#[test]
fn a_page_that_is_kept_open_does_not_outlive_its_transport() {
    let rig = Rig::start();
    let mut stream = TcpStream::connect(rig.address).expect("listens");
    let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).expect("is open");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("is answered");
    assert_eq!(&first, b"HTTP/1.1 200");
    rig.router.stop_transport("tcp").expect("runs");
    stream.read_to_end(&mut Vec::new()).expect("ends");
}

#[test]
fn errors_name_the_part_and_the_address() {
    let rig = Rig::start();
    let port = rig.address.port();
    let twice = rig.router.start_transport(&tcp("tcp", 0));
    assert_eq!(
        twice.unwrap_err().to_string(),
        "cannot start transport tcp of worker worker1: one of that name runs already"
    );
    let in_use = rig.router.start_transport(&tcp("second", port));
    let in_use = in_use.unwrap_err().to_string();
    let beginning =
        format!("cannot start transport second of worker worker1: 127.0.0.1:{port}: Address");
    assert!(in_use.starts_with(&beginning), "{in_use}");
    // A failed start prevents no later one, not even of the same transport.
    let free = rig.router.start_transport(&tcp("second", 0));
    free.expect("a free port");

    let long = "x".repeat(120);
    let too_long = rig.router.start_transport(&unix("long", &long));
    let too_long = too_long.unwrap_err().to_string();
    let bytes = rig.directory.path().as_os_str().len() + 1 + 120;
    let end = format!("the path of a Unix socket may have 107 bytes, not {bytes}");
    assert!(too_long.ends_with(&end), "{too_long}");
}

#[test]
fn the_first_free_port_of_a_range_is_used() {
    let rig = Rig::start();
    let taken = rig.address.port();
    let among = |id: &str, last: u16| {
        let mut transport = tcp(id, taken);
        if let Endpoint::Tcp(tcp) = &mut transport.endpoint {
            tcp.port_last = Some(last);
        }
        rig.router.start_transport(&transport)
    };
    let last = taken.saturating_add(100);
    let urls = among("second", last).expect("one of a hundred ports is free");
    assert!((taken + 1..=last).contains(&address(&urls).port()));
    Peer::connect(address(&urls)).join("realm1");

    let none = among("third", taken).unwrap_err().to_string();
    let text = format!(
        "cannot start transport third of worker worker1: 127.0.0.1: no port from {taken} to {taken} is free"
    );
    assert_eq!(none, text);
}

#[test]
fn a_unix_socket_in_use_is_not_replaced() {
    let rig = Rig::start();
    let path = rig.directory.path().join("s.sock");
    // Left behind by a killed process.
    drop(UnixListener::bind(&path).expect("a free path"));
    let started = rig.router.start_transport(&unix("local", "s.sock"));
    started.expect("nobody serves it");
    let second = rig.router.start_transport(&unix("second", "s.sock"));
    assert_eq!(
        second.unwrap_err().to_string(),
        format!(
            "cannot start transport second of worker worker1: {}: \
             another process serves this socket",
            path.display()
        )
    );
    UnixStream::connect(&path).expect("the first one listens");
    rig.router.stop_transport("local").expect("runs");
    assert!(!path.exists(), "the path is free");

    std::fs::write(&path, "precious").expect("a file");
    let over_a_file = rig.router.start_transport(&unix("local", "s.sock"));
    let over_a_file = over_a_file.unwrap_err().to_string();
    assert!(
        over_a_file.ends_with("exists and is not a socket"),
        "{over_a_file}"
    );
}

#[tokio::test]
async fn a_private_transport_is_for_its_owner_only() {
    let rig = Rig::start();
    let urls = rig.router.start_private_transport(&unix("local", "s.sock"));
    let urls = urls.expect("a free path");
    let file = rig.directory.path().join("s.sock");
    let mode = std::fs::metadata(file).expect("a file").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let url = urls.iter().find(|url| url.starts_with("rs+unix:"));
    let client = Client::connect(url.expect("a RawSocket").as_str()).await;
    client.expect("joins").leave().await;
}

#[test]
fn a_stopping_router_starts_nothing() {
    let rig = Rig::start();
    rig.router.begin_stop();
    let late = rig.router.start_transport(&tcp("late", 0));
    assert_eq!(
        late.unwrap_err().to_string(),
        "cannot start transport late of worker worker1: the router is being stopped"
    );
    rig.router.stop();
    assert!(TcpStream::connect(rig.address).is_err(), "nobody listens");
}

#[test]
fn one_port_may_be_shared() {
    let rig = Rig::start();
    let mut transport = tcp("first", 0);
    share(&mut transport.endpoint);
    let urls = rig.router.start_transport(&transport).expect("a free port");
    let port = address(&urls).port();
    let mut transport = tcp("second", port);
    share(&mut transport.endpoint);
    let urls = rig.router.start_transport(&transport);
    assert_eq!(address(&urls.expect("is shared")).port(), port);
    rig.router.stop_transport("first").expect("runs");
    let mut peer = Peer::connect(([127, 0, 0, 1], port).into());
    peer.join("realm1");
    peer.expect_served();
}

fn share(endpoint: &mut Endpoint) {
    if let Endpoint::Tcp(tcp) = endpoint {
        tcp.shared = true;
    }
}
