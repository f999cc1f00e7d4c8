//! Names in a vhost: queues of clients, and routing keys of topics.

use crosstie_mqtt::{QoS, topic};

/// Maximum length of a name or routing key in AMQP, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

const PREFIX: &str = "mqtt-subscription-";

/// The tag of a client's consumer, by the quality of its queue.
pub(crate) fn consumer_tag(qos: QoS) -> &'static str {
    match qos {
        QoS::AtMostOnce => "mqtt-qos0",
        _ => "mqtt-qos1",
    }
}

/// The queue of a client's subscriptions with that quality.
pub(crate) fn queue(client_id: &str, qos: QoS) -> String {
    match qos {
        QoS::AtMostOnce => format!("{PREFIX}{client_id}qos0"),
        _ => format!("{PREFIX}{client_id}qos1"),
    }
}

/// The queue in which a client's will waits.
pub(crate) fn will_queue(client_id: &str) -> String {
    format!("mqtt-will-{client_id}")
}

/// Whether a client of that identifier can have queues.
pub(crate) fn is_fit(client_id: &str) -> bool {
    let bytes = queue(client_id, QoS::AtLeastOnce).len();
    // The broker removes ends of lines from names.
    bytes <= NAME_BYTES_MAX && !client_id.contains(['\r', '\n'])
}

/// The routing key of a topic, or the binding key of a filter; `None` if it is too long for AMQP.
pub(crate) fn key(topic: &str) -> Option<String> {
    let translate = |c| match c {
        '/' => '.',
        '+' => '*',
        other => other,
    };
    (topic.len() <= NAME_BYTES_MAX).then(|| topic.chars().map(translate).collect())
}

/// The topic of a routing key; `None` if it has none. RabbitMQ makes `+` of `*`, which no topic may have.
pub(crate) fn topic(key: &str) -> Option<String> {
    let topic = key.replace('.', "/");
    topic::check_name(&topic).is_ok().then_some(topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_keys_translate_as_in_rabbitmq() {
        for (name, expected_key, back) in [
            ("a/b", "a.b", "a/b"),
            ("a.b/c", "a.b.c", "a/b/c"),
            ("a*b", "a*b", "a*b"),
            ("/a", ".a", "/a"),
            ("a//b", "a..b", "a//b"),
            ("/", ".", "/"),
            ("$x/y", "$x.y", "$x/y"),
        ] {
            let found = key(name).expect("is short");
            assert_eq!(found, expected_key);
            assert_eq!(topic(&found).as_deref(), Some(back));
        }
        for (filter, expected) in [("w/+/#", "w.*.#"), ("w.+", "w.*"), ("w/*", "w.*")] {
            assert_eq!(key(filter).as_deref(), Some(expected));
        }
        for without in ["", "a.#", "a.+.b"] {
            assert_eq!(topic(without), None, "{without}");
        }
        assert_eq!(key(&"a".repeat(256)), None);
    }

    #[test]
    fn identifiers_have_to_fit_into_a_name() {
        assert!(is_fit("host name.1"));
        assert!(is_fit(&"a".repeat(233)));
        assert!(!is_fit(&"a".repeat(234)));
        assert!(!is_fit("a\n"));
    }
}
