//! An AMQP client: its identity, and the parameters that client and broker have negotiated.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_amqp::{Table, TableBuf, Value, Version};
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
    /// The other properties.
    pub properties: Properties,
    /// The client's address, if another node has spliced the connection to this one.
    pub from: Option<Box<str>>,
    /// The name of another protocol by which the client has come; empty for AMQP.
    pub protocol: &'static str,
    /// The SASL mechanism; empty for a client of another node or of the router itself.
    pub mechanism: &'static str,
    /// Maximum number of channels; 0 is no limit.
    pub channels_max: u16,
    /// Heartbeat interval in seconds; 0 disables heartbeats.
    pub heartbeat_s: u16,
}

/// Properties that a client has sent, as it sent them: octets of a table, which a login's frame bounds to 4,096. The
/// clients of a thread that send the same share them.
#[derive(Clone, Debug, Default)]
pub struct Properties(Arc<[u8]>);

/// Maximum number of properties that a thread looks through. Clients with others share nothing with later ones.
const RECENT_MAX: usize = 32;

thread_local! {
    static RECENT: RefCell<VecDeque<Arc<[u8]>>> = const { RefCell::new(VecDeque::new()) };
}

impl Properties {
    /// Those of a client, but for its name, which differs between the connections of one program.
    pub(super) fn of(sent: Table<'_>) -> Self {
        if sent.find(NAME).is_none() {
            return Self::recent(sent);
        }
        let mut kept = TableBuf::new();
        for (name, value) in sent.iter() {
            if name != NAME || value.as_str().is_none() {
                kept = kept.with(name, value);
            }
        }
        Self::recent(kept.as_table())
    }

    fn recent(sent: Table<'_>) -> Self {
        Self(RECENT.with_borrow_mut(|recent| shared(recent, sent.bytes())))
    }

    /// Those of a client of which no more is known than its product and version, separated by a space.
    pub(super) fn of_client(client: &str) -> Self {
        let (product, version) = client.rsplit_once(' ').unwrap_or((client, ""));
        let mut known = TableBuf::new();
        for (name, value) in [("product", product), ("version", version)] {
            if !value.is_empty() {
                known = known.with(name, Value::LongString(value.as_bytes()));
            }
        }
        Self::recent(known.as_table())
    }

    pub fn table(&self) -> Table<'_> {
        // The octets of a table are one.
        Table::from_bytes(&self.0).unwrap_or_default()
    }

    /// Their size, on the account of each client.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// The property that names a connection.
const NAME: &str = "connection_name";

fn shared(recent: &mut VecDeque<Arc<[u8]>>, octets: &[u8]) -> Arc<[u8]> {
    if let Some(known) = recent.iter().find(|known| ***known == *octets) {
        return Arc::clone(known);
    }
    let octets: Arc<[u8]> = octets.into();
    if recent.len() >= RECENT_MAX {
        recent.pop_front();
    }
    recent.push_back(Arc::clone(&octets));
    octets
}

impl About {
    /// Sets the properties that a client has sent.
    pub(super) fn set_properties(&mut self, sent: Table<'_>) {
        let name = sent.find(NAME).and_then(Value::as_str);
        self.name = name.unwrap_or_default().to_owned();
        self.properties = Properties::of(sent);
    }

    /// The properties `product` and `version`.
    pub fn client(&self) -> String {
        let table = self.properties.table();
        let text = |name| table.find(name).and_then(Value::as_str);
        let words = [text("product"), text("version")];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

pub(super) const CHANNELS_MIN: u16 = 1;

impl Capabilities {
    /// Those of a client of another protocol, which reads `basic.cancel`.
    pub(super) fn of_guest() -> Self {
        Self {
            consumer_cancel_notify: true,
            ..Self::default()
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_program_share_their_properties() {
        let known = TableBuf::new().with("publisher_confirms", Value::Bool(true));
        let program = || {
            TableBuf::new()
                .with("product", Value::LongString(b"Pika"))
                .with("capabilities", Value::Table(known.as_table()))
                .with("version", Value::LongString(b"1.3"))
        };
        let about = |sent: TableBuf| {
            let mut about = About::default();
            about.set_properties(sent.as_table());
            about
        };
        let plain = about(program());
        let named = about(program().with(NAME, Value::LongString(b"a")));
        assert!(Arc::ptr_eq(&plain.properties.0, &named.properties.0));
        assert_eq!((plain.name.as_str(), named.name.as_str()), ("", "a"));
        assert_eq!(plain.client(), "Pika 1.3");
        let table = named.properties.table();
        assert_eq!(
            table.find("capabilities"),
            Some(Value::Table(known.as_table()))
        );
        let mut recent = VecDeque::new();
        for number in 0..1_000_u32 {
            shared(&mut recent, &number.to_be_bytes());
        }
        assert_eq!(recent.len(), RECENT_MAX);
    }

    #[test]
    fn a_client_of_another_node_has_a_product_and_a_version() {
        for (client, expected) in [
            ("Pika Python Client 1.3", "Pika Python Client 1.3"),
            ("", ""),
        ] {
            let about = About {
                properties: Properties::of_client(client),
                ..About::default()
            };
            assert_eq!(about.client(), expected);
        }
    }
}
