//! The client's side: one process, one connection at a time, blocking. It first checks that the server is as expected,
//! then loads it twice, for the warm-up and for the figures, each time over connections of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, socket};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::case::{Case, Test};
use super::local::{self, LocalEnds};
use super::pattern::Pattern;
use super::watch::Watch;
use super::{throughput, transactions};
use crate::load::Recorded;
use crate::process::{WorkerError, instruction, say};
use crate::subject::Endpoint;

pub(crate) const ROLE: &str = "stream-driver";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DriverOrder {
    pub case: Case,
    pub endpoint: Endpoint,
    /// The source addresses of its connections; empty leaves them to the kernel.
    pub sources: Vec<Ipv4Addr>,
    /// Of each transaction, and of its answer.
    pub request_bytes: usize,
    /// Bytes of each write of a throughput.
    pub send_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Go {
    pub warm_up: Duration,
    pub measured: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum DriverReport {
    /// The server is there and behaves as its case requires.
    Ready,
    /// The warm-up is over.
    Begun,
    Driven(Driven),
}

/// The results of the measured part of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Driven {
    pub transactions: u64,
    /// Of a throughput: those that count.
    pub bytes: u64,
    /// From the first system call to the last, including operations in flight at the end.
    pub seconds: f64,
    /// Of transactions.
    pub recorded: Recorded,
    pub cpu_ns: u64,
    pub send_buffer_bytes: usize,
    pub receive_buffer_bytes: usize,
}

pub(crate) fn work(order: DriverOrder) -> Result<(), WorkerError> {
    let unit = match order.case.test.is_transactional() {
        true => "transactions",
        false => "bytes",
    };
    let mut load = Load::new(order, Watch::start(unit));
    load.watch.arm(true);
    load.run(Duration::ZERO)?;
    load.watch.arm(false);
    say(&DriverReport::Ready);
    let Some(Go { warm_up, measured }) = instruction()? else {
        return Ok(());
    };
    load.watch.arm(true);
    load.run(warm_up)?;
    say(&DriverReport::Begun);
    let before = cpu_ns();
    let mut driven = load.run(measured)?;
    driven.cpu_ns = cpu_ns() - before;
    load.note_buffers(&mut driven);
    say(&DriverReport::Driven(driven));
    Ok(())
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

pub(super) struct Load {
    pub(super) order: DriverOrder,
    pub(super) pattern: Pattern,
    pub(super) watch: Arc<Watch>,
    ends: LocalEnds,
}

impl Load {
    fn new(order: DriverOrder, watch: Arc<Watch>) -> Self {
        Self {
            pattern: Pattern::new(order.send_bytes.max(throughput::READ_BYTES)),
            watch,
            ends: LocalEnds::new(order.sources.clone()),
            order,
        }
    }

    /// Loads the server for so long; with zero, the minimal load.
    fn run(&mut self, length: Duration) -> Result<Driven, Fault> {
        match self.order.case.test {
            Test::RequestResponse => transactions::request_response(self, length),
            Test::ConnectRequestResponse => transactions::connect_request_response(self, length),
            Test::Stream => throughput::stream(self, length),
            Test::Maerts => throughput::maerts(self, length),
        }
    }

    /// Records the buffers of a fresh socket, like netperf: the kernel lets them grow.
    fn note_buffers(&self, driven: &mut Driven) {
        let family = match self.order.endpoint {
            Endpoint::Tcp(server) => local::family(server),
            Endpoint::Unix(_) => AddressFamily::UNIX,
        };
        if let Ok(fresh) = socket(family, SocketType::STREAM, None) {
            driven.send_buffer_bytes = socket_send_buffer_size(&fresh).unwrap_or(0);
            driven.receive_buffer_bytes = socket_recv_buffer_size(&fresh).unwrap_or(0);
        }
    }

    pub(super) fn connect(&mut self) -> Result<Connection, Fault> {
        match &self.order.endpoint {
            Endpoint::Unix(path) => UnixStream::connect(path).map(OwnedFd::from),
            Endpoint::Tcp(server) => connect_tcp(&mut self.ends, *server),
        }
        .map(Connection)
        .map_err(|error| Fault::Connect(self.order.endpoint.to_string(), error))
    }
}

fn connect_tcp(ends: &mut LocalEnds, server: SocketAddr) -> io::Result<OwnedFd> {
    Ok(ends.connect(server)?)
}

/// The reason why a server's load does not count.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}: {1}{hint}", hint = connect_hint(.1))]
    Connect(String, io::Error),
    #[error("after {done}: {source}")]
    Io { done: String, source: io::Error },
    #[error("after {done}: the server closed the connection")]
    Closed { done: String },
    #[error("after {done}: got {came} for {sent}: not an echo")]
    Content {
        done: String,
        sent: String,
        came: String,
    },
    #[error("{sent} bytes were sent and {came} came back before the server closed")]
    Lost { sent: u64, came: u64 },
    #[error("the server answers ({0}): this is no server that discards")]
    Answered(String),
    #[error(
        "after {done}: the server did not close when the client had ended the stream, {came} came"
    )]
    NotClosed { done: String, came: String },
}

fn connect_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "; nothing listens there",
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => {
            "; all ports from here to that server wait out their last connections, so measure for \
             a shorter time, or allow their reuse (sysctl net.ipv4.tcp_tw_reuse=1)"
        }
        _ => "",
    }
}

impl From<Fault> for WorkerError {
    fn from(fault: Fault) -> Self {
        Self::Io(io::Error::other(fault.to_string()))
    }
}

