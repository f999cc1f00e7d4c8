//! A stream of bytes to the router: TCP or a Unix socket, with TLS around it or not.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::config::{Config, TlsOptions};
use crate::endpoint::Address;
use crate::error::ConnectError;
use crate::trust::{Trust, explained};

/// What a connection's bytes pass through.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection, as far as TLS; the handshake of the transport is still to come.
pub(crate) async fn dial(config: &Config) -> Result<Box<dyn Stream>, ConnectError> {
    let failed = |source| ConnectError::Dial {
        endpoint: config.endpoint.to_string(),
        source,
    };
    match &config.endpoint.address {
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await.map_err(failed)?)),
        Address::Tcp { host, port, tls } => {
            let stream = TcpStream::connect((host.as_str(), *port))
                .await
                .map_err(failed)?;
            // A message leaves when it is written; whole batches are written at once.
            stream.set_nodelay(true).map_err(failed)?;
            if !tls {
                return Ok(Box::new(stream));
            }
            let secured = secure(stream, host, &config.tls).await;
            let stream = secured.map_err(|source| ConnectError::Tls {
                endpoint: config.endpoint.to_string(),
                source,
            })?;
            Ok(Box::new(stream))
        }
    }
}

async fn secure(
    stream: TcpStream,
    host: &str,
    options: &TlsOptions,
) -> io::Result<impl Stream + use<>> {
    let name = ServerName::try_from(host.to_owned()).map_err(invalid)?;
    TlsConnector::from(tls_config(options)?)
        .connect(name, stream)
        .await
        .map_err(explained)
}

/// What a TLS connection to a router is made with, for who has sockets of its own.
pub fn tls_config(options: &TlsOptions) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?;
    let trust = if options.insecure {
        Trust::anybody(provider)
    } else {
        let (roots, named) = roots(options)?;
        Trust::new(roots, named, provider)?
    };
    let config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

/// Whose signature makes a router's certificate trusted; and those of them that the options name.
fn roots(options: &TlsOptions) -> io::Result<(RootCertStore, Vec<CertificateDer<'static>>)> {
    let mut roots = RootCertStore::empty();
    let mut named = Vec::new();
    if options.system_roots {
        // Single certificates of the system that cannot be read are the system's business; when
        // none can, the error below says so.
        let loaded = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(loaded.certs);
    }
    for path in &options.ca_files {
        let wrong = |reason: String| {
            let text = format!("CA file {}: {reason}", path.display());
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, pem::Error>>)
            .map_err(|error| wrong(error.to_string()))?;
        if certificates.is_empty() {
            return Err(wrong("expected certificates, found none".to_owned()));
        }
        for certificate in certificates {
            let added = roots.add(certificate.clone());
            added.map_err(|error| wrong(error.to_string()))?;
            named.push(certificate);
        }
    }
    if roots.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no certificate authority to trust: this system has none, and no CA file was given",
        ));
    }
    Ok((roots, named))
}
