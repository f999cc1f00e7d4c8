//! The positioned tree: the content of a file of either format.
//!
//! Every value and every key has its position, so that later checks can point at it.

mod json;
mod yaml;

use std::collections::BTreeMap;
use std::path::Path;

use crate::model::Json;
use crate::problem::Problem;

/// Maximum nesting depth of objects and lists. The deepest known key is at depth 9.
const DEPTH_MAX: usize = 64;
/// Maximum number of values in a file, aliases expanded.
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
    /// The format of a file name.
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

/// A value and its position; of an object or list, its first byte.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

impl Node {
    pub(crate) fn new(span: Span, value: Value) -> Self {
        Self { span, value }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Any other number. No key accepts one, so only its text is kept.
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

impl Entry {
    pub(crate) fn new(key: String, key_span: Span, node: Node) -> Self {
        Self {
            key,
            key_span,
            node,
        }
    }
}

/// Reads `text`; `None` if it violates its format. A key given twice is a problem; its first value is kept, so that
/// the rest can be checked.
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

    /// The kind of a secret value.
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

    /// Whether the values are the same and stand in the same order, wherever they are in their files.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::List(one), Value::List(two)) => {
                let mut both = one.iter().zip(two);
                one.len() == two.len() && both.all(|(one, two)| one.is_same(two))
            }
            (Value::Object(one), Value::Object(two)) => {
                let mut both = one.iter().zip(two);
                one.len() == two.len()
                    && both.all(|(one, two)| one.key == two.key && one.node.is_same(&two.node))
            }
            (one, two) => one == two,
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

/// `text` in quotes, without control characters and shortened.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// Removes entries whose key an earlier one of the object has, which is an error.
fn refuse_repeated(entries: &mut Vec<Entry>, problems: &mut Vec<Problem>) {
    // Sorted, since an object may have ten thousand keys.
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key));
    let same_key = order.chunk_by(|a, b| entries[*a].key == entries[*b].key);
    // The order of equal keys is that of the file.
    let repeated = same_key.flat_map(|same| same[1..].iter().map(|again| (*again, same[0])));
    let repeated: BTreeMap<usize, usize> = repeated.collect();
    for (again, first) in &repeated {
        let Entry { key, key_span, .. } = &entries[*again];
        let message = format!("the key {} is given twice", quoted(key));
        let first = entries[*first].key_span;
        problems.push(Problem::error(*key_span, message).note_at(first, "it is given first here"));
    }
    if !repeated.is_empty() {
        let mut at = 0..;
        entries.retain(|_| at.next().is_none_or(|at| !repeated.contains_key(&at)));
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
