//! The cases: an operation, by a client and a server of one kind.

use std::fmt;
use std::time::Duration;

use crosstie_wan::units;
use serde::{Deserialize, Serialize};

use super::document;
use super::topology::Topology;
use crate::figures::Series;
use crate::subject::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    /// A request, including its reply.
    Call,
    /// A request, including the broker's confirm.
    Cast,
}

names! {
    Operation { Call = "call", Cast = "cast" }
    "an operation is call or cast"
}

/// The kind of client and server that drives the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Driver {
    /// Ours: blocking sockets, the same frames.
    Native,
    Python,
}

impl Driver {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Python => "python",
        }
    }
}

/// One of both: `call native`, `cast python`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Case {
    pub operation: Operation,
    pub driver: Driver,
}

/// A case, and the line between the machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) of: Case,
    /// `None` for a measurement of rates.
    pub(super) way: Option<(Topology, Duration)>,
}

impl Placed {
    /// Operations per second that the delay allows.
    pub(super) fn limit_per_s(&self) -> Option<f64> {
        let (topology, delay) = self.way?;
        topology.limit_per_s(self.of.operation, delay)
    }

    pub(super) fn over_limit(&self, series: &Series) -> Option<f64> {
        Some(series.median("operations_per_s")? / self.limit_per_s()?)
    }

    pub(super) fn document(&self) -> Option<document::Figure> {
        let (topology, delay) = self.way?;
        document::figure(topology, self.of.operation, delay)
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, driver) = (self.of.operation, self.of.driver.name());
        match self.way {
            None => self.of.fmt(f),
            Some((Topology::Together, _)) => write!(f, "{operation}, {driver}, together"),
            Some((topology, delay)) => {
                let delay = units::written(delay);
                write!(f, "{operation}, {driver}, {topology}, {delay}")
            }
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.driver.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn a_delayed_case_has_its_limit() {
        let placed = Placed {
            of: Case {
                operation: Operation::Call,
                driver: Driver::Native,
            },
            way: Some((Topology::RemoteClient, Duration::from_millis(50))),
        };
        assert_eq!(placed.to_string(), "call, native, remote client, 50 ms");
        assert_eq!(placed.limit_per_s(), Some(20.0));
        let mut own = Series::new("crosstie");
        for per_s in [19.8, 19.9, 19.7] {
            own.push(Ok(Figures::new().with("operations_per_s", per_s)));
        }
        assert_eq!(placed.over_limit(&own), Some(0.99));
        assert_eq!(placed.document().map(|of| of.one_core), Some(15.0));
    }
}
