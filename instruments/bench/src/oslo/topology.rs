//! The document's machines and the cost of the line between them.
//!
//! The document delays the outgoing packets of one of two machines: the round trip grows by the delay, not by twice as
//! much. A delay line that delays only the way towards the broker has the same effect.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::case::Operation;
use crate::subject::ParseError;

/// Which roles share a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topology {
    /// Client, server and broker.
    Together,
    /// Server and broker.
    RemoteClient,
    /// Client and broker.
    RemoteServer,
}

impl Topology {
    pub(crate) const ALL: [Self; 3] = [Self::Together, Self::RemoteClient, Self::RemoteServer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::RemoteClient => "remote client",
            Self::RemoteServer => "remote server",
        }
    }

    /// The minimum number of waits for the line's round trip per operation, for any broker.
    pub(super) fn round_trips(self, operation: Operation) -> u32 {
        match (self, operation) {
            (Self::Together, _) | (Self::RemoteServer, Operation::Cast) => 0,
            _ => 1,
        }
    }

    /// Operations per second that the delay itself allows; `None` if it does not bound them.
    pub(super) fn limit_per_s(self, operation: Operation, delay: Duration) -> Option<f64> {
        let waits_s = delay.as_secs_f64() * f64::from(self.round_trips(operation));
        (waits_s > 0.0).then(|| 1.0 / waits_s)
    }

    /// The one-way delays that an operation includes.
    pub(super) fn explanation(self, operation: Operation) -> &'static str {
        match (self, operation) {
            (Self::Together, Operation::Call) => "no delay: nothing leaves the machine",
            (Self::Together, Operation::Cast) => "no delay: nothing leaves the machine",
            (Self::RemoteClient, Operation::Call) => {
                "the publish pays client → broker once; confirm and reply then pay broker → client \
                 once between them, because the confirm does not wait for the server: one round \
                 trip"
            }
            (Self::RemoteClient, Operation::Cast) => {
                "the publish pays client → broker and its confirm broker → client: one round trip"
            }
            (Self::RemoteServer, Operation::Call) => {
                "the delivery pays broker → server and the reply server → broker: one round trip; \
                 the client's confirm is local, and the server's own comes while the next call is \
                 on its way"
            }
            (Self::RemoteServer, Operation::Cast) => {
                "no delay: the confirm is the broker's, who is with the client, and deliveries \
                 are under way one behind the other"
            }
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Topology {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let named = |known: &Self| known.name().replace(' ', "-") == text;
        let expected = "a topology is together, remote-client or remote-server";
        let found = Self::ALL.into_iter().find(named);
        found.ok_or_else(|| ParseError::new(text, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_bounds_the_rates_that_wait_for_it() {
        #[track_caller]
        fn check(topology: &str, operation: Operation, delay_ms: u64, expected: Option<f64>) {
            let topology: Topology = topology.parse().unwrap();
            let limit = topology.limit_per_s(operation, Duration::from_millis(delay_ms));
            assert_eq!(limit, expected);
        }
        use Operation::{Call, Cast};
        check("together", Call, 50, None);
        check("remote-client", Call, 50, Some(20.0));
        check("remote-client", Cast, 50, Some(20.0));
        check("remote-client", Cast, 0, None);
        check("remote-server", Call, 100, Some(10.0));
        check("remote-server", Cast, 100, None);
        assert!("remote".parse::<Topology>().is_err());
    }
}
