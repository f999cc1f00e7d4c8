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

/// Timeout for the connection and INFO, and again for TLS and the answer to CONNECT.
pub(super) const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

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
    let told = tokio::time::timeout(DIAL_TIMEOUT, told(url));
    let told = told.await.map_err(|_| "no answer in 5 s".to_owned())?;
    let (stream, greeting) = told.map_err(|e| e.to_string())?;
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

async fn told(url: &NatsUrl) -> io::Result<(TcpStream, Greeting)> {
    let mut stream = TcpStream::connect((url.host.as_str(), url.port)).await?;
    stream.set_nodelay(true)?;
    let greeting = Greeting::read(&mut stream).await?;
    Ok((stream, greeting))
}

fn stage(url: &NatsUrl, login: &Login) -> Result<Box<Mutex<dyn Stage>>, String> {
    let name = ServerName::try_from(url.host.clone()).map_err(|e| e.to_string())?;
    let stage = TlsStage::client(Arc::clone(&login.tls), name);
    Ok(Box::new(Mutex::new(stage.map_err(|e| e.to_string())?)))
}
