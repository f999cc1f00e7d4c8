//! A stream of bytes to the router: TCP or a Unix socket, with or without TLS.

use std::io;
use std::sync::Arc;

use crosstie_auth::private_key;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::config::{Config, TlsOptions};
use crate::endpoint::Address;
use crate::error::ConnectError;
use crate::trust::{Trust, explained};

/// The stream of a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection, including TLS; the transport's handshake follows.
pub(crate) async fn dial(config: &Config) -> Result<Box<dyn Stream>, ConnectError> {
    let failed = |source| ConnectError::Dial {
        endpoint: config.endpoint.to_string(),
        source,
    };
    match &config.endpoint.address {
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await.map_err(failed)?)),
        Address::Tcp { host, port, tls } => {
            let stream = connect(host, *port, config.ip_version).await;
            let stream = stream.map_err(failed)?;
            // Messages are sent as soon as they are written; whole batches are written at once.
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

/// The first of a host's addresses that accepts a connection.
async fn connect(host: &str, port: u16, ip_version: Option<u8>) -> io::Result<TcpStream> {
    let Some(version) = ip_version else {
        return TcpStream::connect((host, port)).await;
    };
    let addresses = lookup_host((host, port)).await?;
    let addresses: Vec<_> = addresses
        .filter(|address| address.is_ipv6() == (version == 6))
        .collect();
    if addresses.is_empty() {
        let text = format!("{host} has no address of IP version {version}");
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    TcpStream::connect(&addresses[..]).await
}

async fn secure(
    stream: TcpStream,
    host: &str,
    options: &TlsOptions,
) -> io::Result<impl Stream + use<>> {
    let name = options.server_name.as_deref().unwrap_or(host).to_owned();
    let name = ServerName::try_from(name).map_err(invalid)?;
    TlsConnector::from(tls_config(options)?)
        .connect(name, stream)
        .await
        .map_err(explained)
}

/// The TLS configuration of a connection to a router, for users with sockets of their own.
pub fn tls_config(options: &TlsOptions) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?;
    let trust = if options.insecure {
        Trust::any(provider)
    } else {
        let (roots, named) = roots(options)?;
        Trust::new(roots, named, provider)?
    };
    let config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    let Some((certificate, key)) = &options.certificate else {
        return Ok(Arc::new(config.with_no_client_auth()));
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, pem::Error>>)
        .map_err(|error| invalid(format!("{}: {error}", certificate.display())))?;
    let unusable = |error: &dyn std::fmt::Display| {
        let pem = std::fs::read(key).unwrap_or_default();
        let why = private_key::why_unusable(&pem).unwrap_or_else(|| error.to_string());
        invalid(format!("{}: {why}", key.display()))
    };
    let read = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(&error))?;
    let config = config.with_client_auth_cert(chain, read);
    Ok(Arc::new(config.map_err(|error| unusable(&error))?))
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

/// The trusted authorities, and separately the certificates that the options name.
fn roots(options: &TlsOptions) -> io::Result<(RootCertStore, Vec<CertificateDer<'static>>)> {
    let mut roots = RootCertStore::empty();
    let mut named = Vec::new();
    if options.system_roots {
        // Single unreadable certificates of the system are ignored; if all are, the error below says so.
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
