//! The positioned tree: what a file says, whichever of its two formats it is written in.
//!
//! Every value and every key knows where it stands, so that whatever is found wrong later,
//! however late, can point at it.

mod json;
mod yaml;

use std::path::Path;

use crate::model::Json;
use crate::problem::Problem;

/// How deep objects and lists may nest. The deepest known key stands at depth 9.
const DEPTH_MAX: usize = 64;
/// How many values a file may hold, aliases expanded.
const NODES_MAX: usize = 200_000;

/// The language a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 8259, without comments or other leniencies.
    Json,
    /// YAML, with the words that YAML 1.1 takes for booleans and its merge keys.
    Yaml,
}

impl Format {
    /// The format that the file's name says.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The language's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        }
    }
}

/// A range of bytes of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

/// A value and where it stands; of an object or list only the first byte.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Every other number. Nothing in a configuration is one, so only its text is kept.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Entry>),
}

/// A key of an object and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// Reads `text`; `None` when it is not of its format. A key given twice is a problem, and its
/// first value is kept, so that the rest can be checked all the same.
pub(crate) fn parse(text: &str, format: Format, problems: &mut Vec<Problem>) -> Option<Node> {
    let parsed = match format {
        Format::Json => json::parse(text, problems),
        Format::Yaml => yaml::parse(text, problems),
    };
    parsed.map_err(|problem| problems.push(problem)).ok()
}

impl Node {
    /// The value as a message shows it: `text "abc"`, `the integer 7`, `an object`.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing (null)".into(),
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => format!("the integer {value}"),
            Value::Number(text) => format!("the number {text}"),
            Value::Text(text) => format!("the text {}", quoted(text)),
            Value::List(items) if items.is_empty() => "an empty list".into(),
            Value::List(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
        }
    }

    /// The value's kind alone, where it is nobody's business.
    pub(crate) fn describe_kind(&self) -> String {
        match &self.value {
            Value::Integer(_) => "an integer".into(),
            Value::Number(_) => "a number".into(),
            Value::Text(_) => "a text".into(),
            _ => self.describe(),
        }
    }

    /// The value as JSON. A number that JSON cannot hold is its text.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Boolean(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Number(text) => number(text),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Object(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|entry| (entry.key.clone(), entry.node.to_json()));
                Json::Object(entries.collect())
            }
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        let Value::Object(entries) = &self.value else {
            return None;
        };
        entries.iter().find(|entry| entry.key == key)
    }
}

fn number(text: &str) -> Json {
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    let number = text.parse::<f64>().ok();
    let number = number.and_then(serde_json::Number::from_f64);
    number.map_or_else(|| text.into(), Json::Number)
}

/// `text` in quotes, without control characters, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// Puts an entry into an object that must not have its key yet.
fn insert(entries: &mut Vec<Entry>, entry: Entry, problems: &mut Vec<Problem>) {
    match entries.iter().find(|earlier| earlier.key == entry.key) {
        None => entries.push(entry),
        Some(earlier) => problems.push(
            Problem::error(
                entry.key_span,
                format!("the key {} is given twice", quoted(&entry.key)),
            )
            .note_at(earlier.key_span, "it is given first here"),
        ),
    }
}

fn too_deep(at: Span) -> Problem {
    Problem::error(
        at,
        format!("objects and lists are nested more than {DEPTH_MAX} deep"),
    )
}

fn too_many(at: Span) -> Problem {
    Problem::error(at, format!("there are more than {NODES_MAX} values"))
}
