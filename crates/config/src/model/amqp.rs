//! AMQP: users, vhosts, the store and imported definitions.

use super::{AmqpUser, AmqpVhost, Json};

/// The importable parts of a RabbitMQ definitions file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// The version of RabbitMQ that wrote the file, if given.
    pub version: Option<String>,
    /// The file has users; some may have been skipped.
    pub names_users: bool,
    pub users: Vec<AmqpUser>,
    /// Vhosts with their permissions.
    pub vhosts: Vec<AmqpVhost>,
    pub exchanges: Vec<DefinedExchange>,
    pub queues: Vec<DefinedQueue>,
    pub bindings: Vec<DefinedBinding>,
    pub policies: Vec<DefinedPolicy>,
    pub skipped: Vec<Skipped>,
}

/// An exchange to be declared.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinedExchange {
    pub vhost: String,
    pub name: String,
    /// `direct`, `fanout`, `topic` or `headers`.
    pub kind: String,
    pub is_durable: bool,
    pub is_auto_delete: bool,
    pub is_internal: bool,
    pub arguments: DefinedArguments,
}

/// A queue to be declared.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinedQueue {
    pub vhost: String,
    pub name: String,
    pub is_durable: bool,
    pub is_auto_delete: bool,
    pub arguments: DefinedArguments,
}

/// A binding to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinedBinding {
    pub vhost: String,
    pub source: String,
    pub destination: String,
    /// To another exchange, not to a queue.
    pub is_to_exchange: bool,
    pub routing_key: String,
    pub arguments: DefinedArguments,
}

/// A policy, or an operator policy, as the file has it: not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinedPolicy {
    pub vhost: String,
    pub name: String,
    pub is_operator: bool,
    pub pattern: Json,
    pub definition: Json,
    pub priority: Option<Json>,
    pub apply_to: Option<Json>,
}

/// Arguments by name, as the file has them: whole numbers become `long` (`l`) in AMQP's tables,
/// as in RabbitMQ's own import.
pub type DefinedArguments = Vec<(String, Json)>;

/// A part of the file that Crosstie does not import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The kind and the name: `policy 'ha' in vhost '/'`.
    pub what: String,
    pub why: String,
    /// Without this part a user may do more than in RabbitMQ.
    pub is_wider: bool,
}
