//! Joints between WAMP and AMQP inside one router worker.

use super::{ExchangeToTopic, ProcedureToTarget, TargetToProcedure, TopicToExchange};

/// A joint: its end in a realm, its end in a vhost, and its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    pub id: String,
    pub realm: String,
    pub role: String,
    pub vhost: String,
    /// The user whose permissions apply to the joint.
    pub user: String,
    /// Maximum size of a body; a longer one is not forwarded.
    pub body_bytes_max: usize,
    /// Maximum number of joints that a message may pass, this one included.
    pub hops_max: u32,
    pub kind: JointKind,
}

/// The source and the target of a joint.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JointKind {
    ProcedureToTarget(ProcedureToTarget),
    TargetToProcedure(TargetToProcedure),
    TopicToExchange(TopicToExchange),
    ExchangeToTopic(ExchangeToTopic),
}

/// A target of oslo.messaging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointTarget {
    pub exchange: String,
    pub topic: String,
    pub server: Option<String>,
    pub namespace: Option<String>,
    pub version: Option<String>,
    /// Exchange and queues are declared durable (`amqp_durable_queues`).
    pub is_durable: bool,
}

/// An exchange, as a joint declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointExchange {
    pub name: String,
    pub kind: String,
    pub is_durable: bool,
    /// Without it the exchange must exist.
    pub is_declared: bool,
}

impl JointTarget {
    /// The exchange for casts to every server of the topic.
    pub fn fanout_exchange(&self) -> String {
        format!("{}_fanout", self.topic)
    }
}
