//! AMQP: users, vhosts, the store, and how a listener speaks.

use std::time::Duration;

use super::{Json, Replicated};

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

/// The identity in a broker's `server_properties`. Clients decide by it what they may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmqpIdentity {
    pub product: String,
    pub version: String,
    /// Named after the machine where not said.
    pub cluster_name: Option<String>,
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

/// Three regular expressions over names of queues and exchanges. An empty one allows nothing,
/// as in RabbitMQ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmqpPermission {
    pub user: String,
    pub configure: String,
    pub write: String,
    pub read: String,
}

/// Bounds of a worker's vhosts: of bytes all together, of what is declared each.
#[derive(Clone, Debug, PartialEq)]
pub struct AmqpLimits {
    /// Bytes of messages in memory; publishers are blocked beyond.
    pub memory_bytes_max: usize,
    pub message_bytes_max: usize,
    pub queues_max: usize,
    /// Exclusive ones of one connection.
    pub connection_queues_max: usize,
    pub exchanges_max: usize,
    pub bindings_max: usize,
    /// Bytes of the names, keys and arguments of all that is declared in a vhost.
    pub definition_bytes_max: usize,
    /// Nodes of patterns that a message may meet at worst, in one exchange.
    pub exchange_steps_max: usize,
    /// Words and fields of all patterns of a vhost.
    pub pattern_nodes_max: usize,
    /// Of one channel.
    pub consumers_max: usize,
    /// Of one connection.
    pub connection_consumers_max: usize,
    /// Keys in one message's headers `CC` and `BCC`.
    pub copy_keys_max: usize,
    /// Publications and acknowledgements of one transaction.
    pub transaction_messages_max: usize,
    /// Bytes that the channels of a connection have published and not committed.
    pub transaction_bytes_max: usize,
    /// Bytes that wait to be written to the store; publishers are blocked beyond.
    pub commit_bytes_max: usize,
    /// Bytes that should be free on the store's disk; publishers are blocked below. 0: no matter.
    pub disk_free_bytes_min: u64,
    /// How long a delivery may wait for its acknowledgement; for ever where not said.
    pub consumer_timeout: Option<Duration>,
    /// How long a message that is not complete is waited for; for ever where not said.
    pub incomplete_timeout: Option<Duration>,
    /// How long an attempt to log in waits at most, for those that have failed.
    pub login_delay_max: Duration,
}

/// How an AMQP listener speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct AmqpTransport {
    pub frame_bytes_max: u32,
    pub channels_max: u16,
    /// Asked for in `connection.tune`; none where not said.
    pub heartbeat: Option<Duration>,
    /// `PLAIN`, `AMQPLAIN`, `EXTERNAL`.
    pub mechanisms: Vec<AmqpMechanism>,
    pub handshake_timeout: Duration,
    /// For closing its socket, once that the connection is closed was said and answered; and for
    /// the answer, where the broker says it.
    pub closing_timeout: Duration,
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
