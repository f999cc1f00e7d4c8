//! Calls and casts through a broker, in oslo.messaging's form.
//!
//! A server has three queues: one for its topic that it shares with others, one of its own, and one for messages to all
//! servers. A caller has one for replies. A caller's messages go to the topic's exchange; a reply goes to the caller's
//! queue through the default exchange.

mod at_work;
mod client;
mod consumer;
mod endpoint;
mod reply_sender;
mod sender;
mod server;
mod service;

pub use self::client::{CallError, RpcClient, SendOptions};
pub use self::endpoint::{Endpoint, Incoming, Outcome, TestEndpoint};
pub use self::server::{Reconnect, RpcServer, ServerError, Stop};

use crosstie_amqp::method::ExchangeDeclare;
use crosstie_amqp::{BasicProperties, Table, TableBuf, Value};

/// The only channel of each connection.
pub(crate) const CHANNEL: u16 = 1;

/// Lifetime of a queue without consumers, as in oslo.messaging.
const QUEUE_EXPIRES_MS: i32 = 1_800_000;

/// The servers that a call or cast is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub exchange: String,
    pub topic: String,
    /// One server of the topic, by its name; for a server, its own name.
    pub server: Option<String>,
    /// Every server of the topic.
    pub fanout: bool,
    pub namespace: Option<String>,
    pub version: Option<String>,
}

impl Default for Target {
    /// The original programs' defaults.
    fn default() -> Self {
        Self {
            exchange: "my-exchange".to_owned(),
            topic: "my-topic".to_owned(),
            server: None,
            fanout: false,
            namespace: None,
            version: None,
        }
    }
}

impl Target {
    /// The exchange for messages to all servers of the topic.
    fn fanout_exchange(&self) -> String {
        format!("{}_fanout", self.topic)
    }

    /// Exchange and routing key of a message to it.
    fn route(&self) -> (String, String) {
        match &self.server {
            _ if self.fanout => (self.fanout_exchange(), String::new()),
            Some(server) => (self.exchange.clone(), format!("{}.{server}", self.topic)),
            None => (self.exchange.clone(), self.topic.clone()),
        }
    }

    /// The declaration of its exchange, identical for all participants.
    fn exchange_declare<'a>(&self, name: &'a str) -> ExchangeDeclare<'a> {
        ExchangeDeclare {
            exchange: name,
            kind: if self.fanout { "fanout" } else { "topic" },
            auto_delete: self.fanout,
            ..ExchangeDeclare::default()
        }
    }
}

/// A message's encoded properties.
fn properties(expiration: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let properties = BasicProperties {
        content_type: Some("application/json"),
        content_encoding: Some("utf-8"),
        headers: Some(Table::default()),
        delivery_mode: Some(2),
        priority: Some(0),
        expiration,
        ..BasicProperties::default()
    };
    properties.write(&mut bytes);
    bytes
}

/// The arguments of a queue that expires without its consumer.
fn expiring() -> TableBuf {
    TableBuf::new().with("x-expires", Value::I32(QUEUE_EXPIRES_MS))
}
