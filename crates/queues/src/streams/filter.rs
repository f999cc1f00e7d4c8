//! The messages of a stream that a consumer wants: those with one of some values in the header `x-stream-filter-value`.
//!
//! Each message is judged by its own value. RabbitMQ, which judges chunks by a Bloom filter, sends others beside them, so
//! its clients filter again.

use crosstie_amqp::{Properties, Table, Value};

use crate::topology::kind;

/// The value of a message, set by its publisher.
const VALUE: &str = "x-stream-filter-value";

/// The wanted values of a consumer: a text, or a list of texts.
pub(crate) const FILTER: &str = "x-stream-filter";

/// Whether the consumer wants messages without a value, too.
pub(crate) const MATCH_UNFILTERED: &str = "x-stream-match-unfiltered";

/// Maximum values of a consumer, since each message is compared with them.
const VALUES_MAX: usize = 1_024;

/// A consumer's choice. An empty value stands for messages without one, as in RabbitMQ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFilter {
    /// In their order.
    values: Vec<Box<[u8]>>,
}

impl StreamFilter {
    /// Parses a consumer's arguments; `None` if they ask for all messages. An error names the argument and the reason.
    pub fn parse(arguments: Table<'_>) -> Result<Option<Self>, (&'static str, String)> {
        let match_unfiltered = match arguments.find(MATCH_UNFILTERED) {
            None => false,
            Some(Value::Bool(is_so)) => is_so,
            Some(other) => {
                let reason = format!("expected a boolean, got {}", kind(other));
                return Err((MATCH_UNFILTERED, reason));
            }
        };
        let Some(wanted) = arguments.find(FILTER) else {
            return Ok(None);
        };
        let mut values = match wanted {
            Value::LongString(value) => vec![value.into()],
            Value::Array(list) => {
                let values = list.iter().map(|value| match value {
                    Value::LongString(value) => Ok(value.into()),
                    other => Err(format!(
                        "expected a list of texts, got {} in it",
                        kind(other)
                    )),
                });
                let values: Result<Vec<Box<[u8]>>, String> = values.collect();
                values.map_err(|reason| (FILTER, reason))?
            }
            other => {
                let reason = format!("expected a text or a list of texts, got {}", kind(other));
                return Err((FILTER, reason));
            }
        };
        if values.is_empty() || values.len() > VALUES_MAX {
            let reason = format!("expected 1 to {VALUES_MAX} values, got {}", values.len());
            return Err((FILTER, reason));
        }
        if match_unfiltered {
            values.push(Box::default());
        }
        values.sort_unstable();
        values.dedup();
        Ok(Some(Self { values }))
    }

