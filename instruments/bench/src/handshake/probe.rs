//! One whole handshake before the load: a server's fault is reported once, in words, instead of as a hundred thousand
//! failures.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::closing::{Closing, close_frame, closing};
use super::opening::{Openings, Target, first_line};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error(
        "nothing listens on {url} ({source}): start the server first, as in `crosstie testee \
         websocket --url ws://HOST:PORT --workers 1`"
    )]
    NobodyListens { url: String, source: io::Error },
    #[error("{url} cannot be reached: {source}")]
    Unreachable { url: String, source: io::Error },
    /// The text quotes its answer.
    #[error("{url} does not speak WebSocket: {why}")]
    SomethingElse { url: String, why: String },
    #[error("{url} accepted the connection, but {what} arrived within {} s", patience.as_secs_f64())]
    NoAnswer {
        url: String,
        what: &'static str,
        patience: Duration,
    },
    #[error("{url} closed the connection, expected {expected}")]
    Closed { url: String, expected: &'static str },
    #[error("{url}: {why}, expected a close frame")]
    NotClosing { url: String, why: &'static str },
}

/// Connects, opens, closes. The server has to end the connection, which is not awaited.
pub(super) fn probe(target: &Target, patience: Duration) -> Result<(), ProbeError> {
    let (mut stream, mut input) = open(target, patience)?;
    let url = || target.url();
    let io = |source| ProbeError::Unreachable { url: url(), source };
    stream.write_all(&close_frame()).map_err(io)?;
    let begun = Instant::now();
    loop {
        match closing(&input) {
            Closing::Closed => return Ok(()),
            Closing::Wrong(why) => return Err(ProbeError::NotClosing { url: url(), why }),
            Closing::Waiting => {
                let what = "no answer to a close frame";
                receive(target, &mut stream, &mut input, what, begun, patience)?;
            }
        }
    }
}

/// A connection whose opening handshake is done, and the bytes after it.
pub(crate) fn open(
    target: &Target,
    patience: Duration,
) -> Result<(TcpStream, Vec<u8>), ProbeError> {
    let url = || target.url();
    let stream = TcpStream::connect_timeout(&target.address, patience);
    let mut stream = stream.map_err(|source| match source.kind() {
        ErrorKind::ConnectionRefused => ProbeError::NobodyListens { url: url(), source },
        _ => ProbeError::Unreachable { url: url(), source },
    })?;
    let io = |source| ProbeError::Unreachable { url: url(), source };
    if stream.local_addr().map_err(io)? == target.address {
        let source = io::Error::other("the kernel connected the socket to itself");
        return Err(ProbeError::NobodyListens { url: url(), source });
    }
    stream.set_nodelay(true).map_err(io)?;
    stream.set_write_timeout(Some(patience)).map_err(io)?;
    let mut openings = Openings::new(target);
    stream.write_all(openings.request(0)).map_err(io)?;
    let mut input = Vec::new();
    let begun = Instant::now();
    loop {
        match openings.answer(0, &input) {
            Ok(Some(length)) => {
                input.drain(..length);
                return Ok((stream, input));
            }
            Ok(None) => {}
            Err(why) => return Err(ProbeError::SomethingElse { url: url(), why }),
        }
        let what = "no whole answer to the opening handshake";
        if let Err(error) = receive(target, &mut stream, &mut input, what, begun, patience) {
            // Half an answer is more informative than its missing rest.
            if input.is_empty() || input.starts_with(b"HTTP/1.1 101") {
                return Err(error);
            }
            let why = format!("it sent `{}` and no more", first_line(&input));
            return Err(ProbeError::SomethingElse { url: url(), why });
        }
    }
}

fn receive(
    target: &Target,
    stream: &mut TcpStream,
    input: &mut Vec<u8>,
    what: &'static str,
    begun: Instant,
    patience: Duration,
) -> Result<(), ProbeError> {
    let url = || target.url();
    let left = patience.saturating_sub(begun.elapsed());
    let no_answer = || ProbeError::NoAnswer {
        url: url(),
        what,
        patience,
    };
    let closed = || ProbeError::Closed {
        url: url(),
        expected: "its answer",
    };
    if left.is_zero() {
        return Err(no_answer());
    }
    stream
        .set_read_timeout(Some(left))
        .map_err(|source| ProbeError::Unreachable { url: url(), source })?;
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer) {
        Ok(0) => Err(closed()),
        Ok(length) => {
            input.extend_from_slice(&buffer[..length]);
            Ok(())
        }
        Err(error) => match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::ConnectionReset => Err(closed()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Err(no_answer()),
            _ => Err(ProbeError::Unreachable {
                url: url(),
                source: error,
            }),
        },
    }
}
