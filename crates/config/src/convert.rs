//! Conversion of a file to the other format and to version 2, with the order of its keys kept.
//!
//! The result is read again and returned only if its meaning is the same. Whether it is a good configuration does not
//! matter here.

use crate::earlier;
use crate::problem::{Problem, Source, failed};
use crate::tree::{self, Format, Node, Span, Value};

/// A list of short words stands in one line.
const LINE_CHARACTERS_MAX: usize = 60;

/// Converts `source` from the format `from` to `to` and to version 2. Warnings name the parts of version 1. Comments
/// are lost; aliases and merged keys are expanded.
pub fn convert(
    source: &Source,
    from: Format,
    to: Format,
) -> Result<(String, Vec<Problem>), Vec<Problem>> {
    let mut problems = Vec::new();
    let Some(mut node) = tree::parse(&source.text, from, &mut problems) else {
        return Err(problems);
    };
    if failed(&problems) {
        return Err(problems);
    }
    earlier::renew(&mut node, &mut problems);
    let text = match to {
        Format::Json => format!("{:#}\n", node.to_json()),
        Format::Yaml => yaml(&node),
    };
    let again = tree::parse(&text, to, &mut problems);
    if again.is_some_and(|again| same(&node, &again)) {
        return Ok((text, problems));
    }
    let at = first_difference(&node).unwrap_or(node.span);
    let message = format!("this cannot be said in {}", to.name());
    Err(vec![Problem::error(at, message)])
}

fn yaml(node: &Node) -> String {
    let mut out = String::new();
    block(&mut out, node, 0);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a value after its key or dash, on lines of its own if it needs them.
fn block(out: &mut String, node: &Node, indent: usize) {
    let indented = |out: &mut String| {
        // An item of a list continues a line.
        if out.is_empty() || out.ends_with('\n') {
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match &node.value {
        Value::Object(entries) if !entries.is_empty() => {
            for entry in entries {
                indented(out);
                *out += &scalar_text(&entry.key);
                out.push(':');
                begin(out, &entry.node);
                block(out, &entry.node, indent + 2);
            }
        }
        Value::List(items) if !items.is_empty() && !is_short(items) => {
            for item in items {
                indented(out);
                *out += "- ";
                block(out, item, indent + 2);
            }
        }
        _ => {
            *out += &flow(node);
            out.push('\n');
        }
    }
}

/// The white space between a key's colon and its value.
fn begin(out: &mut String, node: &Node) {
    out.push(match &node.value {
        Value::Object(entries) if !entries.is_empty() => '\n',
        Value::List(items) if !items.is_empty() && !is_short(items) => '\n',
        _ => ' ',
    });
}

fn is_short(items: &[Node]) -> bool {
    let is_leaf = |item: &Node| !matches!(item.value, Value::List(_) | Value::Object(_));
    let length: usize = items
        .iter()
        .map(|item| flow(item).chars().count() + 2)
        .sum();
    items.iter().all(is_leaf) && length <= LINE_CHARACTERS_MAX
}

fn flow(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".into(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Number(text) => text.clone(),
        Value::Text(text) => scalar_text(text),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        // Only an empty value is written on one line.
        Value::Object(_) => "{}".into(),
    }
}

/// Plain if no YAML reader, new or old, could read anything else.
fn scalar_text(text: &str) -> String {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let begins = |c: char| c.is_ascii_alphabetic() || "_/$".contains(c);
    let fits = |c: char| c.is_ascii_alphanumeric() || "_./$- ".contains(c);
    let plain = text.starts_with(begins) && text.chars().all(fits) && !text.ends_with(' ');
    if plain && !WORDS.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            // YAML 1.2, section 5.1: characters that are not printable, and line breaks.
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted += &format!("\\u{:04x}", u32::from(c));
            }
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether two trees are equal, positions aside.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Number(one), Value::Number(other)) => {
            let value = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
            value(one).is_some() && value(one) == value(other)
        }
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| one.key == other.key && same(&one.node, &other.node))
        }
        (one, other) => one == other,
    }
}

/// The position of the first value that the other format cannot hold: a number that is too large.
fn first_difference(node: &Node) -> Option<Span> {
    match &node.value {
        Value::Number(text) => {
            let fits = text.parse::<f64>().is_ok_and(f64::is_finite);
            (!fits).then_some(node.span)
        }
        Value::List(items) => items.iter().find_map(first_difference),
        Value::Object(entries) => {
            let mut entries = entries.iter();
            entries.find_map(|entry| first_difference(&entry.node))
        }
        _ => None,
    }
}
