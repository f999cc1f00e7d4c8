//! Joints: what of WAMP is something of AMQP, inside one router worker.

use std::time::Duration;

use crosstie_joints::{Body, Exceptions, Template};
use crosstie_wamp::MatchPolicy;

use super::Json;

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

/// A procedure that servers of oslo.messaging serve.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcedureToTarget {
    pub procedure: String,
    pub match_policy: MatchPolicy,
    pub target: JointTarget,
    /// Of `procedure`, `rest`, `last`.
    pub method: Template,
    /// The call's result is that the broker has the message.
    pub is_cast: bool,
    /// A cast to every server of the topic.
    pub is_fanout: bool,
    /// Names for positional arguments.
    pub arguments: Vec<String>,
    /// Fields of the context of each call.
    pub context: Vec<(String, Json)>,
    pub timeout: Duration,
    pub pending_max: usize,
    pub exceptions: Exceptions,
    /// A disclosed caller's authid is the message's `user-id`.
    pub is_impersonator: bool,
}

/// A server of oslo.messaging whose methods are procedures.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetToProcedure {
    pub target: JointTarget,
    /// Of `method`, `namespace`.
    pub procedure: Template,
    pub timeout: Duration,
    pub pending_max: usize,
    pub prefetch: u16,
    /// The keyword argument that has the caller's context; it is not passed on where not said.
    pub context_argument: Option<String>,
    /// The same for the message's properties.
    pub properties_argument: Option<String>,
    pub exceptions: Exceptions,
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

/// A topic whose events are published to an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicToExchange {
    pub topic: String,
    pub match_policy: MatchPolicy,
    pub exchange: JointExchange,
    /// Of `topic`, `rest`.
    pub routing_key: Template,
    pub body: Body,
    pub is_persistent: bool,
    /// A disclosed publisher's authid is the message's `user-id`.
    pub is_impersonator: bool,
}

/// An exchange whose messages are events of a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeToTopic {
    pub exchange: JointExchange,
    /// A durable queue of that name; one that goes with the joint where not said.
    pub queue: Option<String>,
    pub binding_keys: Vec<String>,
    /// Of `routing_key`, `exchange`.
    pub topic: Template,
    pub body: Body,
    pub prefetch: u16,
    /// The keyword argument that has the message's properties.
    pub properties_argument: Option<String>,
}

impl JointTarget {
    /// The exchange that everybody on the topic is told through.
    pub fn fanout_exchange(&self) -> String {
        format!("{}_fanout", self.topic)
    }
}
