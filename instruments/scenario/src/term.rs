//! Values in scenarios: those to be sent, and patterns for received ones.

use crosstie_wamp::Value;

use crate::labels::Labels;

/// A value, or a placeholder.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// `*`, and `*id`, `*text`, …
    Any(Kind),
    /// `#name`, of any type.
    Label(String),
    /// Text with labels in it: `#u.topic`.
    Text(Vec<Piece>),
    /// Any other value without parts.
    Value(Value),
    List(Vec<Item>),
    Dict {
        entries: Vec<Entry>,
        /// Whether other entries may be present.
        is_open: bool,
    },
}

/// The kind of a wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Anything,
    /// An integer from 1 to 2^53 (WAMP, "IDs").
    Id,
    Number,
    Text,
    Flag,
    List,
    Dict,
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Plain(String),
    Label(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    One(Term),
    /// `...`: any number of values.
    Rest,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    /// `None`: `!key`, which must be absent.
    pub value: Option<Term>,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Anything,
        Self::Id,
        Self::Number,
        Self::Text,
        Self::Flag,
        Self::List,
        Self::Dict,
        Self::Bytes,
    ];

    /// The text behind the asterisk.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anything => "",
            Self::Id => "id",
            Self::Number => "number",
            Self::Text => "text",
            Self::Flag => "flag",
            Self::List => "list",
            Self::Dict => "dict",
            Self::Bytes => "bytes",
        }
    }

    pub fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Anything, _)
            | (Self::Number, Value::Integer(_) | Value::Float(_))
            | (Self::Text, Value::String(_))
            | (Self::Flag, Value::Bool(_))
            | (Self::List, Value::List(_))
            | (Self::Dict, Value::Dict(_))
            | (Self::Bytes, Value::Binary(_)) => true,
            (Self::Id, Value::Integer(number)) => (1..=1 << 53).contains(number),
            _ => false,
        }
    }
}

impl Term {
    /// The value to be sent; or the unbound label.
    pub fn fill(&self, labels: &Labels) -> Result<Value, String> {
        Ok(match self {
            Self::Any(kind) => return Err(format!("*{}", kind.name())),
            Self::Label(name) => labels
                .value(name)
                .cloned()
                .ok_or_else(|| format!("#{name}"))?,
            Self::Text(pieces) => Value::String(fill_text(pieces, labels)?),
            Self::Value(value) => value.clone(),
            Self::List(items) => {
                let items = items.iter().map(|item| match item {
                    Item::One(term) => term.fill(labels),
                    Item::Rest => Err("...".to_owned()),
                });
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Self::Dict { entries, .. } => {
                let entries = entries.iter().filter_map(|entry| {
                    let value = entry.value.as_ref()?;
                    Some(value.fill(labels).map(|value| (entry.key.clone(), value)))
                });
                Value::Dict(entries.collect::<Result<_, _>>()?)
            }
        })
    }

    /// Calls `look` for each part, itself first.
    pub(crate) fn visit<'t>(&'t self, look: &mut impl FnMut(&'t Self)) {
        look(self);
        match self {
            Self::List(items) => {
                for item in items {
                    if let Item::One(term) = item {
                        term.visit(look);
                    }
                }
            }
            Self::Dict { entries, .. } => {
                for entry in entries {
                    if let Some(term) = &entry.value {
                        term.visit(look);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Text with its labels filled in; or the unbound label.
pub(crate) fn fill_text(pieces: &[Piece], labels: &Labels) -> Result<String, String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Plain(plain) => text.push_str(plain),
            Piece::Label(name) => match labels.value(name) {
                Some(Value::String(value)) => text.push_str(value),
                Some(Value::Integer(number)) => text.push_str(&number.to_string()),
                _ => return Err(format!("#{name}")),
            },
        }
    }
    Ok(text)
}
