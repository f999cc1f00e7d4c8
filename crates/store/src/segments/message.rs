//! A message as the payload of a record.
//!
//! ```text
//! flags · [time of expiry, 8] · deliveries · the offset of the record with the content, 4, and the body's length
//!                                          · or exchange, routing key, properties, body
//! ```
//!
//! A long content that several queues' messages share is in the first record only. The others name its offset in the
//! same segment.

use crosstie_queues::{MessageContent, StoredMessage, Time};

use super::bytes::{Cursor, put_bytes, put_number};

/// A decoded payload.
#[derive(Debug, PartialEq)]
pub(crate) struct Message<'a> {
    pub(crate) expires_at: Option<Time>,
    pub(crate) deliveries: u32,
    pub(crate) content: Content<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Content<'a> {
    Here {
        exchange: &'a str,
        routing_key: &'a str,
        properties: &'a [u8],
        body: &'a [u8],
    },
    /// In the record at this offset, with the length of the body.
    At { offset: u32, body_bytes: u64 },
}

const EXPIRES: u8 = 1;
const SHARED: u8 = 2;

/// Contents with a longer body are written once for several messages of a commit.
pub(crate) const SHARED_BYTES_MIN: usize = 1024;

/// Appends a payload; with an offset, the content is in the record there. Returns the length of the body.
pub(crate) fn encode(message: &StoredMessage, shared_at: Option<u32>, out: &mut Vec<u8>) -> u64 {
    let content = &message.content;
    let body_bytes = content.body().len() as u64;
    let shared = shared_at.map(|offset| (offset, body_bytes));
    put_head(message.expires_at, message.deliveries, shared, out);
    if shared.is_none() {
        put_bytes(out, content.exchange().as_bytes());
        put_bytes(out, content.routing_key().as_bytes());
        put_bytes(out, content.property_bytes());
        out.extend_from_slice(content.body());
    }
    body_bytes
}

fn put_head(
    expires_at: Option<Time>,
    deliveries: u32,
    shared: Option<(u32, u64)>,
    out: &mut Vec<u8>,
) {
    let expires = if expires_at.is_some() { EXPIRES } else { 0 };
    let is_shared = if shared.is_some() { SHARED } else { 0 };
    out.push(expires | is_shared);
    if let Some(Time(at)) = expires_at {
        out.extend_from_slice(&at.to_le_bytes());
    }
    put_number(out, deliveries.into());
    if let Some((offset, body_bytes)) = shared {
        out.extend_from_slice(&offset.to_le_bytes());
        put_number(out, body_bytes);
    }
}

/// At most the bytes of a payload.
pub(crate) fn bytes_max(message: &StoredMessage) -> usize {
    let content = &message.content;
    content.exchange().len()
        + content.routing_key().len()
        + content.property_bytes().len()
        + content.body().len()
        + 64
}

pub(crate) fn decode(payload: &[u8]) -> Option<Message<'_>> {
    let mut cursor = Cursor::new(payload);
    let flags = cursor.byte()?;
    if flags & !(EXPIRES | SHARED) != 0 {
        return None;
    }
    let expires_at = match flags & EXPIRES {
        0 => None,
        _ => Some(Time(cursor.u64()?)),
    };
    let deliveries = u32::try_from(cursor.number()?).ok()?;
    let content = match flags & SHARED {
        0 => Content::Here {
            exchange: cursor.text()?,
            routing_key: cursor.text()?,
            properties: cursor.bytes()?,
            body: cursor.rest(),
        },
        _ => Content::At {
            offset: cursor.u32()?,
            body_bytes: cursor.number()?,
        },
    };
    Some(Message {
        expires_at,
        deliveries,
        content,
    })
}

/// The length of the body of a message with this payload; 0 if it is none.
pub(crate) fn body_bytes(payload: &[u8]) -> u64 {
    decode(payload).map_or(0, |message| message.content.body_bytes())
}

impl Message<'_> {
    /// Appends the payload of this message with another number of deliveries, and the content of `holder` or at an
    /// offset. Returns the length of the body.
    pub(crate) fn encode_moved(
        &self,
        deliveries: u32,
        holder: &Content<'_>,
        shared_at: Option<u32>,
        out: &mut Vec<u8>,
    ) -> u64 {
        let body_bytes = holder.body_bytes();
        let shared = shared_at.map(|offset| (offset, body_bytes));
        put_head(self.expires_at, deliveries, shared, out);
        if let (
            None,
            Content::Here {
                exchange,
                routing_key,
                properties,
                body,
            },
        ) = (shared_at, holder)
        {
            put_bytes(out, exchange.as_bytes());
            put_bytes(out, routing_key.as_bytes());
            put_bytes(out, properties);
            out.extend_from_slice(body);
        }
        body_bytes
    }
}

impl Content<'_> {
    fn body_bytes(&self) -> u64 {
        match self {
            Self::Here { body, .. } => body.len() as u64,
            Self::At { body_bytes, .. } => *body_bytes,
        }
    }

    /// The content in memory; `None` if it is elsewhere, or has properties that are none.
    pub(crate) fn load(&self) -> Option<MessageContent> {
        let Content::Here {
            exchange,
            routing_key,
            properties,
            body,
        } = self
        else {
            return None;
        };
        crosstie_amqp::Properties::from_bytes(properties).ok()?;
        Some(MessageContent::new(exchange, routing_key, properties, body))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_message_returns_as_it_was() {
        let properties = crosstie_amqp::Properties::EMPTY.bytes();
        let content = MessageContent::new("amq.topic", "a.b", properties, b"body");
        let message = StoredMessage {
            content: Arc::new(MessageContent::new("amq.topic", "a.b", properties, b"body")),
            expires_at: Some(Time(1_700_000_000_000)),
            deliveries: 300,
        };
        let mut payload = Vec::new();
        encode(&message, None, &mut payload);
        assert!(payload.len() <= bytes_max(&message));
        let decoded = decode(&payload).expect("a message");
        assert_eq!(decoded.content.load(), Some(content));
        assert_eq!(decoded.expires_at, message.expires_at);
        assert_eq!(decoded.deliveries, 300);
        let mut moved = Vec::new();
        decoded.encode_moved(300, &decoded.content, None, &mut moved);
        assert_eq!(moved, payload);

        let mut payload = Vec::new();
        encode(&message, Some(4096), &mut payload);
        let decoded = decode(&payload).expect("a message");
        let (offset, body_bytes) = (4096, 4);
        assert_eq!(decoded.content, Content::At { offset, body_bytes });
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[4, 0]), None);
    }
}
