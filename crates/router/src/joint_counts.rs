//! The counters of a joint, for `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::joint_state::JointState;

/// A joint's counters, by its id.
pub(crate) struct JointCounts {
    pub(crate) id: String,
    counts: [AtomicU64; Count::ALL.len()],
}

crosstie_collections::named! {
    /// A counter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Count {
        /// Messages received on one side and sent on the other.
        Passed = "passed",
        /// Calls, requests and messages that the joint answered with an error of its own, or rejected.
        Refused = "refused",
        /// Events and replies without a receiver.
        Dropped = "dropped",
        /// Number of restarts.
        Restarts = "restarts",
    }
}

impl JointCounts {
    pub(crate) fn new(id: &str) -> Arc<Self> {
        Arc::new(Self {
            id: id.to_owned(),
            counts: Default::default(),
        })
    }

    pub(crate) fn count(&self, what: Count) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }
}

type Labels<const N: usize> = [(&'static str, String); N];

/// Registers the counters of joints, by worker.
pub(crate) fn register<'w>(
    registry: &mut Registry,
    workers: impl Iterator<Item = (&'w str, Vec<Arc<JointState>>)>,
) {
    let messages: Family<Labels<3>, Counter> = Family::default();
    let restarts: Family<Labels<2>, Counter> = Family::default();
    for (worker, joints) in workers {
        for joint in joints {
            let joint = &joint.counts;
            let of_joint = [("worker", worker.to_owned()), ("joint", joint.id.clone())];
            for outcome in [Count::Passed, Count::Refused, Count::Dropped] {
                let [worker, joint_id] = of_joint.clone();
                let labels = [worker, joint_id, ("outcome", outcome.name().to_owned())];
                let counted = joint.counted(outcome);
                messages.get_or_create(&labels).inc_by(counted);
            }
            let counted = joint.counted(Count::Restarts);
            restarts.get_or_create(&of_joint).inc_by(counted);
        }
    }
    let help = "Messages that reached joints, by outcome";
    registry.register("joint_messages", help, messages);
    let help = "Restarts of joints";
    registry.register("joint_restarts", help, restarts);
}
