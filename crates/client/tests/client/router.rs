//! A scripted router, in JSON over a RawSocket.

use std::time::Duration;

use crosstie_client::{Client, Config, Serializer};
use crosstie_wamp::framing::rawsocket::ServerHandshake;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// The address for clients.
pub(crate) struct Router {
    listener: UnixListener,
    directory: TempDir,
}

/// One client's connection, from the router's side.
pub(crate) struct Peer {
    pub(crate) stream: UnixStream,
}

/// Every test's WELCOME, unless it sets another one.
const WELCOME: &str =
    r#"[2,7,{"roles":{"broker":{},"dealer":{"features":{"call_timeout":true}}},"authid":"me"}]"#;

impl Router {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let listener = UnixListener::bind(directory.path().join("router.sock")).unwrap();
        Self {
            listener,
            directory,
        }
    }

    pub(crate) fn config(&self) -> Config {
        let path = self.directory.path().join("router.sock");
        let mut config = Config::new(&format!("rs+unix:{}", path.display())).unwrap();
        config.serializers = vec![Serializer::Json];
        config.reconnect = None;
        config
    }

    /// A client that has joined, and its connection.
    pub(crate) async fn joined(&self) -> (Client, Peer) {
        self.joined_as(self.config(), WELCOME).await
    }

    pub(crate) async fn joined_with(&self, config: Config) -> (Client, Peer) {
        self.joined_as(config, WELCOME).await
    }

    pub(crate) async fn joined_as(&self, config: Config, welcome: &str) -> (Client, Peer) {
        let peer = async {
            let mut peer = self.accept().await;
            peer.expect_hello().await;
            peer.send(welcome).await;
            peer
        };
        let (client, peer) = tokio::join!(Client::connect(config), peer);
        (client.unwrap(), peer)
    }

    /// The next connection, after its handshake.
    pub(crate) async fn accept(&self) -> Peer {
        let mut stream = self.accept_raw().await;
        let mut request = [0; 4];
        stream.read_exact(&mut request).await.unwrap();
        let accepted = ServerHandshake::accept(request, &Serializer::ALL, 1 << 24).unwrap();
        stream.write_all(&accepted.reply).await.unwrap();
        Peer { stream }
    }

    pub(crate) async fn accept_raw(&self) -> UnixStream {
        self.listener.accept().await.unwrap().0
    }

    /// The next connection, joined.
    pub(crate) async fn accept_joined(&self) -> Peer {
        let mut peer = self.accept().await;
        peer.expect_hello().await;
        peer.send(WELCOME).await;
        peer
    }
}

impl Peer {
    pub(crate) async fn send(&mut self, message: &str) {
        self.send_all(&[message]).await;
    }

    /// Sends several messages, to be read at once.
    pub(crate) async fn send_all(&mut self, messages: &[&str]) {
        let mut bytes = Vec::new();
        for message in messages {
            bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
            bytes.extend_from_slice(message.as_bytes());
        }
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next message must be this one.
    #[track_caller]
    pub(crate) fn expect<'a>(&'a mut self, message: &'a str) -> impl Future<Output = ()> + 'a {
        let from = std::panic::Location::caller();
        async move {
            let received = self.receive().await;
            assert_eq!(received.as_deref(), Some(message), "expected at {from}");
        }
    }

    pub(crate) async fn expect_hello(&mut self) {
        let hello = self.receive().await.unwrap();
        assert!(hello.starts_with(r#"[1,"realm1",{"#), "{hello}");
    }

    /// The client has closed the connection.
    pub(crate) async fn expect_end(&mut self) {
        assert_eq!(self.receive().await, None);
    }

    /// The next message; pings are answered. `None` at the end.
    pub(crate) async fn receive(&mut self) -> Option<String> {
        loop {
            let (kind, body) = self.receive_frame().await?;
            match kind {
                0 => return Some(String::from_utf8(body).unwrap()),
                1 => self.stream.write_all(&[2, 0, 0, 0]).await.unwrap(),
                _ => {}
            }
        }
    }

    pub(crate) async fn receive_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix).await.ok()?;
        let [kind, length @ ..] = prefix;
        let length = u32::from_be_bytes([0, length[0], length[1], length[2]]);
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body).await.unwrap();
        Some((kind, body))
    }
}

/// The time limit of a test for an event that must happen.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("an expected event has not occurred for a minute")
}
