//! A blocking stream of bytes: TCP, a Unix socket, TLS; every wait has an end.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crosstie_client::Address;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    pub(crate) fn connect(
        address: &Address,
        tls: Option<&Arc<ClientConfig>>,
        patience: Duration,
    ) -> io::Result<Self> {
        let stream = match address {
            Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
            Address::Tcp { host, port, .. } => {
                let stream = connect_tcp(host, *port, patience)?;
                stream.set_nodelay(true)?;
                match tls {
                    None => Self::Tcp(stream),
                    Some(config) => {
                        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                        let session = ClientConnection::new(Arc::clone(config), name);
                        let session = session.map_err(io::Error::other)?;
                        Self::Tls(Box::new(StreamOwned::new(session, stream)))
                    }
                }
            }
        };
        stream.limit_waiting(patience)?;
        Ok(stream)
    }

    /// Sets how long a read or a write may wait.
    pub(crate) fn limit_waiting(&self, longest: Duration) -> io::Result<()> {
        // Zero would mean forever.
        let longest = Some(longest.max(Duration::from_millis(1)));
        match self {
            Self::Tcp(stream) => both(
                stream.set_read_timeout(longest),
                stream.set_write_timeout(longest),
            ),
            Self::Unix(stream) => both(
                stream.set_read_timeout(longest),
                stream.set_write_timeout(longest),
            ),
            Self::Tls(stream) => both(
                stream.sock.set_read_timeout(longest),
                stream.sock.set_write_timeout(longest),
            ),
        }
    }
}

fn both(read: io::Result<()>, write: io::Result<()>) -> io::Result<()> {
    read.and(write)
}

/// The first of the host's addresses that answers.
fn connect_tcp(host: &str, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        };
        match read {
            // The end of a stream, more or less in order.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
                ) =>
            {
                Ok(0)
            }
            read => read,
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
