//! An event of the realm, in memory of its own, on its way to MQTT clients.

use crosstie_config::PayloadMapping;
use crosstie_mqtt::{PropertiesBuf, QoS};
use crosstie_topics::Content;
use crosstie_wamp::{Dict, Payload, Serializer};

use crate::figures::{Dropped, Figures};
use crate::names;
use crate::payloads;
use crate::trace;

/// An event.
pub(crate) struct Event {
    pub(crate) uri: String,
    is_encoded: bool,
    serializer: Serializer,
    args: Vec<u8>,
    kwargs: Vec<u8>,
    /// Those of its message.
    pub(crate) properties: PropertiesBuf,
}

impl Event {
    pub(crate) fn new(uri: &str, attributes: Option<&Dict>, payload: &Payload<'_>) -> Self {
        let is_encoded = |(key, _): &(String, _)| key == "enc_algo";
        Self {
            uri: uri.to_owned(),
            is_encoded: attributes.is_some_and(|all| all.iter().any(is_encoded)),
            serializer: payload.serializer,
            args: payload.args.to_vec(),
            kwargs: payload.kwargs.to_vec(),
            properties: trace::properties(attributes),
        }
    }

    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload::new(self.serializer, &self.args, &self.kwargs)
    }

    /// Approximate memory.
    pub(crate) fn bytes(&self) -> usize {
        let properties = self.properties.as_properties().bytes().len();
        size_of::<Self>() + self.uri.len() + self.args.len() + self.kwargs.len() + properties
    }

    /// Whether its payload stands in place of arguments.
    pub(crate) fn is_encoded(&self) -> bool {
        self.is_encoded
    }

    /// Its topic, unless it stays in WAMP.
    pub(crate) fn topic(&self) -> Option<String> {
        if names::is_own_uri(&self.uri) {
            return None;
        }
        let topic = names::topic(&self.uri);
        if topic.is_none() {
            Figures::get().count_dropped(Dropped::NoTopic);
        }
        topic
    }

    /// Its octets, unless its mapping needs a procedure.
    pub(crate) fn octets(&self, mapping: Option<&PayloadMapping>) -> Option<Vec<u8>> {
        let octets = payloads::octets(&self.payload(), self.is_encoded, mapping);
        if octets.is_none() {
            Figures::get().count_dropped(Dropped::Payload);
        }
        octets
    }
}

/// A message from the realm. Kept sessions keep it: its QoS is 1.
pub(crate) fn content<'a>(
    topic: &'a str,
    properties: &'a PropertiesBuf,
    payload: &'a [u8],
) -> Content<'a> {
    Content {
        topic,
        qos: QoS::AtLeastOnce,
        retain: false,
        expiry_s: None,
        properties: properties.as_properties(),
        payload,
    }
}
