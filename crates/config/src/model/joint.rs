//! Joints: what of WAMP is something of AMQP, inside one router worker.

use super::{ExchangeToTopic, ProcedureToTarget, TargetToProcedure, TopicToExchange};

/// A joint: its end in a realm, its end in a vhost, and what it does between.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    pub id: String,
    pub realm: String,
    pub role: String,
    pub vhost: String,
    /// Whose permissions it has there.
    pub user: String,
    /// A longer body is not passed on.
    pub body_bytes_max: usize,
    /// Joints that a message may have come through, this one counted.
    pub hops_max: u32,
    pub kind: JointKind,
}

/// What comes in, and what goes out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JointKind {
    ProcedureToTarget(ProcedureToTarget),
    TargetToProcedure(TargetToProcedure),
    TopicToExchange(TopicToExchange),
    ExchangeToTopic(ExchangeToTopic),
}

/// Servers of oslo.messaging, or the ones that a joint stands for.
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
    /// Otherwise it has to be there.
    pub is_declared: bool,
}

impl JointTarget {
    /// The exchange that everybody on the topic is told through.
    pub fn fanout_exchange(&self) -> String {
        format!("{}_fanout", self.topic)
    }
}
