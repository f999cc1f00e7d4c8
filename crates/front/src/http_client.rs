//! HTTP requests of the router itself to other servers.
//!
//! The caller limits the answer's time and size. Redirections are not followed: an operator who names a server does not
//! thereby trust others.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, HeaderMap, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::{Error as PemError, PemObject as _};
use rustls_pki_types::{CertificateDer, ServerName};

/// Sends requests over HTTP and HTTPS.
#[derive(Clone, Debug)]
pub struct Outgoing {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// An answer with any status.
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer.
pub enum Unanswered {
    TimedOut(Duration),
    /// The reason as text.
    Failed(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(timeout) => {
                write!(f, "no whole answer in {} ms", timeout.as_millis())
            }
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// A complete answer.
pub struct Fetched {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Outgoing {
    /// A client that trusts the system's certificates, and those in these files.
    pub fn new(ca_files: &[PathBuf]) -> io::Result<Self> {
        // Each server is asked seldom: an idle connection would be closed by the next time.
        Self::of(ca_files, 0)
    }

    /// The same for frequent requests: keeps that many connections to each server.
    pub fn keeping(connections_max: usize, ca_files: &[PathBuf]) -> io::Result<Self> {
        Self::of(ca_files, connections_max)
    }

    fn of(ca_files: &[PathBuf], connections_max: usize) -> io::Result<Self> {
        let connector = connector(ca_files, None)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(connections_max)
            .build(connector);
        Ok(Self { client })
    }

    /// Fetches a URL with that media type; an error is a text.
    pub async fn get(
        &self,
        url: &str,
        kind: &'static str,
        timeout: Duration,
        bytes_max: usize,
    ) -> Result<Fetched, String> {
        let whole = tokio::time::timeout(timeout, self.get_whole(url, kind, bytes_max));
        whole
            .await
            .unwrap_or_else(|_| Err(format!("no whole answer in {} ms", timeout.as_millis())))
    }

    async fn get_whole(
        &self,
        url: &str,
        kind: &'static str,
        bytes_max: usize,
    ) -> Result<Fetched, String> {
        let uri: Uri = url.parse().map_err(|e| format!("no URL: {e}"))?;
        let request = Request::get(uri)
            .header(ACCEPT, kind)
            .header(USER_AGENT, AGENT)
            .body(Bytes::new())
            .map_err(|e| e.to_string())?;
        let answer = self.ask_whole(request, bytes_max).await?;
        match answer.status {
            StatusCode::OK => Ok(Fetched {
                headers: answer.headers,
                body: answer.body,
            }),
            status => Err(format!("answered with {status}")),
        }
    }

    /// Sends a request, and returns the answer.
    pub async fn ask(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
        bytes_max: usize,
    ) -> Result<Answered, Unanswered> {
        let whole = tokio::time::timeout(timeout, self.ask_whole(request, bytes_max));
        match whole.await {
            Ok(answered) => answered.map_err(Unanswered::Failed),
            Err(_) => Err(Unanswered::TimedOut(timeout)),
        }
    }

    async fn ask_whole(
        &self,
        request: Request<Bytes>,
        bytes_max: usize,
    ) -> Result<Answered, String> {
        let request = request.map(Full::new);
        let answer = self.client.request(request).await.map_err(|e| whole(&e))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, bytes_max);
        let body = body.collect().await.map_err(|e| e.to_string())?;
        Ok(Answered {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
}

/// Connects to servers over TCP and TLS; trusts the system's certificates, and those in these files. A server's
/// certificate must contain `server_name`, or else the requested host.
pub fn connector(
    ca_files: &[PathBuf],
    server_name: Option<&str>,
) -> io::Result<HttpsConnector<HttpConnector>> {
    let mut roots = RootCertStore::empty();
    // Unreadable certificates of the system are skipped. Without any, HTTPS servers are not trusted, and requests to
    // them report that.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for path in ca_files {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|e| named(path, &e))?;
        }
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    let builder = match server_name {
        None => builder,
        Some(name) => {
            let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
    };
    Ok(builder.enable_http1().build())
}

/// An error with its sources, which have the details.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, PemError>>)
        .map_err(|e| named(path, &e))?;
    match certificates.is_empty() {
        true => Err(named(path, &"expected certificates, found none")),
        false => Ok(certificates),
    }
}

fn named(path: &Path, why: &dyn fmt::Display) -> io::Error {
    io::Error::other(format!("CA file {}: {why}", path.display()))
}

pub const AGENT: &str = concat!("Crosstie/", env!("CARGO_PKG_VERSION"));
