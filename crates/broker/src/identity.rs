//! The server properties in `connection.start` (section 1.4.2.1).
//!
//! Clients decide by product and version which features they use: kombu sends `basic.qos` in the form that reaches
//! running consumers to RabbitMQ only. Product and version therefore state the compatibility; the other properties name
//! Crosstie.

use crosstie_amqp::{Table, TableBuf, Value, Version};
use crosstie_config::AmqpIdentity;

/// The supported RabbitMQ extensions, in RabbitMQ's order.
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

/// The global parameter with the cluster's name.
pub(super) const CLUSTER_NAME: &str = "cluster_name";

/// The properties for 0-9-1 clients, and those for 0-8 clients, which know no extensions.
pub(super) struct ServerProperties {
    pub(super) identity: AmqpIdentity,
    all: TableBuf,
    without_capabilities: TableBuf,
}

impl ServerProperties {
    pub(crate) fn of(identity: &AmqpIdentity) -> Self {
        Self {
            identity: identity.clone(),
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

/// The configured name, or one from the machine's.
pub(super) fn cluster_name(identity: &AmqpIdentity) -> String {
    identity.cluster_name.clone().unwrap_or_else(|| {
        let system = rustix::system::uname();
        format!("crosstie@{}", system.nodename().to_string_lossy())
    })
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
    let cluster_name = cluster_name(identity);
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
