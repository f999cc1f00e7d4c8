//! The broker's account of itself in `connection.start` (section 1.4.2.1).
//!
//! Clients decide by product and version what they may ask for, and in which way: kombu sends
//! `basic.qos` so that it reaches running consumers to RabbitMQ only. What they are told is
//! therefore whose ways are understood, and the other properties say who it is that does.

use crosstie_amqp::{Table, TableBuf, Value, Version};
use crosstie_config::AmqpIdentity;

/// RabbitMQ's extensions of AMQP that are there, in its order.
const CAPABILITIES: [&str; 9] = [
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
];

/// The properties for clients of 0-9-1, and for those of 0-8, where there are no extensions.
pub(super) struct ServerProperties {
    all: TableBuf,
    without_capabilities: TableBuf,
}

impl ServerProperties {
    pub(super) fn of(identity: &AmqpIdentity) -> Self {
        Self {
            all: server_properties(identity, &CAPABILITIES),
            without_capabilities: server_properties(identity, &[]),
        }
    }

    pub(super) fn as_table(&self, version: Version) -> Table<'_> {
        match version {
            Version::V0_9_1 => self.all.as_table(),
            Version::V0_8 => self.without_capabilities.as_table(),
        }
    }
}

fn server_properties(identity: &AmqpIdentity, capabilities: &[&str]) -> TableBuf {
    let capabilities = capabilities.iter().fold(TableBuf::new(), |table, name| {
        table.with(name, Value::Bool(true))
    });
    let itself = concat!("Crosstie ", env!("CARGO_PKG_VERSION"));
    let information = format!(
        "{itself}, a broker that RabbitMQ's clients understand. Licensed under the {} license",
        env!("CARGO_PKG_LICENSE")
    );
    let cluster_name = identity.cluster_name.clone().unwrap_or_else(|| {
        let system = rustix::system::uname();
        format!("crosstie@{}", system.nodename().to_string_lossy())
    });
    let texts = [
        ("cluster_name", cluster_name.as_str()),
        ("information", &information),
        ("platform", itself),
        ("product", &identity.product),
        ("version", &identity.version),
    ];
    let capabilities = Value::Table(capabilities.as_table());
    let properties = TableBuf::new().with("capabilities", capabilities);
    texts.iter().fold(properties, |table, (name, text)| {
        table.with(name, Value::LongString(text.as_bytes()))
    })
}
