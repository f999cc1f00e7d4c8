//! AMQP: users, vhosts, the store, and how a listener speaks.

use super::{AmqpIdentity, AmqpLimits, AmqpPermission, Json, Replicated};

/// The broker behind a router worker's AMQP transports.
#[derive(Clone, Debug, PartialEq)]
pub struct Amqp {
    /// `guest` from loopback only, where no user is configured; with definitions, only after they
    /// were imported.
    pub users: Vec<AmqpUser>,
    /// `/` where none is configured; with definitions, only after they were imported.
    pub vhosts: Vec<AmqpVhost>,
    /// A RabbitMQ definitions file to be imported when the worker starts: `Definitions::load`,
    /// then `Amqp::import`.
    pub definitions: Option<String>,
    /// The file of what survives; it is made when there is something to write.
    pub store: String,
    pub limits: AmqpLimits,
    pub identity: AmqpIdentity,
}

/// A user and the hash of the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmqpUser {
    pub name: String,
    /// None: no password lets the user in (certificates do).
    pub password: Option<crosstie_auth::PasswordHash>,
    pub tags: Vec<String>,
    /// May come from other machines.
    pub is_remote_allowed: bool,
}

/// A vhost and who may do what in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmqpVhost {
    pub name: String,
    pub permissions: Vec<AmqpPermission>,
    /// It survives its machine.
    pub replicated: Option<Replicated>,
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmqpMechanism {
    Plain,
    AmqPlain,
    /// By the name in the certificate that its TLS connection showed.
    External,
}

/// A RabbitMQ definitions file, as far as it can be imported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// The version of RabbitMQ that wrote them, if they say.
    pub version: Option<String>,
    /// The file has users; some may have been skipped.
    pub names_users: bool,
    pub users: Vec<AmqpUser>,
    /// With their permissions.
    pub vhosts: Vec<AmqpVhost>,
    pub exchanges: Vec<DefinedExchange>,
    pub queues: Vec<DefinedQueue>,
    pub bindings: Vec<DefinedBinding>,
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

/// Arguments by name, as the file has them: whole numbers become `long` (`l`) in AMQP's tables,
/// as in RabbitMQ's own import.
pub type DefinedArguments = Vec<(String, Json)>;

/// Something that the file has and Crosstie does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// What and which: `policy 'ha' in vhost '/'`.
    pub what: String,
    pub why: String,
    /// Without it a user may do more than in RabbitMQ.
    pub is_wider: bool,
}
