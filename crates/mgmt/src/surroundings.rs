//! What the API states of the node around the broker.

use std::time::Duration;

/// A listener of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// RabbitMQ's name of the protocol: `amqp`, `amqp/ssl`, `http`, `https`, `http/prometheus`.
    pub protocol: &'static str,
    pub address: String,
    pub port: u16,
}

/// The node around a broker.
pub trait Surroundings: Send + Sync {
    /// The TCP listeners that lead to the broker.
    fn listeners(&self) -> Vec<Listener>;

    /// The shortest time until a certificate of a listener expires, with the listener's name; `None` without TLS.
    fn certificate_expires(&self) -> Option<(String, Duration)>;

    /// The node's id.
    fn node(&self) -> String;
}
