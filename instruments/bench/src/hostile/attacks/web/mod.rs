//! Abuse of web services without a login, including slow requests; each in HTTP's own terms.

pub(in crate::hostile) mod ranges;
pub(in crate::hostile) mod resets;
pub(in crate::hostile) mod silent;
pub(in crate::hostile) mod slow;
pub(in crate::hostile) mod unread;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::stream_has_ended;
use crate::hostile::amqp::gone;
use crate::hostile::strike::Strike;
use crate::hostile::ways::Pages;
use crate::load::Stream;
use crate::process::{PATIENCE, WorkerError};
use crate::subject::Endpoint;

/// Below the directory of files of the attacked node.
pub(in crate::hostile) const FILE: &str = "large.bin";
pub(in crate::hostile) const FILE_BYTES: usize = 1 << 20;
/// The services' paths there.
pub(in crate::hostile) const FILES_PATH: &str = "files";
pub(in crate::hostile) const LONGPOLL_PATH: &str = "lp";

const CLOSED: &str = "the connection was closed";

fn connect(web: &Pages) -> Result<Stream, WorkerError> {
    let endpoint = Endpoint::Tcp(web.address);
    let stream = Stream::connect(&endpoint)
        .map_err(|error| WorkerError::Connect(endpoint.to_string(), error))?;
    stream.limit_waiting(Some(PATIENCE))?;
    Ok(stream)
}

/// Opens so many connections and writes the same bytes on each; a refusal is not retried.
fn open(strike: &mut Strike, count: usize, bytes: &[u8]) -> Result<Vec<Stream>, WorkerError> {
    let web = strike.web()?.clone();
    let mut streams = Vec::new();
    for _ in 0..strike.few(count) {
        let opened = connect(&web).and_then(|stream| {
            stream.write_all(bytes).map_err(gone)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => streams.push(stream),
            Err(error) => {
                strike.refused(&error.to_string());
                break;
            }
        }
        if strike.is_over() {
            break;
        }
    }
    Ok(streams)
}

/// The head of a request for the file, with additional fields or none.
fn get(web: &Pages, fields: &str) -> String {
    let host = &web.host;
    format!("GET /{FILES_PATH}/{FILE} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Flooded {
    written: u64,
    read_bytes: u64,
    closed: u64,
}

/// Writes the same bytes repeatedly on each of so many connections, reads whatever arrives, and reconnects after a
/// close.
fn flood(
    strike: &mut Strike,
    connections: usize,
    longest: Duration,
    batch: impl Fn(u64) -> Vec<u8> + Sync,
) -> Result<Flooded, WorkerError> {
    let web = strike.web()?.clone();
    let end = (Instant::now() + longest).min(strike.deadline);
    let (web, batch) = (&web, &batch);
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|_| scope.spawn(move || flood_one(web, end, batch)))
            .collect();
        let joined = threads.into_iter().flat_map(thread::ScopedJoinHandle::join);
        joined.collect::<Vec<_>>()
    });
    let mut sum = Flooded::default();
    for one in all {
        sum.written += one.written;
        sum.read_bytes += one.read_bytes;
        sum.closed += one.closed;
    }
    if sum.closed > 0 {
        strike.refused_often(CLOSED, sum.closed);
    }
    Ok(sum)
}

fn flood_one(web: &Pages, end: Instant, batch: &impl Fn(u64) -> Vec<u8>) -> Flooded {
    let mut flooded = Flooded::default();
    let mut buffer = vec![0; 64 * 1024];
    while Instant::now() < end {
        // A core that only retries connecting would not be an attack.
        let Ok(stream) = connect(web) else {
            flooded.closed += 1;
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let mut count = 0;
        while Instant::now() < end {
            match exchange(&stream, &batch(count), end, &mut buffer) {
                Ok(bytes) => flooded.read_bytes += bytes,
                Err(_) => {
                    flooded.closed += 1;
                    break;
                }
            }
            count += 1;
            flooded.written += 1;
        }
    }
    flooded
}

/// Writes all of it and reads the available bytes; returns their number.
fn exchange(stream: &Stream, mut bytes: &[u8], end: Instant, buffer: &mut [u8]) -> io::Result<u64> {
    let mut read_bytes = 0;
    loop {
        let written = stream.try_write(bytes)?;
        bytes = &bytes[written..];
        let read = match stream.try_read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        read_bytes += read as u64;
        if read == 0 && (bytes.is_empty() || Instant::now() >= end) {
            return Ok(read_bytes);
        }
        if read == 0 && written == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
