//! A message in memory of its own.

use crosstie_mqtt::{Properties, QoS};
use crosstie_topics::Content;

/// A message in memory of its own.
pub(crate) struct OwnContent {
    pub(crate) topic: String,
    qos: QoS,
    pub(crate) retain: bool,
    pub(crate) expiry_s: Option<u32>,
    properties: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl OwnContent {
    pub(crate) fn of(content: &Content<'_>) -> Self {
        Self {
            topic: content.topic.to_owned(),
            qos: content.qos,
            retain: content.retain,
            expiry_s: content.expiry_s,
            properties: content.properties.bytes().to_vec(),
            payload: content.payload.to_vec(),
        }
    }

    pub(crate) fn as_content(&self) -> Content<'_> {
        Content {
            topic: &self.topic,
            qos: self.qos,
            retain: self.retain,
            expiry_s: self.expiry_s,
            properties: Properties::from_checked_bytes(&self.properties),
            payload: &self.payload,
        }
    }
}
