//! The sets of families that have a path each.

pub(super) const PREFIX: &str = "rabbitmq_";
const DETAILED: &str = "rabbitmq_detailed_";

/// The set of families that a request names.
pub(super) enum Registry {
    /// Sums.
    Aggregated,
    PerObject,
    /// The families of the names, of these vhosts or of all.
    Detailed {
        families: Vec<String>,
        vhosts: Vec<String>,
    },
}

impl Registry {
    /// The families of `/metrics/detailed` that are wanted; `None`: all.
    pub(super) fn families(&self) -> Option<&[String]> {
        match self {
            Self::Detailed { families, .. } => Some(families),
            Self::Aggregated | Self::PerObject => None,
        }
    }

    pub(super) fn prefix(&self) -> &'static str {
        match self {
            Self::Detailed { .. } => DETAILED,
            Self::Aggregated | Self::PerObject => PREFIX,
        }
    }

    /// The label of the boards.
    pub(super) fn endpoint(&self) -> &'static str {
        match self {
            Self::Aggregated => "aggregated",
            Self::PerObject => "per-object",
            Self::Detailed { .. } => "detailed",
        }
    }
}
