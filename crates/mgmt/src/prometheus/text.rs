//! The text format of Prometheus: families of samples.

use std::fmt::Display;
use std::io::Write as _;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Untyped,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Untyped => "untyped",
        }
    }
}

/// A family's name, its type and its help text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

pub(super) const fn counter(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Counter;
    Family { name, kind, help }
}

pub(super) const fn gauge(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Gauge;
    Family { name, kind, help }
}

pub(super) const fn untyped(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Untyped;
    Family { name, kind, help }
}

/// A text that is being written. `prefix` begins each name.
pub(super) struct Text<'o> {
    pub(super) out: &'o mut Vec<u8>,
    pub(super) prefix: &'static str,
}

impl Text<'_> {
    /// Begins a family.
    pub(super) fn begin(&mut self, family: &Family) {
        let Family { name, kind, help } = family;
        let prefix = self.prefix;
        let kind = kind.word();
        // A vector takes all that is written.
        let _ = write!(
            self.out,
            "# TYPE {prefix}{name} {kind}\n# HELP {prefix}{name} {help}\n"
        );
    }

    /// Adds a sample. The labels are as [`label`] makes them, separated by commas.
    pub(super) fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let out = &mut *self.out;
        out.extend_from_slice(self.prefix.as_bytes());
        out.extend_from_slice(name.as_bytes());
        if !labels.is_empty() {
            out.push(b'{');
            out.extend_from_slice(labels.as_bytes());
            out.push(b'}');
        }
        let _ = writeln!(out, " {value}");
    }

    /// A family of one sample without labels.
    pub(super) fn single(&mut self, family: Family, value: impl Display) {
        self.begin(&family);
        self.sample(family.name, "", value);
    }
}

/// Writes labels, with what the format escapes in values.
pub(super) fn labels<const N: usize>(pairs: [(&str, &str); N]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        for (value, expected) in [
            ("q", r#"queue="q""#),
            ("a\"b\\c\nd", r#"queue="a\"b\\c\nd""#),
            ("ü", r#"queue="ü""#),
        ] {
            assert_eq!(labels([("queue", value)]), expected);
        }
        assert_eq!(labels([("a", "1"), ("b", "2")]), r#"a="1",b="2""#);
    }

    #[test]
    fn families_have_a_type_and_a_help_text() {
        let mut out = Vec::new();
        let mut text = Text {
            out: &mut out,
            prefix: "rabbitmq_",
        };
        text.single(gauge("queues", "Queues available"), 3);
        let written = String::from_utf8(out).expect("is text");
        let expected = "# TYPE rabbitmq_queues gauge\n# HELP rabbitmq_queues Queues available\n\
                        rabbitmq_queues 3\n";
        assert_eq!(written, expected);
    }
}
