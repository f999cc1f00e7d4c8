//! Consecutive messages of a stream, as one run of bytes that all readers at that place share.

use crosstie_amqp::Properties;

use crate::holders::Holders;

/// A part of a stream. Its messages are in the order of their offsets.
#[derive(Debug)]
pub struct StreamPage {
    bytes: Vec<u8>,
    messages: Vec<Message>,
    /// The place at which it was to begin.
    pub from: StreamPlace,
    /// The place behind it.
    pub after: StreamPlace,
    /// Readers that hold it.
    holders: Holders,
}

/// A place in a stream's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamPlace {
    /// No message before it has this offset or a higher one.
    pub offset: u64,
    /// The segment, by its first offset, and the byte in it. A keeper that does not find it there looks for the offset.
    pub segment: u64,
    pub position: u64,
}

/// One message of a page.
#[derive(Clone, Copy, Debug)]
pub struct StreamMessage<'a> {
    pub offset: u64,
    pub exchange: &'a str,
    pub routing_key: &'a str,
    pub properties: Properties<'a>,
    pub body: &'a [u8],
}

/// Where a message is in the bytes: exchange, routing key, properties, body.
#[derive(Debug)]
struct Message {
    offset: u64,
    start: usize,
    end: usize,
    properties_bytes: u32,
    exchange_bytes: u8,
    routing_key_bytes: u8,
}

impl StreamPage {
    /// Without messages.
    pub fn new(bytes: Vec<u8>, from: StreamPlace) -> Self {
        Self {
            bytes,
            messages: Vec::new(),
            from,
            after: from,
            holders: Holders::default(),
        }
    }

    /// Adds a message: its exchange begins at `start`, and its body ends at `end`. Returns whether these bytes are a
    /// message.
    pub fn push(
        &mut self,
        offset: u64,
        (start, end): (usize, usize),
        (exchange_bytes, routing_key_bytes, properties_bytes): (u8, u8, u32),
    ) -> bool {
        let message = Message {
            offset,
            start,
            end,
            properties_bytes,
            exchange_bytes,
            routing_key_bytes,
        };
        let is_valid = message.is_valid(&self.bytes);
        if is_valid {
            self.messages.push(message);
        }
        is_valid
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The message at that place of the page.
    pub fn message(&self, at: usize) -> Option<StreamMessage<'_>> {
        let message = self.messages.get(at)?;
        let bytes = self.bytes.get(message.start..message.end)?;
        let (exchange, rest) = bytes.split_at_checked(message.exchange_bytes.into())?;
        let (routing_key, rest) = rest.split_at_checked(message.routing_key_bytes.into())?;
        let (properties, body) = rest.split_at_checked(message.properties_bytes as usize)?;
        Some(StreamMessage {
            offset: message.offset,
            exchange: str::from_utf8(exchange).unwrap_or_default(),
            routing_key: str::from_utf8(routing_key).unwrap_or_default(),
            properties: Properties::from_checked_bytes(properties),
            body,
        })
    }

    /// The number of messages with lower offsets.
    pub fn before(&self, offset: u64) -> usize {
        self.messages
            .partition_point(|message| message.offset < offset)
    }

    /// Its bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.messages.len() * size_of::<Message>()
    }

    /// Adds a holder; returns whether it is the first.
    pub(crate) fn hold(&self) -> bool {
        self.holders.add()
    }

    /// Removes a holder; returns whether it was the last.
    pub(crate) fn release(&self) -> bool {
        self.holders.remove()
    }
}

impl Message {
    fn is_valid(&self, bytes: &[u8]) -> bool {
        let names = usize::from(self.exchange_bytes) + usize::from(self.routing_key_bytes);
        let Some(bytes) = bytes.get(self.start..self.end) else {
            return false;
        };
        let Some((names, rest)) = bytes.split_at_checked(names) else {
            return false;
        };
        let Some((properties, _)) = rest.split_at_checked(self.properties_bytes as usize) else {
            return false;
        };
        let (exchange, routing_key) = names.split_at(self.exchange_bytes.into());
        str::from_utf8(exchange).is_ok()
            && str::from_utf8(routing_key).is_ok()
            && Properties::from_bytes(properties).is_ok()
    }
}
