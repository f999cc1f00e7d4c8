//! `bench handshake`: opening and closing handshakes of WebSocket connections, as wsperf counts
//! them.

mod against;
mod analysis;
mod closing;
mod compare;
mod dial;
mod driver;
mod log;
mod opened;
mod opening;
mod probe;
mod run;
mod scaling;
pub(crate) mod servers;
pub(crate) mod usage;
pub(crate) mod worker;

pub use against::{AgainstOptions, against};
pub use analysis::Analysis;
pub use compare::{CompareOptions, compare};
pub use log::Log;
pub(crate) use opening::Target;
pub(crate) use probe::open;
pub use run::RunOptions;
pub use scaling::{ScalingOptions, scaling};
pub use servers::ServersOptions;
