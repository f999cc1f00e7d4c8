//! The realms of a router that span several nodes, for operators.

use crosstie_fabric::{Cause, NeighbourStatus, State};

use crate::router::Router;

/// The status of a realm on several nodes, as one node knows it.
#[derive(Clone, Debug)]
pub struct FabricStatus {
    pub realm: String,
    /// `detached`, `joining` or `attached`.
    pub state: &'static str,
    /// The connected NATS server.
    pub server: String,
    /// Faults, as `/health` lists them.
    pub troubles: Vec<String>,
    /// The other nodes.
    pub nodes: Vec<NeighbourStatus>,
    /// Number of open calls between this node and others.
    pub calls: usize,
    /// Number of other nodes' registrations.
    pub registrations: usize,
    /// Bytes that wait for the NATS server.
    pub queued_bytes: usize,
    /// Number of events dropped because too many bytes waited.
    pub dropped: u64,
    /// Number of times that all nodes confirmed this node's subscriptions, and their total duration.
    pub barriers: u64,
    pub barrier_us: u64,
    /// Number of times that all calls with another node ended, by cause.
    pub resets: Vec<(&'static str, u64)>,
}

impl Router {
    /// The realms that span several nodes, in the order of their starts.
    pub fn fabric_realms(&self) -> Vec<FabricStatus> {
        let realms = self.state.realms.realms();
        let status = realms.iter().filter_map(|realm| {
            let port = realm.port.as_ref()?;
            let (seen, counts) = (port.seen(), realm.counts());
            let (nodes, queued_bytes) = port.neighbours();
            let resets = Cause::ALL.into_iter().zip(seen.counts.resets);
            Some(FabricStatus {
                realm: realm.name().to_owned(),
                state: match seen.state {
                    State::Detached => "detached",
                    State::Joining => "joining",
                    State::Attached => "attached",
                },
                troubles: seen.judge(port.settings.is_refused_detached).1,
                nodes,
                calls: counts.calls_across,
                registrations: counts.registrations_elsewhere,
                queued_bytes,
                dropped: seen.counts.dropped,
                barriers: seen.counts.barriers,
                barrier_us: seen.counts.barrier_us,
                resets: resets.map(|(cause, count)| (cause.name(), count)).collect(),
                server: seen.server,
            })
        });
        status.collect()
    }
}
