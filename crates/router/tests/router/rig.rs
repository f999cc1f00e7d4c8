//! The tests' routers, and a peer that sends exact messages.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use crosstie_config::{Config, Endpoint, Limits, Realm, RouterWorker, Transport, Worker};
use crosstie_router::{Router, RouterOptions};

/// A worker without realms and transports, which sends GOODBYE to sessions that it ends.
pub(crate) fn worker(id: &str) -> RouterWorker {
    let worker = Config::embedded_default().workers.remove(0);
    let Worker::Router(mut worker) = worker else {
        panic!("the embedded default is a router");
    };
    worker.id = id.to_owned();
    worker.threads = Some(2);
    worker.says_goodbye = true;
    worker.realms.clear();
    worker.transports.clear();
    *worker
}

pub(crate) fn limits() -> Limits {
    Config::embedded_default().limits
}

pub(crate) fn options(directory: &Path) -> RouterOptions {
    RouterOptions {
        directory: directory.to_owned(),
        busy_poll: std::time::Duration::ZERO,
        ..RouterOptions::default()
    }
}

/// A realm in which `anonymous` may do everything.
pub(crate) fn realm(name: &str) -> Realm {
    let Worker::Router(worker) = Config::embedded_default().workers.remove(0) else {
        panic!("the embedded default is a router");
    };
    let mut realm = worker.realms[0].clone();
    realm.name = name.to_owned();
    realm
}

/// A transport for all protocols at a TCP port of the loopback; 0 is a free one.
pub(crate) fn tcp(id: &str, port: u16) -> Transport {
    let mut transport = embedded_transport(0, id);
    if let Endpoint::Tcp(tcp) = &mut transport.endpoint {
        tcp.port = port;
    }
    transport
}

/// A transport for all protocols at a Unix socket.
pub(crate) fn unix(id: &str, at: &str) -> Transport {
    let mut transport = embedded_transport(1, id);
    if let Endpoint::Unix { path, .. } = &mut transport.endpoint {
        at.clone_into(path);
    }
    transport
}

fn embedded_transport(place: usize, id: &str) -> Transport {
    let Worker::Router(mut worker) = Config::embedded_default().workers.remove(0) else {
        panic!("the embedded default is a router");
    };
    let mut transport = worker.transports.remove(place);
    transport.id = id.to_owned();
    transport
}

/// A router with one realm at one port.
pub(crate) struct Rig {
    pub(crate) router: Router,
    pub(crate) address: SocketAddr,
    pub(crate) directory: tempfile::TempDir,
}

impl Rig {
    pub(crate) fn start() -> Self {
        Self::start_with(&limits())
    }

    pub(crate) fn start_with(limits: &Limits) -> Self {
        Self::start_worker(&worker("worker1"), limits)
    }

    pub(crate) fn start_worker(worker: &RouterWorker, limits: &Limits) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let options = options(directory.path());
        let router = Router::start(worker, limits, &options).expect("threads");
        router.start_realm(&realm("realm1")).expect("is new");
        let urls = router.start_transport(&tcp("tcp", 0)).expect("a free port");
        Self {
            router,
            address: address(&urls),
            directory,
        }
    }

    /// A peer that has joined `realm`.
    pub(crate) fn joined(&self, realm: &str) -> Peer {
        let mut peer = Peer::connect(self.address);
        peer.join(realm);
        peer
    }
}

/// The address of a RawSocket.
pub(crate) fn address(urls: &[String]) -> SocketAddr {
    let address = urls.iter().find_map(|url| url.strip_prefix("rs://"));
    let address = address.expect("a RawSocket at TCP");
    address.parse().expect("an address")
}

/// A client of RawSocket and JSON.
pub(crate) struct Peer(TcpStream);

impl Peer {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).expect("somebody listens");
        stream.write_all(&[0x7f, 0xf1, 0, 0]).expect("is open");
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).expect("is answered");
        assert_eq!(answer[0], 0x7f);
        Self(stream)
    }

    pub(crate) fn join(&mut self, realm: &str) {
        self.hello(realm);
        let answer = self.receive();
        assert!(answer.starts_with("[2,"), "expected WELCOME, got {answer}");
    }

    pub(crate) fn hello(&mut self, realm: &str) {
        let roles = r#"{"roles":{"caller":{},"callee":{},"publisher":{},"subscriber":{}}}"#;
        self.send(&format!(r#"[1,"{realm}",{roles}]"#));
    }

    pub(crate) fn send(&mut self, message: &str) {
        let length = u32::try_from(message.len()).expect("is short");
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend_from_slice(message.as_bytes());
        self.0.write_all(&bytes).expect("is open");
    }

    /// The next message; empty at the end.
    pub(crate) fn receive(&mut self) -> String {
        let mut head = [0; 4];
        match self.0.read_exact(&mut head) {
            Ok(()) => {}
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return String::new();
            }
            Err(e) => panic!("{e}"),
        }
        let mut message = vec![0; u32::from_be_bytes(head) as usize];
        self.0.read_exact(&mut message).expect("a whole message");
        String::from_utf8(message).expect("JSON")
    }

    /// Expects the next message to begin so.
    pub(crate) fn expect(&mut self, beginning: &str) {
        let message = self.receive();
        assert!(
            message.starts_with(beginning),
            "expected {beginning}, got {message}"
        );
    }

    pub(crate) fn expect_end(&mut self) {
        assert_eq!(self.receive(), "", "expected the end of the connection");
    }

    /// Subscribes, which shows that the session has joined.
    pub(crate) fn expect_served(&mut self) {
        self.send(r#"[32,1,{},"com.topic"]"#);
        self.expect("[33,1,");
    }

    pub(crate) fn answer_goodbye(&mut self) {
        self.send(r#"[6,{},"wamp.close.goodbye_and_out"]"#);
    }
}
