//! The state of a started joint, for operators.

use std::sync::Arc;
use std::time::SystemTime;

use crosstie_config as model;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::joint_counts::{Count, JointCounts};

/// From its start to its stop, connected or not.
pub(crate) struct JointState {
    pub(crate) joint: model::Joint,
    pub(crate) counts: Arc<JointCounts>,
    started: SystemTime,
    way: Mutex<Way>,
    stop: watch::Sender<bool>,
}

/// The state of its connection.
#[derive(Clone, Default)]
struct Way {
    is_there: bool,
    trouble: Option<String>,
}

/// The status of a joint.
#[derive(Clone, Debug)]
pub struct JointStatus {
    pub joint: model::Joint,
    pub started: SystemTime,
    /// Both of its ends are connected.
    pub is_there: bool,
    /// The reason of its last restart, until it is connected again.
    pub trouble: Option<String>,
    /// Messages sent on the other side.
    pub passed: u64,
    /// Messages that the joint answered with an error of its own, or rejected.
    pub refused: u64,
    /// Events and replies without a receiver.
    pub dropped: u64,
    pub restarts: u64,
}

impl JointState {
    pub(crate) fn new(joint: model::Joint) -> Arc<Self> {
        Arc::new(Self {
            counts: JointCounts::new(&joint.id),
            joint,
            started: SystemTime::now(),
            way: Mutex::default(),
            stop: watch::Sender::new(false),
        })
    }

    pub(crate) fn note_ready(&self) {
        *self.way.lock() = Way {
            is_there: true,
            trouble: None,
        };
    }

    pub(crate) fn note_trouble(&self, why: &str) {
        *self.way.lock() = Way {
            is_there: false,
            trouble: Some(why.to_owned()),
        };
    }

    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender lives as long as this.
        let _ = stop.wait_for(|is_stopped| *is_stopped).await;
    }

    pub(crate) fn status(&self) -> JointStatus {
        let Way { is_there, trouble } = self.way.lock().clone();
        let counted = |what| self.counts.counted(what);
        JointStatus {
            joint: self.joint.clone(),
            started: self.started,
            is_there,
            trouble,
            passed: counted(Count::Passed),
            refused: counted(Count::Refused),
            dropped: counted(Count::Dropped),
            restarts: counted(Count::Restarts),
        }
    }
}
