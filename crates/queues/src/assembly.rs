//! Assembles a message as its parts arrive.

use crosstie_amqp::Properties;

use crate::MessageContent;

/// A message's bytes in the form in which queues keep them. A message in many parts is copied outside the vhost's lock,
/// and not once more under it.
#[derive(Debug)]
pub struct ContentAssembly {
    /// Exchange, routing key, properties and the body received so far.
    parts: Vec<u8>,
    exchange_bytes: u8,
    routing_key_bytes: u8,
    properties_bytes: u32,
    /// Total bytes when complete.
    bytes: usize,
}

/// Initial capacity. The buffer grows with the received bytes, not with the announced length.
const BYTES_FIRST: usize = 256 * 1024;

impl ContentAssembly {
    /// Begins a message with this exchange and routing key. Names longer than 255 bytes are cut, as the wire cannot
    /// carry them.
    pub fn new(exchange: &str, routing_key: &str) -> Self {
        let exchange = &exchange[..exchange.floor_char_boundary(255)];
        let routing_key = &routing_key[..routing_key.floor_char_boundary(255)];
        let parts = [exchange, routing_key].concat().into_bytes();
        Self {
            bytes: parts.len(),
            parts,
            exchange_bytes: exchange.len() as u8,
            routing_key_bytes: routing_key.len() as u8,
            properties_bytes: 0,
        }
    }

    /// Sets the properties and the length of the body. To be called once, before the body.
    pub fn begin_body(&mut self, properties: Properties<'_>, body_bytes: usize) {
        let properties = properties.bytes();
        self.properties_bytes = properties.len() as u32;
        self.bytes += properties.len() + body_bytes;
        let first = properties.len() + body_bytes.min(BYTES_FIRST);
        self.parts.reserve_exact(first);
        self.parts.extend_from_slice(properties);
    }

    /// Appends the next part of the body.
    pub fn append(&mut self, part: &[u8]) {
        let needed = self.parts.len() + part.len();
        if needed > self.parts.capacity() {
            // At the end it is no longer than the message.
            let doubled = (2 * self.parts.capacity()).min(self.bytes);
            let more = doubled.max(needed) - self.parts.len();
            self.parts.reserve_exact(more);
        }
        self.parts.extend_from_slice(part);
    }

    /// Number of body bytes received.
    pub fn body_bytes(&self) -> usize {
        self.parts.len() - self.head_bytes()
    }

    /// Number of body bytes missing.
    pub fn missing_bytes(&self) -> usize {
        self.bytes - self.parts.len()
    }

    /// Its memory in bytes. Never decreases.
    pub fn memory_bytes(&self) -> usize {
        self.parts.capacity() + size_of::<Self>()
    }

    /// Returns the message with the parts received so far.
    pub fn finish(self) -> MessageContent {
        MessageContent::assembled(
            self.parts,
            self.exchange_bytes,
            self.routing_key_bytes,
            self.properties_bytes,
        )
    }

    fn head_bytes(&self) -> usize {
        let names = usize::from(self.exchange_bytes) + usize::from(self.routing_key_bytes);
        names + self.properties_bytes as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_the_message() {
        let properties = Properties::from_bytes(&[0x10, 0, 2]).expect("a delivery mode");
        for (length, part_bytes) in [(0, 1), (10, 1), (300_000, 7_000), (1_000_000, 131_064)] {
            let body: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
            let mut assembly = ContentAssembly::new("exchange", "a key");
            assembly.begin_body(properties, length);
            for part in body.chunks(part_bytes) {
                assert!(
                    assembly.memory_bytes() <= 2 * assembly.body_bytes().max(BYTES_FIRST) + 200
                );
                assembly.append(part);
            }
            assert_eq!(
                (assembly.body_bytes(), assembly.missing_bytes()),
                (length, 0)
            );
            let content = assembly.finish();
            let expected = MessageContent::new("exchange", "a key", properties.bytes(), &body);
            assert!(content == expected, "{length}");
            assert_eq!(content.properties().bytes(), properties.bytes());
        }
    }
}
