//! A message's bytes, shared by all queues that hold it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_amqp::Properties;

use crate::holders::Holders;

/// Exchange, routing key, properties and body of a message, as one run of bytes: a message costs two allocations,
/// however many queues hold it.
pub struct MessageContent {
    bytes: Box<[u8]>,
    exchange_bytes: u8,
    routing_key_bytes: u8,
    properties_bytes: u32,
    /// Number of entries of queues and channels that hold it. A store's references do not count as memory of the
    /// queues.
    holders: Holders,
    /// The number by which its confirm waits for a store; 0: none waits. Changed as `holders` are.
    awaited: AtomicU64,
}

impl MessageContent {
    /// Copies everything. Names longer than 255 bytes are cut, as the wire cannot carry them. Invalid properties become
    /// empty.
    pub fn new(exchange: &str, routing_key: &str, properties: &[u8], body: &[u8]) -> Self {
        let properties = Properties::from_bytes(properties).unwrap_or(Properties::EMPTY);
        Self::of(exchange, routing_key, properties, body)
    }

    /// The same, with properties that have been checked.
    pub(crate) fn of(
        exchange: &str,
        routing_key: &str,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Self {
        let properties = properties.bytes();
        let exchange = &exchange[..exchange.floor_char_boundary(255)];
        let routing_key = &routing_key[..routing_key.floor_char_boundary(255)];
        let mut bytes =
            Vec::with_capacity(exchange.len() + routing_key.len() + properties.len() + body.len());
        bytes.extend_from_slice(exchange.as_bytes());
        bytes.extend_from_slice(routing_key.as_bytes());
        bytes.extend_from_slice(properties);
        bytes.extend_from_slice(body);
        Self::assembled(
            bytes,
            exchange.len() as u8,
            routing_key.len() as u8,
            properties.len() as u32,
        )
    }

    /// Takes assembled bytes; the names and checked properties have these lengths, and the rest is the body.
    pub(crate) fn assembled(
        bytes: Vec<u8>,
        exchange_bytes: u8,
        routing_key_bytes: u8,
        properties_bytes: u32,
    ) -> Self {
        Self {
            bytes: bytes.into_boxed_slice(),
            exchange_bytes,
            routing_key_bytes,
            properties_bytes,
            holders: Holders::default(),
            awaited: AtomicU64::new(0),
        }
    }

    pub fn exchange(&self) -> &str {
        self.text(0, self.exchange_bytes.into())
    }

    pub fn routing_key(&self) -> &str {
        let start = usize::from(self.exchange_bytes);
        self.text(start, start + usize::from(self.routing_key_bytes))
    }

    /// The properties' bytes.
    pub fn property_bytes(&self) -> &[u8] {
        let start = self.head_bytes();
        &self.bytes[start..start + self.properties_bytes as usize]
    }

    pub fn properties(&self) -> Properties<'_> {
        Properties::from_checked_bytes(self.property_bytes())
    }

    pub fn body(&self) -> &[u8] {
        &self.bytes[self.head_bytes() + self.properties_bytes as usize..]
    }

    /// Exchange, routing key, properties and body at once.
    pub(crate) fn parts(&self) -> (&str, &str, Properties<'_>, &[u8]) {
        let (names, rest) = self.bytes.split_at(self.head_bytes());
        let (properties, body) = rest.split_at(self.properties_bytes as usize);
        // They were valid UTF-8 when they were copied.
        let names = str::from_utf8(names).unwrap_or_default();
        let names = names.split_at_checked(self.exchange_bytes.into());
        let (exchange, routing_key) = names.unwrap_or_default();
        let properties = Properties::from_checked_bytes(properties);
        (exchange, routing_key, properties, body)
    }

    /// Its bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of::<Self>() + ALLOCATION_BYTES
    }

    /// Adds a holder; returns whether it is the first.
    pub(crate) fn hold(&self) -> bool {
        self.holders.add()
    }

    /// Whether any queue or channel holds it.
    pub(crate) fn is_held(&self) -> bool {
        self.holders.is_any()
    }

    /// Removes a holder; returns whether it was the last.
    pub(crate) fn release(&self) -> bool {
        self.holders.remove()
    }

    /// Sets the number by which its confirm waits.
    pub(crate) fn set_awaited(&self, number: u64) {
        self.awaited.store(number, Ordering::Relaxed);
    }

    pub(crate) fn awaited(&self) -> u64 {
        self.awaited.load(Ordering::Relaxed)
    }

    fn head_bytes(&self) -> usize {
        usize::from(self.exchange_bytes) + usize::from(self.routing_key_bytes)
    }

    fn text(&self, start: usize, end: usize) -> &str {
        // They were valid UTF-8 when they were copied.
        str::from_utf8(&self.bytes[start..end]).unwrap_or_default()
    }
}

/// The reference counts, and the allocator's overhead of two allocations.
const ALLOCATION_BYTES: usize = 48;

impl PartialEq for MessageContent {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
            && self.exchange_bytes == other.exchange_bytes
            && self.routing_key_bytes == other.routing_key_bytes
            && self.properties_bytes == other.properties_bytes
    }
}

impl Eq for MessageContent {}

impl fmt::Debug for MessageContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageContent")
            .field("exchange", &self.exchange())
            .field("routing_key", &self.routing_key())
            .field("properties", &self.properties())
            .field("body_bytes", &self.body().len())
            .finish()
    }
}
