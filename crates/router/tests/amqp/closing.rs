//! Closing a socket after its connection, and the end of the wait for that.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::time::Duration;

use crosstie_amqp::frame::HEARTBEAT;
use crosstie_amqp::method::{ConnectionClose, ConnectionCloseOk};

use crate::rig::{Client, Rig, Setting};

/// A client that has closed its connection but not its socket.
fn closed(rig: &Rig) -> Client {
    let mut client = rig.client();
    client.send(0, &ConnectionClose::default());
    client.expect("0 connection.close-ok");
    client
}

/// Whether nothing arrives, not even the end.
fn is_quiet(client: &Client) -> bool {
    let within = Some(Duration::from_millis(200));
    client.stream.set_read_timeout(within).expect("is open");
    let peeked = client.stream.peek(&mut [0]);
    let within = Some(Duration::from_secs(30));
    client.stream.set_read_timeout(within).expect("is open");
    peeked.is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
}

#[test]
fn the_socket_is_left_to_the_client_that_closes() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = closed(&rig);
    assert!(is_quiet(&client));
    // Further input of any kind is dropped.
    client.write(&HEARTBEAT);
    client.write(b"no frame at all");
    assert!(is_quiet(&client));
    assert_eq!(rig.router.amqp().expect("is on").connections(), []);
    // Its end is answered by the server's.
    client.stream.shutdown(Shutdown::Write).expect("is open");
    client.expect_end();
}

#[test]
fn a_half_closed_client_is_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.send(0, &ConnectionClose::default());
    client.stream.shutdown(Shutdown::Write).expect("is open");
    client.expect("0 connection.close-ok");
    client.expect_end();
}

#[test]
fn the_broker_closes_the_socket_when_it_closes_the_connection() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    let operators = rig.router.amqp().expect("is on");
    let number = operators.connections()[0].number;
    operators.close_connection(number, "now").expect("is there");
    client.receive().expect("a word about it");
    assert!(is_quiet(&client));
    client.send(0, &ConnectionCloseOk {});
    client.expect_end();
}

#[test]
fn a_client_that_never_closes_loses_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting {
        connections_max: Some(2),
        ..Setting::default()
    };
    setting.transport.closing_timeout = Duration::from_secs(1);
    let rig = Rig::start_with(directory.path(), &setting);
    // Neither a client that continues to send, nor a silent one.
    let mut talking = closed(&rig);
    let mut silent = closed(&rig);
    while talking.stream.write_all(&HEARTBEAT).is_ok() {
        std::thread::yield_now();
    }
    silent.expect_end();
    while rig.router.connections() > 0 {
        std::thread::yield_now();
    }
    rig.client();
}

#[test]
fn a_router_that_stops_does_not_wait_for_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.transport.closing_timeout = Duration::from_secs(3600);
    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = closed(&rig);
    rig.router.begin_stop();
    client.expect_end();
}
