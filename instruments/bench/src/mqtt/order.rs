//! The order of a driver of messages, and what it finds.

use crosstie_mqtt::{QoS, Version};
use serde::{Deserialize, Serialize};

use super::url::Broker;
use crate::load::{Faults, Recorded, Traffic};
use crate::process::WorkerError;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadOrder {
    pub(super) broker: Broker,
    pub(super) is_v5: bool,
    /// The topics are this and the publisher's number.
    pub(super) topic: String,
    pub(super) qos: u8,
    pub(super) publishers: usize,
    pub(super) subscribers: usize,
    /// The subscribers' sessions outlive their connections.
    pub(super) is_kept: bool,
    /// ... and they are away while messages are published.
    pub(super) is_away: bool,
    pub(super) payload_bytes: usize,
    pub(super) outstanding: u64,
    /// Publications per second, if they are paced.
    pub(super) rate: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadFinding {
    /// Messages that arrived within the window, and the reads that brought them.
    pub(super) traffic: Traffic,
    /// Publications that the broker acknowledged within the window.
    pub(super) acknowledged: u64,
    /// Warm-up and tail included.
    pub(super) published: u64,
    /// The time of each message of the window from its intended publication, if it was paced.
    pub(super) times: Recorded,
    /// System calls of the driver within the window.
    pub(super) calls: u64,
    pub(super) faults: Faults,
    /// The session that is away held its maximum before the end.
    pub(super) is_full: bool,
}

/// Maximum number of messages in a session that is away, and of bytes of their payloads.
const KEPT_MAX: u64 = 60_000;
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Number of messages of this size that a session keeps at most.
pub(super) fn kept_max(payload_bytes: usize) -> u64 {
    KEPT_MAX.min((KEPT_BYTES_MAX / payload_bytes.max(1)) as u64)
}

pub(super) fn version(is_v5: bool) -> Version {
    match is_v5 {
        true => Version::V5,
        false => Version::V311,
    }
}

impl LoadOrder {
    pub(super) fn qos(&self) -> Result<QoS, WorkerError> {
        let unknown = || WorkerError::Encode(format!("there is no QoS {}", self.qos));
        QoS::from_octet(self.qos).ok_or_else(unknown)
    }

    pub(super) fn client_id(&self, part: &str, at: usize) -> String {
        format!("{}-{part}{at}", self.topic.replace('/', "-"))
    }

    pub(super) fn topic_of(&self, publisher: usize) -> String {
        format!("{}/{publisher}", self.topic)
    }

    /// The filter of all publishers' topics.
    pub(super) fn filter(&self) -> String {
        match self.publishers {
            1 => self.topic_of(0),
            _ => format!("{}/#", self.topic),
        }
    }
}
