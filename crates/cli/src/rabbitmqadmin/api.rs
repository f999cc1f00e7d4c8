//! Requests to a management API.

use std::fmt::Display;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crosstie_client::{TlsOptions, tls_config};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::failure::Failure;
use super::options::{Options, Tls};

/// Maximum size of an answer, in bytes: that of definitions.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The API that the options name.
pub(super) struct Api<'o> {
    options: &'o Options,
    runtime: tokio::runtime::Runtime,
}

impl<'o> Api<'o> {
    pub(super) fn new(options: &'o Options) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Failure::died(&error.to_string()))?;
        Ok(Self { options, runtime })
    }

    /// Sends a request, with a path below `/api`. Returns the body of the answer.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<String, Failure> {
        let path = format!("{}/api{path}", self.options.path_prefix);
        let timed_out = |_| {
            let seconds = self.options.timeout.as_secs();
            let text =
                format!("Timed out getting HTTP response (request timeout: {seconds} seconds)");
            Failure::died(&text)
        };
        let (status, body) = self.runtime.block_on(async {
            let asked = self.exchange(method, &path, body);
            let asked = tokio::time::timeout(self.options.timeout, asked).await;
            asked.map_err(timed_out)?
        })?;
        let text = String::from_utf8_lossy(&body).into_owned();
        match status.as_u16() {
            400 => Err(Failure::died(&reason(&text))),
            401 => Err(Failure::died(&format!("Access refused: {path}"))),
            404 => Err(Failure::died(&format!("Not found: {path}"))),
            300.. => Err(Failure::died(&format!(
                "Received response {status} for path {path}\n{text}"
            ))),
            _ => Ok(text),
        }
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<(hyper::StatusCode, Bytes), Failure> {
        let Options {
            hostname,
            port,
            tls,
            ..
        } = self.options;
        let request = self.request(method, path, body)?;
        let stream = TcpStream::connect((hostname.as_str(), *port)).await;
        let stream = stream.map_err(|error| not_connected(&error))?;
        let response = match tls {
            None => answered(stream, request).await?,
            Some(tls) => answered(secured(stream, hostname, tls).await?, request).await?,
        };
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| not_answered(&error))?;
        Ok((status, body.to_bytes()))
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let Options {
            hostname,
            port,
            username,
            password,
            ..
        } = self.options;
        let login = STANDARD.encode(format!("{username}:{password}"));
        let host = match hostname.contains(':') {
            true => format!("[{hostname}]:{port}"),
            false => format!("{hostname}:{port}"),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            .header(AUTHORIZATION, format!("Basic {login}"));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        request
            .body(body)
            .map_err(|error| Failure::died(&format!("Cannot ask for {path}: {error}")))
    }
}

async fn secured(
    stream: TcpStream,
    hostname: &str,
    tls: &Tls,
) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, Failure> {
    let mut options = TlsOptions::default();
    options.insecure = tls.is_insecure;
    options.ca_files = tls.authorities.iter().cloned().collect();
    options.certificate = tls.certificate.clone();
    let connector = tls_config(&options).map(TlsConnector::from);
    let connector = connector.map_err(|error| not_connected(&error))?;
    let name = ServerName::try_from(hostname.to_owned());
    let name = name.map_err(|error| Failure::died(&format!("Could not connect: {error}")))?;
    let stream = connector.connect(name, stream).await;
    stream.map_err(|error| not_connected(&error))
}

async fn answered(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Failure> {
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| not_answered(&error))?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await;
    response.map_err(|error| not_answered(&error))
}

fn not_connected(error: &io::Error) -> Failure {
    Failure::died(&format!("Could not connect: {}", told(error)))
}

/// Python's form of an error of the system.
fn told(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.split_once(" (os error")) {
        (Some(number), Some((text, _))) => format!("[Errno {number}] {text}"),
        _ => match text.strip_prefix("failed to lookup address information: ") {
            Some(text) => not_found(text),
            None => text,
        },
    }
}

/// An error of `getaddrinfo`, by glibc's text or musl's, in glibc's words and with its number.
fn not_found(text: &str) -> String {
    let (number, text) = match text {
        "Name or service not known" | "Name does not resolve" => (-2, "Name or service not known"),
        "Temporary failure in name resolution" | "Try again" => {
            (-3, "Temporary failure in name resolution")
        }
        "No address associated with hostname" | "Name has no usable address" => {
            (-5, "No address associated with hostname")
        }
        other => return other.to_owned(),
    };
    format!("[Errno {number}] {text}")
}

fn not_answered(error: &impl Display) -> Failure {
    Failure::died(&format!("Error getting HTTP response:\n\n{error}"))
}

/// The reason in the body of a refusal.
fn reason(body: &str) -> String {
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    match &body["reason"] {
        serde_json::Value::String(reason) => reason.clone(),
        other => super::python::json(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_in_pythons_form() {
        for (error, expected) in [
            (
                io::Error::from_raw_os_error(111),
                "[Errno 111] Connection refused",
            ),
            (
                io::Error::other("failed to lookup address information: Name or service not known"),
                "[Errno -2] Name or service not known",
            ),
            (
                io::Error::other("failed to lookup address information: Try again"),
                "[Errno -3] Temporary failure in name resolution",
            ),
            (io::Error::other("no ports"), "no ports"),
        ] {
            assert_eq!(told(&error), expected);
        }
    }
}
