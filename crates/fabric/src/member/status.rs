//! The other nodes, for operators.

use crosstie_routing::Time;

use super::Member;

/// Another node of the realm, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourStatus {
    pub node: String,
    /// The NATS server to which it is connected.
    pub server: String,
    /// `active`, `suspected` or `refused`.
    pub state: &'static str,
    /// Time since its last frame.
    pub silent_ms: u64,
    /// It exchanges calls with this one.
    pub is_paired: bool,
}

impl Member {
    /// The nodes that have announced themselves.
    pub fn neighbours(&self, now: Time) -> impl Iterator<Item = NeighbourStatus> {
        let known = self.neighbours.all().filter(|(_, other)| other.is_known());
        known.map(move |(_, other)| NeighbourStatus {
            node: other.node.clone(),
            server: other.server.clone(),
            state: match (other.is_active(), other.is_strange()) {
                (true, _) => "active",
                (false, true) => "refused",
                (false, false) => "suspected",
            },
            silent_ms: other.silent_ms(now),
            is_paired: other.pair.is_open,
        })
    }
}
