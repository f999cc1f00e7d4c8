//! How clients are pinged.

use std::sync::Arc;
use std::time::Duration;

use crosstie_config::Ping;
use crosstie_transport::Connection;

/// How the clients of an endpoint are pinged: one value for all of its connections.
#[derive(Debug)]
pub struct Pings {
    append_ping: AppendPing,
    // In whole seconds, the interval of the sweep.
    pub(crate) interval_s: u32,
    pub(crate) timeout_s: u32,
    payload_bytes: u8,
    pub(crate) any_traffic_counts: bool,
}

/// Appends a ping with this payload.
pub type AppendPing = fn(&[u8], &mut Vec<u8>);

impl Pings {
    pub fn new(append_ping: AppendPing, ping: &Ping) -> Self {
        Self {
            append_ping,
            interval_s: ping.interval.map_or(u32::MAX, whole_seconds),
            timeout_s: ping.timeout.map_or(u32::MAX, whole_seconds),
            payload_bytes: ping.payload_bytes.min(125) as u8,
            any_traffic_counts: ping.restart_on_any_traffic,
        }
    }

    pub(crate) fn send(&self, connection: &Arc<Connection>) {
        let payload = vec![b'c'; self.payload_bytes.into()];
        // A full queue has bytes in transit already; the stall limit judges it.
        let _ = connection.append(|out| {
            (self.append_ping)(&payload, out);
            Ok::<(), ()>(())
        });
    }
}

/// At least one, as the clock ticks once a second.
pub(crate) fn whole_seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis().div_ceil(1000))
        .unwrap_or(u32::MAX)
        .max(1)
}
