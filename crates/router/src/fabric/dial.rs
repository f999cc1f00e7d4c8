//! From a URL to a connection: TCP, INFO, TLS where it is asked for, CONNECT.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crosstie_config::NatsUrl;
use crosstie_nats::encode;
use crosstie_transport::tls::TlsStage;
use crosstie_transport::{Connection, ConnectionLimits, PeerAddress, Socket, Stage};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use serde_json::{Value as Json, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::credentials::Credentials;

/// To connect, and to be told INFO.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Of INFO, which names the cluster's other servers too.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// What a server says of itself.
pub(super) struct Info {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) payload_bytes_max: usize,
    nonce: Option<String>,
    is_tls_required: bool,
}

/// How a server is spoken to.
pub(crate) struct Speaking {
    pub(super) credentials: Option<Credentials>,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) limits: Arc<ConnectionLimits>,
}

/// Connects; what is said then is the member's.
pub(super) async fn dial(
    url: &NatsUrl,
    speaking: &Speaking,
) -> Result<(Arc<Connection>, Info), String> {
    let told = tokio::time::timeout(DIAL_TIMEOUT, told(url));
    let told = told.await.map_err(|_| "no answer in 5 s".to_owned())?;
    let (stream, info) = told.map_err(|e| e.to_string())?;
    let is_tls = url.is_tls || info.is_tls_required;
    let stage = is_tls.then(|| stage(url, speaking)).transpose()?;
    let address = stream.peer_addr().map_err(|e| e.to_string())?;
    let stream = stream.into_std().map_err(|e| e.to_string())?;
    let socket = Socket::new(OwnedFd::from(stream), PeerAddress::Tcp(address));
    let limits = Arc::clone(&speaking.limits);
    let connection = Arc::new(Connection::new(socket, stage, limits));
    let connect = connect(&info, speaking.credentials.as_ref())?;
    let appended = connection.append(|out| {
        encode::connect(&connect, out);
        Ok::<(), ()>(())
    });
    appended.map_err(|_| "there is no room for CONNECT".to_owned())?;
    Ok((connection, info))
}

async fn told(url: &NatsUrl) -> io::Result<(TcpStream, Info)> {
    let mut stream = TcpStream::connect((url.host.as_str(), url.port)).await?;
    stream.set_nodelay(true)?;
    // The server says nothing more before it has been answered, but a byte too much would be TLS' or the reader's.
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        if line.len() > LINE_BYTES_MAX {
            return Err(invalid("expected INFO of NATS, found a line without end"));
        }
        line.push(stream.read_u8().await?);
    }
    let text = String::from_utf8(line).map_err(|_| invalid("expected INFO of NATS"))?;
    let json = text.trim_ascii().strip_prefix("INFO");
    let json = json.ok_or_else(|| invalid("expected INFO of NATS, found something else"))?;
    let json: Json = serde_json::from_str(json.trim_ascii())?;
    let word = |key: &str| json[key].as_str().map(str::to_owned);
    let id = word("server_id").ok_or_else(|| invalid("INFO has no server_id"))?;
    let info = Info {
        name: word("server_name").unwrap_or_else(|| id.clone()),
        id,
        payload_bytes_max: json["max_payload"].as_u64().map_or(1 << 20, |n| n as usize),
        nonce: word("nonce"),
        is_tls_required: json["tls_required"].as_bool() == Some(true),
    };
    Ok((stream, info))
}

fn stage(url: &NatsUrl, speaking: &Speaking) -> Result<Box<Mutex<dyn Stage>>, String> {
    let name = ServerName::try_from(url.host.clone()).map_err(|e| e.to_string())?;
    let stage = TlsStage::client(Arc::clone(&speaking.tls), name);
    Ok(Box::new(Mutex::new(stage.map_err(|e| e.to_string())?)))
}

/// The object of CONNECT. Own messages are not wanted back.
fn connect(info: &Info, credentials: Option<&Credentials>) -> Result<String, String> {
    let mut options = json!({
        "verbose": false,
        "pedantic": false,
        "echo": false,
        "headers": true,
        "no_responders": false,
        "protocol": 1,
        "lang": "rust",
        "name": "crosstie",
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let Some(credentials) = credentials {
        let nonce = info.nonce.as_deref();
        let nonce = nonce.ok_or("credentials are configured, and the server asks for none")?;
        options["sig"] = credentials.sign(nonce).into();
        match &credentials.jwt {
            Some(jwt) => options["jwt"] = jwt.as_str().into(),
            None => options["nkey"] = credentials.public_key().into(),
        }
    }
    Ok(options.to_string())
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
