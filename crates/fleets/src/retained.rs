//! Retained messages of a vhost, by routing key: in memory, as RabbitMQ keeps them per node.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A retained message.
#[derive(Debug)]
pub(crate) struct Retained {
    /// Of AMQP, as the message was published.
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

/// The retained messages of one vhost.
#[derive(Debug)]
pub(crate) struct Store {
    messages: BTreeMap<String, Arc<Retained>>,
    bytes: usize,
    messages_max: usize,
    bytes_max: usize,
}

/// Bytes of an entry beside its contents.
const ENTRY_BYTES: usize = 160;

impl Store {
    pub(crate) fn new(messages_max: usize, bytes_max: usize) -> Self {
        Self {
            messages: BTreeMap::new(),
            bytes: 0,
            messages_max,
            bytes_max,
        }
    }

    /// Keeps a message in the place of the earlier one; an empty body removes that. Returns whether there was room.
    pub(crate) fn set(&mut self, key: &str, properties: &[u8], body: &[u8]) -> bool {
        if let Some((key, earlier)) = self.messages.remove_entry(key) {
            self.bytes -= size(&key, &earlier);
        }
        if body.is_empty() {
            return true;
        }
        let message = Retained {
            properties: properties.to_vec(),
            body: body.to_vec(),
        };
        let bytes = size(key, &message);
        if self.messages.len() >= self.messages_max || self.bytes + bytes > self.bytes_max {
            return false;
        }
        self.bytes += bytes;
        self.messages.insert(key.to_owned(), Arc::new(message));
        true
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<Retained>> {
        self.messages.get(key).map(Arc::clone)
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn size(key: &str, message: &Retained) -> usize {
    ENTRY_BYTES + key.len() + message.properties.len() + message.body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_replaced_removed_and_bounded() {
        let mut store = Store::new(2, 1_000);
        assert!(store.set("a", b"", b"1"));
        assert!(store.set("a", b"", b"22"));
        assert!(store.set("b", b"", b"3"));
        assert!(!store.set("c", b"", b"4"));
        assert_eq!(
            store.get("a").map(|found| found.body.clone()),
            Some(b"22".to_vec())
        );
        assert!(!store.set("b", b"", &[0; 900]));
        assert!(
            store.get("b").is_none(),
            "an old message must not stay for a new one"
        );
        assert!(store.set("a", b"", b""));
        assert_eq!((store.len(), store.bytes()), (0, 0));
    }
}
