//! Pipelined requests, by clients that do not read the answers.

use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::super::hold;
use super::{connect, get};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const CONNECTIONS: usize = 500;
const REQUESTS: usize = 500;
const HELD: Duration = Duration::from_secs(8);
/// So small that bytes for it wait at the server.
const RECEIVE_BUFFER_BYTES: usize = 4096;

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let web = strike.web()?.clone();
    let requests = get(&web, "").repeat(REQUESTS);
    let mut streams = Vec::new();
    let mut written = 0;
    for _ in 0..strike.few(CONNECTIONS) {
        let stream = match connect(&web) {
            Ok(stream) => stream,
            Err(error) => {
                strike.refused(&error.to_string());
                break;
            }
        };
        set_socket_recv_buffer_size(&stream, RECEIVE_BUFFER_BYTES).map_err(std::io::Error::from)?;
        // Bytes that are not taken count as not sent: they are not awaited.
        written += stream.try_write(requests.as_bytes()).unwrap_or(0) as u64;
        streams.push(stream);
        if strike.is_over() {
            break;
        }
    }
    strike.made("connections that do not read", streams.len() as u64);
    let one = get(&web, "").len() as u64;
    strike.made("requests of them", written / one);
    hold(strike, &streams.iter().collect::<Vec<_>>(), HELD)
}
