//! A relay in user space that makes a stream's way longer: latency, jitter, a rate, and failures,
//! for TCP and Unix sockets alike. The kernel's own way to do this, netem, is a module that many
//! machines do not have, and that delays whole interfaces.
//!
//! ```text
//!   client ──▶ listener │ Connection: read ▶ Queue (due times) ▶ write │ ──▶ server
//! ```
//!
//! Pure, with the clock as an argument: [`options`] and [`cut`] (what is asked for), `line` (delay
//! and rate), `queue` (what is under way), the calendar of cuts. Sockets: `listener`,
//! `connection`, `carry` (the loop). [`measure`] says how exact all of it is.

mod carry;
mod connection;
pub mod cut;
mod line;
mod listener;
pub mod measure;
pub mod options;
mod queue;
pub mod statistics;
pub mod units;
pub mod worker;

use std::io;
use std::os::fd::AsFd;

pub use cut::Cut;
pub use options::{Direction, LinkOptions};
pub use statistics::{Statistics, Summary};

use crate::descriptors;
use crate::target::Endpoint;

/// A link that listens and does not carry anything yet.
pub struct Link {
    carrier: carry::Carrier,
    endpoint: Endpoint,
}

impl Link {
    /// Listens at one address for clients of the other.
    pub fn bind(listen: &Endpoint, server: &Endpoint, options: &LinkOptions) -> io::Result<Self> {
        options.check().map_err(io::Error::other)?;
        descriptors::raise();
        let (listener, endpoint) = listener::Listener::bind(listen)?;
        let carrier = carry::Carrier::new(listener, server.clone(), options)?;
        Ok(Self { carrier, endpoint })
    }

    /// Where clients connect to: with the port that was found, if none was given.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Carries until `stop` has something to read or its other side is closed. `notice` is told
    /// what the user must know meanwhile.
    pub fn run(self, stop: impl AsFd, notice: &mut dyn FnMut(&str)) -> io::Result<Statistics> {
        self.carrier.run(stop.as_fd(), notice)
    }
}
