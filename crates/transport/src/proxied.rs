//! Receives the header that a proxy sends before the client's bytes.

use std::fmt;
use std::io;

use tokio::io::unix::AsyncFd;

use crate::proxy_header::{PROXY_HEADER_BYTES_MAX, ProxyHeader, ProxyHeaderError};
use crate::{Socket, readiness};

/// The reason why a connection has no header.
#[derive(Debug)]
pub enum Unproxied {
    /// The proxy has closed the connection without a byte, as health checks do.
    Unused,
    /// It has closed the connection within the header.
    Truncated,
    Header(ProxyHeaderError),
    Failed(io::Error),
}

/// Waits for the header, and takes it off the stream. The bytes behind it stay. The caller limits the time.
pub async fn receive_proxy_header(socket: Socket) -> Result<(Socket, ProxyHeader), Unproxied> {
    let waiting = readiness::register_socket(socket).map_err(Unproxied::Failed)?;
    let header = await_header(&waiting).await?;
    let socket = waiting.into_inner();
    // All of it is there: it has been seen.
    let mut seen = [0; PROXY_HEADER_BYTES_MAX];
    let received = socket.recv(&mut seen[..header.bytes]);
    match received.map_err(Unproxied::Failed)? == header.bytes {
        true => Ok((socket, header)),
        false => Err(Unproxied::Truncated),
    }
}

async fn await_header(waiting: &AsyncFd<Socket>) -> Result<ProxyHeader, Unproxied> {
    loop {
        let mut guard = waiting.readable().await.map_err(Unproxied::Failed)?;
        let is_ended = guard.ready().is_read_closed();
        match look(waiting.get_ref())? {
            Some(header) => return Ok(header),
            None if is_ended => return Err(Unproxied::Truncated),
            None => guard.clear_ready(),
        }
    }
}

/// The header, once all of it is there.
fn look(socket: &Socket) -> Result<Option<ProxyHeader>, Unproxied> {
    let mut seen = [0; PROXY_HEADER_BYTES_MAX];
    match socket.peek(&mut seen) {
        Ok(0) => Err(Unproxied::Unused),
        Ok(bytes) => ProxyHeader::decode(&seen[..bytes]).map_err(Unproxied::Header),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(Unproxied::Failed(e)),
    }
}

impl fmt::Display for Unproxied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unused => f.write_str("closed before a PROXY protocol header"),
            Self::Truncated => f.write_str("closed inside a PROXY protocol header"),
            Self::Header(e) => e.fmt(f),
            Self::Failed(e) => write!(f, "cannot receive a PROXY protocol header: {e}"),
        }
    }
}

impl std::error::Error for Unproxied {}
