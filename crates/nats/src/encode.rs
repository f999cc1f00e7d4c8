//! Encodes a client's operations.
//!
//! An invalid subject is the caller's mistake: it could form several operations, or another one. Callers escape the
//! names from which they form subjects.

use std::io::Write as _;

use crate::headers::{self, is_field};
use crate::{is_pattern, is_subject};

/// Appends CONNECT, with one JSON object.
pub fn connect(options: &str, out: &mut Vec<u8>) {
    debug_assert!(!options.contains(['\r', '\n']));
    line(&["CONNECT", options], out);
}

/// Appends PUB with its payload.
pub fn publish(subject: &str, payload: &[u8], out: &mut Vec<u8>) {
    debug_assert!(is_subject(subject), "{subject}");
    out.reserve(subject.len() + payload.len() + 32);
    out.extend_from_slice(b"PUB ");
    out.extend_from_slice(subject.as_bytes());
    // Writing to a vector cannot fail.
    let _ = write!(out, " {}\r\n", payload.len());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// Appends a request to a server's own services, some of whose parameters are headers (`Nats-Expected-Last-Sequence`):
/// HPUB, or PUB without headers. JetStream drops a request of the system account that has a header, even an empty one.
pub fn request(
    (subject, reply): (&str, &str),
    fields: &[(&str, &str)],
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    debug_assert!(
        is_subject(subject) && is_subject(reply),
        "{subject} {reply}"
    );
    debug_assert!(fields.iter().all(is_field), "{fields:?}");
    if fields.is_empty() {
        line(&["PUB", subject, reply, &payload.len().to_string()], out);
        out.extend_from_slice(payload);
        out.extend_from_slice(b"\r\n");
        return;
    }
    let fields_bytes = fields
        .iter()
        .map(|(name, value)| name.len() + value.len() + ": \r\n".len());
    let head = headers::VERSION.len() + "\r\n\r\n".len();
    let header_bytes = head + fields_bytes.sum::<usize>();
    let bytes = header_bytes + payload.len();
    out.reserve(subject.len() + reply.len() + bytes + 64);
    // Writing to a vector cannot fail.
    let _ = write!(out, "HPUB {subject} {reply} {header_bytes} {bytes}\r\n");
    line(&[headers::VERSION], out);
    for (name, value) in fields {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// Appends SUB: messages that match arrive under that number from now on.
pub fn subscribe(pattern: &str, sid: u64, out: &mut Vec<u8>) {
    debug_assert!(is_pattern(pattern), "{pattern}");
    line(&["SUB", pattern, &sid.to_string()], out);
}

/// Appends UNSUB.
pub fn unsubscribe(sid: u64, out: &mut Vec<u8>) {
    line(&["UNSUB", &sid.to_string()], out);
}

/// Appends PING, which a server answers after it has processed everything before.
pub fn ping(out: &mut Vec<u8>) {
    line(&["PING"], out);
}

/// Appends PONG.
pub fn pong(out: &mut Vec<u8>) {
    line(&["PONG"], out);
}

fn line(words: &[&str], out: &mut Vec<u8>) {
    for (place, word) in words.iter().enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}