/// A connected socket, as bare as its system calls.
pub(super) struct Connection(OwnedFd);

impl Connection {
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.0
    }

    pub(super) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[send(&self.0, bytes, SendFlags::NOSIGNAL)?..];
        }
        Ok(())
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (length, _) = recv(&self.0, buffer, RecvFlags::empty())?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::path::Path;
    use std::thread;

    use super::super::case::Mode;
    use super::super::floor::{FloorOrder, listening, serve};
    use super::*;
    use crate::floor::relay::Waiting;
    use crate::subject::Socket;

    const TESTS: [Test; 4] = [
        Test::RequestResponse,
        Test::Stream,
        Test::ConnectRequestResponse,
        Test::Maerts,
    ];

    fn load(case: Case, endpoint: Endpoint, request_bytes: usize) -> Load {
        let order = DriverOrder {
            case,
            endpoint,
            sources: vec![Ipv4Addr::new(127, 0, 0, 2)],
            request_bytes,
            send_bytes: 10_000,
        };
        Load::new(order, Arc::default())
    }

    /// A floor of this kind, for as long as the tests run.
    fn floor(directory: &Path, mode: Mode, waiting: Waiting, socket: Socket) -> Endpoint {
        let endpoint = match socket {
            Socket::Tcp => Endpoint::Tcp((Ipv4Addr::LOCALHOST, 0).into()),
            Socket::Unix => {
                Endpoint::Unix(directory.join(format!("{}-{}", mode.name(), waiting.name())))
            }
        };
        let order = FloorOrder {
            endpoint,
            mode,
            waiting,
            shared_port: false,
        };
        let (listener, endpoint) = listening(&order).unwrap();
        thread::spawn(move || serve(listener, &order));
        endpoint
    }

    #[test]
    fn every_floor_is_a_peer_of_its_tests() {
        let directory = tempfile::tempdir().unwrap();
        for waiting in [Waiting::Epoll, Waiting::Blocking] {
            for socket in [Socket::Tcp, Socket::Unix] {
                for &mode in Mode::ALL {
                    let endpoint = floor(directory.path(), mode, waiting, socket);
                    for test in TESTS.into_iter().filter(|test| mode.serves(*test)) {
                        let case = Case { test, socket, mode };
                        let mut load = load(case, endpoint.clone(), 100);
                        load.run(Duration::ZERO).unwrap();
                        let driven = load.run(Duration::from_millis(10)).unwrap();
                        assert!(driven.seconds > 0.0, "{case}");
                        assert_eq!(driven.transactions > 0, test.is_transactional(), "{case}");
                        assert_eq!(driven.bytes > 0, !test.is_transactional(), "{case}");
                        load.note_buffers(&mut Driven::default());
                    }
                }
            }
        }
    }

    /// A server of one connection after the other.
    fn stranger(serve: fn(&mut std::net::TcpStream)) -> Endpoint {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut peer in listener.incoming().flatten() {
                serve(&mut peer);
            }
        });
        Endpoint::Tcp(address)
    }

    fn read_all(peer: &mut std::net::TcpStream) {
        let _ = peer.read_to_end(&mut Vec::new());
    }

    #[test]
    fn wrong_servers_are_detected() {
        #[track_caller]
        fn check(test: Test, mode: Mode, serve: fn(&mut std::net::TcpStream), expected: &str) {
            let case = Case {
                test,
                socket: Socket::Tcp,
                mode,
            };
            let fault = load(case, stranger(serve), 4).run(Duration::ZERO);
            let fault = fault.unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
        let closes = |_: &mut std::net::TcpStream| {};
        let answers = |peer: &mut std::net::TcpStream| {
            let _ = peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            read_all(peer);
        };
        let cuts = |peer: &mut std::net::TcpStream| {
            let mut bytes = Vec::new();
            let _ = peer.read_to_end(&mut bytes);
            let _ = peer.write_all(&bytes[..bytes.len() - 7]);
        };
        let skips = |peer: &mut std::net::TcpStream| {
            let mut bytes = Vec::new();
            let _ = peer.read_to_end(&mut bytes);
            bytes.remove(5_000);
            let _ = peer.write_all(&bytes);
        };
        check(
            Test::RequestResponse,
            Mode::Echo,
            closes,
            "after 0 transactions",
        );
        check(Test::RequestResponse, Mode::Echo, answers, "got `HTTP`");
        check(
            Test::ConnectRequestResponse,
            Mode::Echo,
            answers,
            "not an echo",
        );
        check(Test::Stream, Mode::Echo, answers, "not an echo");
        check(
            Test::Stream,
            Mode::Echo,
            cuts,
            "10000 bytes were sent and 9993 came back",
        );
        check(Test::Stream, Mode::Echo, skips, "after 5,000 bytes");
        check(
            Test::Stream,
            Mode::Discard,
            answers,
            "the server answers (`HTTP/1.1 400",
        );
        check(Test::Maerts, Mode::Chargen, closes, "closed the connection");
    }

    #[test]
    fn a_connection_to_itself_is_detected() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let case = Case {
            test: Test::RequestResponse,
            socket: Socket::Tcp,
            mode: Mode::Echo,
        };
        // From the very port that is connected to, a connection would find itself.
        for sources in [vec![Ipv4Addr::new(127, 0, 0, 2)], Vec::new()] {
            let mut load = load(case, Endpoint::Tcp(address), 1);
            load.ends = LocalEnds::new(sources);
            let fault = load.run(Duration::ZERO).unwrap_err().to_string();
            assert!(fault.contains("nothing listens"), "{fault}");
        }
    }
}
