//! A message on its way into queues.

use std::sync::Arc;

use crosstie_amqp::Properties;

use crate::channels::Outgoing;
use crate::{MessageContent, Position};

/// A message whose bytes are copied when the first queue keeps it.
pub(crate) struct Incoming<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) routing_key: &'a str,
    pub(crate) properties: Properties<'a>,
    pub(crate) body: &'a [u8],
    pub(crate) handling: Handling,
    pub(crate) content: Option<Arc<MessageContent>>,
}

/// The properties of a message that matter to queues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handling {
    pub(crate) is_persistent: bool,
    pub(crate) ttl_ms: Option<u64>,
}

/// A queue's decision on a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Enqueued {
    /// The queue accepted it.
    Taken,
    /// The queue accepted it, and it has to be stored.
    Stored(Position),
    /// The queue is full, and rejected it (`x-overflow`).
    Rejected,
}

impl<'a> Incoming<'a> {
    /// A message that is kept already.
    pub(crate) fn kept(content: &'a Arc<MessageContent>, handling: Handling) -> Self {
        let (exchange, routing_key, properties, body) = content.parts();
        Self {
            exchange,
            routing_key,
            properties,
            body,
            handling,
            content: Some(Arc::clone(content)),
        }
    }

    pub(crate) fn outgoing(&self) -> Outgoing<'a> {
        Outgoing {
            exchange: self.exchange,
            routing_key: self.routing_key,
            properties: self.properties,
            body: self.body,
            is_redelivered: false,
        }
    }

    pub(crate) fn content(&mut self) -> Arc<MessageContent> {
        let content = self.content.get_or_insert_with(|| {
            Arc::new(MessageContent::of(
                self.exchange,
                self.routing_key,
                self.properties,
                self.body,
            ))
        });
        Arc::clone(content)
    }
}
