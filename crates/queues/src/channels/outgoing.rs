//! A message that is written to a channel.

use crosstie_amqp::{Changes, Properties, TableBuf, Value};

use crate::queues::Entry;

/// The parts of a message to be written, borrowed from its queue or its publisher.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) routing_key: &'a str,
    pub(crate) properties: Properties<'a>,
    pub(crate) body: &'a [u8],
    pub(crate) is_redelivered: bool,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn of(entry: &'a Entry) -> Self {
        let (exchange, routing_key, properties, body) = entry.content.parts();
        Self {
            exchange,
            routing_key,
            properties,
            body,
            is_redelivered: entry.is_redelivered,
        }
    }

    /// The same with the delivery count of a quorum queue: the number of failed deliveries. Consumers are not told of a
    /// first attempt; `basic.get` is.
    pub(crate) fn with_delivery_count(self, deliveries: u32, bytes: &'a mut Vec<u8>) -> Self {
        const HEADER: &str = "x-delivery-count";
        let old_headers = self.properties.parse_for_broker().headers;
        let mut headers = TableBuf::new();
        for (name, value) in old_headers.iter().flat_map(|headers| headers.iter()) {
            if name != HEADER {
                headers = headers.with(name, value);
            }
        }
        headers = headers.with(HEADER, Value::I64(deliveries.into()));
        let changes = Changes {
            headers: Some(headers.as_table()),
            ..Changes::default()
        };
        self.properties.write_changed(&changes, bytes);
        Self {
            properties: Properties::from_checked_bytes(bytes),
            ..self
        }
    }
}
