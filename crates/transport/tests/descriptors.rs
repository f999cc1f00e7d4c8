//! A process without descriptors. This single test has a process of its own, because others would lack descriptors too.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crosstie_transport::descriptors::is_shortage;
use crosstie_transport::{
    Account, Connection, ConnectionLimits, Endpoint, Listener, PeerAddress, Socket, TcpOptions,
    WorkerOptions, Workers,
};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const BYTES: usize = 8 << 20;

#[test]
fn no_peer_waits_forever_and_no_innocent_one_is_closed() {
    let workers = Arc::new(Workers::start(WorkerOptions::default()).expect("threads"));
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = TcpOptions::default();
    let listener = Endpoint::Tcp { address, options };
    let listener = workers
        .enter_first(|| Listener::bind(listener))
        .expect("a free port");
    let listening = listener.local_address().expect("bound").expect("TCP");
    let newcomer = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let newcomer = newcomer.expect("a socket");
    let (ours, mut reader) = UnixStream::pair().expect("a pair");
    ours.set_nonblocking(true).expect("non-blocking");
    let taken = take_all();

    // A receiver whose socket is full, and cannot be duplicated.
    let limits = Arc::new(ConnectionLimits {
        queue_bytes_max: 2 * BYTES,
        stall_max: Duration::ZERO,
        message_max: Duration::MAX,
        bytes_per_second_min: 0,
        account: Arc::new(Account::new(2 * BYTES)),
    });
    let socket = Socket::new(ours.into(), PeerAddress::Unix(None));
    let connection = Arc::new(Connection::new(socket, None, limits));
    let sending = Arc::clone(&connection);
    workers.spawn(async move {
        let appended = sending.append(|out| {
            out.resize(BYTES, b'x');
            Ok::<(), ()>(())
        });
        appended.expect("there is room");
        sending.flush();
    });
    let mut bytes = vec![0; BYTES];
    reader.read_exact(&mut bytes).expect("is sent all of it");
    assert!(bytes.iter().all(|byte| *byte == b'x'));

    // A peer that connects sees the end of its connection.
    let (told, tried) = mpsc::channel();
    workers.spawn_first(async move {
        let error = listener.accept().await.err();
        let is_turned_away = listener.turn_away();
        // The spare descriptor is reopened.
        let is_over = listener.turn_away();
        let _ = told.send((error, is_turned_away, is_over));
    });
    rustix::net::connect(&newcomer, &listening).expect("the system takes it");
    let (error, is_turned_away, is_over) = tried.recv().expect("an answer");
    let error = error.expect("there is no descriptor for it");
    assert!(is_shortage(&error), "{error}");
    assert!(is_turned_away && !is_over);
    let mut newcomer = TcpStream::from(newcomer);
    match newcomer.read(&mut [0]) {
        Ok(count) => assert_eq!(count, 0),
        Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset),
    }
    drop(taken);
    workers.stop();
}

/// Opens descriptors until none are left.
fn take_all() -> Vec<OwnedFd> {
    let newest = open().expect("a descriptor");
    let limit = newest.as_raw_fd().unsigned_abs() + 32;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(limit.into());
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("may be lowered");
    let mut taken = vec![newest];
    // By then other threads of the test have finished opening and closing theirs.
    for _ in 0..2 {
        while let Some(next) = open() {
            taken.push(next);
        }
        thread::yield_now();
    }
    taken
}

fn open() -> Option<OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(OwnedFd::from)
}
