//! Pages over HTTP, each on a connection of its own.

use std::time::Duration;

use super::amqp::gone;
use super::ways::Pages;
use crate::load::Stream;
use crate::process::WorkerError;
use crate::subject::Endpoint;

/// A page's bytes with its head; the status must be 200.
pub(super) fn read(pages: &Pages, path: &str, patience: Duration) -> Result<Vec<u8>, WorkerError> {
    let endpoint = Endpoint::Tcp(pages.address);
    let stream = Stream::connect(&endpoint)
        .map_err(|error| WorkerError::Connect(endpoint.to_string(), error))?;
    stream.limit_waiting(Some(patience))?;
    let host = &pages.host;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(gone)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 64 * 1024];
    loop {
        match stream.read(&mut buffer).map_err(late)? {
            0 => break,
            length => answer.extend_from_slice(&buffer[..length]),
        }
    }
    let status = answer.get(9..12).unwrap_or_default();
    match status {
        b"200" => Ok(answer),
        b"" => Err(WorkerError::Closed("answering a request for a page")),
        status => Err(WorkerError::Refused(format!(
            "{path} with {}",
            String::from_utf8_lossy(status)
        ))),
    }
}

/// The sum of all samples of a metric, over all labels.
pub(super) fn metric(pages: &Pages, name: &str, patience: Duration) -> Option<f64> {
    let answer = read(pages, "/metrics", patience).ok()?;
    parse(&String::from_utf8_lossy(&answer), name)
}

fn parse(text: &str, name: &str) -> Option<f64> {
    let mut sum = None;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(name) else {
            continue;
        };
        if !rest.starts_with([' ', '{']) {
            continue;
        }
        let value = rest.rsplit(' ').next().and_then(|value| value.parse().ok());
        sum = Some(sum.unwrap_or(0.0) + value.unwrap_or(0.0));
    }
    sum
}

fn late(error: std::io::Error) -> WorkerError {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => WorkerError::TimedOut,
        _ => gone(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_name_are_added_up() {
        let text = "# TYPE a counter\na{x=\"1\"} 2\na{x=\"2\"} 3\na_total 7\nb 1\n";
        assert_eq!(parse(text, "a"), Some(5.0));
        assert_eq!(parse(text, "b"), Some(1.0));
        assert_eq!(parse(text, "c"), None);
    }
}
