//! An AMQP client: its identity, and the parameters that client and broker have negotiated.

use std::sync::Arc;

use crosstie_amqp::{Table, Value, Version};
use crosstie_auth::User;

/// A client's identity and its negotiated parameters.
#[derive(Clone, Default)]
pub(crate) struct Client {
    pub user: Option<Arc<User>>,
    pub(super) about: About,
    pub(super) capabilities: Capabilities,
    pub(super) version: Version,
    pub frame_bytes_max: u32,
    pub channels_max: u16,
    /// Heartbeat interval in seconds; 0 disables heartbeats.
    pub(super) heartbeat_s: u16,
}

/// RabbitMQ's extensions that a client announces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Capabilities {
    pub(super) authentication_failure_close: bool,
    pub(super) connection_blocked: bool,
    pub(super) consumer_cancel_notify: bool,
}

/// The client's description of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub user: Arc<str>,
    /// The property `connection_name`.
    pub name: String,
    /// The properties `product` and `version`.
    pub client: String,
    /// The client's address, if another node has spliced the connection to this one.
    pub from: Option<Box<str>>,
    /// The SASL mechanism; empty for a client of another node or of the router itself.
    pub mechanism: &'static str,
    /// Maximum number of channels; 0 is no limit.
    pub channels_max: u16,
    /// Heartbeat interval in seconds; 0 disables heartbeats.
    pub heartbeat_s: u16,
}

pub(super) const CHANNELS_MIN: u16 = 1;

impl Capabilities {
    pub(crate) fn of(properties: Table<'_>) -> Self {
        let known = match properties.find("capabilities") {
            Some(Value::Table(known)) => known,
            _ => Table::default(),
        };
        let knows = |name| known.find(name) == Some(Value::Bool(true));
        Self {
            authentication_failure_close: knows("authentication_failure_close"),
            connection_blocked: knows("connection.blocked"),
            consumer_cancel_notify: knows("consumer_cancel_notify"),
        }
    }
}
