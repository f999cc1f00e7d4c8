//! Keys of MQTT, on a listener of its own or beside other protocols.

use std::time::Duration;

use crosstie_wamp::Serializer;

use super::auth::AUTH;
use super::form::{Kind, OFF, Rule, TYPE, integer, map, object, one_of, tagged, text};
use super::table::tables;
use crate::plain;

tables! {
    /// MQTT on a listener.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MqttOptions = pub(crate) static MQTT_OPTIONS("transports[mqtt].options", "options of MQTT") {
        realm: Option<String> = text(Rule::RealmName).otherwise("none: `vhost` is given"),
            "Realm of the topics. Each client is a session of the realm. A listener has a realm or a vhost.";
        vhost: Option<String> = text(Rule::ShortText).otherwise("none: `realm` is given").environment().own(),
            "AMQP vhost of the topics: subscriptions are queues of it, with the names, bindings and arguments of RabbitMQ's \
             MQTT plugin. The broker's users log in. A user name of the form `vhost:user` selects another vhost.";
        exchange: String = text(Rule::ShortText).or_text("amq.topic").own(),
            "Topic exchange of publications and bindings, with `vhost`.";
        prefetch: u16 = integer(1, 65_535).or(10).own(),
            "Maximum number of messages with QoS 1 that a client has not acknowledged, with `vhost`. A smaller receive \
             maximum of an MQTT 5 client applies in its place. Further messages wait in the client's queue.";
        anonymous_user: Option<String> = text(Rule::ShortText)
            .otherwise("none: clients without a user name are refused").own(),
            "User of clients that send no user name, with `vhost`. RabbitMQ's default is `guest`, which logs in from the same \
             machine only.";
        certificate_login: bool = OFF.own(),
            "Logs a client without a user name in as the user whose name its TLS certificate has, with `vhost`: the common \
             name, as with `EXTERNAL` of AMQP. Needs `ca_certificates`. A user name and a password come before it, and \
             `anonymous_user` behind it.";
        "role" = text(Rule::Any).inert("a client has the role that its login gives");
        "payload_mapping" = map(Rule::Uri, &PAYLOAD)
            .otherwise("the built-in rules for all topics"),
            "Conversions of payloads for WAMP, by prefix of the URI; the longest prefix decides. With this key, a topic \
             without a matching prefix stays among MQTT clients.";
        "auth" = object(&AUTH).otherwise("`anonymous`, with the role `anonymous`"),
            "Authentication methods of MQTT clients: `anonymous`, `ticket`, `jwt`, `tls` and, for MQTT 5, `scram`.";
        packet_bytes_max: usize = integer(1_024, 256 << 20).or(1 << 20).own(),
            "Maximum size of a packet from a client, in bytes. A longer packet ends the connection: MQTT 5 with 0x95.";
        keep_alive_seconds_max => keep_alive_max: Option<Duration> as plain::positive_seconds =
            super::form::integer_or_zero(1, 65_535).or(0).own(),
            "Maximum keep alive of MQTT 5 clients, in seconds. A client that asks for more, or for none, is told this one. \
             0 sets no maximum. Paho's client for C ignores the answer and is then disconnected.";
        topic_aliases_max: u16 = integer(0, 256).or(16).own(),
            "Maximum number of topic aliases towards an MQTT 5 client that allows them, in a realm. The first topics of a \
             connection have them. 0 sends none: Paho's client for Python loses the topic of a message with an alias.";
        let mapping: Vec<(String, PayloadMapping)> = Vec::new();
    }

    pub(crate) tagged PAYLOAD_MAPPING("transports[mqtt].options.payload_mapping{}.type", "a conversion of payloads") {
        "dynamic" => PAYLOAD_DYNAMIC,
        "native" => PAYLOAD_NATIVE,
        "passthrough" => PAYLOAD_PASSTHROUGH,
    }

    static PAYLOAD_PASSTHROUGH("transports[mqtt].options.payload_mapping{}[passthrough]", "a conversion of payloads: none") {
        ..TYPE;
    }

    static PAYLOAD_NATIVE("transports[mqtt].options.payload_mapping{}[native]", "a conversion of payloads by a serializer") {
        ..TYPE;
        "serializer" = one_of(&PAYLOAD_SERIALIZERS).or_text("json"),
            "Serializer of payloads: a dictionary with `args` (a list) and `kwargs` (a dictionary), each of which may be absent.";
    }

    static PAYLOAD_DYNAMIC("transports[mqtt].options.payload_mapping{}[dynamic]", "a conversion of payloads by procedures") {
        ..TYPE;
        "realm" = text(Rule::RealmName).otherwise("the realm of the topics"), "Realm of the procedures.";
        "encoder" = text(Rule::ExactUri).required(),
            "Procedure that converts an event for MQTT. It is called with the MQTT topic, the URI, the list of arguments and \
             the dictionary of keyword arguments, and returns binary or text.";
        "decoder" = text(Rule::ExactUri).required(),
            "Procedure that converts a payload from MQTT. It is called with the URI, the MQTT topic and the payload as binary, \
             and returns a dictionary with `args` and `kwargs`.";
    }
}

static PAYLOAD: Kind = tagged(&PAYLOAD_MAPPING);

tables! {
    pub(crate) words PAYLOAD_SERIALIZERS("serializers[]") { "json", "msgpack", "cbor" }
}

impl MqttOptions {
    /// The realm of the topics; empty if they belong to a vhost.
    pub fn realm(&self) -> &str {
        self.realm.as_deref().unwrap_or_default()
    }
}

/// The conversion of payloads between MQTT and WAMP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadMapping {
    /// The payload stands in place of arguments.
    Passthrough,
    /// A dictionary with `args` and `kwargs`.
    Native(Serializer),
    /// By two procedures.
    Dynamic {
        /// If not the realm of the topics.
        realm: Option<String>,
        encoder: String,
        decoder: String,
    },
}