    /// Whether the consumer wants the message with these properties.
    pub fn accepts(&self, properties: Properties<'_>) -> bool {
        let headers = properties.parse_for_broker().headers;
        let value = match headers.and_then(|headers| headers.find(VALUE)) {
            Some(Value::LongString(value)) => value,
            _ => b"",
        };
        let found = self.values.binary_search_by(|wanted| (**wanted).cmp(value));
        found.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::{BasicProperties, TableBuf};

    use super::*;

    fn parse(arguments: Table<'_>) -> Result<StreamFilter, String> {
        let parsed = StreamFilter::parse(arguments);
        let parsed = parsed.map_err(|(name, reason)| format!("{name}: {reason}"));
        parsed.map(|filter| filter.expect("asks for a part"))
    }

    fn filter(wanted: Value<'_>, unfiltered: Option<Value<'_>>) -> Result<StreamFilter, String> {
        let mut arguments = TableBuf::new().with(FILTER, wanted);
        if let Some(unfiltered) = unfiltered {
            arguments = arguments.with(MATCH_UNFILTERED, unfiltered);
        }
        parse(arguments.as_table())
    }

    /// A filter with a list.
    fn listed(values: &[Value<'_>]) -> Result<StreamFilter, String> {
        let mut list = Vec::new();
        for value in values {
            // A field without its name.
            list.extend_from_slice(&TableBuf::new().with("", *value).as_table().bytes()[1..]);
        }
        let mut bytes = vec![FILTER.len() as u8];
        bytes.extend_from_slice(FILTER.as_bytes());
        bytes.push(b'A');
        bytes.extend_from_slice(&(list.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&list);
        parse(Table::from_bytes(&bytes).expect("is a table"))
    }

    /// The messages without a value, and with these, that a filter accepts.
    fn accepted(filter: &StreamFilter) -> Vec<&'static str> {
        let mut accepted = Vec::new();
        for value in ["none", "", "a", "aa", "b", "number"] {
            let header = match value {
                "number" => Value::I32(1),
                value => Value::LongString(value.as_bytes()),
            };
            let headers = match value {
                "none" => TableBuf::new().with("other", Value::LongString(b"a")),
                _ => TableBuf::new().with(VALUE, header),
            };
            let named = BasicProperties {
                headers: Some(headers.as_table()),
                ..BasicProperties::default()
            };
            let mut bytes = Vec::new();
            named.write(&mut bytes);
            if filter.accepts(Properties::from_bytes(&bytes).expect("are properties")) {
                accepted.push(value);
            }
        }
        accepted
    }

    #[test]
    fn a_message_is_accepted_by_its_value() {
        #[track_caller]
        fn check(wanted: Value<'_>, unfiltered: Option<bool>, expected: &[&str]) {
            let filter = filter(wanted, unfiltered.map(Value::Bool)).expect("is a filter");
            assert_eq!(accepted(&filter), expected);
        }
        check(Value::LongString(b"a"), None, &["a"]);
        check(Value::LongString(b"a"), Some(false), &["a"]);
        check(
            Value::LongString(b"a"),
            Some(true),
            &["none", "", "a", "number"],
        );
        check(Value::LongString(b""), None, &["none", "", "number"]);
        check(Value::LongString(b"c"), None, &[]);
        let list = ["b", "a", "b"].map(|value| Value::LongString(value.as_bytes()));
        let list = listed(&list).expect("is a filter");
        assert_eq!(accepted(&list), ["a", "b"]);
        for is_unfiltered in [false, true] {
            let filter = filter(Value::LongString(b"a"), Some(Value::Bool(is_unfiltered)));
            let is_accepted = filter.expect("is a filter").accepts(Properties::EMPTY);
            assert_eq!(is_accepted, is_unfiltered, "a message without headers");
        }
    }

    #[test]
    fn other_types_are_refused_by_name() {
        #[track_caller]
        fn check(wanted: Value<'_>, unfiltered: Option<Value<'_>>, expected: &str) {
            assert_eq!(filter(wanted, unfiltered), Err(expected.to_owned()));
        }
        let text = "x-stream-filter: expected a text or a list of texts, got ";
        check(Value::I32(1), None, &format!("{text}signedint"));
        check(Value::Void, None, &format!("{text}void"));
        let values = "x-stream-filter: expected 1 to 1024 values, got ";
        assert_eq!(listed(&[]), Err(format!("{values}0")));
        let many = vec![Value::LongString(b"v"); 1_025];
        assert_eq!(listed(&many), Err(format!("{values}1025")));
        let mixed = listed(&[Value::LongString(b"a"), Value::Bool(true)]);
        let reason = "x-stream-filter: expected a list of texts, got bool in it";
        assert_eq!(mixed, Err(reason.to_owned()));
        check(
            Value::LongString(b"a"),
            Some(Value::LongString(b"true")),
            "x-stream-match-unfiltered: expected a boolean, got longstr",
        );
        let none = TableBuf::new().with(MATCH_UNFILTERED, Value::Bool(true));
        assert_eq!(StreamFilter::parse(none.as_table()), Ok(None));
    }
}
