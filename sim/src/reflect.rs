//! The calls of a session about definitions: `wamp.reflect.…` and `wamp.reflection.…`.

use crosstie_wamp::Value;

/// The kinds of URIs that can be defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defined {
    Procedure,
    Topic,
    Error,
}

/// One question, or one order.
#[derive(Clone, Debug)]
pub enum Reflect {
    Define {
        uri: String,
        description: String,
        of: Whether,
    },
    Undefine {
        uri: String,
        of: Whether,
    },
    Describe {
        uri: String,
        of: Whether,
    },
    DescribeOne {
        uri: String,
        of: Defined,
    },
    List {
        of: Defined,
    },
}

/// The kind, if one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whether {
    Unsaid,
    Said(Defined),
    Nonsense,
}

impl Defined {
    pub const ALL: [Self; 3] = [Self::Procedure, Self::Topic, Self::Error];

    pub fn name(self) -> &'static str {
        match self {
            Self::Procedure => "procedure",
            Self::Topic => "topic",
            Self::Error => "error",
        }
    }
}

impl Whether {
    fn argument(self) -> Value {
        match self {
            Self::Unsaid => Value::Null,
            Self::Said(kind) => Value::from(kind.name()),
            Self::Nonsense => Value::from("method"),
        }
    }
}

impl Reflect {
    /// Behind `wamp.`.
    pub(crate) fn procedure(&self) -> String {
        match self {
            Self::Define { .. } => "reflect.define".to_owned(),
            Self::Undefine { .. } => "reflect.undefine".to_owned(),
            Self::Describe { .. } => "reflect.describe".to_owned(),
            Self::DescribeOne { of, .. } => format!("reflection.{}.describe", of.name()),
            Self::List { of } => format!("reflection.{}.list", of.name()),
        }
    }

    pub(crate) fn arguments(&self) -> Vec<Value> {
        match self {
            Self::Define {
                uri,
                description,
                of,
            } => vec![
                Value::from(uri.as_str()),
                Value::from(description.as_str()),
                of.argument(),
            ],
            Self::Undefine { uri, of } | Self::Describe { uri, of } => {
                vec![Value::from(uri.as_str()), of.argument()]
            }
            Self::DescribeOne { uri, .. } => vec![Value::from(uri.as_str())],
            Self::List { .. } => Vec::new(),
        }
    }
}
