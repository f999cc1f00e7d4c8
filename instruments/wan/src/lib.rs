//! A relay in user space that makes a stream's line longer: latency, jitter, a rate, and failures, for TCP and Unix
//! sockets alike. The kernel's own tool for this, netem, is a module that many machines do not have, and that delays
//! whole interfaces.
//!
//! ```text
//!   client ──▶ listener │ Connection: read ▶ Queue (due times) ▶ write │ ──▶ server
//! ```
//!
//! Pure, with the clock as an argument: `options` and `cut` (the options), `line` (delay and rate), `queue` (bytes in
//! transit), the calendar of cuts. Sockets: `listener`, `connection`, `carry` (the loop).
//!
//! Also [`namespaces`]: two network namespaces with a wire between them, for users with one machine who need two.

mod carry;
mod connection;
mod cut;
mod endpoint;
mod line;
mod listener;
pub mod namespaces;
mod options;
mod queue;
mod statistics;
pub mod units;

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path;

pub use cut::Cut;
pub use endpoint::{Endpoint, ParseError, address, written};
pub use namespaces::Namespaces;
pub use options::{Direction, LinkOptions};
pub use statistics::{Late, Statistics, Summary};

/// A delay line that listens and does not carry anything yet.
pub struct Link {
    carrier: carry::Carrier,
    endpoint: Endpoint,
}

impl Link {
    /// Listens at one address for clients of the other. Each connection takes two descriptors: the process's owner
    /// raises the limit.
    pub fn bind(listen: &Endpoint, server: &Endpoint, options: &LinkOptions) -> io::Result<Self> {
        options.check().map_err(io::Error::other)?;
        if is_itself(listen, server) {
            return Err(io::Error::other(
                "--connect leads back to --listen, so the link would be its own client; give it \
                 an address of its own, as in --listen 127.0.0.1:0",
            ));
        }
        let (listener, endpoint) = listener::Listener::bind(listen)?;
        let carrier = carry::Carrier::new(listener, server.clone(), options)?;
        Ok(Self { carrier, endpoint })
    }

    /// The address for clients: with the port that was found, if none was given.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Carries until `stop` is readable or its other side is closed. `notice` gets messages for the user meanwhile.
    pub fn run(self, stop: impl AsFd, notice: &mut dyn FnMut(&str)) -> io::Result<Statistics> {
        self.carrier.run(stop.as_fd(), notice)
    }
}

/// Whether a connection to `server` reaches the listener at `listen`.
fn is_itself(listen: &Endpoint, server: &Endpoint) -> bool {
    match (listen, server) {
        (Endpoint::Tcp(listen), Endpoint::Tcp(server)) => {
            // Unspecified, as a destination, is the loopback too.
            let is_here = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
            let is_any = listen.ip().is_unspecified() || server.ip().is_unspecified();
            listen.port() == server.port()
                && (listen.ip() == server.ip()
                    || is_any && is_here(listen.ip()) && is_here(server.ip()))
        }
        (Endpoint::Unix(listen), Endpoint::Unix(server)) => {
            match (path::absolute(listen), path::absolute(server)) {
                (Ok(listen), Ok(server)) => listen == server,
                _ => listen == server,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_itself_is_recognized() {
        #[track_caller]
        fn check(listen: &str, server: &str, expected: bool) {
            let [listen, server] = [listen, server].map(|text| address(text).unwrap());
            assert_eq!(is_itself(&listen, &server), expected);
        }
        check("127.0.0.1:9", "127.0.0.1:9", true);
        check("0.0.0.0:9", "127.0.0.1:9", true);
        check("[::]:9", "[::1]:9", true);
        check("127.0.0.1:9", "0.0.0.0:9", true);
        check("127.0.0.1:9", "127.0.0.1:10", false);
        check("127.0.0.1:9", "127.0.0.2:9", false);
        check("0.0.0.0:9", "192.0.2.1:9", false);
        check("unix:///tmp/a", "unix:///tmp/./a", true);
        check("unix:///tmp/a", "unix:///tmp/b", false);
        check("unix:///tmp/a", "127.0.0.1:9", false);
    }
}
