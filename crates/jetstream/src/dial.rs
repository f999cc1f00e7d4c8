//! From a server's address to a connection: TCP, INFO, TLS if required, CONNECT and its answer.

use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crosstie_nats::encode;
use rustls_pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::connection::Connection;
use crate::greeting::Greeting;
use crate::io_task::{self, Wire};
use crate::login::LoginFiles;
use crate::shared::INBOX;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub is_tls: bool,
}

/// The settings for connections to servers.
pub struct Speaking {
    pub login: LoginFiles,
    /// Maximum silence of a server after a ping.
    pub silence_max: Duration,
}

/// Timeout for the login, behind that of the connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for TCP. A machine that has lost its power or its link answers nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout for INFO, which servers send at once. The system of a stopped server accepts connections.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

/// Time without an acknowledgement of sent bytes after which the system ends a connection. The other machine's system
/// acknowledges them however busy or stopped its server is: such a server is given [`Speaking::silence_max`].
const UNACKNOWLEDGED_MAX: Duration = Duration::from_millis(1500);

impl Speaking {
    /// Reads the named files, as [`LoginFiles::read`] does.
    pub fn read(
        credentials: Option<&str>,
        ca_certificates: &[String],
        directory: &Path,
    ) -> io::Result<Self> {
        Ok(Self {
            login: LoginFiles::read(credentials, ca_certificates, directory)?,
            silence_max: SILENCE_MAX,
        })
    }
}

/// Somewhat longer than a busy server takes.
const SILENCE_MAX: Duration = Duration::from_secs(3);

impl Connection {
    /// Connects to a server, which has accepted the credentials when this returns. Needs tokio's timers and IO; a task
    /// of the current runtime serves the connection.
    pub async fn dial(server: &Server, speaking: &Speaking) -> Result<Self, String> {
        let dialled = tokio::time::timeout(DIAL_TIMEOUT, dial(server, speaking));
        dialled.await.map_err(|_| "no answer in 5 s".to_owned())?
    }
}

impl Server {
    /// Whether it runs on this machine: its address is one of this machine's. `false` also if that is unknown.
    pub async fn is_here(&self) -> bool {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port));
        let Ok(Ok(found)) = tokio::time::timeout(CONNECT_TIMEOUT, found).await else {
            return false;
        };
        // The system chooses the source of packets to that address; none is sent.
        found.into_iter().any(|address| {
            let any = match address.is_ipv4() {
                true => "0.0.0.0:0",
                false => "[::]:0",
            };
            let socket = UdpSocket::bind(any);
            let source = socket.and_then(|socket| {
                socket.connect(address)?;
                socket.local_addr()
            });
            source.is_ok_and(|source| source.ip() == address.ip())
        })
    }
}

async fn connected(server: &Server) -> io::Result<TcpStream> {
    let connecting = TcpStream::connect((server.host.as_str(), server.port));
    let tcp = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
    let tcp = tcp.map_err(|_| io::Error::other("no answer in 1 s"))??;
    tcp.set_nodelay(true)?;
    socket2::SockRef::from(&tcp).set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(tcp)
}

async fn dial(server: &Server, speaking: &Speaking) -> Result<Connection, String> {
    let said = |e: io::Error| e.to_string();
    let mut tcp = connected(server).await.map_err(said)?;
    let greeting = tokio::time::timeout(GREETING_TIMEOUT, Greeting::read(&mut tcp)).await;
    let greeting = greeting.map_err(|_| "no INFO in 2 s")?.map_err(said)?;
    let login = speaking.login.now();
    let connect = greeting.connect(login.credentials.as_ref(), true)?;
    let mut stream: Box<dyn Wire> = match server.is_tls || greeting.is_tls_required {
        false => Box::new(tcp),
        true => {
            let name = ServerName::try_from(server.host.clone()).map_err(|e| e.to_string())?;
            let connector = TlsConnector::from(Arc::clone(&login.tls));
            Box::new(connector.connect(name, tcp).await.map_err(said)?)
        }
    };
    let inbox = format!("_INBOX.{:016x}", random()?);
    let mut hello = Vec::new();
    encode::connect(&connect, &mut hello);
    encode::subscribe(&format!("{inbox}.*"), INBOX, &mut hello);
    encode::ping(&mut hello);
    stream.write_all(&hello).await.map_err(said)?;
    let connection = Connection::new(greeting, inbox);
    let shared = Arc::clone(connection.shared());
    let input = io_task::taken(&mut stream, &shared).await?;
    let silence_max = speaking.silence_max;
    tokio::spawn(async move {
        let why = io_task::run(stream, input, &shared, silence_max).await;
        shared.end(why);
    });
    Ok(connection)
}

/// Makes the inbox unpredictable.
fn random() -> Result<u64, String> {
    getrandom::u64().map_err(|e| e.to_string())
}
