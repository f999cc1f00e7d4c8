//! The trace context of a message (W3C Trace Context): user properties in MQTT, options and details in WAMP.

use crosstie_mqtt::{Properties, PropertiesBuf, Property};
use crosstie_wamp::{Dict, Value};

/// The names in MQTT and in WAMP. A state without a parent says nothing.
const NAMES: [(&str, &str); 2] = [
    ("traceparent", "_traceparent"),
    ("tracestate", "_tracestate"),
];

/// A longer text does not pass. Tracers keep to 512 bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// The options of a publication with these properties. Of equal names the first counts.
pub(crate) fn options(properties: Properties<'_>) -> Option<Box<Dict>> {
    let find = |name| {
        let mut user = properties.user_properties();
        user.find(|(known, _)| *known == name).map(|found| found.1)
    };
    let found = NAMES.iter().map_while(|(user, option)| {
        let text = find(*user).filter(|text| may_pass(text))?;
        Some(((*option).to_owned(), Value::from(text)))
    });
    let found: Dict = found.collect();
    (!found.is_empty()).then(|| Box::new(found))
}

/// The properties of a message that an event with these details becomes.
pub(crate) fn properties(details: Option<&Dict>) -> PropertiesBuf {
    let mut properties = PropertiesBuf::new();
    for (user, option) in NAMES {
        let mut details = details.into_iter().flatten();
        let found = details.find(|(name, _)| name == option);
        let text = found.and_then(|(_, value)| value.as_str());
        match text.filter(|text| may_pass(text)) {
            Some(text) => properties.push(Property::User((user, text))),
            None => break,
        }
    }
    properties
}

/// Trace contexts are visible ASCII and spaces. Clients of MQTT 5 may close at control characters.
fn may_pass(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && text.bytes().all(|octet| matches!(octet, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(pairs: &[(&str, &str)]) -> PropertiesBuf {
        let pairs = pairs.iter().map(|pair| Property::User(*pair));
        pairs.fold(PropertiesBuf::new(), PropertiesBuf::with)
    }

    fn dict(pairs: &[(&str, &str)]) -> Dict {
        let pairs = pairs.iter();
        pairs
            .map(|(name, text)| ((*name).to_owned(), Value::from(*text)))
            .collect()
    }

    #[test]
    fn a_context_is_the_same_in_mqtt_and_in_wamp() {
        let own = user(&[("traceparent", "00-a-b-01"), ("tracestate", "a=1")]);
        let found = options(own.as_properties());
        let expected = dict(&[("_traceparent", "00-a-b-01"), ("_tracestate", "a=1")]);
        assert_eq!(found.as_deref(), Some(&expected));
        assert_eq!(properties(found.as_deref()), own);
        let twice = user(&[("x", "y"), ("traceparent", "1"), ("traceparent", "2")]);
        let first = dict(&[("_traceparent", "1")]);
        assert_eq!(options(twice.as_properties()).as_deref(), Some(&first));
    }

    #[test]
    fn other_texts_do_not_pass() {
        assert_eq!(options(Properties::EMPTY), None);
        assert_eq!(
            options(user(&[("tracestate", "a=1")]).as_properties()),
            None
        );
        assert!(properties(None).as_properties().is_empty());
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(
            options(user(&[("traceparent", &long)]).as_properties()),
            None
        );
        let number = vec![("_traceparent".to_owned(), Value::from(1_u64))];
        for details in [
            number,
            dict(&[("_tracestate", "a=1")]),
            dict(&[("_traceparent", &long)]),
            dict(&[("_traceparent", "a\0b")]),
            dict(&[("_traceparent", "a\u{1}b")]),
            dict(&[("_traceparent", "\u{fffe}")]),
        ] {
            let found = properties(Some(&details));
            assert!(found.as_properties().is_empty(), "{details:?}");
        }
    }
}
