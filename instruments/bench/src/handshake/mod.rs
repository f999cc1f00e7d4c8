//! `bench handshake`: opening and closing handshakes of WebSocket connections, counted like wsperf's.

mod against;
mod analysis;
mod closing;
mod compare;
pub(crate) mod contest;
mod dial;
mod driver;
mod log;
mod opened;
mod opening;
mod options;
mod probe;
mod run;
mod scaling;
pub(crate) mod servers;
pub(crate) mod usage;
pub(crate) mod worker;

pub use against::handshake_log;
pub use analysis::Analysis;
pub use log::Log;
pub(crate) use opening::Target;
pub use options::HandshakeOptions;
pub(crate) use probe::open;
pub(crate) use servers::ServersOptions;

use crate::error::BenchError;
use crate::frame::Host;

/// Measures servers beside each other, or ours with several numbers of workers; prints, and writes the results file if
/// requested.
pub fn handshake(options: HandshakeOptions, host: Host) -> Result<bool, BenchError> {
    let common = options.servers.common(host)?;
    match options.scaling.is_empty() {
        true => compare::compare(options, common),
        false => scaling::scaling(&options, common),
    }
}
