//! Requests that never end: a byte from time to time.

use std::thread;
use std::time::{Duration, Instant};

use super::{CLOSED, LONGPOLL_PATH, open, stream_has_ended};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const CONNECTIONS: usize = 2_000;
const HELD: Duration = Duration::from_secs(12);
const BETWEEN_BYTES: Duration = Duration::from_millis(500);

/// A field's value without an end.
pub(in crate::hostile) fn heads(strike: &mut Strike) -> Result<(), WorkerError> {
    let host = strike.web()?.host.clone();
    let begin = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-Slow: ");
    drip(strike, "heads that do not end", &begin)
}

/// A body of which most is never sent.
pub(in crate::hostile) fn bodies(strike: &mut Strike) -> Result<(), WorkerError> {
    let host = strike.web()?.host.clone();
    let begin = format!(
        "POST /{LONGPOLL_PATH}/open HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4096\r\n\r\n{{"
    );
    drip(strike, "bodies that do not end", &begin)
}

fn drip(strike: &mut Strike, what: &str, begin: &str) -> Result<(), WorkerError> {
    let mut streams = open(strike, CONNECTIONS, begin.as_bytes())?;
    strike.made(what, streams.len() as u64);
    let end = (Instant::now() + HELD).min(strike.deadline);
    let mut buffer = [0; 4096];
    let mut closed = 0;
    while !streams.is_empty() && Instant::now() < end {
        streams.retain(|stream| {
            let goes_on = stream.try_write(b" ").is_ok() && !stream_has_ended(stream, &mut buffer);
            closed += u64::from(!goes_on);
            goes_on
        });
        let left = end.saturating_duration_since(Instant::now());
        thread::sleep(BETWEEN_BYTES.min(left));
    }
    if closed > 0 {
        strike.refused_often(CLOSED, closed);
    }
    Ok(())
}
