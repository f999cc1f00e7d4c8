//! Transports that echo, in a router that is nothing else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crosstie_config::{Endpoint, Testee, TesteeKind, Transport, TransportKind};
use crosstie_router::Router;

use crate::rig::{limits, options, tcp, worker};

#[test]
fn an_echo_is_started_and_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = options(directory.path());
    let start = |id| Router::start(&worker(id), &limits(), &options).expect("threads");
    let (one, two) = (start("worker1"), start("worker2"));
    let urls = one.start_transport(&echo(0)).expect("a free port");
    let address = urls[0].strip_prefix("tcp://").expect("a plain stream");
    let address: SocketAddr = address.parse().expect("an address");
    let shared = two.start_transport(&echo(address.port()));
    assert_eq!(shared.expect("is shared"), urls);
    two.stop_transport("echo").expect("runs");

    let mut stream = TcpStream::connect(address).expect("listens");
    stream.write_all(b"hello").expect("is open");
    let mut back = [0; 5];
    stream.read_exact(&mut back).expect("comes back");
    assert_eq!(&back, b"hello");
    let listed = one.transports();
    assert_eq!(
        (listed[0].kind, listed[0].connections),
        ("stream.testee", 1)
    );
    assert_eq!(one.connections(), 1);

    one.stop_transport("echo").expect("runs");
    // Bytes in transit may turn the end into a reset.
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
    one.start_transport(&echo(address.port())).expect("is free");
}

/// An echo that returns byte by byte, at a port shared by several listeners.
fn echo(port: u16) -> Transport {
    let mut transport = tcp("echo", port);
    transport.kind = TransportKind::Testee(Testee {
        kind: TesteeKind::Stream,
        debug: false,
    });
    if let Endpoint::Tcp(tcp) = &mut transport.endpoint {
        tcp.shared = true;
    }
    transport
}
