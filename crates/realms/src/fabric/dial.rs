//! From a URL to a connection: TCP, INFO, TLS if required, CONNECT and a PING.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crosstie_config::NatsUrl;
use crosstie_jetstream::{Greeting, Login, LoginFiles};
use crosstie_nats::encode;
use crosstie_transport::tls::TlsStage;
use crosstie_transport::{Connection, ConnectionLimits, PeerAddress, Socket, Stage};
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;

/// Timeout for the addresses of a host.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for a connection to one address. A machine that is lost refuses nothing, while other servers wait.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout for INFO, and again for TLS and the answer to CONNECT.
pub(super) const DIAL_TIMEOUT: Duration = Duration::from_secs(3);

/// The settings for connections to a server.
pub struct Speaking {
    pub(super) login: LoginFiles,
    pub limits: Arc<ConnectionLimits>,
    /// The same for a connection that queries the bucket, if any.
    pub(super) asking: Option<crosstie_jetstream::Speaking>,
}

/// Connects. The server's PONG confirms the login; later messages are for the member.
pub(super) async fn dial(
    url: &NatsUrl,
    speaking: &Speaking,
) -> Result<(Arc<Connection>, Greeting), String> {
    let stream = connect(url).await;
    let mut stream = stream.map_err(|e| e.to_string())?;
    let greeting = tokio::time::timeout(DIAL_TIMEOUT, Greeting::read(&mut stream)).await;
    let greeting = greeting.map_err(|_| "no INFO in 3 s".to_owned())?;
    let greeting = greeting.map_err(|e| e.to_string())?;
    let is_tls = url.is_tls || greeting.is_tls_required;
    let login = speaking.login.now();
    let stage = is_tls.then(|| stage(url, &login)).transpose()?;
    let address = stream.peer_addr().map_err(|e| e.to_string())?;
    let stream = stream.into_std().map_err(|e| e.to_string())?;
    let socket = Socket::new(OwnedFd::from(stream), PeerAddress::Tcp(address));
    let limits = Arc::clone(&speaking.limits);
    let connection = Arc::new(Connection::new(socket, stage, limits));
    let connect = greeting.connect(login.credentials.as_ref(), false)?;
    let appended = connection.append(|out| {
        encode::connect(&connect, out);
        encode::ping(out);
        Ok::<(), ()>(())
    });
    appended.map_err(|_| "no room for CONNECT".to_owned())?;
    Ok((connection, greeting))
}

/// Connects to the first address of a server that answers.
async fn connect(url: &NatsUrl) -> io::Result<TcpStream> {
    let late = |text: &str| io::Error::new(io::ErrorKind::TimedOut, text);
    let addresses = tokio::net::lookup_host((url.host.as_str(), url.port));
    let addresses = tokio::time::timeout(LOOKUP_TIMEOUT, addresses).await;
    let addresses = addresses.map_err(|_| late("no address in 2 s"))??;
    let mut failed = late("the host has no address");
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(e)) => failed = e,
            Err(_) => failed = late("no answer in 1 s"),
        }
    }
    Err(failed)
}

fn stage(url: &NatsUrl, login: &Login) -> Result<Box<Mutex<dyn Stage>>, String> {
    let name = ServerName::try_from(url.host.clone()).map_err(|e| e.to_string())?;
    let stage = TlsStage::client(Arc::clone(&login.tls), name);
    Ok(Box::new(Mutex::new(stage.map_err(|e| e.to_string())?)))
}
