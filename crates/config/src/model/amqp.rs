//! AMQP: users, vhosts, the store and imported definitions.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

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
    /// Users whose passwords the file leaves out.
    pub without_passwords: Vec<String>,
    /// In the order in which they can be made.
    pub settings: Vec<DefinedSetting>,
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

/// An entry that declares nothing, as the file has it: not checked.
#[derive(Clone, PartialEq)]
pub struct DefinedSetting {
    pub kind: SettingKind,
    /// Empty for users and global parameters.
    pub vhost: String,
    /// The user, for permissions.
    pub name: String,
    /// The body of the request of the HTTP API that would put it.
    pub body: Json,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    GlobalParameter,
    OperatorPolicy,
    /// Only in definitions for a running broker.
    Permission,
    Policy,
    TopicPermission,
    /// Only in definitions for a running broker.
    User,
    UserLimits,
    /// Description and tags.
    Vhost,
    VhostLimits,
}

/// The broker that definitions are for, while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Present<'p> {
    pub vhosts: &'p BTreeSet<Arc<str>>,
    /// All that the file declares is for this vhost.
    pub only: Option<&'p str>,
}

/// Omits the body: a user's has a password.
impl fmt::Debug for DefinedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            vhost,
            name,
            body,
        } = self;
        let mut shown = f.debug_struct("DefinedSetting");
        let shown = shown.field("kind", kind).field("vhost", vhost);
        let shown = shown.field("name", name);
        match kind {
            SettingKind::User => shown.finish_non_exhaustive(),
            _ => shown.field("body", &body.to_string()).finish(),
        }
    }
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
