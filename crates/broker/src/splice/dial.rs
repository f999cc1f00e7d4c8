//! From an owner's address to a connection for its client: TCP, optional TLS, and the greeting.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crosstie_transport::tls::TlsStage;
use crosstie_transport::{
    Connection, ConnectionLimits, ConnectionStream, PeerAddress, Socket, Stage,
};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::greeting::{ACCOUNT_BYTES_MAX, Account, CHALLENGE, MAGIC, Refusal};
use super::key::{Claim, Key, LENGTH, random};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the owner did not accept the client.
#[derive(Debug)]
pub(super) enum Failed {
    /// The node replied that it does not own the vhost, or not yet.
    NotOwner,
    /// The owner is full, or could not decode the greeting.
    Refused(String),
    /// The client may not open the vhost.
    NotAllowed(String),
    /// The owner is unreachable, or did not prove its identity.
    Unreached(String),
}

/// Returns a connection on which the owner's frames for the client follow.
pub(super) async fn dial(
    (address, key): (&str, &Key),
    tls: Option<&Arc<ClientConfig>>,
    limits: &Arc<ConnectionLimits>,
    account: &Account,
) -> Result<(Arc<Connection>, ConnectionStream), Failed> {
    let unreached = |e: io::Error| Failed::Unreached(format!("{address}: {e}"));
    let connected = connect(address, tls, limits).await;
    let (connection, mut stream) = connected.map_err(unreached)?;
    let greeted = greet(&mut stream, key, account).await.map_err(unreached)?;
    greeted.map(|()| (connection, stream))
}

async fn connect(
    address: &str,
    tls: Option<&Arc<ClientConfig>>,
    limits: &Arc<ConnectionLimits>,
) -> io::Result<(Arc<Connection>, ConnectionStream)> {
    // A machine that has lost its power or its link answers nothing.
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let stream = connecting.map_err(|_| io::Error::other("no answer in 1 s"))??;
    stream.set_nodelay(true)?;
    let peer = PeerAddress::Tcp(stream.peer_addr()?);
    let stage = tls.map(|config| stage(address, config)).transpose()?;
    let socket = Socket::new(OwnedFd::from(stream.into_std()?), peer);
    let connection = Connection::new(socket, stage, Arc::clone(limits));
    let connection = Arc::new(connection);
    let stream = ConnectionStream::new(Arc::clone(&connection), Vec::new())?;
    Ok((connection, stream))
}

fn stage(address: &str, config: &Arc<ClientConfig>) -> io::Result<Box<Mutex<dyn Stage>>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stage = TlsStage::client(Arc::clone(config), name);
    Ok(Box::new(Mutex::new(stage.map_err(io::Error::other)?)))
}

/// Exchanges proofs with the owner, then sends the client's account.
async fn greet(
    stream: &mut ConnectionStream,
    key: &Key,
    account: &Account,
) -> io::Result<Result<(), Failed>> {
    let ours = random().map_err(io::Error::other)?;
    let vhost = account.vhost.as_bytes();
    // A vhost's name has at most 255 bytes.
    let length = [u8::try_from(vhost.len()).unwrap_or(u8::MAX)];
    let hello = [&MAGIC[..], &ours, &length, vhost].concat();
    stream.write_all(&hello).await?;
    stream.flush().await?;
    let mut challenge = [0; CHALLENGE];
    stream.read_exact(&mut challenge).await?;
    let (theirs, proof) = challenge.split_at(LENGTH);
    if !key.is_proven(Claim::Owner, &ours, theirs, proof) {
        let why = "the peer at that address does not know the owner's key";
        return Ok(Err(Failed::Unreached(why.to_owned())));
    }
    let said = account.encode();
    let length = u32::try_from(said.len()).unwrap_or(u32::MAX);
    if said.len() > ACCOUNT_BYTES_MAX {
        let why = "the client's account is too long";
        return Ok(Err(Failed::Refused(why.to_owned())));
    }
    let proof = key.prove(Claim::Node, theirs, &said);
    let words = [&length.to_be_bytes()[..], &proof, &said].concat();
    stream.write_all(&words).await?;
    stream.flush().await?;
    let code = stream.read_u8().await?;
    if code == 0 {
        return Ok(Ok(()));
    }
    let mut reason = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut reason).await?;
    let reason = String::from_utf8_lossy(&reason).into_owned();
    Ok(Err(match Refusal::of(code) {
        Some(Refusal::NotOwner) => Failed::NotOwner,
        Some(Refusal::NotAllowed) => Failed::NotAllowed(reason),
        _ => Failed::Refused(reason),
    }))
}
